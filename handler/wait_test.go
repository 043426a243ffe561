package handler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// resumption is what a claim brings of the last suspension.
func resumption(name, payload string) *suspend.Result {
	return &suspend.Result{Name: name, Cause: "signal",
		Signals: []suspend.StoredSignal{{Name: "signal", Encoding: "json", Payload: []byte(payload)}}}
}

// kept is an answer as an earlier suspension left it among the steps.
func kept(name, cause string) []byte {
	return []byte(strings.Join([]string{name, cause, uuid.NewString(), "1000", "0", "", "bob", "because", "0"}, "\x1f"))
}

// runOn runs one run of a function over a claim.
func runOn(t *testing.T, claim engine.Claim, keyring *tokenkeys.Keyring,
	fn func(context.Context, *handler.Task) (string, error)) handler.Outcome {
	t.Helper()
	out, _ := waitsOn(t, claim, keyring, fn)
	return out
}

// waitsOn is runOn, and what the run waits for.
func waitsOn(t *testing.T, claim engine.Claim, keyring *tokenkeys.Keyring,
	fn func(context.Context, *handler.Task) (string, error)) (handler.Outcome, tasks.Waits) {
	t.Helper()
	logger, _ := quiet()
	claim.Input = []byte(`"x"`)
	task, waits := handler.NewTask(tasks.Config{Claim: &claim, Keyring: keyring, Logger: logger})
	return handler.Bind(handler.Define[string, string]("k"),
		func(ctx context.Context, t *handler.Task, _ string) (string, error) {
			return fn(ctx, t)
		}).Run(context.Background(), task), waits
}

// What the error of a wait makes of a run: alone, wrapped, joined, and against what else a handler can ask for.
func TestWaitOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		also func(error) error
		want string
	}{
		"alone":     {func(err error) error { return err }, codes.OutcomeSuspend},
		"wrapped":   {func(err error) error { return fmt.Errorf("ask: %w", err) }, codes.OutcomeSuspend},
		"joined":    {func(err error) error { return errors.Join(err, io.EOF) }, codes.OutcomeSuspend},
		"category":  {func(err error) error { return handler.Category("mine", err) }, codes.OutcomeSuspend},
		"permanent": {handler.Permanent, codes.OutcomeFail},
		"cancel": {func(err error) error { return errors.Join(err, handler.Cancel("enough")) },
			codes.OutcomeCancel},
		"delay": {func(err error) error { return errors.Join(err, handler.Delay(time.Second)) },
			codes.OutcomeDelay},
		"text only": {func(err error) error { return errors.New(err.Error()) }, codes.OutcomeFail},
	} {
		t.Run(name, func(t *testing.T) {
			out, waits := waitsOn(t, engine.Claim{}, tokenkeys.Development(),
				func(ctx context.Context, task *handler.Task) (string, error) {
					_, err := handler.Await[string](ctx, task, "go", suspend.Within(time.Hour),
						suspend.Because(suspend.ReasonReview))
					return "", c.also(err)
				})
			if out.Kind != c.want || out.Err == nil {
				t.Fatalf("got %s", show(out))
			}
			if q := waits.Suspension(); c.want == codes.OutcomeSuspend && (q == nil || q.Name != "go" ||
				q.Timeout != time.Hour || q.Reason != string(suspend.ReasonReview) ||
				q.Behaviour != string(suspend.Fail) || len(q.Bindings) != 1 || q.Bindings[0].Key != "go" ||
				q.Bindings[0].Digest == "") {
				t.Errorf("suspension %+v", q)
			}
		})
	}
}

// Waits that cannot be: what they fail with.
func TestWaitRefusals(t *testing.T) {
	await := func(ctx context.Context, task *handler.Task) (string, error) {
		return handler.Await[string](ctx, task, "go")
	}
	for name, c := range map[string]struct {
		keyring  *tokenkeys.Keyring
		fn       func(context.Context, *handler.Task) (string, error)
		category string
		reason   string
	}{
		"no keys": {nil, await, causes.Suspend, suspend.EnvTokenKeys},
		"ignored": {tokenkeys.Development(), func(ctx context.Context, task *handler.Task) (string, error) {
			_, _ = await(ctx, task)
			return "done", nil
		}, causes.AwaitIgnored, "wait go"},
		"inside a step": {tokenkeys.Development(), func(ctx context.Context, task *handler.Task) (string, error) {
			return handler.Step(ctx, task, "s", func(ctx context.Context) (string, error) { return await(ctx, task) })
		}, causes.HandlerError, "wait go is inside step s"},
		"pending inside a step": {tokenkeys.Development(),
			func(ctx context.Context, task *handler.Task) (string, error) {
				return handler.Step(ctx, task, "s", func(ctx context.Context) (string, error) {
					_, err := task.Pending(ctx, "go", time.Hour)
					return "", err
				})
			}, causes.HandlerError, "waitpoint go is inside step s"},
		"twice": {tokenkeys.Development(), func(ctx context.Context, task *handler.Task) (string, error) {
			_, _ = await(ctx, task)
			return await(ctx, task)
		}, causes.HandlerError, "already used"},
	} {
		t.Run(name, func(t *testing.T) {
			out := runOn(t, engine.Claim{}, c.keyring, c.fn)
			if out.Kind != codes.OutcomeFail || string(out.Failure.Category) != c.category ||
				!strings.Contains(out.Failure.Reason, c.reason) {
				t.Errorf("got %s: %s %s", show(out), out.Failure.Category, out.Failure.Reason)
			}
			if permanent := c.category != causes.Suspend; out.Failure.Permanent != permanent {
				t.Errorf("permanent %t, want %t", out.Failure.Permanent, permanent)
			}
		})
	}
	if out, waits := waitsOn(t, engine.Claim{}, nil, func(ctx context.Context, task *handler.Task) (string, error) {
		_, err := task.Wait(ctx, "go", suspend.Operator())
		return "", err
	}); out.Kind != codes.OutcomeSuspend || len(waits.Suspension().Bindings) != 0 {
		t.Errorf("an operator's wait needs no keys: %s", show(out))
	}
}

// What earlier runs were answered is told again, and the next wait is the one that suspends. What nobody asked for is
// unused.
func TestWaitsOfEarlierPasses(t *testing.T) {
	claim := engine.Claim{Resume: resumption("second", `"2"`), Steps: map[string][]byte{
		engine.StepAwait + "first": kept("first", "operator"), engine.StepAwait + "gone": kept("gone", "signal"),
		"step": []byte(`1`),
	}}
	var unused []string
	out, waits := waitsOn(t, claim, tokenkeys.Development(), func(ctx context.Context, task *handler.Task) (string,
		error) {
		unused = task.UnusedSteps()
		first, err := task.Wait(ctx, "first", suspend.Signal("first"))
		if err != nil || first.By != "bob" || first.Cause != "operator" {
			t.Errorf("first: %+v, %v", first, err)
		}
		second, err := handler.Await[string](ctx, task, "second")
		if err != nil || second != "2" {
			t.Errorf("second: %q, %v", second, err)
		}
		if got := task.UnusedSteps(); !slices.Equal(got, []string{"step", "wait gone"}) {
			t.Errorf("unused later %q", got)
		}
		_, err = handler.Await[string](ctx, task, "third")
		return "", err
	})
	if out.Kind != codes.OutcomeSuspend || waits.Suspension().Name != "third" {
		t.Errorf("got %s", show(out))
	}
	if !slices.Equal(unused, []string{"step", "wait first", "wait gone", "wait second"}) {
		t.Errorf("unused at first %q", unused)
	}
	out = runOn(t, engine.Claim{Resume: &suspend.Result{Name: "go", Cause: "operator", By: "bob"}}, nil,
		func(ctx context.Context, task *handler.Task) (string, error) {
			return handler.Await[string](ctx, task, "go")
		})
	if !errors.Is(out.Err, flowfabric.ErrNoSignal) || !out.Failure.Permanent {
		// the next attempt would be told the same
		t.Errorf("an operator without a signal: %s, %v", show(out), out.Err)
	}
}

// A goroutine that outlived its handler waits for nothing more, whether the handler had to do with waits or not.
func TestWaitAfterTheHandler(t *testing.T) {
	for name, looks := range map[string]bool{"never waited": false, "looked": true} {
		t.Run(name, func(t *testing.T) {
			var late *handler.Task
			runOn(t, engine.Claim{}, tokenkeys.Development(),
				func(_ context.Context, task *handler.Task) (string, error) {
					if looks {
						task.Resumed()
					}
					late = task
					return "", nil
				})
			if _, err := handler.Await[string](t.Context(), late, "go"); !errors.Is(err, denied.TaskConsumed) {
				t.Errorf("await: %v", err)
			}
			if _, err := late.Pending(t.Context(), "go", time.Hour); !errors.Is(err, denied.TaskConsumed) {
				t.Errorf("pending: %v", err)
			}
		})
	}
}

// What a run waits for is told once, and is gone when the next run begins: an outcome that middleware makes up has
// nothing to wait for.
func TestWhatARunWaitsForIsTold(t *testing.T) {
	task, waits := handler.NewTask(tasks.Config{Claim: &engine.Claim{Input: []byte(`""`)}})
	answers := false
	bound := handler.Bind(handler.Define[string, string]("k"),
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if answers {
				return "", nil
			}
			_, err := task.Wait(ctx, "go", suspend.Operator())
			return "", err
		})
	bound.Run(t.Context(), task)
	if q := waits.Suspension(); q == nil || q.Name != "go" || waits.Suspension() != nil || waits.Children() != nil {
		t.Errorf("first %+v", q)
	}
	bound.Run(t.Context(), task)
	answers = true
	bound.Run(t.Context(), task)
	if q := waits.Suspension(); q != nil {
		t.Errorf("of the run before: %+v", q)
	}
}
