package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/record"
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
	Attempt string // its last, "" for none
}

// Awaited answers Await. Ended: it has ended, as End tells. Known: the waiter would be told already.
type Awaited struct {
	Ended, Known bool
	End          AwaitedEnd
}

// markGone stands for an execution that is gone, and nothing tells how it ended.
const markGone = "x"

// full is an execution as another partition names it.
func full(id flowfabric.ExecutionID) string {
	return strconv.Itoa(int(id.Partition())) + "." + id.UUID().String()
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
	return flowfabric.MakeExecutionID(partition, id), err
}

// CheckAwaited tells of executions of any partition that waiter is about to wait for how they ended, if they have
// (lua/read/ff_check_awaited.lua); Outcome is empty of one that has not. Each partition is one call, or more.
//
// Errors: ErrNotFound and ErrResultPurged with the id of the one that does not exist, denied.SelfEdge for the waiter
// itself, denied.Cycle for one that waits for the waiter, denied.FanIn for one that 1,000 wait for, ErrInvalidInput
// for a partition that does not exist.
func (e *Engine) CheckAwaited(ctx context.Context, waiter flowfabric.ExecutionID,
	list []flowfabric.ExecutionID) ([]ChildOutcome, error) {
	out, by := make([]ChildOutcome, len(list)), map[uint16][]int{}
	var order []uint16
	for i, id := range list {
		p := id.Partition()
		switch {
		case id == waiter:
			return nil, fmt.Errorf("%s: %w: %s waits for itself", fnCheckAwaited.name, denied.SelfEdge, id)
		case p >= e.partitions:
			return nil, fmt.Errorf("%s: %w: %s: partition %d of %d", fnCheckAwaited.name, flowfabric.ErrInvalidInput,
				id, p, e.partitions)
		case by[p] == nil:
			order = append(order, p)
		}
		by[p] = append(by[p], i)
	}
	for _, p := range order {
		for batch := range slices.Chunk(by[p], limits.MaxBatch) {
			args := []string{protocol, full(waiter), strconv.Itoa(len(batch))}
			for _, i := range batch {
				args = append(args, list[i].UUID().String())
			}
			r, err := e.call(ctx, fnCheckAwaited, p, args...)
			if err != nil {
				return nil, err
			}
			if n := r.Count(2); n != len(batch) {
				r.Stop("%d answers to %d executions", n, len(batch))
			}
			for _, i := range batch {
				mark := r.Text()
				out[i] = ChildOutcome{ID: list[i], Outcome: endings[mark], Attempt: r.attempt()}
			}
			if err := r.fail(); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// WaitOthers puts what q.Others has on the list of a wait of a held execution, and has those that have not ended told
// of it (lua/flow/ff_wait_others.lua). A suspension with [waithook.ChildrenCondition] follows. The call may be
// repeated.
//
// Errors: denied.SelfEdge, denied.FanIn, denied.StepLimit, and those of a fence.
func (e *Engine) WaitOthers(ctx context.Context, f flowfabric.Fence, q ChildWait) error {
	rest, after := q.leftovers()
	for batch := range slices.Chunk(q.Others, limits.MaxBatch) {
		args := append(fenceArgs([]string{protocol}, f), q.Name, string(q.Mode), after, rest, strconv.Itoa(len(batch)))
		for _, x := range batch {
			args = append(args, full(x.ID), x.Node, x.mark(), x.last())
		}
		if _, err := e.call(ctx, fnWaitOthers, f.Execution.Partition(), args...); err != nil {
			return err
		}
	}
	return nil
}

var marks = map[flowfabric.PublicState]string{"": ".", flowfabric.Completed: "s", flowfabric.Failed: "f",
	flowfabric.Cancelled: "c", flowfabric.Expired: "e", flowfabric.Skipped: "k"}

func (x ChildOutcome) mark() string { return marks[x.Outcome] }

func (x ChildOutcome) last() string {
	if x.Outcome == "" && x.Cancel {
		return "1"
	}
	if x.Attempt == 0 {
		return ""
	}
	return strconv.Itoa(x.Attempt)
}

// Await tells executions of one partition who waits for them, or no longer, at most 100 (lua/flow/ff_await.lua). With
// look it changes nothing, and answers likewise. It may be repeated.
func (e *Engine) Await(ctx context.Context, partition uint16, items []Awaiting, look bool) ([]Awaited, error) {
	args := []string{protocol, strconv.Itoa(len(items))}
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
		args = append(args, op, x.Awaited.UUID().String(), full(x.Waiter), x.Token)
	}
	r, err := e.call(ctx, fnAwait, partition, args...)
	if err != nil {
		return nil, err
	}
	if n := r.Count(3); n != len(items) {
		r.Stop("%d answers to %d items", n, len(items))
	}
	out := make([]Awaited, len(items))
	for i, x := range items {
		mark := r.Text()
		out[i] = Awaited{Ended: mark != "" && mark != ".", End: AwaitedEnd{Awaiting: x, Mark: mark, Attempt: r.Text()},
			Known: r.Flag()}
	}
	return out, r.fail()
}

// TellWaiters tells executions of one partition how others ended that they wait for, at most 100 ends
// (lua/flow/ff_tell_waiters.lua). It may be repeated; told counts what was new.
func (e *Engine) TellWaiters(ctx context.Context, partition uint16, items []AwaitedEnd) (told int, err error) {
	args := []string{protocol, strconv.Itoa(len(items))}
	for _, x := range items {
		args = append(args, x.Waiter.UUID().String(), full(x.Awaited), x.Token, x.Mark, x.Attempt)
	}
	r, err := e.call(ctx, fnTellWaiters, partition, args...)
	if err != nil {
		return 0, err
	}
	told = r.Int()
	return told, r.fail()
}

// awaited reads a notice of the outbox (lua/lib/awaited.lua).
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
		x.Ends = append(x.Ends, AwaitedEnd{Awaiting: Awaiting{Awaited: own, Waiter: whole, Token: token}, Mark: mark,
			Attempt: attempt})
	}
}

// OpenAwaited reads for whom executions of a partition wait that they did not make, and who has not ended as far as
// they know; of those that wait no more nothing. An audit asks.
func (e *Engine) OpenAwaited(ctx context.Context, partition uint16,
	waiters []flowfabric.ExecutionID) (open []Awaiting, err error) {
	k, builds := keys.Of(partition), []func(rueidis.Client) rueidis.Completed{}
	for _, id := range waiters {
		core, list := k.Core(id.UUID()), k.Children(id.UUID())
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
			return nil, callError("read", err)
		}
		list, err := answers[2*i+1].AsStrMap()
		if err != nil {
			return nil, callError("read", err)
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
			key := keys.Of(x.ID.Partition()).Core(x.ID.UUID())
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
			return callError("read", err)
		}
		if core, err := record.Decode(text); err == nil {
			list[at[n]].State, _ = flowfabric.Project(flowfabric.Code(core.Fields["s"]))
		}
	}
	return nil
}
