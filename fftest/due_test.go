package fftest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var (
	parked  = handler.Define[string, string]("parked") // waits for a signal for ever
	noted   = handler.Define[string, string]("noted")  // notes when it ran
	lengthy = handler.Define[string, string]("lengthy")
)

// office is an environment in which one submitted execution waits for somebody, and other work is made by others.
type office struct {
	*fftest.Env
	t      *testing.T
	began  time.Time
	parked *fftest.Execution[string]

	mu   sync.Mutex
	ran  map[string][]time.Duration // by input, rounded to the second
	ends []error                    // of the contexts of long handlers that were ended
}

func inOffice(t *testing.T, cfg runtime.Config, f func(o *office), more ...handler.Binding) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &office{t: t, ran: map[string][]time.Duration{}, began: time.Now()}
		bindings := append([]handler.Binding{
			handler.Bind(parked, waitForever),
			handler.Bind(noted, func(_ context.Context, _ *handler.Task, in string) (string, error) {
				o.note(in)
				return in, nil
			}),
			handler.Bind(lengthy, func(ctx context.Context, _ *handler.Task, in string) (string, error) {
				d, err := time.ParseDuration(in)
				if err != nil {
					return "", handler.Permanent(err)
				}
				select {
				case <-time.After(d):
					o.note(in)
					return in, nil
				case <-ctx.Done():
					o.mu.Lock()
					defer o.mu.Unlock()
					o.ends = append(o.ends, context.Cause(ctx))
					return "", ctx.Err()
				}
			}),
		}, more...)
		o.Env = fftest.New(t, cfg, bindings...)
		o.parked = fftest.Submit(o.Env, parked, "")
		o.parked.AwaitSuspension()
		f(o)
		for _, cause := range o.ends {
			t.Errorf("a handler was interrupted: %v", cause)
		}
	})
}

func (o *office) note(in string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ran[in] = append(o.ran[in], time.Since(o.began).Round(time.Second))
}

// submit submits as a program does that knows nothing of the world.
func (o *office) submit(in string, opts ...client.SubmitOption) *client.Execution[string] {
	o.t.Helper()
	x, err := client.Submit(o.t.Context(), o.Client(), noted, in, opts...)
	if err != nil {
		o.t.Fatal(err)
	}
	return x
}

// want demands that work with this input ran at these times, give or take a second.
func (o *office) want(in string, at ...time.Duration) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	same := len(o.ran[in]) == len(at)
	for i := 0; same && i < len(at); i++ {
		same = (o.ran[in][i] - at[i]).Abs() <= time.Second
	}
	if !same {
		o.t.Errorf("%q ran at %v, want %v", in, o.ran[in], at)
	}
}

// What the environment's client submits runs when it is due, now or later.
func TestSleepServesTheClient(t *testing.T) {
	inOffice(t, runtime.Config{}, func(o *office) {
		o.submit("now")
		o.submit("later", flowfabric.Delay(10*time.Minute))
		o.Sleep(time.Hour)
		o.want("now", 0)
		o.want("later", 10*time.Minute)
	})
}

// So does what a handler submits, and what others do while the environment naps.
func TestSleepServesHandlers(t *testing.T) {
	producer := handler.Define[string, string]("producer")
	var o *office
	inOffice(t, runtime.Config{}, func(office *office) {
		o = office
		if _, err := client.Submit(o.t.Context(), o.Client(), producer, "",
			flowfabric.Delay(20*time.Minute)); err != nil {
			o.t.Fatal(err)
		}
		go func() {
			time.Sleep(30 * time.Minute)
			o.submit("from outside")
		}()
		o.Sleep(time.Hour)
		o.want("from a handler", 20*time.Minute)
		o.want("from a handler, later", 35*time.Minute)
		o.want("from outside", 30*time.Minute)
	}, handler.Bind(producer, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
		o.submit("from a handler")
		o.submit("from a handler, later", flowfabric.Delay(15*time.Minute))
		return "", nil
	}))
}

// A schedule fires at each of its instants, and what it fires may take its time.
func TestSleepFiresSchedules(t *testing.T) {
	inOffice(t, runtime.Config{}, func(o *office) {
		if _, err := client.Schedule(o.t.Context(), o.Client(), "s", schedule.Every(5*time.Minute, time.Time{}), noted,
			"tick"); err != nil {
			o.t.Fatal(err)
		}
		if _, err := client.Schedule(o.t.Context(), o.Client(), "l", schedule.Every(25*time.Minute, time.Time{}),
			lengthy, "3m"); err != nil {
			o.t.Fatal(err)
		}
		o.Sleep(31 * time.Minute)
		o.want("tick", 5*time.Minute, 10*time.Minute, 15*time.Minute, 20*time.Minute, 25*time.Minute, 30*time.Minute)
		o.want("3m", 23*time.Minute) // the instants are counted from 1970
	})
}

// A schedule may end, and may submit flows. Nothing is due once it is over.
func TestSleepFiresSchedulesThatEnd(t *testing.T) {
	inOffice(t, runtime.Config{}, func(o *office) {
		every := schedule.Every(5*time.Minute, time.Time{})
		f := flow.New("f")
		flow.Add(f, "second", noted, "second", flow.After(flow.Add(f, "first", noted, "first")))
		_, err := o.Client().SyncSchedules(o.t.Context(), "office",
			client.DeclareSchedule("s", every, noted, "tick", client.MaxRuns(2)),
			client.DeclareFlowSchedule("f", every, f, client.MaxRuns(1), client.Overlap(schedule.OverlapSkip)))
		if err != nil {
			o.t.Fatal(err)
		}
		o.Sleep(time.Hour)
		o.want("tick", 5*time.Minute, 10*time.Minute)
		o.want("first", 5*time.Minute)
		o.want("second", 5*time.Minute)
	})
}

// So do the members of a flow, one after the other.
func TestSleepServesFlows(t *testing.T) {
	slow := handler.Define[string, string]("slow")
	var o *office
	inOffice(t, runtime.Config{}, func(office *office) {
		o = office
		f := flow.New("f")
		first := flow.Add(f, "first", slow, "first")
		flow.Add(f, "second", slow, "second", flow.After(first))
		if _, err := client.SubmitFlow(o.t.Context(), o.Client(), f); err != nil {
			o.t.Fatal(err)
		}
		o.Sleep(time.Hour)
		o.want("first", 10*time.Minute)
		o.want("second", 20*time.Minute)
	}, handler.Bind(slow, func(_ context.Context, task *handler.Task, in string) (string, error) {
		if task.AttemptType() != flowfabric.AttemptResumed {
			return "", handler.Delay(10 * time.Minute)
		}
		o.note(in)
		return in, nil
	}))
}

// A handler at work is neither drained nor hurried, wherever its work came from.
func TestSleepWaitsForHandlersAtWork(t *testing.T) {
	inOffice(t, runtime.Config{DrainTimeout: time.Second}, func(o *office) {
		if _, err := client.Submit(o.t.Context(), o.Client(), lengthy, "45m"); err != nil {
			o.t.Fatal(err)
		}
		o.Sleep(time.Hour)
		o.want("45m", 45*time.Minute)
	})
}

// A gate's window and the end of retention are due, too.
func TestSleepStepsToWindowsAndRetention(t *testing.T) {
	inOffice(t, runtime.Config{}, func(o *office) {
		if err := admin.New(o.Client()).PutGate(o.t.Context(),
			admission.Gate{Name: "hourly", Rate: 1, Window: flowfabric.Millis(2 * time.Hour)}); err != nil {
			o.t.Fatal(err)
		}
		for range 3 {
			o.submit("limited", flowfabric.Gates("hourly"))
		}
		short := o.submit("short", flowfabric.Retention(90*time.Minute))
		o.Sleep(89 * time.Minute)
		if s, err := short.Get(o.t.Context()); err != nil || s.State.Public != flowfabric.Completed {
			o.t.Errorf("before its retention is over: %s, %v", s.State.Public, err)
		}
		o.Sleep(2 * time.Minute)
		if _, err := short.Get(o.t.Context()); !errors.Is(err, flowfabric.ErrResultPurged) {
			o.t.Errorf("after its retention: %v", err)
		}
		o.Sleep(3 * time.Hour)
		o.want("limited", 0, 2*time.Hour, 4*time.Hour)
	})
}

// So is the end of a dead worker's lease.
func TestSleepStepsToTheEndOfALease(t *testing.T) {
	died := false
	dying := handler.Define[string, string]("dying")
	var o *office
	inOffice(t, runtime.Config{LeaseTTL: 30 * time.Minute}, func(office *office) {
		o = office
		if _, err := client.Submit(o.t.Context(), o.Client(), dying, ""); err != nil {
			o.t.Fatal(err)
		}
		o.Sleep(time.Second)
		o.Kill()
		began := time.Now()
		o.Sleep(time.Hour)
		o.want("again", 30*time.Minute)
		if took := time.Since(began); took != time.Hour {
			o.t.Errorf("it slept %s", took)
		}
	}, handler.Bind(dying, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
		if !died {
			died = true
			<-ctx.Done()
			return "", ctx.Err()
		}
		o.note("again")
		return "", nil
	}))
}

// Two who wait for different times do not wait for each other.
func TestSleepBesideALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{},
			handler.Bind(greet, func(_ context.Context, task *handler.Task, in string) (string, error) {
				if task.AttemptType() != flowfabric.AttemptResumed {
					return "", handler.Delay(100 * time.Hour)
				}
				return in, nil
			}))
		x, began := fftest.Submit(w, greet, "x"), time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			x.Wait().Want(fftest.Want{Least: 100 * time.Hour, Most: 100*time.Hour + time.Second})
		}()
		time.Sleep(time.Minute) // it naps
		w.Sleep(time.Hour)
		if took := time.Since(began); took != time.Hour+time.Minute {
			t.Errorf("an hour took %s", took-time.Minute)
		}
		<-ended
	})
}

// Patience has an end, though a schedule fires for ever and work that nobody takes waits for ever.
func TestPatienceBesideSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ends(t, func(c *complaints) {
			w := fftest.New(c, runtime.Config{}, handler.Bind(noted, echo), handler.Bind(parked, waitForever))
			w.Patience = 3 * time.Hour
			if _, err := client.Schedule(t.Context(), w.Client(), "s", schedule.Every(30*time.Minute, time.Time{}),
				noted, "tick"); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Submit(t.Context(), w.Client(), lengthy, "nobody takes it"); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Submit(t.Context(), w.Client(), noted, "",
				flowfabric.Delay(1000*time.Hour)); err != nil {
				t.Fatal(err)
			}
			fftest.Submit(w, parked, "").Wait()
		}).mention(t, `it is suspended, attempt 1, and waits (waiting_for_signal) for somebody to answer`)
		if took := time.Since(began); took > 4*time.Hour {
			t.Errorf("it took %s", took)
		}
	})
}

// An hour in which nothing happens costs nothing, though there is work that nobody takes.
func TestSleepBesideWorkThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls atomic.Int64
		w := fftest.New(t, runtime.Config{OnCall: func(string, time.Duration, error) { polls.Add(1) }},
			handler.Bind(noted, echo))
		if _, err := client.Submit(t.Context(), w.Client(), lengthy, "nobody takes it"); err != nil {
			t.Fatal(err)
		}
		w.Sleep(1000 * time.Hour)
		if n := polls.Load(); n > 10_000 {
			t.Errorf("the worker made %d calls in 1,000 hours", n)
		}
	})
}

func waitForever(ctx context.Context, task *handler.Task, _ string) (string, error) {
	_, err := task.Wait(ctx, "w", suspend.Signal("w"))
	return "", err
}
