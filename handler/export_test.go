package handler

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// ErrorText is what the logging middleware says of an error.
var ErrorText = errorText

// Children is what a task knows of waits for children.
type Children struct{ t *Task }

// ChildrenOf returns what a task knows of waits for children.
func ChildrenOf(t *Task) Children { return Children{t} }

// Ask takes the name of a wait and returns how its children ended.
func (c Children) Ask(ctx context.Context, wait string) ([]engine.ChildOutcome, bool, error) {
	return c.t.kids.ask(ctx, wait)
}

// Want returns the error by which a handler asks to wait.
func (c Children) Want(q engine.ChildWait, until *waitwords.Wanted) error {
	return c.t.kids.want(q, until)
}

// Answered notes that enough children had ended.
func (c Children) Answered(wait string, outcomes []engine.ChildOutcome) {
	c.t.kids.answered(wait, outcomes)
}

// Read reads the result of a child.
func (c Children) Read(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, error) {
	return c.t.readResult(ctx, id, attempt)
}

// Inherits adds the tags that children inherit.
func (c Children) Inherits(tags map[string]string) map[string]string { return c.t.inherits(tags) }

// UnusedSteps is unusedSteps.
func (t *Task) UnusedSteps() []string { return t.unusedSteps() }
