package fftest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// draft reserves what it needs, and asks a person for more when there is no room.
func draft(ctx context.Context, t *handler.Task, n int) (int, error) {
	step := func(name string) (int, error) {
		return handler.Step(ctx, t, name, func(ctx context.Context) (int, error) {
			r, err := t.Reserve(ctx, map[string]int64{"tokens": int64(n)})
			if err != nil {
				return 0, err
			}
			return n, r.Settle(ctx, map[string]int64{"tokens": int64(n)})
		})
	}
	done, err := step("draft")
	over, ok := errors.AsType[*handler.OverBudgetError](err)
	if !ok {
		return done, err
	}
	if err := t.AskMore(ctx, "more", over, suspend.Question{}); err != nil {
		return 0, err
	}
	return step("draft again")
}

// An approval raises the limit by what was refused, once, and a rejection leaves the refusal.
func TestAskMore(t *testing.T) {
	gate := fftest.Gates(tokens(50, admission.HardReject, 0))
	r := fftest.Run(t, generate, fftest.Answered(draft,
		fftest.Approve("more", suspend.Answer{Choice: "approve"}, flowfabric.By("anna"))), 80, gate)
	r.WantResult(80)
	if got := r.Spent["b"]["tokens"]; got != 80 {
		t.Errorf("%d tokens spent, want 80", got)
	}
	if len(r.Waits) != 1 || !strings.HasPrefix(r.Waits[0].Name, "more") {
		t.Errorf("it waited for %+v", r.Waits)
	}
	no := fftest.Run(t, generate, fftest.Answered(draft,
		fftest.Approve("more", suspend.Answer{Choice: "reject"})), 80, gate)
	no.Want(fftest.Want{Failure: causes.OverBudget})
	if len(no.Spent["b"]) != 0 {
		t.Errorf("it spent %v", no.Spent)
	}
}

// spending reserves in a step, and has no code for a refusal.
func spending(ctx context.Context, t *handler.Task, n int) (int, error) {
	return handler.Step(ctx, t, "draft", func(ctx context.Context) (int, error) {
		r, err := t.Reserve(ctx, map[string]int64{"tokens": int64(n)})
		if err != nil {
			return 0, err
		}
		return n, r.Settle(ctx, map[string]int64{"tokens": int64(n)})
	})
}

// A gate asks by itself: an approval raises the limit, for all or for the execution alone, and a rejection is the
// handler's to decide.
func TestHardAsk(t *testing.T) {
	const name = "over budget: b tokens=80"
	gate := fftest.Gates(tokens(50, admission.HardAsk, 0))
	for _, choice := range []string{"approve", "alone"} {
		r := fftest.Run(t, generate, fftest.Answered(spending,
			fftest.Approve(name, suspend.Answer{Choice: choice}, flowfabric.By("anna"))), 80, gate)
		r.WantResult(80)
		if got := r.Spent["b"]["tokens"]; got != 80 || len(r.Attempts) != 1 || len(r.Waits) != 1 {
			t.Errorf("%s: %d tokens spent in %d attempts, %d waits", choice, got, len(r.Attempts), len(r.Waits))
		}
	}
	no := fftest.Run(t, generate, fftest.Answered(func(ctx context.Context, task *handler.Task, n int) (int, error) {
		done, err := spending(ctx, task, n)
		if over, ok := errors.AsType[*handler.OverBudgetError](err); ok {
			return -1, task.Spend(ctx, "tokens", over.Breaches[0].Limit-over.Breaches[0].Used)
		}
		return done, err
	}, fftest.Approve(name, suspend.Answer{Choice: "reject"})), 80, gate)
	no.WantResult(-1)
	if got := no.Spent["b"]["tokens"]; got != 50 {
		t.Errorf("it spent %d", got)
	}
}
