// Package childtest waits for children in tests as a worker does.
package childtest

import (
	"context"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Waited tells what became of a wait.
type Waited struct {
	Already   bool // a repetition: it waited before
	Parked    bool // it is suspended
	Satisfied bool // enough had ended
	Outcomes  []engine.ChildOutcome
}

// Wait makes the children of q and suspends the execution until enough of them have ended.
func Wait(ctx context.Context, e *engine.Engine, f flowfabric.Fence, q engine.ChildWait) (Waited, error) {
	made, err := e.MakeChildren(ctx, f, q)
	if err != nil || made.Over {
		return Waited{Satisfied: made.Over, Outcomes: made.Outcomes}, err
	}
	r, err := e.SuspendExecution(ctx, f, engine.Suspension{ID: flowfabric.UUID(uuid.New()),
		Request: "children " + q.Name, Name: q.Name,
		Reason: "waiting_for_children", Behaviour: "fail", Condition: waitwords.ChildrenCondition})
	if err != nil || !r.Satisfied {
		return Waited{Already: r.Already, Parked: err == nil}, err
	}
	q.Children = nil
	made, err = e.MakeChildren(ctx, f, q)
	return Waited{Satisfied: true, Outcomes: made.Outcomes}, err
}

// Make makes the children of q alone.
func Make(ctx context.Context, e *engine.Engine, f flowfabric.Fence, q engine.ChildWait) (Waited, error) {
	made, err := e.MakeChildren(ctx, f, q)
	return Waited{Already: made.Already, Satisfied: made.Over, Outcomes: made.Outcomes}, err
}
