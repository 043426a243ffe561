// Package taskhook is how a worker makes the tasks of package handler, and what it and package flow ask of them,
// without showing it to the authors of handlers.
package taskhook

import (
	"context"
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// New makes the task of one claimed execution, a *handler.Task. It starts nothing and needs no closing. Package
// handler sets it.
var New func(cfg Config) any

// ChildrenOf returns what a *handler.Task knows of waits for children. Package handler sets it.
var ChildrenOf func(task any) Children

// WaitsOf returns what a *handler.Task knows of its other waits.
func WaitsOf(task any) Waits { return waithook.Of(task).(Waits) }

// Waits is what answers of suspensions are asked by. Safe for concurrent use.
type Waits interface {
	// Ask takes the name of a wait for this run and returns what it was answered, nil if it was not.
	Ask(ctx context.Context, name string) (*suspend.Result, error)
}

// Undecodable marks an error of a codec: a failure of category extractor_payload_decode, for good unless only a key
// was missing. Package handler sets it.
var Undecodable func(err error) error

// Children is what waits for children know while a handler runs: how those of earlier runs ended. Package flow is
// built on it. Safe for concurrent use.
type Children interface {
	// Ask takes the name of a wait for this run, 1..128 bytes of printable ASCII, and returns how its children ended;
	// answered is false if it was not answered yet. ErrInvalidInput for a name out of bounds, one that was used in
	// this run, or inside a step; denied.TaskConsumed after the handler returned.
	Ask(ctx context.Context, wait string) (outcomes []engine.ChildOutcome, answered bool, err error)
	// Want returns the error by which a handler asks to wait for children; until, if it is not nil, may end the wait,
	// too.
	Want(q engine.ChildWait, until *waithook.Wanted) error
	// Answered notes that enough children had ended at once: another run follows under the same hold.
	Answered(wait string, outcomes []engine.ChildOutcome)
	// Read reads the result of a child's attempt, nil if it is empty.
	Read(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, error)
	// Check tells of executions that the handler did not make how those ended that have; an error for one that cannot
	// be waited for.
	Check(ctx context.Context, ids []flowfabric.ExecutionID) ([]engine.ChildOutcome, error)
	// Upstreams reads what those that the execution depends on came to.
	Upstreams(ctx context.Context) ([]engine.UpstreamOutcome, error)
	// Traced adds the tags by which the execution's trace goes on to those of a child, which are not changed.
	Traced(tags map[string]string) map[string]string
}

// ChildWait, returned by a handler, asks to wait for children.
type ChildWait struct {
	Wait  engine.ChildWait
	Until *waithook.Wanted // a suspension with the children in its condition; nil: the children alone
}

func (e *ChildWait) Error() string { return "wait for children " + e.Wait.Name }

// IsChildWait reports that err asks to wait for children.
func IsChildWait(err error) bool {
	_, ok := errors.AsType[*ChildWait](err)
	return ok
}
