package handler

import (
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waits"
)

// waiting is the call that a run asks for whose outcome waits: one of the two.
type waiting struct {
	suspension *engine.Suspension
	children   *engine.ChildWait
}

// asksFor remembers what the run waits for, for who made the task.
func (t *Task) asksFor(w waiting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asks = &w
}

// taskWaits is a task as who made it sees its waits. It is a [tasks.Waits].
type taskWaits Task

func (w *taskWaits) task() *Task { return (*Task)(w) }

// Run implements [tasks.Waits].
func (w *taskWaits) Run() *waits.Run { return w.task().ownWaits() }

// Answered implements [tasks.Waits].
func (w *taskWaits) Answered(wait string, outcomes []engine.ChildOutcome) {
	w.task().kids.answered(wait, outcomes)
}

// Suspension implements [tasks.Waits].
func (w *taskWaits) Suspension() *engine.Suspension { return w.taken().suspension }

// Children implements [tasks.Waits].
func (w *taskWaits) Children() *engine.ChildWait { return w.taken().children }

// taken is what the run waits for, once.
func (w *taskWaits) taken() (asks waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asks != nil {
		asks, w.asks = *w.asks, nil
	}
	return asks
}
