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
	"github.com/flowfabric/flowfabric-go/internal/race"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var (
	family = handler.Define[int, int]("family", flowfabric.Deadline(100*time.Hour))
	lonely = handler.Define[int, string]("lonely", flowfabric.Retries(0))
)

// A handler waits in virtual time for children of another kind: one that is delayed for a day, one that nobody answers for two,
// and one that needs the first. Days in which all of them wait cost nothing.
func TestChildrenInVirtualTime(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(family, func(ctx context.Context, task *handler.Task, in int) (int, error) {
			set := flow.Children("w")
			a := flow.Child(set, "a", lonely, 1, flowfabric.Delay(24*time.Hour))
			b := flow.Child(set, "b", lonely, 2)
			c := flow.Child(set, "c", lonely, 3, flow.After(a))
			if err := set.Wait(ctx, task); err != nil {
				return 0, err
			}
			if _, err := b.Result(ctx, task); !errors.Is(err, flowfabric.ErrFailed) {
				return 0, fmt.Errorf("nobody answered, and yet: %w", err)
			}
			x, err := a.Result(ctx, task)
			y, other := c.Result(ctx, task)
			return in + len(x) + len(y), errors.Join(err, other)
		}), handler.Bind(lonely, func(ctx context.Context, task *handler.Task, in int) (string, error) {
			if in == 2 {
				return suspend.Await[string](ctx, task, "ok", suspend.Within(48*time.Hour))
			}
			return fmt.Sprint(in), nil
		}))
		r := fftest.Submit(w, family, 10).Wait()
		r.WantResult(12)
		r.WantSteps()
		r.WantElapsed(48*time.Hour, 48*time.Hour+time.Minute)
	})
	if real := time.Since(began); real > 30*time.Second {
		t.Errorf("two days took %s", real)
	}
}

// Whenever the worker dies, a handler that counts down through children of its own kind ends with the same result, and makes
// none of them twice.
func TestCrashesOfChildren(t *testing.T) {
	depth := map[bool]int{false: 2, true: 1}[race.Enabled] // it is the number of crashes squared
	n := fftest.Crashes(t, family, func(fx *fftest.Effects) func(context.Context, *handler.Task, int) (int, error) {
		return func(ctx context.Context, task *handler.Task, in int) (int, error) {
			if in == 0 {
				return 0, nil
			}
			set := flow.Children("down")
			child := flow.Child(set, "next", family, in-1)
			if err := set.Wait(ctx, task); err != nil {
				return 0, err
			}
			below, err := child.Result(ctx, task)
			return below + in, err
		}
	}, depth, func(r *fftest.Report[int]) { r.WantResult(depth * (depth + 1) / 2) })
	if n < 5*depth {
		t.Errorf("%d crashes", n)
	}
}
