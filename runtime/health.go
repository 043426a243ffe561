package runtime

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// health remembers when the server last answered, and how many handlers are stuck. A worker is ready while an answer
// was not long ago and a slot is left.
type health struct {
	window time.Duration
	slots  int
	stuck  atomic.Int64 // handlers, each in a slot
	phase  atomic.Int32
	last   atomic.Int64 // nanoseconds since began
	began  time.Time
}

// The phases of a worker.
const (
	phaseNew int32 = iota
	phaseRunning
	phaseDraining
	phaseStopped
)

func newHealth(window time.Duration, slots int) *health {
	return &health{window: window, slots: slots, began: time.Now()}
}

// success records a claim, poll or renewal that was answered.
func (h *health) success() { h.last.Store(int64(time.Since(h.began))) }

// errAllStuck is why a worker without a usable slot is not ready.
var errAllStuck = errors.New(
	"all slots are taken by handlers that ignore the end of their context; the log names them; restart the process")

// check returns nil while the worker takes work, the server answers and not all slots are stuck.
func (h *health) check() error {
	switch h.phase.Load() {
	case phaseNew:
		return fmt.Errorf("flowfabric: worker is not started")
	case phaseDraining:
		return fmt.Errorf("flowfabric: worker: %w", flowfabric.ErrDraining)
	case phaseStopped:
		return fmt.Errorf("flowfabric: worker is stopped")
	}
	if silent := time.Since(h.began) - time.Duration(h.last.Load()); silent > h.window {
		return fmt.Errorf("flowfabric: %w: no call has succeeded for %v", flowfabric.ErrTransport,
			silent.Round(time.Second))
	}
	if n := h.stuck.Load(); n > 0 && n >= int64(h.slots) {
		return fmt.Errorf("flowfabric: worker: %d of %d: %w", n, h.slots, errAllStuck)
	}
	return nil
}
