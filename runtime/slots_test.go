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

// A slot that is kept for a claim is no other's, unless a job waits for it.
func TestSlotsAreKept(t *testing.T) {
	s, now := newSlots(2), time.Now()
	s.take(2)
	s.enter(&job{}, now)
	s.enter(&job{}, now)
	if s.coming() {
		t.Error("all slots have handlers, and one is to come back")
	}
	if next, kept := s.leave(now, true); next != nil || !kept || s.free() != 0 || !s.coming() {
		t.Errorf("next %v, kept %v, %d free, coming %v; want the slot reserved", next, kept, s.free(), s.coming())
	}
	s.mu.Lock()
	s.reserve(1) // ahead
	s.mu.Unlock()
	first, ahead := &job{}, &job{}
	s.enter(first, now) // into the slot that was kept
	if _, waits := s.enter(ahead, now); !waits {
		t.Error("a third job runs in two slots")
	}
	if next, kept := s.leave(now, true); next != ahead || kept {
		t.Errorf("next %p, kept %v; want the job that waits, %p", next, kept, ahead)
	}
}

// What was claimed ahead waits while all slots have a handler, and gets the slot of one that returns; no more ever
// run than there are slots.
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
		if next, _ := s.leave(now, false); next != want || running != 2 {
			t.Errorf("the next is %p with %d running, want %p with 2", next, running, want)
		}
	}
	if running, settling := s.counts(); running != 1 || settling != 3 {
		t.Errorf("%d running, %d settling at the end", running, settling)
	}
}

// What waits for a slot goes back after its patience; where more of its queue waits, that is five times as long.
func TestWorkOfADeepQueueMayWaitLonger(t *testing.T) {
	now := time.Now()
	waiting := func(jobs ...*job) *slots {
		s := newSlots(1)
		s.pace.fixed = len(jobs)
		s.room(now)
		s.takeAhead(1 + len(jobs))
		s.enter(&job{}, now)
		for _, j := range jobs {
			s.enter(j, now)
		}
		return s
	}
	for _, c := range []struct {
		what  string
		s     *slots
		after time.Duration
		want  int
		again time.Duration
	}{
		{"shallow, early", waiting(&job{}), patience - 1, 0, 1},
		{"shallow, late", waiting(&job{}), patience, 1, time.Hour},
		{"deep, early", waiting(&job{deep: true}), patience, 0, (deepPatience - 1) * patience},
		{"deep, late", waiting(&job{deep: true}), deepPatience * patience, 1, time.Hour},
		{"one behind a deep one", waiting(&job{deep: true}, &job{}), patience, 2, time.Hour},
	} {
		if back, again := c.s.stale(now.Add(c.after)); len(back) != c.want || again != c.again {
			t.Errorf("%s: %d go back, asked again in %v; want %d, %v", c.what, len(back), again, c.want, c.again)
		}
	}
}
