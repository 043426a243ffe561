package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// WaitMode says how many children must have ended.
type WaitMode string

// The modes.
const (
	WaitAll          WaitMode = "all"
	WaitFirst        WaitMode = "first"
	WaitFirstSuccess WaitMode = "success" // or all, when none succeeds
	WaitFailFast     WaitMode = "fast"    // all have succeeded, or one did not
)

// ChildWait is what a holder waits for.
type ChildWait struct {
	Name string // of the wait, 1..128 bytes, unique in a handler
	Mode WaitMode
	// CancelRemaining cancels the children that are open when the wait is over.
	CancelRemaining bool
	// let open children run on when the execution ends before them; they are cancelled else
	Leave bool
	// 0..100, at most 1,000 a wait; as for StageFlow, those with many edges take several calls
	Children []FlowMember
	// Others are executions that the holder did not make and waits for as well, at most 1,000 with the children, with
	// how those of them ended that had ended when they were looked at ([Engine.CheckOthers]). The caller makes
	// [Engine.WaitForOthers].
	Others []ChildOutcome
	// Until is how the holder waits, once the children are made: a suspension with [waitwords.ChildrenCondition] in its
	// condition. The caller makes it.
	Until *Suspension
}

// leftovers says what becomes of open children when the execution ends, and when the wait is over.
func (q ChildWait) leftovers() (rest, after string) {
	rest, after = "cancel", "run"
	if q.Leave {
		rest = "leave"
	}
	if q.CancelRemaining {
		after = "cancel"
	}
	return rest, after
}

// ChildOutcome tells how a child ended, or an execution that was waited for like one.
type ChildOutcome struct {
	ID      flowfabric.ExecutionID
	Node    string
	Outcome flowfabric.PublicState // empty while it has not ended
	Attempt int                    // the one that ended so, 0 when there is none
	Gone    bool                   // it is gone, and nothing tells how it ended
	Cancel  bool                   // of WaitForOthers: cancelled when the wait is over or the execution ends first
}

// MadeChildren answers MakeChildren.
type MadeChildren struct {
	Already  bool // a repetition: the execution waits already
	Over     bool // the wait of this name is over; Outcomes are recorded as the step StepChildren+Name
	Outcomes []ChildOutcome
}

// MakeChildren makes children of a held execution (lua/flow/ff_make_children.lua). They join the execution's flow; one
// that is not in a flow founds one. A suspension with [waitwords.ChildrenCondition] follows. The call may be repeated;
// when the wait is over it makes nothing and tells the outcomes.
//
// Errors: denied.FlowSealed for a flow that takes no members, denied.FlowCancelled, denied.FanIn, denied.StepLimit,
// those of StageFlow, and those of a fence.
func (e *Engine) MakeChildren(ctx context.Context, f flowfabric.Fence, q ChildWait) (MadeChildren, error) {
	rest, after := q.leftovers()
	if len(q.Children) > limits.MaxBatch {
		return MadeChildren{}, fmt.Errorf("ff_make_children: %w: %d children, want at most %d a call",
			flowfabric.ErrInvalidInput, len(q.Children), limits.MaxBatch)
	}
	for n := fits(q.Children); n < len(q.Children); n = fits(q.Children) {
		first := q
		first.Children = q.Children[:n]
		if out, err := e.MakeChildren(ctx, f, first); err != nil || out.Already || out.Over {
			return out, err
		}
		q.Children = q.Children[n:]
	}
	members, err := e.rowsOf(ctx, "ff_make_children", f.Execution.Partition(), q.Children)
	if err != nil {
		return MadeChildren{}, err
	}
	r, already, err := ask[wire.MakeChildrenReply](ctx, e, f.Execution.Partition(), wire.MakeChildren{Fence: fenceOf(f),
		Name: q.Name, Mode: string(q.Mode), After: after, Rest: rest, Members: members})
	if err != nil {
		return MadeChildren{}, err
	}
	out := MadeChildren{Already: already, Over: r.Over}
	if out.Over {
		out.Outcomes, err = DecodeChildren(f.Execution.Partition(), []byte(r.Outcomes))
	}
	return out, unread("ff_make_children", err)
}

// StepChildren begins the names of the steps that keep the outcomes of a wait for children; the name of the wait
// follows.
const StepChildren = "\x1fc:"

// DecodeChildren reads the outcomes that such a step keeps.
func DecodeChildren(partition uint16, value []byte) ([]ChildOutcome, error) {
	if len(value) == 0 {
		return nil, nil
	}
	var out []ChildOutcome
	for part := range strings.SplitSeq(string(value), "\x1f") {
		f := strings.SplitN(part, ",", 4)
		if len(f) != 4 {
			return nil, fmt.Errorf("%w: outcome of a child %q", flowfabric.ErrCorrupt, clip(part))
		}
		id, err := parseFull(partition, f[0])
		if err != nil {
			return nil, fmt.Errorf("%w: outcome of a child: %w", flowfabric.ErrCorrupt, err)
		}
		x := ChildOutcome{ID: id, Node: f[3], Outcome: endings[f[1]], Gone: f[1] == markGone}
		if x.Outcome == "" && f[1] != "." && f[1] != "~" && !x.Gone {
			return nil, fmt.Errorf("%w: outcome %q of a child", flowfabric.ErrCorrupt, clip(f[1]))
		}
		if f[2] != "" {
			n, err := strconv.ParseUint(f[2], 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%w: attempt of a child: %w", flowfabric.ErrCorrupt, err)
			}
			x.Attempt = int(n)
		}
		out = append(out, x)
	}
	return out, nil
}

// inputs reads what the upstreams of a member left it, in two round trips (lua/read/ff_read_inputs.lua). An empty
// result is nil; an upstream that was purged leaves none.
func (e *Engine) inputs(ctx context.Context, id flowfabric.ExecutionID) (map[string][]byte, error) {
	list, err := e.upstreams(ctx, id, false)
	if err != nil {
		return nil, err
	}
	n := len(list)
	names, attempts, builds := make([]string, n), make([]uint32, n), make([]func(rueidis.Client) rueidis.Completed, n)
	for i, up := range list {
		names[i] = up.Input
		k := keys.Of(id.Partition())
		attempts[i] = uint32(up.Attempt)
		core, result := k.Core(ids.UUID(up.From)), k.Result(ids.UUID(up.From), attempts[i])
		builds[i] = func(c rueidis.Client) rueidis.Completed { return c.B().Mget().Key(core, result).Build() }
	}
	out := make(map[string][]byte, n)
	for i, answer := range e.plainAll(ctx, builds) {
		s, err := readStored(answer)
		if err != nil {
			return nil, fmt.Errorf("read inputs: %w", err)
		}
		out[names[i]] = e.cfg.Box.Shown(s.result(attempts[i]))
	}
	return out, nil
}

// UpstreamOutcome tells a member what one of those that it depends on came to.
type UpstreamOutcome struct {
	EdgeRecord
	Node     string              // "" if it was purged
	Category flowfabric.Category // of what ended without success
}

// Upstreams reads what those that a member depends on came to (lua/read/ff_read_inputs.lua). ErrNotFound.
func (e *Engine) Upstreams(ctx context.Context, id flowfabric.ExecutionID) ([]UpstreamOutcome, error) {
	return e.upstreams(ctx, id, true)
}

// upstreams lists all upstreams of a member, or those that left something for it.
func (e *Engine) upstreams(ctx context.Context, id flowfabric.ExecutionID, all bool) ([]UpstreamOutcome, error) {
	r, _, err := ask[wire.ReadInputsReply](ctx, e, id.Partition(), wire.ReadInputs{ID: ids.UUID(id).String(), All: all})
	out := make([]UpstreamOutcome, len(r.Inputs))
	for i, x := range r.Inputs {
		out[i] = UpstreamOutcome{EdgeRecord: EdgeRecord{From: mint.Join(id.Partition(), x.Upstream),
			Input: x.Name, Outcome: endings[x.Mark], Attempt: x.Attempt, Late: x.Mark == "l", Spared: x.Mark == "~"},
			Node: x.Node, Category: flowfabric.Category(x.Category)}
	}
	return out, err
}
