package client

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// stepReader is the part of the engine that reads steps.
type stepReader interface {
	Steps(ctx context.Context, id flowfabric.ExecutionID) ([]flowfabric.StepRecord, error)
	StepValue(ctx context.Context, id flowfabric.ExecutionID, name string) ([]byte, bool, error)
}

// Steps lists what is known of the durable steps of an execution (handler.Step), without their values: those that are
// recorded, and those that an attempt failed in. Answers of waits, opened waitpoints and the outcomes of children are
// among them. What ended first comes first; there are at most 1,000 that are recorded. A replay that drops the steps
// drops all of this. It makes one call. Errors: those of [Execution.Get].
func (e *Execution[Out]) Steps(ctx context.Context) ([]flowfabric.StepRecord, error) {
	c, id := e.client, e.id
	if err := c.admit("steps of", id); err != nil {
		return nil, err
	}
	list, err := c.store.Steps(ctx, id)
	return list, link.Operated("steps of", id, err)
}

// StepValue is the value that the handler's step of this name, 1..128 bytes, recorded: the bytes that the
// definition's codec wrote, at most 256 KiB. recorded is false if there is none. It makes one call. Errors: those of
// [Execution.Get], and flowfabric.ErrInvalidInput for a name that no step can have.
func (e *Execution[Out]) StepValue(ctx context.Context,
	name string) (value []byte, recorded bool, err error) {
	c, id := e.client, e.id
	if err := c.admit("step of", id); err != nil {
		return nil, false, err
	}
	value, recorded, err = c.store.StepValue(ctx, id, name)
	return value, recorded, link.Operated("step of", id, err)
}
