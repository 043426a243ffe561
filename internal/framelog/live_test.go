package framelog

import (
	"testing"
	"time"
)

// the formula, by a clock of its own.
func TestLiveSizing(t *testing.T) {
	type batch struct {
		after  int // ms since the last
		frames int
		want   int
	}
	for name, c := range map[string]struct {
		sizing  LiveSizing
		ttl     int // s
		batches []batch
	}{
		"the first keeps the floor, whatever its size": {LiveSizing{}, 5, []batch{{0, 100, 64}}},
		// .2*1000 + .8*6.4 = 205.12 Hz
		"two in a millisecond, as observed":        {LiveSizing{}, 5, []batch{{0, 1, 64}, {1, 1, 2052}}},
		"the same instant counts as a millisecond": {LiveSizing{}, 5, []batch{{0, 1, 64}, {0, 1, 2052}}},
		"a clock that steps back, too":             {LiveSizing{}, 5, []batch{{0, 1, 64}, {-1000, 1, 2052}}},
		"a slow stream stays at the floor": {LiveSizing{}, 5,
			[]batch{{0, 1, 64}, {1000, 1, 64}, {1000, 1, 64}}},
		// .2*200 + 5.12 = 45.12 Hz
		"a batch counts its frames": {LiveSizing{}, 5, []batch{{0, 1, 64}, {100, 20, 452}}},
		"the ceiling":               {LiveSizing{}, 30, []batch{{0, 1, 64}, {1, 100, 16384}}},
		"own ceiling": {LiveSizing{Ceiling: 500}, 5,
			[]batch{{0, 1, 64}, {1, 1, 500}}},
		"a ceiling below the floor is the floor": {LiveSizing{Floor: 100, Ceiling: 50}, 5,
			[]batch{{0, 1, 100}, {1, 100, 100}}},
		// .2*100 + .8*1 = 20.8 Hz
		"own floor": {LiveSizing{Floor: 10}, 5, []batch{{0, 1, 10}, {1000, 1, 10}, {10, 1, 208}}},
		"alpha 1 forgets": {LiveSizing{Alpha: 1}, 5,
			[]batch{{0, 1, 64}, {1, 1, 10000}, {100, 1, 100}}},
		"alpha 0 is 0.2": {LiveSizing{Alpha: 0}, 5, []batch{{0, 1, 64}, {1, 1, 2052}}},
		"alpha above 1 is 0.2": {LiveSizing{Alpha: 1.01}, 5,
			[]batch{{0, 1, 64}, {1, 1, 2052}}},
		"alpha below 0 is 0.2": {LiveSizing{Alpha: -1}, 5, []batch{{0, 1, 64}, {1, 1, 2052}}},
		// .2 + .8*205.12 = 164.296
		"it falls again by and by": {LiveSizing{}, 5, []batch{{0, 1, 64}, {1, 1, 2052}, {1000, 1, 1643}}},
		"what the server does not allow is not offered": {LiveSizing{Floor: 1 << 20, Ceiling: 1 << 21}, 5,
			[]batch{{0, 1, 16384}}},
	} {
		e, at := estimator{LiveSizing: c.sizing}, time.UnixMilli(1_700_000_000_000)
		for i, b := range c.batches {
			at = at.Add(time.Duration(b.after) * time.Millisecond)
			if got := e.keep(b.frames, time.Duration(c.ttl)*time.Second, at); got != b.want {
				t.Errorf("%s: batch %d keeps %d, want %d", name, i+1, got, b.want)
			}
		}
	}
}
