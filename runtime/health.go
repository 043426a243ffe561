package runtime

import (
	"fmt"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// health remembers when the server last answered. A worker is ready while that was not long ago.
type health struct {
	window time.Duration
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

func newHealth(window time.Duration) *health { return &health{window: window, began: time.Now()} }

// success books a claim, poll or renewal that was answered.
func (h *health) success() { h.last.Store(int64(time.Since(h.began))) }

// check returns nil while the worker takes work and the server answers.
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
		return fmt.Errorf("flowfabric: %w: no call has succeeded for %v", flowfabric.ErrTransport, silent.Round(time.Second))
	}
	return nil
}
