package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Awaiting says that an execution (Waiter) waits for another that it did not make. Token names its wait, so that what
// belongs to an earlier one is known. Over: it waits no longer.
type Awaiting struct {
	Awaited, Waiter flowfabric.ExecutionID
	Token           string
	Over            bool
	Cancel          bool // with Over: the awaited one is cancelled, with its flow
}

// AwaitedEnd tells a waiter how one of those ended.
type AwaitedEnd struct {
	Awaiting
	Mark    string // as lua/lib/group.lua has them, and x for one that is gone
	Attempt int    // its last, 0 for none
}

// Awaited answers NoteWaiters. Ended: it has ended, as End tells. Known: the waiter would be told already.
type Awaited struct {
	Ended, Known bool
	End          AwaitedEnd
}

// markGone stands for an execution that is gone, and nothing tells how it ended.
const markGone = "x"

// full is an execution as another partition names it.
func full(id flowfabric.ExecutionID) string {
	return strconv.Itoa(int(id.Partition())) + "." + ids.UUID(id).String()
}

// parseFull reads what full writes; a text without a partition is an execution of the one that is given.
func parseFull(partition uint16, text string) (flowfabric.ExecutionID, error) {
	if number, id, ok := strings.Cut(text, "."); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || strconv.FormatUint(n, 10) != number {
			return flowfabric.ExecutionID{}, fmt.Errorf("%.8q is not the number of a partition", number)
		}
		partition, text = uint16(n), id
	}
	id, err := ids.ParseUUID(text)
	return mint.Join(partition, id), err
}

// CheckOthers tells of executions of any partition that waiter is about to wait for how they ended, if they have
// (lua/read/ff_check_others.lua); Outcome is empty of one that has not. Each partition is one call, or more.
//
// Errors: ErrNotFound and ErrResultPurged with the id of the one that does not exist, denied.SelfEdge for the waiter
// itself, denied.Cycle for one that waits for the waiter, or is of its flow and cannot run before the waiter has ended,
// denied.FanIn for one that 1,000 wait for, ErrInvalidInput for a partition that does not exist.
func (e *Engine) CheckOthers(ctx context.Context, waiter flowfabric.ExecutionID,
	list []flowfabric.ExecutionID) ([]ChildOutcome, error) {
	out, by := make([]ChildOutcome, len(list)), map[uint16][]int{}
	var order []uint16
	for i, id := range list {
		p := id.Partition()
		switch {
		case id == waiter:
			return nil, fmt.Errorf("ff_check_others: %w: %s waits for itself", denied.SelfEdge, id)
		case p >= e.partitions:
			return nil, fmt.Errorf("ff_check_others: %w: %s: partition %d of %d", flowfabric.ErrInvalidInput,
				id, p, e.partitions)
		case by[p] == nil:
			order = append(order, p)
		}
		by[p] = append(by[p], i)
	}
	for _, p := range order {
		for batch := range slices.Chunk(by[p], limits.MaxBatch) {
			q := wire.CheckOthers{Waiter: full(waiter)}
			for _, i := range batch {
				q.Executions = append(q.Executions, ids.UUID(list[i]).String())
			}
			r, _, err := ask[wire.CheckOthersReply](ctx, e, p, q)
			if err = answers("ff_check_others", err, len(r.Executions), len(batch)); err != nil {
				return nil, err
			}
			for n, i := range batch {
				x := r.Executions[n]
				out[i] = ChildOutcome{ID: list[i], Outcome: endings[x.Mark], Attempt: x.Attempt}
			}
		}
	}
	return out, nil
}

// WaitForOthers puts what q.Others has on the list of a wait of a held execution, and has those that have not ended
// told of it (lua/flow/ff_wait_for_others.lua). A suspension with [waitwords.ChildrenCondition] follows. The call may
// be repeated.
//
// Errors: denied.SelfEdge, denied.FanIn, denied.StepLimit, and those of a fence.
func (e *Engine) WaitForOthers(ctx context.Context, f flowfabric.Fence, q ChildWait) error {
	rest, after := q.leftovers()
	for batch := range slices.Chunk(q.Others, limits.MaxBatch) {
		call := wire.WaitForOthers{Fence: fenceOf(f), Name: q.Name, Mode: string(q.Mode), After: after, Rest: rest}
		for _, x := range batch {
			if x.Outcome == "" && x.Cancel {
				x.Attempt = 1
			}
			call.Others = append(call.Others, wire.WaitForOthersOther{Execution: full(x.ID), Node: x.Node,
				Mark: marks[x.Outcome], Attempt: x.Attempt})
		}
		if _, err := e.settled(ctx, f.Execution.Partition(), call); err != nil {
			return err
		}
	}
	return nil
}

// answers refuses another number of answers than were asked for, unless there is an error already.
func answers(op string, err error, got, want int) error {
	if err != nil || got == want {
		return err
	}
	return unread(op, fmt.Errorf("%d answers to %d items", got, want))
}

var marks = map[flowfabric.PublicState]string{"": ".", flowfabric.Completed: "s", flowfabric.Failed: "f",
	flowfabric.Cancelled: "c", flowfabric.Expired: "e", flowfabric.Skipped: "k"}

// NoteWaiters tells executions of one partition who waits for them, or no longer, at most 100
// (lua/flow/ff_note_waiters.lua). With look it changes nothing, and answers likewise. It may be repeated.
func (e *Engine) NoteWaiters(ctx context.Context, partition uint16, items []Awaiting, look bool) ([]Awaited, error) {
	var q wire.NoteWaiters
	for _, x := range items {
		op := "+"
		switch {
		case x.Over && x.Cancel:
			op = "x"
		case x.Over:
			op = "-"
		case look:
			op = "?"
		}
		q.Items = append(q.Items, wire.NoteWaitersItem{Op: op, Execution: ids.UUID(x.Awaited).String(),
			Waiter: full(x.Waiter), Token: x.Token})
	}
	r, _, err := ask[wire.NoteWaitersReply](ctx, e, partition, q)
	if err = answers("ff_note_waiters", err, len(r.Items), len(items)); err != nil {
		return nil, err
	}
	out := make([]Awaited, len(items))
	for i, x := range r.Items {
		out[i] = Awaited{Ended: x.Mark != "" && x.Mark != ".", Known: x.Known,
			End: AwaitedEnd{Awaiting: items[i], Mark: x.Mark, Attempt: x.Attempt}}
	}
	return out, nil
}

// TellWaiters tells executions of one partition how others ended that they wait for, at most 100 ends
// (lua/flow/ff_tell_waiters.lua). It may be repeated; told counts what was new.
func (e *Engine) TellWaiters(ctx context.Context, partition uint16, items []AwaitedEnd) (told int, err error) {
	var q wire.TellWaiters
	for _, x := range items {
		q.Items = append(q.Items, wire.TellWaitersItem{Waiter: ids.UUID(x.Waiter).String(), Awaited: full(x.Awaited),
			Token: x.Token, Mark: x.Mark, Attempt: x.Attempt})
	}
	r, _, err := ask[wire.TellWaitersReply](ctx, e, partition, q)
	return r.Told, err
}

// awaited reads a notice of the outbox (lua/lib/wait_others.lua).
func (x *OutboxEntry) awaited(kind string, partition uint16, h *header) {
	whole, err := parseFull(partition, h.next())
	if err != nil && h.err == nil {
		h.err = err
	}
	own := h.id(partition)
	token := h.next()
	switch kind {
	case "a", "n", "k":
		x.Awaiting = append(x.Awaiting,
			Awaiting{Awaited: whole, Waiter: own, Token: token, Over: kind != "a", Cancel: kind == "k"})
	case "w":
		mark, attempt, _ := strings.Cut(h.next(), ",")
		last, err := strconv.Atoi(cmp.Or(attempt, "0"))
		if err != nil && h.err == nil {
			h.err = err
		}
		x.Ends = append(x.Ends,
			AwaitedEnd{Awaiting: Awaiting{Awaited: own, Waiter: whole, Token: token}, Mark: mark, Attempt: last})
	}
}

// OpenAwaited reads for whom executions of a partition wait that they did not make, and who has not ended as far as
// they know; of those that wait no more nothing. An audit asks.
func (e *Engine) OpenAwaited(ctx context.Context, partition uint16,
	waiters []flowfabric.ExecutionID) (open []Awaiting, err error) {
	k, builds := keys.Of(partition), []func(rueidis.Client) rueidis.Completed{}
	for _, id := range waiters {
		core, list := k.Core(ids.UUID(id)), k.Children(ids.UUID(id))
		builds = append(builds, func(c rueidis.Client) rueidis.Completed { return c.B().Get().Key(core).Build() },
			func(c rueidis.Client) rueidis.Completed { return c.B().Hgetall().Key(list).Build() })
	}
	answers := e.plainAll(ctx, builds)
	for i, id := range waiters {
		text, err := answers[2*i].ToString()
		if rueidis.IsRedisNil(err) {
			continue
		}
		if err != nil {
			return nil, CallError("read", err)
		}
		list, err := answers[2*i+1].AsStrMap()
		if err != nil {
			return nil, CallError("read", err)
		}
		core, err := record.Decode(text)
		if err != nil || list["others"] == "" || !strings.Contains(core.Fields["wt"], " p ") ||
			strings.HasPrefix(core.Fields["s"], "T") {
			continue // damage is what other looks report
		}
		for other, how := range list {
			if awaited, err := parseFull(partition, other); err == nil && len(other) > 36 && strings.HasPrefix(how,
				".,") {
				open = append(open, Awaiting{Awaited: awaited, Waiter: id, Token: list["others"]})
			}
		}
	}
	return open, nil
}

// states reads those of executions that another partition knows.
func (e *Engine) states(ctx context.Context, list []Other) error {
	var builds []func(rueidis.Client) rueidis.Completed
	var at []int
	for i, x := range list {
		if x.Apart && x.ID.Partition() < e.partitions {
			key := keys.Of(x.ID.Partition()).Core(ids.UUID(x.ID))
			at, builds = append(at, i),
				append(builds, func(c rueidis.Client) rueidis.Completed { return c.B().Get().Key(key).Build() })
		}
	}
	if len(builds) == 0 {
		return nil
	}
	for n, answer := range e.plainAll(ctx, builds) {
		text, err := answer.ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return CallError("read", err)
		}
		if core, err := record.Decode(text); err == nil {
			list[at[n]].State = codes.Shown(codes.Code(core.Fields["s"]))
		}
	}
	return nil
}
