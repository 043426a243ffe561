package flow

import (
	"fmt"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// ChildSet holds the children that a handler creates and waits for together, see [Children]. It is not safe for
// concurrent use.
type ChildSet struct {
	*graph
	wait   string
	mode   engine.WaitMode
	cancel bool
	leave  bool
	others []other
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
// or skipped. The others run on, unless [CancelRemaining] is said, too. handler.ChildOutcome tells which one it was.
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
//	if err := t.WaitChildren(ctx, pages); err != nil { // t is the *handler.Task
//		return Report{}, err // in the first run this is what parks the execution
//	}
//	text, err := handler.ChildResult(ctx, t, first)
func Children(wait string, opts ...ChildrenOption) *ChildSet {
	s := &ChildSet{graph: newGraph("children "+wait, limits.MaxFanIn, denied.FanIn), wait: wait, mode: engine.WaitAll}
	s.kin = true
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
func Child[In, Out any](s *ChildSet, name string, def Definition[In, Out], in In,
	opts ...NodeOption) *ChildNode[Out] {
	return &ChildNode[Out]{n: add(s.graph, name, def, in, opts), set: s, decode: decoder(def)}
}

// Name is the child's name in its set, and as a node of the flow.
func (c *ChildNode[Out]) Name() string { return c.n.name }

// ID is the child's execution: what flowfabric.ExecutionID.Child tells, unless the parent has gone on with another
// input (handler.Continue). The children of each input are others. Of an [Other] it is what that was given.
func (c *ChildNode[Out]) ID(t parent) flowfabric.ExecutionID {
	if c.n.other {
		return c.other
	}
	return childID(t.ID(), t.Continues(), c.set.wait, c.n.name)
}

// parent is the execution that makes the children; *handler.Task is one.
type parent interface {
	ID() flowfabric.ExecutionID
	Continues() int
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

// Plan is what package handler asks of a child when its wait is over.
func (c *ChildNode[Out]) Plan() flowplan.Child[Out] {
	return flowplan.Child[Out]{Wait: c.set.wait, Other: c.n.other, Decode: func(result []byte) (Out, error) {
		return decoded(c.decode, result)
	}}
}

// Plan is what an execution that waits for the set asks the server for, for package handler, which sends it. It
// changes nothing, and may be called again.
func (s *ChildSet) Plan(q flowplan.Parent) flowplan.Children {
	return flowplan.Children{Wait: s.wait, Mode: s.mode, Others: len(s.others) > 0,
		Request:  func() (engine.ChildWait, error) { return s.request(q) },
		Streamed: func() []engine.ChildOutcome { return s.streamed(q) }}
}

// streamed are the children whose output is shown, in the order in which they were added.
func (s *ChildSet) streamed(q flowplan.Parent) (out []engine.ChildOutcome) {
	for _, n := range s.nodes {
		if n.streamed {
			out = append(out, engine.ChildOutcome{ID: childID(q.Execution, q.Continues, s.wait, n.name), Node: n.name})
		}
	}
	return out
}

// request checks the set, and is what the execution asks for.
func (s *ChildSet) request(q flowplan.Parent) (engine.ChildWait, error) {
	id := func(node string) flowfabric.ExecutionID { return childID(q.Execution, q.Continues, s.wait, node) }
	members, _, err := s.members(id, flowfabric.Start{Namespace: q.Namespace, Creator: q.Execution.String()})
	if err == nil {
		err = s.checkOthers()
	}
	w := engine.ChildWait{Name: s.wait, Mode: s.mode, CancelRemaining: s.cancel, Leave: s.leave,
		Children: members}
	for _, o := range s.others {
		w.Others = append(w.Others, engine.ChildOutcome{ID: o.id, Node: o.name, Cancel: o.cancel})
	}
	return w, err
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
