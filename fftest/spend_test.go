package fftest_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var generate = handler.Define[int, int]("generate", handler.Retry(3, time.Second, time.Minute))

// tokens is a budget of so many tokens.
func tokens(limit int64, action admission.HardAction, period time.Duration) admission.Gate {
	return admission.Gate{Name: "b", OnHard: action, Reset: flowfabric.Millis(period),
		Limits: map[string]admission.Limit{"tokens": {Hard: limit}}}
}

// spree spends one token after another.
func spree(ctx context.Context, t *handler.Task, n int) (int, error) {
	for i := range n {
		if err := t.Frame(ctx, "token", "x"); err != nil {
			return i, err
		}
		if err := t.Spend(ctx, "tokens", 1); err != nil {
			return i, err
		}
	}
	return n, nil
}

// A budget that fails who exceeds it, a handler that decides by itself, and one that stays within it.
func TestBudgets(t *testing.T) {
	r := fftest.Run(t, generate, spree, 9, fftest.Gates(tokens(5, admission.HardFail, 0)))
	r.Want(fftest.Want{
		Failure: causes.OverBudget,
		Frames:  map[string][]string{"token": {"x", "x", "x", "x", "x", "x"}},
	})
	if got := r.Spent["b"]["tokens"]; got != 5 {
		t.Errorf("%d tokens spent, want 5", got)
	}
	if len(r.Attempts) != 1 {
		t.Errorf("%d attempts", len(r.Attempts))
	}
	r = fftest.Run(t, generate, func(ctx context.Context, task *handler.Task, n int) (int, error) {
		if done, err := spree(ctx, task, n); !errors.Is(err, flowfabric.ErrOverBudget) {
			return done, err
		}
		return -1, nil
	}, 9, fftest.Gates(tokens(5, admission.HardReject, 0)))
	r.WantResult(-1)
	r = fftest.Run(t, generate, spree, 5, fftest.Gates(tokens(5, admission.HardFail, 0)))
	r.WantResult(5)
	if got := r.Spent["b"]["tokens"]; got != 5 {
		t.Errorf("%d tokens spent, want 5", got)
	}
}

// Work that a budget blocks runs again, as the same attempt, when the next period begins, or when there is more room.
func TestBlockedByABudget(t *testing.T) {
	r := fftest.Run(t, generate, func(ctx context.Context, task *handler.Task, n int) (int, error) {
		return handler.Step(ctx, task, "first", func(ctx context.Context) (int, error) { return spree(ctx, task, n) })
	}, 5, fftest.Gates(tokens(5, admission.HardBlock, 10*time.Second)))
	r.WantResult(5)
	if r.Elapsed > time.Second {
		t.Errorf("it took %s", r.Elapsed)
	}
	for _, tc := range []struct{ period, raised, least, most time.Duration }{
		{10 * time.Second, 0, 10 * time.Second, 12 * time.Second}, {0, time.Second, time.Second, 3 * time.Second},
		{time.Hour, 65 * time.Second, 65 * time.Second, 70 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := fftest.New(t, runtime.Config{},
				handler.Bind(generate, func(ctx context.Context, task *handler.Task, n int) (int, error) {
					for _, part := range []string{"first", "second"} {
						if _, err := handler.Step(ctx, task, part, func(ctx context.Context) (int, error) {
							return 0, task.Spend(ctx, "tokens", int64(n))
						}); err != nil {
							return 0, err
						}
					}
					return n, nil
				}))
			b := tokens(5, admission.HardBlock, tc.period)
			x := fftest.Submit(w, generate, 3, fftest.Gates(b))
			if tc.raised > 0 {
				w.Sleep(tc.raised)
				b.Limits["tokens"] = admission.Limit{Hard: 6}
				must.No(t, admin.New(w.Client()).PutGate(t.Context(), b, flowfabric.IfRevision(1)))
			}
			r := x.Wait()
			r.WantResult(3)
			if r.Elapsed < tc.least || r.Elapsed > tc.most || len(r.Attempts) != 1 {
				t.Errorf("it took %s and %d attempts, want %s..%s and one", r.Elapsed, len(r.Attempts), tc.least,
					tc.most)
			}
		})
	}
}

// Whenever the worker dies, a step that spent is repeated as a whole or not at all, and its spends are counted with it.
func TestCrashesOfSpends(t *testing.T) {
	crashes := fftest.Crashes(t, generate,
		func(*fftest.Effects) func(context.Context, *handler.Task, int) (int, error) {
			return func(ctx context.Context, task *handler.Task, n int) (int, error) {
				return handler.Step(ctx, task, "generate", func(ctx context.Context) (int, error) {
					return spree(ctx, task, n)
				})
			}
		}, 2, func(r *fftest.Report[int]) {
			r.WantResult(2)
			if got := r.Spent["b"]["tokens"]; got < 2 || got > 4 || r.Crash == "" && got != 2 {
				t.Errorf("worker %s: %d tokens spent", r.Crash, got)
			}
		}, fftest.Gates(tokens(100, admission.HardFail, 0)))
	if crashes < 6 {
		t.Errorf("%d crashes", crashes)
	}
}

// The report says what became of reservations, those of a killed worker too.
func TestReportsReservations(t *testing.T) {
	pay := func(ctx context.Context, task *handler.Task, end func(*handler.Reservation) error) error {
		r, err := task.Reserve(ctx, map[string]int64{"tokens": 10})
		if err != nil {
			return err
		}
		return end(r)
	}
	r := fftest.Run(t, generate, func(ctx context.Context, task *handler.Task, n int) (int, error) {
		settle := func(r *handler.Reservation) error { return r.Settle(ctx, map[string]int64{"tokens": 4}) }
		release := func(r *handler.Reservation) error { return r.Release(ctx) }
		forget := func(*handler.Reservation) error { return nil }
		if err := errors.Join(pay(ctx, task, settle), pay(ctx, task, settle), pay(ctx, task, release),
			pay(ctx, task, forget)); err != nil {
			return 0, err
		}
		if err := pay(ctx, task, settle); !errors.Is(err, flowfabric.ErrOverBudget) {
			t.Errorf("the last one: %v", err)
		}
		return n, nil
	}, 1, fftest.Gates(tokens(18, admission.HardReject, 0)))
	r.WantResult(1)
	want := map[string]int{"made": 4, "refused": 1, "settled": 2, "released": 1, "forgotten": 1}
	if !maps.Equal(r.Reservations, want) || r.Spent["b"]["tokens"] != 18 {
		t.Errorf("reservations %v, spent %v", r.Reservations, r.Spent)
	}
	died := false
	fftest.Crashes(t, generate, func(*fftest.Effects) func(context.Context, *handler.Task, int) (int, error) {
		return func(ctx context.Context, task *handler.Task, n int) (int, error) {
			return handler.Step(ctx, task, "generate", func(ctx context.Context) (int, error) {
				return n, pay(ctx, task, func(r *handler.Reservation) error { return r.Settle(ctx, nil) })
			})
		}
	}, 2, func(r *fftest.Report[int]) {
		x := r.Reservations
		if x["settled"] < 1 || x["made"] < x["settled"] || x["made"] > 2 || r.Crash == "" && x["made"] != 1 {
			t.Errorf("worker %s: reservations %v", r.Crash, x)
		}
		died = died || x["made"] > x["settled"]
	}, fftest.Gates(tokens(100, admission.HardFail, 0)))
	if !died {
		t.Error("no worker died with a reservation")
	}
}
