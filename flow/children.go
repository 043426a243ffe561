package flow

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/taskhook"
)

// ChildSet is what a handler makes and waits for together, see [Children]. It is not safe for concurrent use.
type ChildSet struct {
	*graph
	wait     string
	mode     engine.WaitMode
	cancel   bool
	leave    bool
	others   []other
	waited   bool
	outcomes map[flowfabric.ExecutionID]engine.ChildOutcome
}

// ChildrenOption changes a wait for children: [All], [First], [FirstSuccess] or [FailFast], of which the last one
// counts, [CancelRemaining] and [Leave].
type ChildrenOption interface{ ChildrenOption() }

type childrenFunc func(*ChildSet)

func (childrenFunc) ChildrenOption() {}

func mode(m engine.WaitMode) ChildrenOption {
	return childrenFunc(func(s *ChildSet) { s.mode = m })
}

// All waits until every child has ended, however it ended, which is the default.
func All() ChildrenOption { return mode(engine.WaitAll) }

// First waits until one child has ended, however it ended. The others run on, unless [CancelRemaining] is said, too.
func First() ChildrenOption { return mode(engine.WaitFirst) }

// FirstSuccess waits until one child has succeeded, or all have ended without success. The others run on, unless
// [CancelRemaining] is said, too.
func FirstSuccess() ChildrenOption { return mode(engine.WaitFirstSuccess) }

// FailFast waits until all children have succeeded, or one has ended otherwise: failed for good, cancelled, expired
// or skipped. The others run on, unless [CancelRemaining] is said, too. Ask [ChildNode.Outcome] which one it was.
func FailFast() ChildrenOption { return mode(engine.WaitFailFast) }

// Leave lets children run on when the execution that waits for them ends while it waits: cancelled, expired, or
// failed by a time limit. Without it those that are still open are cancelled then. What becomes of children that are
// open when the wait is over says [CancelRemaining].
func Leave() ChildrenOption { return childrenFunc(func(s *ChildSet) { s.leave = true }) }

// Children begins a set of 1..1,000 children for one wait. wait is the name of the wait: 1..128 bytes of printable
// ASCII, unique within a run of the handler (loops number theirs).
//
//	pages := flow.Children("pages")
//	first := flow.Child(pages, "first", Fetch, Page{1})
//	other := flow.Child(pages, "other", Fetch, Page{2})
//	if err := pages.Wait(ctx, t); err != nil {
//		return Report{}, err // in the first run this is what parks the execution
//	}
//	text, err := first.Result(ctx, t)
func Children(wait string, opts ...ChildrenOption) *ChildSet {
	s := &ChildSet{graph: newGraph("children "+wait, limits.MaxFanIn, denied.FanIn), wait: wait, mode: engine.WaitAll}
	for i, opt := range opts {
		switch opt := opt.(type) {
		case childrenFunc:
			opt(s)
		case remaining:
			s.cancel = true
		default:
			s.refuse(fmt.Errorf("%w: option %d is nil or not one of package flow", flowfabric.ErrInvalidInput, i))
		}
	}
	return s
}

// ChildNode is a child of a [ChildSet], or an [Other] of it, whose execution has a result of type Out.
type ChildNode[Out any] struct {
	n      *node
	set    *ChildSet
	other  flowfabric.ExecutionID // the execution of one that the handler did not make
	decode func([]byte) (Out, error)
}

// Child adds a child: an execution of def with input in, as [Add] adds a node, with the same options. Children may
// depend on others of the same set. The id follows from the execution, the wait and the name, so that no run makes a
// child twice; in must therefore be the same in every run: put whatever is read from outside in a handler.Step.
func Child[In, Out any](s *ChildSet, name string, def *handler.Definition[In, Out], in In,
	opts ...NodeOption) *ChildNode[Out] {
	return &ChildNode[Out]{n: add(s.graph, name, def, in, opts), set: s, decode: def.Decode}
}

// Name is the child's name in its set, and as a node of the flow.
func (c *ChildNode[Out]) Name() string { return c.n.name }

// ID is the child's execution: what flowfabric.ExecutionID.Child tells, unless the parent has gone on with another
// input (handler.Continue). The children of each input are others. Of an [Other] it is what that was given.
func (c *ChildNode[Out]) ID(t *handler.Task) flowfabric.ExecutionID {
	if c.n.other {
		return c.other
	}
	return childID(t.ID(), t.Continues(), c.set.wait, c.n.name)
}

// childID is what a wait of an execution calls a child. An execution that goes on with another input makes children
// of its own under the same names.
func childID(parent flowfabric.ExecutionID, continues int, wait, name string) flowfabric.ExecutionID {
	if continues > 0 {
		wait = strconv.Itoa(continues) + "\x1f" + wait
	}
	return parent.Child(wait, name)
}

func (c *ChildNode[Out]) upstream() *node {
	if c == nil {
		return nil
	}
	return c.n
}

func (c *ChildNode[Out]) yields(Out) {}

func init() {
	flowplan.ChildrenOf = func(set any, parent flowfabric.ExecutionID, continues int,
		namespace string) (engine.ChildWait, error) {
		return set.(*ChildSet).plan(parent, continues, namespace)
	}
}

// answer remembers how the children ended.
func (s *ChildSet) answer(outcomes []engine.ChildOutcome) {
	s.waited, s.outcomes = true, make(map[flowfabric.ExecutionID]engine.ChildOutcome, len(outcomes))
	for _, o := range outcomes {
		s.outcomes[o.ID] = o
	}
}

// ChildError tells that a child has no result. It matches flowfabric.ErrFailed, ErrCancelled, ErrExpired or
// ErrSkipped, or ErrState for one that had not ended when the wait was over. Of an [Other] that was purged before it
// could be asked it matches ErrResultPurged, or ErrNotFound when nothing tells any more how it ended.
type ChildError struct {
	Wait  string
	Name  string
	ID    flowfabric.ExecutionID
	State flowfabric.PublicState // empty: it had not ended
	Err   error
}

// Error names wait and child.
func (e *ChildError) Error() string {
	return fmt.Sprintf("child %s of %s (%s): %v", e.Name, e.Wait, e.ID, e.Err)
}

// Unwrap is Err.
func (e *ChildError) Unwrap() error { return e.Err }

// outcomeErrors are what the ends without a result are as errors.
var outcomeErrors = map[flowfabric.PublicState]error{flowfabric.Failed: flowfabric.ErrFailed,
	flowfabric.Cancelled: flowfabric.ErrCancelled, flowfabric.Expired: flowfabric.ErrExpired,
	flowfabric.Skipped: flowfabric.ErrSkipped, "": denied.NotTerminal}

// Outcome is how the child had ended when the wait was over: completed, failed, cancelled, expired or skipped; empty
// for one that had not ended, also if [CancelRemaining] cancels it then, and while the wait is not over. It stays so
// in every run, whatever became of the child since.
func (c *ChildNode[Out]) Outcome(t *handler.Task) flowfabric.PublicState {
	return c.set.outcomes[c.ID(t)].Outcome
}

// Result is the result of a child that completed, read from the server and decoded; one that completed with nothing
// gives the zero value. Call it when the wait is over: [ChildSet.Wait] or [ChildSet.WaitOr] has returned nil, or
// flowfabric.ErrWaitTimeout.
//
// Errors: a [*ChildError] for a child that has none. The next attempt would be told the same, so a handler that
// returns it fails for good, with category child_failed. ErrInvalidInput before the wait, or for a child that was not
// part of the set when it was waited for; a permanent failure of category extractor_payload_decode; ErrTransport.
func (c *ChildNode[Out]) Result(ctx context.Context, t *handler.Task) (Out, error) {
	var zero Out
	id := c.ID(t)
	o, known := c.set.outcomes[id]
	switch {
	case !c.set.waited:
		return zero, fmt.Errorf("child %s of %s: %w: ask for results when the wait is over", c.n.name, c.set.wait,
			flowfabric.ErrInvalidInput)
	case !known:
		return zero, handler.Permanent(fmt.Errorf(
			"child %s of %s: %w: it was not there when the wait began; names stand for the same children in every run",
			c.n.name, c.set.wait, flowfabric.ErrInvalidInput))
	case o.Outcome != flowfabric.Completed:
		err := &ChildError{Wait: c.set.wait, Name: c.n.name, ID: id, State: o.Outcome, Err: outcomeErrors[o.Outcome]}
		if o.Gone {
			err.Err = flowfabric.ErrNotFound
		}
		return zero, handler.Category(codes.CategoryChild, handler.Permanent(err))
	}
	raw, err := taskhook.ChildrenOf(t).Read(ctx, id, uint32(o.Attempt))
	if err == nil && raw == nil && c.n.other { // it completed with nothing, unless it was purged since
		_, err = taskhook.ChildrenOf(t).Check(ctx, []flowfabric.ExecutionID{id})
	}
	switch {
	case errors.Is(err, flowfabric.ErrResultPurged) || errors.Is(err, flowfabric.ErrNotFound):
		err = &ChildError{Wait: c.set.wait, Name: c.n.name, ID: id, State: o.Outcome, Err: flowfabric.ErrResultPurged}
		return zero, handler.Category(codes.CategoryChild, handler.Permanent(err))
	case err != nil:
		return zero, fmt.Errorf("child %s of %s: %w", c.n.name, c.set.wait, err)
	}
	value, err := decoded(c.decode, raw)
	if err != nil {
		return zero, fmt.Errorf("child %s of %s: %w", c.n.name, c.set.wait, taskhook.Undecodable(err))
	}
	return value, nil
}

// IsWait reports that err asks to wait for children, so that middleware does not take it for a failure.
func IsWait(err error) bool { return taskhook.IsChildWait(err) }
