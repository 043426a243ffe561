package flow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/taskhook"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Wait makes the children and waits until as many have ended as the set says. The first run gets an error that the
// handler must return, wrapped or not: it is what makes the children and parks the execution, after the handler has
// returned. When enough have ended the handler runs again from the top, as the same attempt, and this Wait returns
// nil, now and in every later run. How a child ended is no error of Wait: ask [ChildNode.Result]. A set without
// children needs no waiting.
//
// The children join the flow of the execution, which must be [Growing] (or [Unsealed], and open still); else the
// execution fails for good with category suspend_refused, as it does for other things that the server refuses. An
// execution that is in no flow starts one.
//
// A set with an [Other] is such a suspension, too. The executions that the handler did not make are looked at in the
// first run: flowfabric.ErrNotFound or ErrResultPurged for one that does not exist or was purged, ErrInvalidInput for
// the execution itself (code self_referencing_edge) and for one that waits for it (cycle_detected), ErrLimit for one
// that 1,000 executions wait for. These are permanent failures of a handler that returns them. A longer circle is not
// seen: give such waits a limit.
//
// Options are those of package suspend: Within, OnTimeout, Because (default "waiting_for_children"), ResumeAfter and
// Asking. With options the execution is suspended, as by suspend.Await: operators can resume it, and the wait has a
// place in lists of suspended executions. That costs a call more. A time limit without OnTimeout ends the execution
// failed, and cancels the open children unless [Leave] is said. With suspend.OnTimeout(suspend.Resume) the handler
// runs again, Wait returns flowfabric.ErrWaitTimeout, and [ChildNode.Outcome] and [ChildNode.Result] tell how each
// child was at the limit.
//
// Errors: flowfabric.ErrWaitTimeout; ErrNoSignal when an operator resumed the execution before enough children had
// ended, whose outcomes tell then; everything that [Flow.Err] finds in the set, as a permanent failure;
// ErrInvalidInput for a name out of bounds, one that this run has used, an option out of bounds, or a wait inside a
// step; code task_consumed after the handler returned; the context's cause.
func (s *ChildSet) Wait(ctx context.Context, t *handler.Task, opts ...suspend.Option) (err error) {
	defer func() { err = denied.Last(err) }()
	if s.alone(opts) {
		return s.plain(ctx, t)
	}
	r, err := s.WaitOr(ctx, t, suspend.Operator(), opts...)
	if err == nil && r.Cause == waithook.CauseOperator {
		err = fmt.Errorf("children %s: %w", s.wait, flowfabric.ErrNoSignal)
	}
	return err
}

// WaitOr waits, as [ChildSet.Wait] does, until enough children have ended or a condition is met, whichever comes
// first: a person says stop, or a message comes. Result.Cause tells which: "children", or what suspend.Wait would
// return. If both have happened before the execution could be suspended, it is "children", and Result.Signals has the
// signals. The name of the set is the name of the wait: no other wait of the handler may have it. The condition may
// be one level and two parts smaller than other conditions.
//
// Errors: those of Wait, and ErrInvalidInput. An operator who resumes the execution is no error here.
func (s *ChildSet) WaitOr(ctx context.Context, t *handler.Task, cond suspend.Condition,
	opts ...suspend.Option) (r suspend.Result, err error) {
	defer func() { err = denied.Last(err) }()
	r, over, err := s.ended(ctx, t)
	if over || err != nil {
		return r, err
	}
	q, err := s.request(ctx, t)
	if err != nil {
		return suspend.Result{}, err
	}
	if len(q.Children)+len(s.others) == 0 {
		s.answer(nil)
		return suspend.Result{Name: s.wait, Cause: waithook.CauseChildren}, nil
	}
	until, err := s.until(cond, opts)
	if err != nil {
		return suspend.Result{}, fmt.Errorf("children %s: %w", s.wait, err)
	}
	if q.Others, err = s.ask(ctx, t); err != nil {
		return suspend.Result{}, err
	}
	return suspend.Result{}, taskhook.ChildrenOf(t).Want(q, until)
}

// plain waits for the children alone, for ever.
func (s *ChildSet) plain(ctx context.Context, t *handler.Task) error {
	outcomes, answered, err := taskhook.ChildrenOf(t).Ask(ctx, s.wait)
	if err != nil {
		return fmt.Errorf("children %s: %w", s.wait, err)
	}
	if answered {
		s.answer(outcomes)
		return nil
	}
	q, err := s.request(ctx, t)
	if err != nil {
		return err
	}
	if len(q.Children) == 0 {
		s.answer(nil)
		return nil
	}
	return taskhook.ChildrenOf(t).Want(q, nil)
}

// ended tells what ended a wait for children or something else, if it is over.
func (s *ChildSet) ended(ctx context.Context, t *handler.Task) (r suspend.Result, over bool, err error) {
	outcomes, answered, err := taskhook.ChildrenOf(t).Ask(ctx, s.wait)
	if err != nil {
		return r, false, fmt.Errorf("children %s: %w", s.wait, err)
	}
	answer, err := taskhook.WaitsOf(t).Ask(ctx, s.wait)
	if err != nil {
		return r, false, fmt.Errorf("children %s: %w", s.wait, err)
	}
	if !answered {
		return r, false, nil
	}
	s.answer(outcomes)
	if answer == nil { // it was waited for without anything else, by another version of the handler say
		return suspend.Result{Name: s.wait, Cause: waithook.CauseChildren}, true, nil
	}
	r = *answer
	if r.Cause == waithook.CauseAlreadySatisfied && s.enough() {
		r.Cause = waithook.CauseChildren
	}
	if r.Cause == waithook.CauseTimeout {
		err = fmt.Errorf("children %s: %w", s.wait, flowfabric.ErrWaitTimeout)
	}
	return r, true, err
}

// enough tells whether the outcomes are what the set waits for.
func (s *ChildSet) enough() bool {
	ended, succeeded := 0, 0
	for _, o := range s.outcomes {
		if o.Outcome != "" || o.Gone {
			ended++
		}
		if o.Outcome == flowfabric.Completed {
			succeeded++
		}
	}
	return ended == len(s.outcomes) || s.mode == engine.WaitFirst && ended > 0 ||
		s.mode == engine.WaitFirstSuccess && succeeded > 0 || s.mode == engine.WaitFailFast && ended > succeeded
}

// request is what the execution asks for, with its trace.
func (s *ChildSet) request(ctx context.Context, t *handler.Task) (engine.ChildWait, error) {
	if ctx.Err() != nil {
		return engine.ChildWait{}, context.Cause(ctx)
	}
	q, err := s.plan(t.ID(), t.Continues(), t.Namespace())
	if err != nil {
		return q, handler.Permanent(err)
	}
	for i := range q.Children {
		q.Children[i].Tags = taskhook.ChildrenOf(t).Traced(q.Children[i].Tags)
	}
	return q, nil
}

// plan is what the execution asks for. It changes nothing.
func (s *ChildSet) plan(parent flowfabric.ExecutionID, continues int, namespace string) (engine.ChildWait, error) {
	id := func(node string) flowfabric.ExecutionID { return childID(parent, continues, s.wait, node) }
	members, _, err := s.members(id, flowfabric.Start{Namespace: namespace, Creator: parent.String()})
	if err == nil {
		err = s.checkOthers()
	}
	return engine.ChildWait{Name: s.wait, Mode: s.mode, CancelRemaining: s.cancel, Leave: s.leave, Park: true,
		Children: members}, err
}

// until is the suspension that ends with the children or with a condition.
func (s *ChildSet) until(cond suspend.Condition, opts []suspend.Option) (*waithook.Wanted, error) {
	asked := suspend.On(cond, append([]suspend.Option{suspend.Because("waiting_for_children")}, opts...)...)
	w, ok := errors.AsType[*waithook.Wanted](asked)
	if !ok {
		return nil, asked
	}
	depth, parts := shape(w.Condition)
	if depth >= limits.MaxConditionDepth || parts > limits.MaxConditionNodes-2 {
		return nil, fmt.Errorf("%w: beside children it has depth %d and %d parts, want at most %d and %d",
			denied.Condition, depth, parts, limits.MaxConditionDepth-1, limits.MaxConditionNodes-2)
	}
	w.Name, w.Condition = s.wait, waithook.ChildrenOr(w.Condition)
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
