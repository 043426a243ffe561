package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/handler/middleware"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// On a real worker: never more starts in a window than allowed, everything is done in the end, and no retry is used up.
func TestRateLimitOnAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send := handler.Define[int, int]("send", flowfabric.Retries(0))
		starts := make(chan time.Time, 100)
		asides := make(chan time.Duration, 1000)
		w := fftest.New(t, runtime.Config{Middleware: []handler.Middleware{
			middleware.RateLimit(middleware.Rate{Starts: 2,
				OnAside: func(_ *handler.Task, d time.Duration) { asides <- d }}),
		}}, handler.Bind(send, func(context.Context, *handler.Task, int) (int, error) {
			starts <- time.Now()
			return 0,
				nil
		}))
		var all []*fftest.Execution[int]
		for i := range 20 {
			all = append(all, fftest.Submit(w, send, i))
		}
		for _, x := range all {
			r := x.Wait()
			r.WantResult(0)
			if s := x.Snapshot(); s.Attempts != 1 || s.Retries != 0 {
				t.Errorf("%d attempts, %d retries", s.Attempts, s.Retries)
			}
		}
		close(starts)
		var at []time.Time
		for s := range starts {
			at = append(at, s)
		}
		if len(at) != 20 || len(asides) < 18 {
			t.Errorf("%d starts, %d put aside", len(at), len(asides))
		}
		for i := 4; i < len(at); i++ {
			if d := at[i].Sub(at[i-4]); d < time.Second {
				t.Errorf("starts %d to %d within %s", i-4, i, d)
			}
		}
	})
}

// On a real worker: a service that is away for ten minutes costs as many retries as opened the breaker and tried it
// since.
func TestCircuitBreakerOnAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := handler.Define[int, int]("call", handler.Retry(20, time.Second, time.Second))
		up := time.Now().Add(10 * time.Minute)
		failures := make(chan struct{}, 1000)
		w := fftest.New(t, runtime.Config{Concurrency: 1, Middleware: []handler.Middleware{
			middleware.CircuitBreaker(middleware.Breaker{Failures: 3, Open: time.Minute,
				Logger: slog.New(slog.DiscardHandler)}),
		}}, handler.Bind(call, func(context.Context, *handler.Task, int) (int, error) {
			if time.Now().Before(up) {
				failures <- struct{}{}
				return 0, errors.New("away")
			}
			return 1, nil
		}))
		var all []*fftest.Execution[int]
		for i := range 10 {
			all = append(all, fftest.Submit(w, call, i))
		}
		retries := 0
		for _, x := range all {
			x.Wait().WantResult(1)
			retries += x.Snapshot().Retries
		}
		if retries != len(failures) || retries < 3+8 || retries > 3+10 {
			t.Errorf("%d retries for %d failures: want 3 to open the breaker and one a minute", retries, len(failures))
		}
	})
}
