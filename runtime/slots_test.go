package runtime

import (
	"context"
	"errors"
	"testing"
)

// Slots are the bound on what runs: nobody gets more than are free, however much is asked for.
func TestSlots(t *testing.T) {
	s := newSlots(3)
	for _, step := range []struct{ ask, got, left int }{{2, 2, 1}, {5, 1, 0}, {1, 0, 0}} {
		if got := s.take(step.ask); got != step.got || s.free() != step.left {
			t.Errorf("take(%d) = %d, %d left; want %d and %d", step.ask, got, s.free(), step.got, step.left)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with slots in use: %v", err)
	}
	s.put(1)
	select {
	case <-s.freed:
	default:
		t.Error("nobody hears of a freed slot")
	}
	s.put(2)
	if err := s.wait(ended); err != nil || s.free() != 3 {
		t.Errorf("wait with all slots free: %v, %d free", err, s.free())
	}
}
