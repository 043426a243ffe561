package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var patient = handler.Define[string, string]("patient", flowfabric.Deadline(1000*time.Hour), flowfabric.Retries(0))

// patiently waits for two children, one of which nobody answers, at most for a day, and then for a signal.
func patiently(ctx context.Context, task *handler.Task, in string) (string, error) {
	set := flow.Children("parts", flow.CancelRemaining())
	soon := flow.Child(set, "soon", lonely, 1)
	never := flow.Child(set, "never", lonely, 2)
	opts := []suspend.Option{suspend.Within(24 * time.Hour), suspend.OnTimeout(suspend.Resume)}
	if in == "fails" {
		opts = opts[:1]
	}
	if err := task.WaitChildren(ctx, set, opts...); !errors.Is(err, flowfabric.ErrWaitTimeout) {
		return "", err
	}
	if _, err := handler.Await[string](ctx, task, "go"); err != nil { // from here on the limit is remembered by a step
		return "", err
	}
	x, err := handler.ChildResult(ctx, task, soon)
	_, open := handler.ChildResult(ctx, task, never)
	if !errors.Is(open, denied.NotTerminal) {
		return "", fmt.Errorf("nobody answered, and yet: %w", open)
	}
	return fmt.Sprint(x, " ", handler.ChildOutcome(task, soon), handler.ChildOutcome(task, never)), err
}

// At the limit of a wait for children the handler goes on, and is told how each was then, in every later run; without
// OnTimeout it has failed.
func TestALimitOfAWaitForChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(patient, patiently), handler.Bind(lonely, answerTwo))
		x := fftest.Submit(w, patient, "goes on")
		w.Sleep(23 * time.Hour)
		if u := x.AwaitSuspension(); u.Name != "parts" || u.Reason != string("waiting_for_children") {
			t.Errorf("after 23 hours it waits for %s, %s", u.Name, u.Reason)
		}
		w.Sleep(2 * time.Hour)
		x.Answer(fftest.Approve("go", "x", flowfabric.By("ann")))
		r := x.Wait()
		r.WantResult("1 completed")
		r.Want(fftest.Want{
			Waits: []string{"parts", "go"},
			Least: 25 * time.Hour,
			Most:  25*time.Hour + time.Minute,
		})
		child, err := w.Client().Execution(x.ID().Child("parts", "never")).Get(t.Context())
		if err != nil || child.State.Public != flowfabric.Cancelled {
			t.Errorf("the child that nobody answers is %s, %v", child.State.Public, err)
		}

		failed := fftest.Submit(w, patient, "fails").Wait()
		failed.Want(fftest.Want{
			Failure: "suspension_timeout",
			Least:   24 * time.Hour,
			Most:    24*time.Hour + time.Minute,
		})
	})
}

// answerTwo handles lonely: nobody answers the second.
func answerTwo(ctx context.Context, task *handler.Task, in int) (string, error) {
	if in == 2 {
		return handler.Await[string](ctx, task, "ok")
	}
	if in < 0 {
		return "", handler.Permanent(errors.New("no"))
	}
	return fmt.Sprint(in), nil
}

// Whenever a worker dies, a handler that fans out with fail-fast and a limit ends with the same result, and runs
// nothing twice: it goes on when a child has failed, waits for others up to a limit that passes, and its rest is
// cancelled.
func TestCrashesOfAFanOut(t *testing.T) {
	count := handler.Define[int, string]("fan-out", flowfabric.Deadline(1000*time.Hour))
	n := fftest.Crashes(t, count, func(fx *fftest.Effects) func(context.Context, *handler.Task, int) (string, error) {
		return func(ctx context.Context, task *handler.Task, in int) (string, error) {
			if in == 1 { // a child
				return "", handler.Permanent(errors.New("no"))
			}
			if in == 2 { // one that nobody answers
				_, err := task.Wait(ctx, "ok", suspend.Operator())
				return "", err
			}
			set := flow.Children("parts", flow.FailFast(), flow.CancelRemaining())
			bad, open := flow.Child(set, "bad", count, 1), flow.Child(set, "open", count, 2)
			if err := task.WaitChildren(ctx, set, suspend.Within(time.Hour),
				suspend.OnTimeout(suspend.Resume)); err != nil {
				return "", err
			}
			if _, err := handler.Step(ctx, task, "tell",
				func(context.Context) (int, error) { fx.Did("tell"); return 1, nil }); err != nil {
				return "", err
			}
			more := flow.Children("more", flow.FailFast(), flow.CancelRemaining())
			third := flow.Child(more, "third", count, 2)
			err := task.WaitChildren(ctx, more, suspend.Within(time.Hour), suspend.OnTimeout(suspend.Resume))
			if !errors.Is(err, flowfabric.ErrWaitTimeout) {
				return "", err
			}
			return fmt.Sprint(handler.ChildOutcome(task, bad), handler.ChildOutcome(task, open),
				handler.ChildOutcome(task, third)), nil
		}
	}, 0, func(r *fftest.Report[string]) {
		r.WantResult("failed")
		r.Want(fftest.Want{Waits: []string{"parts", "more"}, Steps: []string{"tell"}})
	})
	if n < 10 {
		t.Errorf("%d crashes", n)
	}
}
