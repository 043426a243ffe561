package runtime

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"
)

// Nobody looks while no handler is at work, and one that begins after that is found when it is stuck.
func TestWatchSleepsWithoutHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watch{health: &health{}, poke: func() {}, wake: make(chan struct{}, 1)}
		ctx, stop := context.WithCancel(t.Context())
		var keeping conc.WaitGroup
		keeping.Go(func() { w.keep(ctx) })
		defer keeping.Wait()
		defer stop()
		for round := range 2 {
			time.Sleep(time.Hour)
			w.mu.Lock()
			asleep := w.asleep
			w.mu.Unlock()
			if !asleep {
				t.Fatalf("round %d: it looks though no handler is at work", round)
			}
			ended, end := context.WithCancelCause(t.Context())
			end(errors.New("ended"))
			j := &job{slog: *slog.New(slog.DiscardHandler)}
			w.enter(ended, j, time.Now())
			time.Sleep(stuckAfter + 3*stuckLook)
			if working, stuck := w.counts(); working != 1 || stuck != 1 {
				t.Fatalf("round %d: %d at work, %d stuck, want 1 of 1", round, working, stuck)
			}
			w.leave(j)
		}
	})
}
