package handler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

func value[T any](v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, nil }
}

// A worker dies between two steps: the next run gets the first value and runs only the second.
func TestStepIsMemoisedOverRuns(t *testing.T) {
	steps := &recorder{}
	ran := map[string]int{}
	crash := true
	b := handler.Bind(handler.Define[struct{}, string]("k"),
		func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			a, err := handler.Step(ctx, t, "a",
				func(context.Context) (string, error) { ran["a"]++; return fmt.Sprint("a", ran["a"]), nil })
			if err != nil {
				return "", err
			}
			n, err := handler.Step(ctx, t, "b", func(context.Context) (int, error) {
				ran["b"]++
				if crash {
					return 0, errors.New("crash")
				}
				return 5, nil
			})
			return fmt.Sprint(a, n), err
		})
	out := b.Run(context.Background(), newTask(tasks.Config{Steps: steps}))
	if out.Kind != codes.OutcomeFail || out.Failure.Reason != "step b: crash" || string(steps.values["a"]) != `"a1"` {
		t.Fatalf("first run: %s, recorded %q", show(out), steps.values)
	}
	crash = false
	out = b.Run(context.Background(), newTask(tasks.Config{Steps: steps, Claim: &engine.Claim{Steps: steps.values}}))
	if string(out.Result) != `"a15"` || ran["a"] != 1 || ran["b"] != 2 || steps.calls != 2 {
		t.Fatalf("second run: %s, ran %v, %d records", show(out), ran, steps.calls)
	}
}

// A failure names the step whose function returned the error, however the handler wraps it, and no other.
func TestFailureNamesItsStep(t *testing.T) {
	boom := errors.New("boom")
	failing := func(context.Context) (int, error) { time.Sleep(7 * time.Millisecond); return 0, boom }
	for name, tc := range map[string]struct {
		handle func(ctx context.Context, t *handler.Task) error
		step   string
		took   time.Duration
	}{
		"as it is": {func(ctx context.Context, t *handler.Task) error {
			_, err := handler.Step(ctx, t, "a", failing)
			return err
		}, "a", 7 * time.Millisecond},
		"wrapped": {func(ctx context.Context, t *handler.Task) error {
			_, err := handler.Step(ctx, t, "a", failing)
			return handler.Permanent(fmt.Errorf("order: %w", err))
		}, "a", 7 * time.Millisecond},
		"another error": {func(ctx context.Context, t *handler.Task) error {
			_, _ = handler.Step(ctx, t, "a", failing)
			return boom
		}, "", 0},
		"no step ran": {func(ctx context.Context, t *handler.Task) error {
			_, err := handler.Step(ctx, t, "", failing)
			return err
		}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task := newTask(tasks.Config{})
				out := handler.Classify(context.Background(), task, tc.handle(context.Background(), task))
				if out.Failure.Step != tc.step || out.Failure.StepTook != tc.took {
					t.Errorf("failed in %q after %v, want %q after %v", out.Failure.Step, out.Failure.StepTook, tc.step,
						tc.took)
				}
			})
		})
	}
}

func TestStepRefusals(t *testing.T) {
	inStep := func(ctx context.Context, t *handler.Task) error {
		_, err := handler.Step(ctx, t, "outer", func(ctx context.Context) (int, error) {
			return handler.Step(ctx, t, "inner", value(1))
		})
		return err
	}
	named := func(names ...string) func(context.Context, *handler.Task) error {
		return func(ctx context.Context, t *handler.Task) error {
			for _, name := range names {
				if _, err := handler.Step(ctx, t, name, value(1)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	sized := func(n int) func(context.Context, *handler.Task) error {
		return func(ctx context.Context, t *handler.Task) error {
			_, err := handler.Step(ctx, t, "big", value(make([]byte, n)))
			return err
		}
	}
	for _, tc := range []struct {
		name string
		call func(context.Context, *handler.Task) error
		want error
		says string
	}{
		{"two names", named("a", "b"), nil, ""},
		{"128 bytes", named(strings.Repeat("n", 128)), nil, ""},
		{"duplicate", named("a", "b", "a"), flowfabric.ErrInvalidInput, "step a was already used"},
		{"empty", named(""), flowfabric.ErrInvalidInput, "1..128"},
		{"129 bytes", named(strings.Repeat("n", 129)), flowfabric.ErrInvalidInput, "129 bytes, want 1..128"},
		{"line break", named("a\nb"), flowfabric.ErrInvalidInput, "0x0a at 1"},
		{"not ASCII", named("é"), flowfabric.ErrInvalidInput, "printable ASCII"},
		{"nested", inStep, flowfabric.ErrInvalidInput, "step inner runs inside step outer"},
		{"at the limit", sized(limits.MaxStepBytes), nil, ""},
		{"too large", sized(limits.MaxStepBytes + 1), flowfabric.ErrPayloadTooLarge,
			"step big: payload_too_large: the bytes exceed the documented limit: value has 262145 bytes, want at most 262144"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps := &recorder{}
			err := tc.call(context.Background(), newTask(tasks.Config{Steps: steps}))
			if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v", err)
			}
			if _, stored := steps.values["big"]; stored && tc.want != nil {
				t.Fatal("the value was recorded")
			}
		})
	}
}

// A recorded value of another type cannot be repaired by a retry, and must not be silently replaced.
func TestStepOfAnotherType(t *testing.T) {
	task := newTask(tasks.Config{Claim: &engine.Claim{Steps: map[string][]byte{"a": []byte(`"text"`)}}})
	_, err := handler.Step(context.Background(), task, "a", func(context.Context) (int, error) { panic("not called") })
	out := handler.Classify(context.Background(), task, err)
	if !out.Failure.Permanent || out.Failure.Category != causes.Decode ||
		!strings.Contains(out.Failure.Reason, "step a: recorded value does not decode into int") {
		t.Fatalf("got %s", show(out))
	}
}

func TestUnusedSteps(t *testing.T) {
	logger, logs := quiet()
	recorded := map[string][]byte{"a": []byte("1"), "a part": []byte("1"), "old-2": []byte("2"), "old-1": []byte("3")}
	task := newTask(tasks.Config{Claim: &engine.Claim{Steps: recorded}, Logger: logger})
	fail := errors.New("later")
	b := handler.Bind(handler.Define[struct{}, int]("k"),
		func(ctx context.Context, t *handler.Task, _ struct{}) (int, error) {
			n, err := handler.Step(ctx, t, "a", value(0))
			return n, errors.Join(err, fail)
		})
	if b.Run(context.Background(), task); strings.Contains(logs.String(), "old-1") {
		t.Fatalf("a run that failed has asked for what it came to, no more: %s", logs)
	}
	fail = nil
	if out := b.Run(context.Background(), task); out.Kind != codes.OutcomeComplete {
		t.Fatalf("got %s", show(out))
	}
	if got := task.UnusedSteps(); !slices.Equal(got, []string{"old-1", "old-2"}) ||
		!strings.Contains(logs.String(), "[old-1 old-2]") {
		t.Fatalf("got %v, log %s", got, logs)
	}
	if len(recorded) != 4 {
		t.Fatal("the claim was changed")
	}
}

// A recorded step implies that its frames are stored: they are flushed first, and without them nothing is recorded.
func TestStepFlushesFirst(t *testing.T) {
	frames := &tape{}
	steps := &recorder{before: func(context.Context) error {
		if frames.stored != 2 {
			return fmt.Errorf("%d frames stored", frames.stored)
		}
		return nil
	}}
	task := newTask(tasks.Config{Frames: frames, Steps: steps})
	say := func(ctx context.Context) (string, error) {
		return "hi", errors.Join(task.Frame(ctx, "token", "h"), task.Frame(ctx, "token", "i"))
	}
	if _, err := handler.Step(context.Background(), task, "say", say); err != nil {
		t.Fatal(err)
	}
	frames.flushErr = denied.Unflushed
	if _, err := handler.Step(context.Background(), task, "again", say); !errors.Is(err, denied.Unflushed) ||
		steps.calls != 1 {
		t.Fatalf("got %v after %d records", err, steps.calls)
	}
}

// The effect has happened: a drain or a timeout that comes meanwhile must not make the next run repeat it.
func TestStepIsRecordedAfterItsContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	steps := &recorder{before: func(ctx context.Context) error { return ctx.Err() }}
	task := newTask(tasks.Config{Steps: steps})
	got, err := handler.Step(ctx, task, "charge", func(context.Context) (int, error) {
		cancel(flowfabric.ErrDraining)
		return 1, nil
	})
	if got != 1 || err != nil || string(steps.values["charge"]) != "1" {
		t.Fatalf("got %d, %v, recorded %q", got, err, steps.values)
	}
	_, err = handler.Step(ctx, task, "next", func(context.Context) (int, error) { panic("not called") })
	if !errors.Is(err, flowfabric.ErrDraining) {
		t.Fatalf("got %v", err)
	}
}

func TestStepRecordIsBoundedAfterTheContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		stuck := &recorder{before: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}
		started := time.Now()
		_, err := handler.Step(ctx, newTask(tasks.Config{Steps: stuck}), "a", func(context.Context) (int, error) {
			cancel(flowfabric.ErrDraining)
			return 1, nil
		})
		if !errors.Is(err, flowfabric.ErrDraining) || time.Since(started) != 3*time.Second {
			t.Fatalf("got %v after %v", err, time.Since(started))
		}
	})
}

// Nothing is written for an execution that is another's, and the handler hears of it.
func TestStepWithoutLease(t *testing.T) {
	steps := &recorder{}
	lost := newTask(tasks.Config{Steps: steps, Lease: fixedLease{flowfabric.ErrLeaseLost}})
	_, err := handler.Step(context.Background(), lost, "a", func(context.Context) (int, error) { panic("not called") })
	if !errors.Is(err, flowfabric.ErrLeaseLost) || steps.calls != 0 {
		t.Fatalf("got %v after %d records", err, steps.calls)
	}
	for _, answer := range []error{denied.StaleLease, denied.NotActive, denied.LeaseExpired} {
		ctx, cancel := context.WithCancelCause(context.Background())
		task := newTask(tasks.Config{Cancel: cancel,
			Steps: &recorder{before: func(context.Context) error { return answer }}})
		_, err := handler.Step(ctx, task, "a", value(1))
		if !errors.Is(err, answer) || !errors.Is(err, flowfabric.ErrLeaseLost) ||
			!errors.Is(context.Cause(ctx), flowfabric.ErrLeaseLost) || task.LeaseHealthy() {
			t.Errorf("got %v, cause %v", err, context.Cause(ctx))
		}
		if out := handler.Classify(context.Background(), task,
			handler.Permanent(err)); out.Kind != codes.OutcomeAbandon {
			t.Errorf("got %s", show(out))
		}
	}
	full := newTask(tasks.Config{Steps: &recorder{before: func(context.Context) error { return denied.StepLimit }}})
	if _, err := handler.Step(context.Background(), full, "a", value(1)); !errors.Is(err, denied.StepLimit) ||
		!full.LeaseHealthy() {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentSteps(t *testing.T) {
	task := newTask(tasks.Config{})
	errs := make([]error, 50)
	var wg conc.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = handler.Step(context.Background(), task, fmt.Sprint("page-", i/2), value(i)) })
	}
	wg.Wait()
	failures := 0
	for _, err := range errs {
		if errors.Is(err, flowfabric.ErrInvalidInput) {
			failures++
		} else if err != nil {
			t.Error(err)
		}
	}
	if failures != 25 || len(task.UnusedSteps()) != 0 {
		t.Fatalf("%d duplicates, want 25", failures)
	}
}

func TestStepAfterTheHandlerReturned(t *testing.T) {
	task := newTask(tasks.Config{})
	handler.Bind(handler.Define[struct{}, int]("k"),
		handler.Plain(func(context.Context, struct{}) (int, error) { return 1, nil })).Run(context.Background(), task)
	if _, err := handler.Step(context.Background(), task, "late", value(1)); !errors.Is(err, denied.TaskConsumed) {
		t.Fatalf("got %v", err)
	}
}
