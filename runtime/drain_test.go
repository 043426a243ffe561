package runtime

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// drained runs a worker until ready says so, then asks it to stop, with or without a server, and returns how long
// after DrainTimeout that was over.
func drained(
	t *testing.T, s *silent, cfg Config, handle func(ctx context.Context) error, ready <-chan struct{}, silence bool,
) (time.Duration, error) {
	t.Helper()
	w := s.worker(cfg, handle)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running conc.WaitGroup
	var err error
	running.Go(func() { err = w.Run(ctx) })
	<-w.serving
	if ready != nil {
		<-ready
	}
	synctest.Wait()
	if silence {
		s.fallSilent()
	}
	began := time.Now()
	stop()
	running.Wait()
	return time.Since(began) - w.cfg.drainTimeout(), err
}

// Whatever the handlers do and however silent the server is, the drain stays within its budget: DrainTimeout plus
// stopGrace, which is the StopTimeout of the application.
func TestDrainStaysWithinItsBudget(t *testing.T) {
	for _, drain := range []time.Duration{-1, 2 * time.Second, 20 * time.Second} {
		for name, silence := range map[string]bool{"answering": false, "silent": true} {
			for _, c := range []struct {
				name    string
				work    int
				handler string
			}{{"idle", 0, ""}, {"obedient", 3, "obedient"}, {"stubborn", 1, "stubborn"}, {"done", 2, "done"}} {
				t.Run(strings.Join([]string{drain.String(), name, c.name}, " "), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newSilent(4, c.work)
						started, stubborn := make(chan struct{}, 8), make(chan struct{})
						var ready chan struct{}
						if c.work > 0 {
							ready = started
						}
						took, err := drained(t, s, Config{DrainTimeout: drain}, func(ctx context.Context) error {
							started <- struct{}{}
							switch c.handler {
							case "obedient":
								<-ctx.Done()
								return ctx.Err()
							case "stubborn":
								<-stubborn
							}
							return nil
						}, ready, silence)
						if took > stopGrace {
							t.Errorf("over %v after DrainTimeout, want at most %v", took, stopGrace)
						}
						if (c.handler == "stubborn") != errors.Is(err, flowfabric.ErrDraining) && !silence {
							t.Errorf("Run: %v", err)
						}
						if !silence && c.work == 0 && took > -max(drain, 0) {
							t.Errorf("an idle worker needed %v", took+max(drain, 0))
						}
						close(stubborn)
						synctest.Wait()
					})
				})
			}
		}
	}
}

// Ticks that are not answered when they are handed back are under the same deadline as all other last calls.
func TestHandedBackTicksAreUnderTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(4, 1)
		s.hung = true
		started, stubborn := make(chan struct{}), make(chan struct{})
		took, _ := drained(t, s, Config{DrainTimeout: -1}, func(context.Context) error {
			close(started)
			<-stubborn
			return nil
		}, started, false)
		if took > lastCallAfter {
			t.Errorf("over after %v, want at most %v", took, lastCallAfter)
		}
		close(stubborn)
		synctest.Wait()
	})
}

// A claim that is in flight when the server falls silent costs the handlers nothing of their time to end.
func TestHandlersAreToldInTimeWhileAClaimHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilent(1, 1)
		told := make(chan time.Time, 1)
		started := make(chan struct{})
		w := s.worker(Config{DrainTimeout: time.Second, Concurrency: 2, LeaseTTL: time.Hour},
			func(ctx context.Context) error {
				close(started)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), flowfabric.ErrDraining) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				told <- time.Now()
				return ctx.Err()
			})
		ctx, stop := context.WithCancel(t.Context())
		var running conc.WaitGroup
		running.Go(func() { _ = w.Run(ctx) })
		<-started
		synctest.Wait()
		s.fallSilent()
		<-s.hanging // a claim round wants to renew the registration
		began := time.Now()
		stop()
		running.Wait()
		if late := (<-told).Sub(began) - time.Second; late > 0 {
			t.Errorf("the handler was told %v late", late)
		}
	})
}
