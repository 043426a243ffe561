package tasks

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Kin is what a task tells of where it stands among executions that make each other.
type Kin struct {
	Gates []string // those that the execution asks by name, without limits of keys
	Depth int      // how many agents are above it, see limits.DepthTag
	// Edited is what a rewind says in the place of what was said before a step (client.Rewind.Message); ok is false if
	// none did.
	Edited func(step string) (m suspend.Message, ok bool, err error)
	// Read reads another execution. nil: the task runs without a server.
	Read func(ctx context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error)
	// Turn is what it tells of its turns; from the first call on it is told what stops one.
	Turn func() Turn
	// SetAside has the gates set the shares of a set of children aside, of all or of none.
	SetAside func(ctx context.Context, set flowplan.Children) error
}
