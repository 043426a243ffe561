package runtime

import (
	"context"
	"errors"
	"testing"
	"time"
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

// What was claimed ahead waits while all slots have a handler, and gets the slot of one that returns; no more ever run than there are slots.
func TestSlotsAreEntered(t *testing.T) {
	s, now := newSlots(2), time.Now()
	s.take(2)
	s.mu.Lock()
	s.reserve(2) // ahead
	s.mu.Unlock()
	jobs := []*job{{}, {}, {}, {}}
	for i, j := range jobs {
		if run, waits := s.enter(j, now); run != (i < 2) || waits == run {
			t.Errorf("job %d: runs %v, waits %v", i, run, waits)
		}
	}
	for _, want := range []*job{jobs[2], jobs[3], nil} {
		running, _ := s.counts()
		if next := s.leave(now); next != want || running != 2 {
			t.Errorf("the next is %p with %d running, want %p with 2", next, running, want)
		}
	}
	if running, settling := s.counts(); running != 1 || settling != 3 {
		t.Errorf("%d running, %d settling at the end", running, settling)
	}
}
