package handler

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// WaitChildren makes the children of a set and waits until as many have ended as the set says. The first run gets an
// error that the handler must return, wrapped or not: it is what makes the children and parks the execution, after the
// handler has returned. When enough have ended the handler runs again from the top, as the same attempt, and this call
// returns nil, now and in every later run. How a child ended is no error of it: ask [ChildResult]. A set without
// children needs no waiting.
//
// Without flow.Leave no child has a later deadline than the execution. Namespace and trace are the execution's; lane,
// gates and tags are not.
//
// What flow.Share says is set aside in the gates of the execution before the children are made, of all of them or of
// none, and what is left of it is given back when they have ended. Without room the error is an [*OverBudgetError],
// nothing is made, and the handler decides. A child with a share asks the gates of the execution, too.
//
// The children join the flow of the execution, which must be flow.Growing (or flow.Unsealed, and open still); else the
// execution fails for good with category suspend_refused, as it does for other things that the server refuses. An
// execution that is in no flow starts one.
//
// The execution is suspended, as by [Await], under the name of the set: operators can resume it, and no other wait of
// the handler may have that name. Executions of a flow.Other are looked at in the first run: flowfabric.ErrNotFound or
// ErrResultPurged for one that does not exist or was purged, ErrInvalidInput for the execution itself (code
// self_referencing_edge) and for one that waits for it, or is a member of its flow that cannot run before it has ended
// (cycle_detected), ErrLimit for one that 1,000 executions wait for. These are permanent failures of a handler that
// returns them. A longer circle is not seen: give such waits a limit.
//
// Options are suspend.Within, OnTimeout, Because (default "waiting_for_children"), ResumeAfter and Asking. A time
// limit without OnTimeout ends the execution failed, and cancels the open children unless flow.Leave is said. With
// suspend.OnTimeout(suspend.Resume) the handler runs again, WaitChildren returns flowfabric.ErrWaitTimeout, and
// [ChildOutcome] and [ChildResult] tell how each child was at the limit.
//
// Errors: flowfabric.ErrWaitTimeout; ErrNoSignal when an operator resumed the execution before enough children had
// ended, whose outcomes tell then; everything that flow.Flow.Err finds in the set, as a permanent failure;
// ErrInvalidInput for a name out of bounds, one that this run has used, an option out of bounds, or a wait inside a
// step; code task_consumed after the handler returned; the context's cause.
func (t *Task) WaitChildren(ctx context.Context, set *flow.ChildSet, opts ...suspend.Option) (err error) {
	defer func() { err = denied.Last(err) }()
	r, err := t.WaitChildrenOr(ctx, set, suspend.Operator(), opts...)
	if err == nil && r.Cause == suspend.CauseOperator {
		err = fmt.Errorf("children %s: %w", r.Name, flowfabric.ErrNoSignal)
	}
	return err
}

// WaitChildrenOr waits, as [Task.WaitChildren] does, until enough children have ended or a condition is met, whichever
// comes first: a person says stop, or a message comes. Result.Cause tells which: "children", or what [Task.Wait] would
// return. If both have happened before the execution could be suspended, it is "children", and Result.Signals has the
// signals. The name of the set is the name of the wait: no other wait of the handler may have it. The condition may
// be one level and two parts smaller than other conditions.
//
// Errors: those of WaitChildren, and ErrInvalidInput. An operator who resumes the execution is no error here.
func (t *Task) WaitChildrenOr(ctx context.Context, set *flow.ChildSet, cond suspend.Condition,
	opts ...suspend.Option) (r suspend.Result, err error) {
	defer func() { err = denied.Last(err) }()
	p := t.planOf(set)
	r, over, err := t.childrenEnded(ctx, p)
	if over {
		t.giveShares(ctx, p)
	}
	if over || err != nil {
		return r, err
	}
	q, err := t.askedChildren(ctx, p)
	if err != nil {
		return suspend.Result{}, err
	}
	if len(q.Children)+len(q.Others) == 0 {
		return suspend.Result{Name: p.Wait, Cause: suspend.CauseChildren}, nil
	}
	until, err := untilChildren(p.Wait, cond, opts)
	if err != nil {
		return suspend.Result{}, fmt.Errorf("children %s: %w", p.Wait, err)
	}
	if q.Others, err = t.look(ctx, p.Wait, q.Others); err != nil {
		return suspend.Result{}, err
	}
	if err := t.setAsideFor(ctx, q); err != nil {
		return suspend.Result{}, err
	}
	if err := t.announce(ctx, p); err != nil {
		return suspend.Result{}, fmt.Errorf("children %s: %w", p.Wait, err)
	}
	return suspend.Result{}, t.kids.want(q, until)
}

// streamed begins the name of the step that records which children tails show.
const streamed = "streamed: "

// announce tells tails which children they show. It is recorded before the children are made: as long as a run may
// announce them again there is nothing to be shown of them.
func (t *Task) announce(ctx context.Context, p flowplan.Children) error {
	shown := p.Streamed()
	if len(shown) == 0 || t.cfg.Frames == nil {
		return nil
	}
	_, err := Step(ctx, t, streamed+p.Wait, func(ctx context.Context) (int, error) {
		for _, c := range shown {
			if err := t.cfg.Frames.Append(ctx, stream.Frame{Type: limits.FrameOfChild, Correlation: c.ID.String(),
				Source: c.Node}); err != nil {
				return 0, err
			}
		}
		return len(shown), nil
	})
	return err
}

// planOf is a set as this execution waits for it.
func (t *Task) planOf(set *flow.ChildSet) flowplan.Children {
	return set.Plan(flowplan.Parent{Execution: t.ID(), Continues: t.Continues(), Namespace: t.Namespace()})
}

// childrenEnded tells what ended a wait for children or something else, if it is over.
func (t *Task) childrenEnded(ctx context.Context, p flowplan.Children) (r suspend.Result, over bool, err error) {
	outcomes, answered, err := t.kids.ask(ctx, p.Wait)
	if err != nil {
		return r, false, fmt.Errorf("children %s: %w", p.Wait, err)
	}
	answer, err := t.ownWaits().Ask(ctx, p.Wait)
	if err != nil {
		return r, false, fmt.Errorf("children %s: %w", p.Wait, err)
	}
	if !answered {
		return r, false, nil
	}
	if answer == nil {
		return suspend.Result{Name: p.Wait, Cause: suspend.CauseChildren}, true, nil
	}
	r = *answer
	if r.Cause == suspend.CauseAlreadySatisfied && enough(p.Mode, outcomes) {
		r.Cause = suspend.CauseChildren
	}
	if r.Cause == suspend.CauseTimeout {
		err = fmt.Errorf("children %s: %w", p.Wait, flowfabric.ErrWaitTimeout)
	}
	return r, true, err
}

// enough tells whether the outcomes are what a set waits for.
func enough(mode engine.WaitMode, outcomes []engine.ChildOutcome) bool {
	ended, succeeded := 0, 0
	for _, o := range outcomes {
		if o.Outcome != "" || o.Gone {
			ended++
		}
		if o.Outcome == flowfabric.Completed {
			succeeded++
		}
	}
	return ended == len(outcomes) || mode == engine.WaitFirst && ended > 0 ||
		mode == engine.WaitFirstSuccess && succeeded > 0 || mode == engine.WaitFailFast && ended > succeeded
}

// askedChildren is what the execution asks the server for, with what the children inherit.
func (t *Task) askedChildren(ctx context.Context, p flowplan.Children) (engine.ChildWait, error) {
	if ctx.Err() != nil {
		return engine.ChildWait{}, context.Cause(ctx)
	}
	q, err := p.Request()
	if err != nil {
		return q, Permanent(err)
	}
	for i := range q.Children {
		child := &q.Children[i].Start
		child.Tags = t.inherits(child.Tags)
		t.shared(&q.Children[i])
		if !q.Leave {
			t.within(child)
		}
	}
	return q, nil
}

// look lists the others of a wait as they are now. An execution that cannot be waited for is an error for good.
func (t *Task) look(ctx context.Context, wait string, others []engine.ChildOutcome) ([]engine.ChildOutcome, error) {
	if len(others) == 0 {
		return nil, nil
	}
	ids := make([]flowfabric.ExecutionID, len(others))
	for i, o := range others {
		ids[i] = o.ID
	}
	now, err := t.checkOthers(ctx, ids)
	if err != nil {
		err = fmt.Errorf("children %s: %w", wait, err)
		if c := denied.ClassOf(err); c == fault.Stop || c == fault.Caller {
			err = Permanent(err)
		}
		return nil, err
	}
	for i, o := range others {
		now[i].Node, now[i].Cancel = o.Node, o.Cancel
	}
	return now, nil
}

// untilChildren is the suspension that ends with the children or with a condition.
func untilChildren(wait string, cond suspend.Condition, opts []suspend.Option) (*waitwords.Wanted, error) {
	o := waitOptionsOf(append([]suspend.Option{suspend.Because("waiting_for_children")}, opts...))
	w, err := o.wanted(wait, cond)
	if err != nil {
		return nil, err
	}
	depth, parts := shape(w.Condition)
	if depth >= limits.MaxConditionDepth || parts > limits.MaxConditionNodes-2 {
		return nil, fmt.Errorf("%w: beside children it has depth %d and %d parts, want at most %d and %d",
			denied.Condition, depth, parts, limits.MaxConditionDepth-1, limits.MaxConditionNodes-2)
	}
	w.Condition = waitwords.ChildrenOr(w.Condition)
	return w, nil
}

// shape is the depth of a compiled condition, and how many parts it has.
func shape(condition string) (depth, parts int) {
	var depths []int
	for line := range strings.SplitSeq(condition, "\x1e") {
		p, of := strings.Split(line, "\x1f"), 1
		if p[0] == "G" {
			for _, member := range p[2:] {
				n, _ := strconv.Atoi(member)
				of = max(of, depths[n-1]+1)
			}
		}
		depths, depth = append(depths, of), max(depth, of)
	}
	return depth, len(depths)
}
