package fftest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// paid is what a customer does.
func paid(order string) fftest.Answer {
	return fftest.Publish(client.Event{Subject: "order.paid", ID: order, Data: map[string]string{"order": order}})
}

// billed mails the bills of orders, one after the other, and returns which events paid them.
func billed(mail func(ctx context.Context, order string),
	orders ...string) func(context.Context, *handler.Task, string) (string, error) {
	return func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		var said []string
		for _, order := range orders {
			if err := task.Expect(ctx, order, "order.paid", map[string]any{"order": order}); err != nil {
				return "", err
			}
			if _, err := handler.Step(ctx, task, "mail "+order, func(ctx context.Context) (int, error) {
				mail(ctx, order)
				return 1, nil
			}); err != nil {
				return "", err
			}
			p, err := handler.Await[suspend.StoredSignal](ctx, task, order, suspend.Within(24*time.Hour))
			if err != nil {
				return "", err
			}
			said = append(said, p.Source+" "+p.Correlation)
		}
		return strings.Join(said, ", "), nil
	}
}

// An event comes in the step before the wait; or two come once the handler waits for them, the second when the first is
// on its way no more. One that does not match goes to nobody. The same comes of it wherever a worker dies.
func TestCrashesWithEvents(t *testing.T) {
	for name, c := range map[string]struct {
		setup  func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error)
		result string
		places []string
	}{
		"early": {func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			return billed(func(ctx context.Context, order string) {
				fx.Did("mail " + order)
				fftest.Tell(ctx, paid("c"), paid(order))
			}, "a")
		}, "order.paid a", []string{"1 of ff_expect_event", "2 of ff_publish_event", "1 of ff_deliver_signal"}},
		"waiting": {func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			return fftest.Answered(billed(func(_ context.Context, order string) { fx.Did("mail " + order) }, "a", "b"),
				paid("c"), paid("a"), paid("b"))
		}, "order.paid a, order.paid b", []string{"1 of ff_create_pending_waitpoint", "2 of ff_expect_event",
			"2 of ff_publish_event", "3 of ff_publish_event", "2 of ff_deliver_signal"}},
	} {
		t.Run(name, func(t *testing.T) {
			var died []string
			fftest.Crashes(t, greet, c.setup, "", func(r *fftest.Report[string]) {
				r.WantResult(c.result)
				died = append(died, r.Crash)
			})
			for _, place := range c.places {
				for _, side := range []string{"before", "after"} {
					if !slices.Contains(died, "died "+side+" call "+place) {
						t.Errorf("no worker died %s call %s: %q", side, place, died)
					}
				}
			}
		})
	}
}

// An event is published when its time has come, and goes to the wait that the execution is in.
func TestEventsOfScenarios(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{Namespace: "shop"}, handler.Bind(greet,
			billed(func(ctx context.Context, order string) {
				if order == "a" {
					fftest.Tell(ctx, paid("a").After(time.Hour))
				}
			}, "a", "b")))
		x := fftest.Submit(w, greet, "")
		began := time.Now()
		if s := x.AwaitSuspension(); s.Name != "a" {
			t.Errorf("it waits for %s", s.Name)
		}
		x.Answer(paid("b").After(90 * time.Minute))
		r := x.Wait()
		r.WantResult("order.paid a, order.paid b")
		wantSuspended(t, r.Waits[:1], time.Hour, time.Hour+time.Second)
		if took := time.Since(began); took < 90*time.Minute || took > 91*time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}
