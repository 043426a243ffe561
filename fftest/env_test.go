package fftest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// working works for two minutes, in steps of 20 s, and notes why it was stopped.
type working struct {
	steps  map[string]int
	causes []error
}

func (w *working) Handle(ctx context.Context, task *handler.Task, _ string) (string, error) {
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		_, err := handler.Step(ctx, task, name, func(ctx context.Context) (string, error) {
			select {
			case <-time.After(20 * time.Second):
				w.steps[name]++
				return name, nil
			case <-ctx.Done():
				w.causes = append(w.causes, context.Cause(ctx))
				return "", ctx.Err()
			}
		})
		if err != nil {
			return "", err
		}
	}
	return "worked", nil
}

// scenario is an environment in which one execution has been at work for 50 s: two steps are recorded.
func scenario(t *testing.T, cfg runtime.Config,
	then func(w *fftest.Env, x *fftest.Execution[string])) *fftest.Report[string] {
	t.Helper()
	work := &working{steps: map[string]int{}}
	var r *fftest.Report[string]
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, cfg, handler.Bind(greet, work.Handle))
		w.Patience = time.Hour
		x := fftest.Submit(w, greet, "")
		time.Sleep(50 * time.Second)
		if got := x.Snapshot().State.Public; got != flowfabric.Active {
			t.Errorf("after 50 s it is %s", got)
		}
		then(w, x)
		r = x.Wait()
		if r.State != flowfabric.Completed {
			return
		}
		r.WantResult("worked")
		r.Want(fftest.Want{Steps: []string{"a", "b", "c", "d", "e", "f"}})
		for name, n := range work.steps {
			if n != 1 {
				t.Errorf("step %s was run to its end %d times", name, n)
			}
		}
	})
	for _, cause := range work.causes {
		t.Log("cause:", cause)
	}
	return r
}

func TestLoseLease(t *testing.T) {
	var took time.Duration
	r := scenario(t, runtime.Config{LeaseTTL: 10 * time.Second}, func(w *fftest.Env, x *fftest.Execution[string]) {
		began := time.Now()
		w.LoseLease()
		took = time.Since(began)
	})
	if took != 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(r.Attempts) != 2 || r.Attempts[1].Type != flowfabric.AttemptReclaim ||
		r.Attempts[0].Worker != r.Attempts[1].Worker {
		t.Errorf("attempts %+v", r.Attempts)
	}
	if r.Snapshot.Retries != 0 || r.Snapshot.Reclaims != 1 {
		t.Errorf("%d retries, %d reclaims", r.Snapshot.Retries, r.Snapshot.Reclaims)
	}
	r.Want(fftest.Want{
		Least: 139 * time.Second,
		Most:  160 * time.Second, // half of step c is lost, and about the lease time
	})
}

func TestKill(t *testing.T) {
	r := scenario(t, runtime.Config{}, func(w *fftest.Env, x *fftest.Execution[string]) { w.Kill() })
	if len(r.Attempts) != 2 || r.Attempts[1].Type != flowfabric.AttemptReclaim ||
		r.Attempts[0].Worker == r.Attempts[1].Worker {
		t.Errorf("attempts %+v", r.Attempts)
	}
	r.Want(fftest.Want{
		Least: 149 * time.Second,
		Most:  175 * time.Second, // the lease ran 30 s from its last renewal
	})
}

func TestDrainHandsBack(t *testing.T) {
	r := scenario(t, runtime.Config{DrainTimeout: 5 * time.Second}, func(w *fftest.Env, x *fftest.Execution[string]) {
		began := time.Now()
		w.Drain()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the drain took %s", took)
		}
	})
	// The same attempt goes on, at once, elsewhere.
	r.Want(fftest.Want{
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
		Least:    135 * time.Second,
		Most:     136 * time.Second, // half of step c, and the drain
	})
}

func TestCancel(t *testing.T) {
	r := scenario(t, runtime.Config{},
		func(w *fftest.Env, x *fftest.Execution[string]) { x.Cancel(flowfabric.Reason("stop it")) })
	r.Want(fftest.Want{State: flowfabric.Cancelled, Least: 50 * time.Second, Most: 51 * time.Second})
	if !errors.Is(r.Err, flowfabric.ErrCancelled) || r.Snapshot.CancelReason != "stop it" {
		t.Errorf("%v", r.Err)
	}
}

// What a handler sees of all that is the cause of its context.
func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*fftest.Env, *fftest.Execution[string])
		want error
	}{
		"kill":   {func(w *fftest.Env, _ *fftest.Execution[string]) { w.Kill() }, flowfabric.ErrLeaseLost},
		"lose":   {func(w *fftest.Env, _ *fftest.Execution[string]) { w.LoseLease() }, flowfabric.ErrLeaseLost},
		"drain":  {func(w *fftest.Env, _ *fftest.Execution[string]) { w.Drain() }, flowfabric.ErrDraining},
		"cancel": {func(_ *fftest.Env, x *fftest.Execution[string]) { x.Cancel() }, flowfabric.ErrCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			var causes []error
			synctest.Test(t, func(t *testing.T) {
				w := fftest.New(t, runtime.Config{},
					handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
						if len(causes) > 0 {
							return "again", nil
						}
						<-ctx.Done()
						causes = append(causes, context.Cause(ctx))
						return "", ctx.Err()
					}))
				x := fftest.Submit(w, greet, "")
				time.Sleep(10 * time.Second)
				c.do(w, x)
				x.Wait()
			})
			if len(causes) != 1 || !errors.Is(causes[0], c.want) {
				t.Errorf("causes %v, want %v", causes, c.want)
			}
		})
	}
}

// A killed worker's handler is told at once, and reaches nothing any more, whatever it goes on to do.
func TestTheDeadWriteNothing(t *testing.T) {
	var late []error
	var told, killed time.Time
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{},
			handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				if task.AttemptType() == flowfabric.AttemptReclaim {
					return "second", nil
				}
				<-ctx.Done()
				told = time.Now()
				_, err := handler.Step(context.WithoutCancel(ctx), task, "late", func(context.Context) (int, error) {
					return 1, nil
				})
				late = append(late, err)
				_ = task.Frame(context.WithoutCancel(ctx), "token", "late")
				return "first", nil
			}))
		x := fftest.Submit(w, greet, "")
		time.Sleep(10 * time.Second)
		killed = time.Now()
		w.Kill()
		r := x.Wait()
		r.WantResult("second")
		r.Want(fftest.Want{Steps: []string{}, Frames: map[string][]string{"token": {}}})
	})
	if len(late) != 1 || late[0] == nil || !told.Equal(killed) {
		t.Errorf("late step: %v; killed at %s, told at %s", late, killed, told)
	}
}

// Several executions, one of them delayed for long and one at work: the environment naps only when nothing else goes
// on.
func TestSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{},
			handler.Bind(greet, func(ctx context.Context, task *handler.Task, d string) (string, error) {
				if d == "busy" {
					select {
					case <-time.After(2 * time.Minute):
						return "", nil
					case <-ctx.Done():
						return "", handler.Permanent(context.Cause(ctx))
					}
				}
				pause, err := time.ParseDuration(d)
				if err != nil {
					return "", handler.Permanent(err)
				}
				if task.AttemptType() == flowfabric.AttemptResumed {
					return d, nil
				}
				return "", handler.Delay(pause)
			}))
		begin := time.Now()
		var all []*fftest.Execution[string]
		for _, d := range []string{"300h", "1m", "72h", "busy"} {
			all = append(all, fftest.Submit(w, greet, d))
		}
		all[0].Wait().Want(fftest.Want{Least: 300 * time.Hour, Most: 300*time.Hour + time.Second})
		all[1].Wait().Want(fftest.Want{Least: time.Minute, Most: time.Minute + time.Second})
		all[2].Wait().Want(fftest.Want{Least: 72 * time.Hour, Most: 72*time.Hour + time.Second})
		all[3].Wait().Want(fftest.Want{Least: 2 * time.Minute, Most: 2*time.Minute + time.Second})
		if took := time.Since(begin); took > 300*time.Hour+time.Minute {
			t.Errorf("took %s", took)
		}
		fftest.Submit(w, greet, "bad").Wait().Want(fftest.Want{Failure: causes.HandlerError})
	})
}

// A submit while the environment naps is served at once.
func TestSubmitWakesTheEnv(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{},
			handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				if in == "later" && task.AttemptType() != flowfabric.AttemptResumed {
					return "", handler.Delay(100 * time.Hour)
				}
				return in, nil
			}))
		later := fftest.Submit(w, greet, "later")
		waited := make(chan *fftest.Report[string])
		go func() { waited <- later.Wait() }()
		time.Sleep(10 * time.Hour)
		now := fftest.Submit(w, greet, "now")
		now.Wait().Want(fftest.Want{Most: time.Second})
		(<-waited).Want(fftest.Want{Least: 100 * time.Hour, Most: 100*time.Hour + time.Second})
	})
}
