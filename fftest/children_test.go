package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/race"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var (
	family = handler.Define[int, int]("family", flowfabric.Deadline(100*time.Hour))
	lonely = handler.Define[int, string]("lonely", flowfabric.Retries(0))
)

// A handler waits in virtual time for children of another kind: one that is delayed for a day, one that nobody
// answers for two, and one that needs the first. Days in which all of them wait cost nothing.
func TestChildrenInVirtualTime(t *testing.T) {
	ran := testwait.Running(t)
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{},
			handler.Bind(family, func(ctx context.Context, task *handler.Task, in int) (int, error) {
				set := flow.Children("w")
				a := flow.Child(set, "a", lonely, 1, flowfabric.Delay(24*time.Hour))
				b := flow.Child(set, "b", lonely, 2)
				c := flow.Child(set, "c", lonely, 3, flow.After(a))
				if err := task.WaitChildren(ctx, set); err != nil {
					return 0, err
				}
				if _, err := handler.ChildResult(ctx, task, b); !errors.Is(err, flowfabric.ErrFailed) {
					return 0, fmt.Errorf("nobody answered, and yet: %w", err)
				}
				x, err := handler.ChildResult(ctx, task, a)
				y, other := handler.ChildResult(ctx, task, c)
				return in + len(x) + len(y), errors.Join(err, other)
			}), handler.Bind(lonely, func(ctx context.Context, task *handler.Task, in int) (string, error) {
				if in == 2 {
					return handler.Await[string](ctx, task, "ok", suspend.Within(48*time.Hour))
				}
				return fmt.Sprint(in), nil
			}))
		r := fftest.Submit(w, family, 10).Wait()
		r.WantResult(12)
		r.Want(fftest.Want{Steps: []string{}, Least: 48 * time.Hour, Most: 48*time.Hour + time.Minute})
	})
	if real := ran(); real > 30*time.Second {
		t.Errorf("two days took %s", real)
	}
}

// A child that a handler makes is in its namespace, is made by it, and ends no later than it must, unless it may run
// on. Lane, gates and tags are those of its own definition.
func TestWhatChildrenInherit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			opts []flow.ChildrenOption
			own  []flow.NodeOption
			end  time.Duration // after the creation of the parent; 0: none
		}{
			{end: 100 * time.Hour},
			{own: []flow.NodeOption{flowfabric.Deadline(1000 * time.Hour)}, end: 100 * time.Hour},
			{own: []flow.NodeOption{flowfabric.Deadline(time.Hour)}, end: time.Hour},
			{opts: []flow.ChildrenOption{flow.Leave()}},
		} {
			var child flowfabric.ExecutionID
			w := fftest.New(t, runtime.Config{Namespace: "acme"},
				handler.Bind(family, func(ctx context.Context, task *handler.Task, in int) (int, error) {
					set := flow.Children("w", tc.opts...)
					child = flow.Child(set, "a", lonely, 1, tc.own...).ID(task)
					return in, task.WaitChildren(ctx, set)
				}), handler.Bind(lonely, func(context.Context, *handler.Task, int) (string, error) { return "", nil }))
			x := fftest.Submit(w, family, 10, fftest.Gates(admission.Gate{Name: "purse"}),
				flowfabric.Tags(map[string]string{"app.team": "x"}))
			r := x.Wait()
			s, err := w.Client().Execution(child).Get(t.Context())
			must.No(t, err)
			var end time.Time
			if tc.end > 0 {
				end = r.Snapshot.CreatedAt.Add(tc.end)
			}
			if s.Namespace != "acme" || s.Creator != x.ID().String() || len(s.GateNames)+len(s.Tags) > 0 ||
				!s.DeadlineAt.Equal(end) {
				t.Errorf("%+v, want the deadline %v", s, end)
			}
		}
	})
}

// Whenever the worker dies, a handler that counts down through children of its own kind ends with the same result,
// and makes none of them twice.
func TestCrashesOfChildren(t *testing.T) {
	depth := map[bool]int{false: 2, true: 1}[race.Enabled] // it is the number of crashes squared
	n := fftest.Crashes(t, family, func(fx *fftest.Effects) func(context.Context, *handler.Task, int) (int, error) {
		return func(ctx context.Context, task *handler.Task, in int) (int, error) {
			if in == 0 {
				return 0, nil
			}
			set := flow.Children("down")
			child := flow.Child(set, "next", family, in-1)
			if err := task.WaitChildren(ctx, set); err != nil {
				return 0, err
			}
			below, err := handler.ChildResult(ctx, task, child)
			return below + in, err
		}
	}, depth, func(r *fftest.Report[int]) { r.WantResult(depth * (depth + 1) / 2) })
	if n < 5*depth {
		t.Errorf("%d crashes", n)
	}
}

// Whenever the worker dies, children whose output is shown are announced once and for all, before they are made, and
// end as others do. What their parent puts out and records is the same.
func TestCrashesOfStreamedChildren(t *testing.T) {
	n := fftest.Crashes(t, family, func(fx *fftest.Effects) func(context.Context, *handler.Task, int) (int, error) {
		return func(ctx context.Context, task *handler.Task, in int) (int, error) {
			if _, err := handler.Step(ctx, task, "say", func(ctx context.Context) (int, error) {
				return in, task.Frame(ctx, "token", fmt.Sprint(in))
			}); err != nil || in == 0 {
				return 0, err
			}
			set := flow.Children("down")
			child := flow.Child(set, "next", family, in-1, flow.Streamed())
			if err := task.WaitChildren(ctx, set); err != nil {
				return 0, err
			}
			below, err := handler.ChildResult(ctx, task, child)
			return below + in, err
		}
	}, 1, func(r *fftest.Report[int]) {
		r.WantResult(1)
		r.Want(fftest.Want{Steps: []string{"say", "streamed: down"}})
	})
	if n < 5 {
		t.Errorf("%d crashes", n)
	}
}

// follower is what waits for an execution that it did not make, named by its input.
var follower = handler.Define[string, string]("follower", flowfabric.Deadline(1000*time.Hour))

// follow waits for the execution of its input, and reports what it came to.
func follow(opts ...suspend.Option) func(context.Context, *handler.Task, string) (string, error) {
	return func(ctx context.Context, task *handler.Task, in string) (string, error) {
		id, err := flowfabric.ParseExecutionID(in)
		if err != nil {
			return "", handler.Permanent(err)
		}
		set := flow.Children("others")
		other := flow.Other(set, "it", lonely, id)
		if err := task.WaitChildren(ctx, set, opts...); err != nil && !errors.Is(err, flowfabric.ErrWaitTimeout) {
			return "", err
		}
		said, err := handler.ChildResult(ctx, task, other)
		if errors.Is(err, flowfabric.ErrState) {
			return "not yet", nil
		}
		return said, err
	}
}

// A handler waits in virtual time for an execution that somebody else submitted, and that takes a day; or until a
// limit; or for one that has ended long ago. What it asks for is no step.
func TestOthersInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := handler.Bind(lonely, func(_ context.Context, _ *handler.Task, in int) (string, error) {
			return fmt.Sprint("said ", in), nil
		})
		w := fftest.New(t, runtime.Config{}, handler.Bind(follower, follow()), slow)
		a := fftest.Submit(w, lonely, 1, flowfabric.Delay(24*time.Hour))
		r := fftest.Submit(w, follower, a.ID().String()).Wait()
		r.WantResult("said 1")
		r.Want(fftest.Want{Least: 24 * time.Hour, Most: 24*time.Hour + time.Minute})
		fftest.Submit(w, follower, a.ID().String()).Wait().WantResult("said 1")
		gone := fftest.Submit(w, follower, mint.ID(0).String()).Wait()
		if err := gone.Err; !errors.Is(err, flowfabric.ErrFailed) {
			t.Errorf("it waits for nothing that exists, and ended with %v", err)
		}

		limited := fftest.New(t, runtime.Config{},
			handler.Bind(follower, follow(suspend.Within(time.Hour), suspend.OnTimeout(suspend.Resume))), slow)
		b := fftest.Submit(limited, lonely, 2, flowfabric.Delay(24*time.Hour))
		fftest.Submit(limited, follower, b.ID().String()).Wait().WantResult("not yet")
	})
}

// Without an option the flow that a handler waits for goes on when the execution that waits is cancelled; with
// CancelRemaining it is cancelled, too.
func TestFlowsThatAreTakenAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, opts := range map[flowfabric.FlowState][]flow.RemainingOption{flowfabric.FlowCompleted: nil,
			flowfabric.FlowCancelled: {flow.CancelRemaining()}} {
			waits := func(ctx context.Context, task *handler.Task, in string) (string, error) {
				id, err := flowfabric.ParseExecutionID(in)
				if err != nil {
					return "", handler.Permanent(err)
				}
				set := flow.Children("flow")
				last := flow.Other(set, "last", lonely, id, opts...)
				if err := task.WaitChildren(ctx, set); err != nil {
					return "", err
				}
				return handler.ChildResult(ctx, task, last)
			}
			node := func(context.Context, *handler.Task, int) (string, error) { return "done", nil }
			w := fftest.New(t, runtime.Config{}, handler.Bind(follower, waits), handler.Bind(lonely, node))
			f := flow.New("edition")
			first := flow.Add(f, "first", lonely, 1, flowfabric.Delay(24*time.Hour))
			flow.Add(f, "last", lonely, 2, flow.After(first))
			submitted, err := client.SubmitFlow(t.Context(), w.Client(), f)
			must.No(t, err)
			x := fftest.Submit(w, follower, submitted.Member("last").String())
			x.AwaitSuspension()
			x.Cancel()
			if end, err := submitted.Wait(t.Context()); err != nil || end.State != want {
				t.Errorf("%d options: the flow is %s, %v, want %s", len(opts), end.State, err, want)
			}
		}
	})
}

// Whenever the worker dies, a child that waits for its sibling is told how that ended, and the parent how both did.
func TestCrashesOfOthers(t *testing.T) {
	n := fftest.Crashes(t, family, func(fx *fftest.Effects) func(context.Context, *handler.Task, int) (int, error) {
		return func(ctx context.Context, task *handler.Task, in int) (int, error) {
			if in == 1 {
				return 1, nil
			}
			if in > 1 { // the sibling of the first
				set := flow.Children("sibling")
				first := flow.Other(set, "first", family, flowfabric.ExecutionID(task.Flow()).Child("w", "first"))
				if err := task.WaitChildren(ctx, set); err != nil {
					return 0, err
				}
				return handler.ChildResult(ctx, task, first)
			}
			set := flow.Children("w")
			flow.Child(set, "first", family, 1)
			second := flow.Child(set, "second", family, 2)
			if err := task.WaitChildren(ctx, set); err != nil {
				return 0, err
			}
			return handler.ChildResult(ctx, task, second)
		}
	}, 0, func(r *fftest.Report[int]) { r.WantResult(1) })
	if n < 8 {
		t.Errorf("%d crashes", n)
	}
}
