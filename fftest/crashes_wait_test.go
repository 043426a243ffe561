package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// A token is mailed, and its signal comes before the wait or at the moment of it; in the first case an operator
// approves another wait, too. The same comes of it wherever the worker dies, around every call of a waiting handler
// and every delivery.
func TestCrashesAroundWaits(t *testing.T) {
	for name, after := range map[string]time.Duration{"early": 0, "racing": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var died []string
			n := fftest.Crashes(t, greet,
				func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
					l := &letter{mail: func(ctx context.Context, token suspend.Token) error {
						fx.Did("mail")
						fftest.Tell(ctx, fftest.Signal(token, "dear").After(after))
						return nil
					}}
					if after > 0 {
						return l.Handle
					}
					return fftest.Answered(func(ctx context.Context, task *handler.Task, in string) (string, error) {
						reply, err := l.Handle(ctx, task, in)
						if err != nil {
							return "", err
						}
						review, err := task.Wait(ctx, "review", suspend.Signal("review"))
						if err != nil {
							return "", err
						}
						_, err = handler.Step(ctx, task, "print",
							func(context.Context) (int, error) { fx.Did("print"); return 1, nil })
						return reply + " " + review.Signals[0].Source, err
					}, fftest.Approve("review", true, flowfabric.By("anna")))
				}, "", func(r *fftest.Report[string]) {
					if after > 0 {
						r.WantResult("dear")
						r.Want(fftest.Want{Steps: []string{"mail", "thank"}, Waits: []string{"reply"}})
					} else {
						r.WantResult("dear anna")
						r.Want(fftest.Want{
							Steps: []string{"mail", "thank", "print"},
							Waits: []string{"reply", "review"},
						})
					}
					died = append(died, r.Crash)
				})
			want := []string{"1 of ff_create_pending_waitpoint", "1 of ff_suspend_execution", "1 of ff_record_step",
				"2 of ff_record_step", "1 of ff_complete_execution", "1 of ff_deliver_signal"}
			if after == 0 {
				want = append(want, "2 of ff_suspend_execution", "1 of ff_approve_waitpoint")
			}
			for _, write := range want {
				if !slices.Contains(died, "died before call "+write) ||
					!slices.Contains(died, "died after call "+write) {
					t.Errorf("no worker died before, or none after, call %s: %q", write, died)
				}
			}
			if n < 2*len(want) {
				t.Errorf("%d crashes", n)
			}
		})
	}
}

// A wait that times out survives a crash just so.
func TestCrashesAroundTimeouts(t *testing.T) {
	fftest.Crashes(t, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return func(ctx context.Context, task *handler.Task, in string) (string, error) {
			_, err := task.Wait(ctx, "time", suspend.Timeout(), suspend.Within(time.Hour),
				suspend.OnTimeout(suspend.Resume))
			if !errors.Is(err, flowfabric.ErrWaitTimeout) {
				return "", err
			}
			return in, nil
		}
	}, "late", func(r *fftest.Report[string]) {
		r.WantResult("late")
		r.Want(fftest.Want{Waits: []string{"time: timeout"}})
		wantSuspended(t, r.Waits, time.Hour, time.Hour+10*time.Second)
	})
}

// An effect outside of steps is done again when its handler goes on after a wait.
func TestCrashesFindsEffectsRepeatedAfterWaits(t *testing.T) {
	found := crashes(t, greet, func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return fftest.Answered(effective(func(ctx context.Context, task *handler.Task, fx *fftest.Effects) error {
			fx.Did("mail")
			_, err := handler.Await[bool](ctx, task, "w")
			return err
		}).setup(fx), fftest.Signal("w", true))
	}, "")
	found.mention(t, `effect "mail" was done again after the end of a run had been recorded`)
}

// A handler that names its waits by the attempt waits again after a crash.
func TestCrashesFindsOtherWaits(t *testing.T) {
	found := crashes(t, greet, func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return fftest.Answered(func(ctx context.Context, task *handler.Task, in string) (string, error) {
			_, err := task.Wait(ctx, fmt.Sprint("w-", task.Attempt()), suspend.Signal("w"),
				suspend.Within(time.Hour), suspend.OnTimeout(suspend.Resume))
			if handler.IsWait(err) {
				return "", err
			}
			return in, nil
		}, fftest.Signal("w", true))
	}, "x")
	found.mention(t, `waits ["w-1: signal w/signal=true" "w-2: timeout"]; undisturbed ["w-1: signal w/signal=true"]`)
	for _, text := range found.all {
		if !strings.HasPrefix(text, "worker died ") {
			t.Errorf("the undisturbed run is complained of: %s", text)
		}
	}
}
