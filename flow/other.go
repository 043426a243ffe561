package flow

import (
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// other is an execution of a set that the handler did not make.
type other struct {
	name   string
	id     flowfabric.ExecutionID
	cancel bool
}

// Other adds an execution that the handler did not make: somebody else submitted it, in any namespace and partition,
// and its id is all that is needed. The set waits for it as for a child, and handler.ChildOutcome and
// handler.ChildResult tell the same of it. name is its name in the set, as for [Child]; def says how its result is
// decoded, and must be what it was submitted with. Children cannot depend on it, and nobody cancels it:
// [Leave], and [CancelRemaining] of the set, are about children.
//
// With a [CancelRemaining] of its own it is cancelled if it is open when the wait is over, or when the execution that
// waits ends first: cancelled, expired, or failed by a time limit. If it is a node of a flow, all of that flow is
// cancelled, unless the execution that waits is in it, too. So a handler that submits a flow in a handler.Step and
// waits for its last node takes the flow along. The cancellation comes with the notices of the partition, usually
// within milliseconds.
//
// handler.Task.WaitChildren looks at it before the execution is suspended. One that has ended counts at once. Later it
// is told by the maintenance of the partitions, usually within milliseconds of its end, and however often and late that
// happens, the wait counts it once. One that continues (handler.Continue) or is tried again has not ended. One that is
// replayed after its end was told stays as it was told.
func Other[In, Out any](s *ChildSet, name string, def Definition[In, Out],
	id flowfabric.ExecutionID, opts ...RemainingOption) *ChildNode[Out] {
	n := &node{graph: s.graph, name: name, other: true}
	err := validateName(name)
	if err == nil {
		err = check(def)
	}
	switch {
	case err != nil:
	case slices.Contains(opts, nil):
		err = fmt.Errorf("%w: an option is nil", flowfabric.ErrInvalidInput)
	case id.IsZero():
		err = fmt.Errorf("%w: the id is zero", flowfabric.ErrInvalidInput)
	case s.byName[name] != nil:
		err = fmt.Errorf("%w: there is another node of this name", flowfabric.ErrInvalidInput)
	}
	for _, o := range s.others {
		if o.id == id {
			err = fmt.Errorf("%w: it is node %s already", flowfabric.ErrInvalidInput, printable(o.name))
		}
	}
	if err != nil {
		s.refuse(fmt.Errorf("node %s: %w", printable(name), err))
	} else {
		s.byName[name] = n
	}
	s.others = append(s.others, other{name, id, len(opts) > 0})
	return &ChildNode[Out]{n: n, set: s, other: id, decode: decoder(def)}
}

// checkOthers is what is wrong with the set because of those that the handler did not make.
func (s *ChildSet) checkOthers() error {
	switch {
	case len(s.others) == 0:
		return nil
	case len(s.others)+len(s.nodes) > limits.MaxFanIn:
		return fmt.Errorf("children %s: %w: it has %d nodes, want at most %d", s.wait, denied.FanIn,
			len(s.others)+len(s.nodes), limits.MaxFanIn)
	case s.cancel && len(s.nodes) == 0:
		return fmt.Errorf(
			"children %s: %w: CancelRemaining of a set without a child: give it to each Other that is to be cancelled",
			s.wait, flowfabric.ErrInvalidInput)
	}
	return nil
}
