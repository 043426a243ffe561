// Package tasks is what who makes the task of a claimed execution gives it, and what it may ask of it, without
// showing it to the authors of handlers.
package tasks

import (
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waits"
)

// Waits is a task's waits as who made the task sees them. Safe for concurrent use.
type Waits interface {
	// Run is what the task knows of waits for signals, messages and operators.
	Run() *waits.Run
	// Answered notes that enough children had ended at once: another run follows under the same hold.
	Answered(wait string, outcomes []engine.ChildOutcome)
	// Suspension is what a run that suspends waits for, and Children what one of kind wait_children waits for.
	// Either tells it once. nil: the run did not wait, and somebody made the outcome up.
	Suspension() *engine.Suspension
	Children() *engine.ChildWait
}
