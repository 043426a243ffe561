package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var (
	ErrNoSuchCustomer = errors.New("no such customer")
	ErrWithdrawn      = errors.New("withdrawn")
	ErrBusy           = errors.New("busy")
	ErrClosedToday    = errors.New("closed today")
)

// Decide says what follows an error of whatever the handler calls.
func Decide(err error) error {
	switch {
	case errors.Is(err, ErrNoSuchCustomer):
		return handler.Permanent(err) // failed at once, and kept for a replay
	case errors.Is(err, ErrWithdrawn):
		return handler.Cancel("withdrawn") // cancelled: nothing went wrong, nothing is left to do
	case errors.Is(err, ErrBusy):
		return handler.RetryAfter(30*time.Second, err) // a failed attempt; the next one, if there is one, in 30 s
	case errors.Is(err, ErrClosedToday):
		return handler.Delay(12 * time.Hour) // no failure: uses no retry, as often as it is said
	}
	return err // a failed attempt; the policy decides
}

// Backoff replaces the pauses of the policies. Whether there is a retry stays their decision.
func Backoff(pause func(retries int) time.Duration) handler.Middleware {
	return func(next handler.Handler) handler.Handler {
		return func(ctx context.Context, t *handler.Task) handler.Outcome {
			out := next(ctx, t)
			if f := &out.Failure; out.Kind == "fail" && !f.Permanent && f.RetryAfter == nil {
				after := min(pause(t.Retries()), 7*24*time.Hour).Truncate(time.Millisecond)
				f.RetryAfter = &after
			}
			return out
		}
	}
}

// Quartic grows as the defaults of asynq and River do: with the fourth power of the number of failures.
func Quartic(retries int) time.Duration {
	n := time.Duration(retries + 1)
	return n * n * n * n * time.Second
}

// Report tells every failed attempt that a handler of this worker made, panics among them.
func Report(tell func(ctx context.Context, t *handler.Task, category flowfabric.Category,
	err error)) handler.Middleware {
	return func(next handler.Handler) handler.Handler {
		return func(ctx context.Context, t *handler.Task) handler.Outcome {
			out := next(ctx, t)
			if out.Kind == "fail" {
				tell(ctx, t, out.Failure.Category, out.Err)
			}
			return out
		}
	}
}

// DeadLetters reports every execution that has failed for good, by any decision: the policy, a handler, or the
// server.
func DeadLetters(ctx context.Context, c *client.Client, tell func(flowfabric.Snapshot)) error {
	// a program that stores sub.Cursor() goes on there with From
	sub, err := admin.New(c).Subscribe(ctx, admin.SubscribeOptions{})
	if err != nil {
		return err
	}
	for event, err := range sub.Events(ctx) {
		if err != nil {
			return err
		}
		if event.State != flowfabric.Failed && event.State != flowfabric.Expired {
			continue
		}
		seen, err := c.Execution(event.Execution).Get(ctx)
		if errors.Is(err, flowfabric.ErrResultPurged) || errors.Is(err, flowfabric.ErrNotFound) {
			continue // its retention is over: a late reader misses it
		}
		if err != nil {
			return err
		}
		tell(seen)
	}
	return nil
}

// Charge is a kind of work whose handler fails as its input says.
var Charge = handler.Define[string, int]("charge", handler.Retry(3, time.Second, time.Minute))

func TestDecide(t *testing.T) {
	fails := map[string]error{"nobody": ErrNoSuchCustomer, "withdrawn": ErrWithdrawn, "busy": ErrBusy,
		"other": errors.New("other")}
	handle := func(_ context.Context, _ *handler.Task, in string) (int, error) { return 0, Decide(fails[in]) }
	for in, want := range map[string]struct {
		state    flowfabric.PublicState
		attempts int
		least    time.Duration
		most     time.Duration
	}{
		"nobody":    {flowfabric.Failed, 1, 0, time.Second},
		"withdrawn": {flowfabric.Cancelled, 1, 0, time.Second},
		"busy":      {flowfabric.Failed, 4, 90 * time.Second, 95 * time.Second},
		"other":     {flowfabric.Failed, 4, 5 * time.Second, 12 * time.Second}, // 1 s, 2 s, 4 s, each ±20 %
	} {
		r := fftest.Run(t, Charge, handle, in)
		r.Want(fftest.Want{State: want.state, Least: want.least, Most: want.most})
		if len(r.Attempts) != want.attempts {
			t.Errorf("%s: %d attempts", in, len(r.Attempts))
		}
	}
	runs := 0
	r := fftest.Run(t, Charge, func(context.Context, *handler.Task, string) (int, error) {
		if runs++; runs <= 5 {
			return 0, Decide(fmt.Errorf("till: %w", ErrClosedToday))
		}
		return runs, nil
	}, "closed")
	r.WantResult(6)
	r.Want(fftest.Want{
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial}, // five delays, and still the first attempt
		Least:    60 * time.Hour,
		Most:     60*time.Hour + 10*time.Second,
	})
}

func TestMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		report := Report(func(_ context.Context, t *handler.Task, category flowfabric.Category, err error) {
			told = append(told, fmt.Sprintf("%s %d %s: %v", t.Kind(), t.Retries(), category, err))
		})
		w := fftest.New(t, runtime.Config{Middleware: []handler.Middleware{report, Backoff(Quartic)}},
			handler.Bind(Charge, func(_ context.Context, t *handler.Task, _ string) (int, error) {
				if t.Retries() == 2 {
					panic("no till")
				}
				return 0, errors.New("no power")
			}))
		r := fftest.Submit(w, Charge, "x").Wait()
		r.Want(fftest.Want{
			State: flowfabric.Failed,
			Least: 98 * time.Second,
			Most:  103 * time.Second, // 1 + 16 + 81
		})
		want := []string{"charge 0 handler_error: no power", "charge 1 handler_error: no power",
			"charge 2 handler_panic: panic: no till", "charge 3 handler_error: no power"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

func TestDeadLetters(t *testing.T) {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	ctx, stop := testwait.Context(t, t.Context())
	defer stop()
	c, err := client.Connect(ctx, client.Config{URL: url, Namespace: "dead-letters", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	worker, err := runtime.New(runtime.Config{URL: url, Namespace: "dead-letters", Logger: quiet},
		handler.Bind(Charge, func(_ context.Context, _ *handler.Task, in string) (int, error) {
			if in == "nobody" {
				return 0, Decide(ErrNoSuchCustomer)
			}
			return 1, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })
	told := make(chan flowfabric.Snapshot)
	running.Go(func() { _ = DeadLetters(ctx, c, func(s flowfabric.Snapshot) { told <- s }) })
	for {
		if parts, err := admin.New(c).Partitions(ctx); err != nil {
			t.Fatal(err)
		} else if !slices.ContainsFunc(parts, func(p flowfabric.Partition) bool { return p.Recording == "" }) {
			break // it follows
		}
	}
	for _, in := range []string{"fine", "nobody"} {
		if _, err := client.Submit(ctx, c, Charge, in); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case s := <-told:
		if s.Route.Kind != "charge" || s.Failure.Message != "no such customer" {
			t.Errorf("%+v", s)
		}
	case <-ctx.Done():
		t.Fatal("nobody was told")
	}
}
