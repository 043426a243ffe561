package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// task is a task of a kind that works alone.
func task(kind string) *handler.Task {
	task, _ := handler.NewTask(tasks.Config{Route: engine.Route{Kind: kind}})
	return task
}

// completes is a handler that counts its runs.
func completes(ran *int) handler.Handler {
	return func(context.Context, *handler.Task) handler.Outcome {
		*ran++
		return handler.Outcome{Kind: codes.OutcomeComplete}
	}
}

// Runs that find no room are told one instant after the other, each when there is room for it.
func TestRateLimitSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		var told []time.Duration
		h := RateLimit(Rate{Starts: 2, Burst: 3,
			OnAside: func(_ *handler.Task, d time.Duration) { told = append(told, d) }})(completes(&ran))
		for i := range 7 {
			out := h(t.Context(), task("mail"))
			want := codes.OutcomeComplete
			if i >= 3 {
				want = codes.OutcomeDelay
			}
			if out.Kind != want || out.Kind == codes.OutcomeDelay && out.Delay < told[len(told)-1] {
				t.Errorf("run %d: %+v", i, out)
			}
		}
		for i, d := range told {
			at := time.Duration(i+1) * 500 * time.Millisecond
			if d < at || d > at+at/10+time.Millisecond {
				t.Errorf("put aside for %s, want %s and up to a tenth", d, at)
			}
		}
		if ran != 3 || len(told) != 4 {
			t.Errorf("%d runs, %d put aside", ran, len(told))
		}
		if out := h(t.Context(), task("other")); out.Kind != codes.OutcomeComplete {
			t.Errorf("another kind: %+v", out)
		}
		time.Sleep(time.Second)
		for range 2 {
			if out := h(t.Context(), task("mail")); out.Kind != codes.OutcomeComplete {
				t.Errorf("a second later: %+v", out)
			}
		}
		if out := h(t.Context(), task("mail")); out.Kind != codes.OutcomeDelay {
			t.Errorf("the third in a second: %+v", out)
		}
	})
}

func TestRateLimitLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := RateLimit(Rate{Starts: 1, Per: time.Hour, Longest: time.Minute})(completes(&ran))
		h(t.Context(), task("mail"))
		for range 3 {
			if out := h(t.Context(), task("mail")); out.Kind != codes.OutcomeDelay || out.Delay < time.Minute ||
				out.Delay > 67*time.Second {
				t.Errorf("%+v", out)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h := RateLimit(Rate{Starts: 1, Per: time.Hour, Key: Kinds("a", "b")})(completes(&ran))
		for _, kind := range []string{"a", "b", "c", "c"} {
			h(t.Context(), task(kind))
		}
		if ran != 3 {
			t.Errorf("%d runs: want one of a and b together, and both of c", ran)
		}
	})
}

// Many keys that come once are not remembered for ever; one whose limit is used up is.
func TestIdleKeysAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limits{rate: Rate{Starts: 1, Per: time.Minute, Burst: 1, Longest: time.Hour}, every: 1.0 / 60}
		for i := range forgetAt - 1 {
			l.start(fmt.Sprint(i), time.Now())
		}
		time.Sleep(2 * time.Minute)
		l.start("busy", time.Now())
		l.start("new", time.Now())
		if len(l.keys.of) != 2 || l.start("busy", time.Now()) == 0 {
			t.Errorf("%d keys are remembered", len(l.keys.of))
		}
	})
}

func TestCircuitBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []string
		var log strings.Builder
		down := true
		ran := 0
		h := CircuitBreaker(Breaker{Failures: 3, Open: 10 * time.Second,
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			OnState: func(_, state string) { states = append(states, state) }})(func(ctx context.Context,
			t *handler.Task) handler.Outcome {
			ran++
			if down {
				return handler.Classify(ctx, t, errors.New("away"))
			}
			return handler.Outcome{Kind: codes.OutcomeComplete}
		})
		run := func() handler.Outcome { return h(t.Context(), task("mail")) }
		for range 3 {
			if out := run(); out.Kind != codes.OutcomeFail {
				t.Fatalf("closed: %+v", out)
			}
		}
		time.Sleep(4 * time.Second)
		if out := run(); out.Kind != codes.OutcomeDelay || out.Delay < 6*time.Second || out.Delay > 7*time.Second ||
			ran != 3 {
			t.Errorf("open: %+v, %d runs", out, ran)
		}
		time.Sleep(7 * time.Second)
		if out := run(); out.Kind != codes.OutcomeFail || ran != 4 {
			t.Errorf("half-open: %+v", out)
		}
		if out := run(); out.Kind != codes.OutcomeDelay || ran != 4 {
			t.Errorf("open again after a probe that failed: %+v", out)
		}
		down = false
		time.Sleep(11 * time.Second)
		for range 2 {
			if out := run(); out.Kind != codes.OutcomeComplete {
				t.Errorf("closed again: %+v", out)
			}
		}
		if want := []string{"open", "half-open", "open", "half-open", "closed"}; !slices.Equal(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
		if n := strings.Count(log.String(), "circuit breaker opens"); n != 2 ||
			!strings.Contains(log.String(), "circuit breaker closes") {
			t.Errorf("log: %s", &log)
		}
	})
}

// What an open breaker puts aside at the same time comes back at different times, never before it lets a run try.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := CircuitBreaker(Breaker{Failures: 1, Logger: slog.New(slog.DiscardHandler)})(func(ctx context.Context,
			t *handler.Task) handler.Outcome {
			return handler.Classify(ctx, t, errors.New("away"))
		})
		h(t.Context(), task("mail"))
		delays := map[time.Duration]bool{}
		for range 20 {
			out := h(t.Context(), task("mail"))
			if out.Kind != codes.OutcomeDelay || out.Delay <= 30*time.Second || out.Delay > 34*time.Second {
				t.Errorf("%+v", out)
			}
			delays[out.Delay] = true
		}
		if len(delays) < 10 {
			t.Errorf("20 runs come again at %d instants", len(delays))
		}
	})
}

// While one run tries, others are put aside; a run that says nothing of the service makes way for the next to try.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, began := make(chan handler.Outcome), make(chan struct{}, 1)
		h := CircuitBreaker(Breaker{Failures: 1, Open: 20 * time.Second})(func(context.Context,
			*handler.Task) handler.Outcome {
			began <- struct{}{}
			return <-answer
		})
		var running sync.WaitGroup
		defer running.Wait()
		run := func(out handler.Outcome) {
			running.Go(func() { h(t.Context(), task("mail")) })
			<-began
			answer <- out
			running.Wait()
		}
		run(handler.Classify(t.Context(), task("mail"), errors.New("away")))
		time.Sleep(21 * time.Second)
		running.Go(func() { h(t.Context(), task("mail")) })
		<-began
		if out := h(t.Context(), task("mail")); out.Kind != codes.OutcomeDelay || out.Delay < 2*time.Second ||
			out.Delay > 3*time.Second {
			t.Errorf("beside a probe: %+v", out)
		}
		answer <- handler.Outcome{Kind: codes.OutcomeRelease}
		running.Wait()
		run(handler.Outcome{Kind: codes.OutcomeComplete})
		run(handler.Outcome{Kind: codes.OutcomeComplete})
	})
}

// A panic of middleware below counts, and goes on.
func TestBreakerPanics(t *testing.T) {
	h := CircuitBreaker(Breaker{Failures: 1, Logger: slog.New(slog.DiscardHandler)})(func(context.Context,
		*handler.Task) handler.Outcome {
		panic("boom")
	})
	if out := handler.Recover()(h)(t.Context(), task("mail")); out.Kind != codes.OutcomeFail ||
		out.Failure.Category != causes.Panic {
		t.Errorf("%+v", out)
	}
	if out := h(t.Context(), task("mail")); out.Kind != codes.OutcomeDelay {
		t.Errorf("after the panic: %+v", out)
	}
}

// A run that ends its goroutine counts as a failure, and gives back its place among those that try.
func TestBreakerOutlivesGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b := CircuitBreaker(Breaker{Failures: 1, Open: time.Second})
		h := b(func(ctx context.Context, t *handler.Task) handler.Outcome {
			out := completes(&ran)(ctx, t)
			switch ran {
			case 1: // opens it
				return handler.Outcome{Kind: codes.OutcomeFail, Failure: handler.Failure{Category: "down"}}
			case 2: // tries
				runtime.Goexit()
			}
			return out
		})
		for i := range 3 {
			var out handler.Outcome
			var run sync.WaitGroup
			run.Go(func() { out = h(t.Context(), task("mail")) })
			run.Wait()
			if ran != i+1 {
				t.Fatalf("run %d was put aside: %+v", i+1, out)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

func TestWhatCountsAsAFailure(t *testing.T) {
	ended, end := context.WithCancelCause(t.Context())
	end(flowfabric.ErrDraining)
	late, stop := context.WithCancelCause(t.Context())
	stop(flowfabric.ErrAttemptTimeout)
	all := &breakers{Breaker: Breaker{Counts: unwell}}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want error
	}{
		{t.Context(), errors.New("away"), errUnwell},
		{t.Context(), handler.Category("upstream", errors.New("away")), errUnwell},
		{t.Context(), handler.RetryAfter(time.Second, errors.New("busy")), errUnwell},
		{late, context.Canceled, errUnwell},
		{t.Context(), handler.Permanent(errors.New("no such address")), errSilent},
		{t.Context(), handler.Cancel("not wanted"), errSilent},
		{t.Context(), handler.Delay(time.Second), errSilent},
		{t.Context(), fmt.Errorf("spend: %w", flowfabric.ErrOverBudget), errSilent},
		{ended, context.Canceled, errSilent},
	} {
		if got := all.judge(handler.Classify(c.ctx, task("mail"), c.err)); !errors.Is(got, c.want) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
	for _, category := range []flowfabric.Category{causes.Decode, causes.NoHandler, causes.AwaitIgnored,
		causes.Suspend, causes.Child, causes.OverBudget} {
		if unwell(handler.Outcome{Kind: codes.OutcomeFail, Failure: handler.Failure{Category: category}}) {
			t.Errorf("%s counts", category)
		}
	}
	for _, kind := range []string{codes.OutcomeSuspend, codes.OutcomeChildren, codes.OutcomeBlock,
		codes.OutcomeAbandon} {
		if got := all.judge(handler.Outcome{Kind: kind}); !errors.Is(got, errSilent) {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if err := all.judge(handler.Outcome{Kind: codes.OutcomeComplete}); err != nil {
		t.Error(err)
	}
}

// Drains, waits and the like leave a row of failures as it is.
func TestARowOfFailures(t *testing.T) {
	var states []string
	b := Breaker{Failures: 2, OnState: func(_, state string) { states = append(states, state) },
		Logger: slog.New(slog.DiscardHandler)}
	var err error
	h := CircuitBreaker(b)(func(ctx context.Context, t *handler.Task) handler.Outcome {
		if err == nil {
			return handler.Outcome{Kind: codes.OutcomeComplete}
		}
		return handler.Classify(ctx, t, err)
	})
	for _, err = range []error{errors.New("away"), nil, errors.New("away"), handler.Delay(time.Second),
		handler.Permanent(errors.New("bad"))} {
		h(t.Context(), task("mail"))
	}
	if len(states) != 0 {
		t.Errorf("one failure since the last success, and the breaker is %v", states)
	}
	err = errors.New("away")
	h(t.Context(), task("mail"))
	if !slices.Equal(states, []string{"open"}) {
		t.Errorf("two failures in a row: %v", states)
	}
}

func TestMistakesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"no starts":        func() { RateLimit(Rate{}) },
		"negative per":     func() { RateLimit(Rate{Starts: 1, Per: -1}) },
		"negative burst":   func() { RateLimit(Rate{Starts: 1, Burst: -1}) },
		"short longest":    func() { RateLimit(Rate{Starts: 1, Longest: 1}) },
		"no failures":      func() { CircuitBreaker(Breaker{Failures: -1}) },
		"no probes":        func() { CircuitBreaker(Breaker{Probes: -1}) },
		"open for no time": func() { CircuitBreaker(Breaker{Open: time.Millisecond}) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, "want at least 1") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			f()
		}()
	}
}
