package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/race"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// day is a short one under the race detector: a waiting worker has something to do every second of it.
var day = map[bool]time.Duration{false: 24 * time.Hour, true: 2 * time.Hour}[race.Enabled]

// asking drafts, waits for an approval with the given options, and publishes.
type asking struct {
	opts []suspend.Option
	did  map[string]int
}

func newAsking(opts ...suspend.Option) *asking { return &asking{opts, map[string]int{}} }

func (a *asking) step(ctx context.Context, t *handler.Task, name string) error {
	_, err := handler.Step(ctx, t, name, func(context.Context) (int, error) {
		a.did[name]++
		return a.did[name], nil
	})
	return err
}

func (a *asking) Handle(ctx context.Context, t *handler.Task, _ string) (string, error) {
	if err := a.step(ctx, t, "draft"); err != nil {
		return "", err
	}
	verdict, err := handler.Await[string](ctx, t, "approve", a.opts...)
	if err != nil {
		return "", err
	}
	return verdict, a.step(ctx, t, "publish")
}

// once fails for every step that was not run exactly once.
func (a *asking) once(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if a.did[name] != 1 {
			t.Errorf("step %s was run %d times", name, a.did[name])
		}
	}
}

// A sender's signal arrives as it was sent; waiting costs one attempt and no retry.
func TestSignal(t *testing.T) {
	a := newAsking(suspend.Because(suspend.ReasonReview), suspend.Named("verdict"))
	r := fftest.Run(t, greet, fftest.Answered(a.Handle, fftest.Signal("approve", "yes", client.SignalName("verdict"),
		client.SignalSource("person", "anna"), flowfabric.IdempotencyKey("k1")).After(3*day)), "")
	r.WantResult("yes")
	r.Want(fftest.Want{
		Steps:    []string{"draft", "publish"},
		Waits:    []string{"approve: signal"},
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
	})
	wantSuspended(t, r.Waits, 3*day, 3*day+time.Second)
	r.Want(fftest.Want{Least: 3 * day, Most: 3*day + 2*time.Second})
	a.once(t, "draft", "publish")
	w := r.Waits[0]
	if w.Reason != string(suspend.ReasonReview) || w.Answer == nil || len(w.Answer.Signals) != 1 {
		t.Fatalf("wait %+v", w)
	}
	if s := w.Answer.Signals[0]; s.Name != "verdict" || s.SourceType != "person" || s.Source != "anna" ||
		s.IdempotencyKey != "k1" ||
		s.WaitpointKey != "approve" || string(s.Payload) != `"yes"` {
		t.Errorf("signal %+v", s)
	}
	if r.Snapshot.Retries != 0 || r.Snapshot.Reclaims != 0 {
		t.Errorf("%d retries, %d reclaims", r.Snapshot.Retries, r.Snapshot.Reclaims)
	}
}

// Without delay a wait is answered as soon as it begins.
func TestSignalAtOnce(t *testing.T) {
	r := fftest.Run(t, greet, fftest.Answered(newAsking().Handle, fftest.Signal("approve", "yes")), "")
	r.WantResult("yes")
	r.Want(fftest.Want{Waits: []string{"approve: signal"}}) // it was suspended, if only within a millisecond
	wantSuspended(t, r.Waits, 0, 100*time.Millisecond)
}

func TestApproval(t *testing.T) {
	r := fftest.Run(t, greet,
		fftest.Answered(newAsking().Handle, fftest.Approve("approve", "fine", flowfabric.By("anna"))), "")
	r.WantResult("fine")
	if s := r.Waits[0].Answer.Signals[0]; s.SourceType != "operator" || s.Source != "anna" {
		t.Errorf("signal %+v", s)
	}
}

// An operator who only resumes gives no value: Await says so, Wait tells who it was.
func TestResume(t *testing.T) {
	r := fftest.Run(t, greet, fftest.Answered(newAsking().Handle, fftest.Resume(flowfabric.By("bob"))), "")
	r.Want(fftest.Want{
		State: flowfabric.Failed,
		Waits: []string{"approve: operator"},
		// the answer is kept: a retry would be told the same
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
	})
	if r.Err == nil || !strings.Contains(r.Err.Error(), flowfabric.ErrNoSignal.Error()) {
		t.Errorf("error %v", r.Err)
	}

	r = fftest.Run(t, greet, fftest.Answered(func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		got, err := task.Wait(ctx, "approve", suspend.Operator())
		return string(got.Cause) + " " + got.By, err
	}, fftest.Resume(flowfabric.By("bob")).After(time.Hour)), "")
	r.WantResult("operator bob")
	wantSuspended(t, r.Waits, time.Hour, time.Hour+time.Second)
}

// What each behaviour makes of a wait that nobody answers.
func TestTimeouts(t *testing.T) {
	for behaviour, c := range map[suspend.Behaviour]struct {
		state flowfabric.PublicState
		is    error
	}{
		suspend.Fail: {flowfabric.Failed, nil}, suspend.Cancel: {flowfabric.Cancelled, nil},
		suspend.Expire: {flowfabric.Expired, nil}, suspend.Resume: {flowfabric.Completed, flowfabric.ErrWaitTimeout},
		suspend.Notice: {flowfabric.Completed, flowfabric.ErrWaitTimeout},
	} {
		t.Run(string(behaviour), func(t *testing.T) {
			var got suspend.Result
			var told error
			r := fftest.Run(t, greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				got, told = task.Wait(ctx, "approve", suspend.Signal("approve"), suspend.Within(4*day),
					suspend.OnTimeout(behaviour))
				if errors.Is(told, flowfabric.ErrWaitTimeout) {
					return "late", nil
				}
				return "", told
			}, "")
			r.Want(fftest.Want{State: c.state, Waits: []string{"approve: timeout"}})
			wantSuspended(t, r.Waits, 4*day, 4*day+2*time.Second)
			if r.State == flowfabric.Failed || r.State == flowfabric.Expired {
				r.Want(fftest.Want{Failure: "suspension_timeout"})
			}
			if c.is != nil && !errors.Is(told, c.is) {
				t.Errorf("the wait returned %v", told)
			}
			if notice := len(got.Signals) == 1 &&
				got.Signals[0].Name == "__timeout"; notice != (behaviour == suspend.Notice) {
				t.Errorf("signals %+v", got.Signals)
			}
			if len(r.Attempts) != 1 {
				t.Errorf("%d attempts: no retry policy applies", len(r.Attempts))
			}
		})
	}
}

// letter waits on a waitpoint whose token it has mailed before.
type letter struct {
	mail func(ctx context.Context, token suspend.Token) error
	opts []suspend.Option
}

func (l *letter) Handle(ctx context.Context, t *handler.Task, _ string) (string, error) {
	token, err := t.Pending(ctx, "reply", time.Hour)
	if err != nil {
		return "", err
	}
	if _, err := handler.Step(ctx, t, "mail", func(ctx context.Context) (bool, error) {
		return true, l.mail(ctx, token)
	}); err != nil {
		return "", err
	}
	if err := t.Frame(ctx, "log", "mailed"); err != nil {
		return "", err
	}
	reply, err := handler.Await[string](ctx, t, "reply", l.opts...)
	if err != nil {
		return "", err
	}
	_, err = handler.Step(ctx, t, "thank", func(context.Context) (string, error) { return reply, nil })
	return reply, err
}

// A signal that comes before the wait is kept for it, and the lease is not given up.
func TestEarlySignal(t *testing.T) {
	runs := 0
	l := &letter{mail: func(ctx context.Context, token suspend.Token) error {
		fftest.Tell(ctx, fftest.Signal(token, "quick"))
		return nil
	}}
	r := fftest.Run(t, greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		runs++
		return l.Handle(ctx, task, in)
	}, "")
	r.WantResult("quick")
	r.Want(fftest.Want{Waits: []string{"reply: already_satisfied"}})
	wantSuspended(t, r.Waits, 0, 0)
	r.Want(fftest.Want{Most: time.Second})
	if runs != 2 || len(r.Attempts) != 1 {
		t.Errorf("%d runs in %d attempts, want 2 in one", runs, len(r.Attempts))
	}
}

// A token that was handed out works for as long as the wait lasts.
func TestTokenWeeksLater(t *testing.T) {
	mails := 0
	l := &letter{mail: func(ctx context.Context, token suspend.Token) error {
		mails++
		fftest.Tell(ctx, fftest.Signal(token, "slow").After(9*day))
		return nil
	}}
	r := fftest.Run(t, greet, l.Handle, "")
	r.WantResult("slow")
	r.Want(fftest.Want{Waits: []string{"reply: signal"}})
	wantSuspended(t, r.Waits, 9*day, 9*day+time.Second)
	if mails != 1 {
		t.Errorf("%d mails", mails)
	}
}

// The environment's client is a real one: whatever it does wakes the environment.
func TestClientSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var token suspend.Token
		l := &letter{mail: func(_ context.Context, given suspend.Token) error { token = given; return nil }}
		w := fftest.New(t, runtime.Config{}, handler.Bind(greet, l.Handle))
		x := fftest.Submit(w, greet, "")
		if s := x.AwaitSuspension(); s.Name != "reply" || len(s.Waitpoints) != 1 ||
			s.Waitpoints[0].ID != token.Waitpoint() {
			t.Fatalf("suspended as %+v, token of %s", s, token.Waitpoint())
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(10 * time.Hour)
			for _, duplicate := range []bool{false, true} {
				d, err := w.Client().Signal(t.Context(), token, "hi", flowfabric.IdempotencyKey("once"))
				if err != nil || d.Duplicate != duplicate {
					t.Errorf("%+v, %v", d, err)
				}
			}
			if _, err := w.Client().Signal(t.Context(), token, "too late"); !errors.Is(err,
				flowfabric.ErrWaitpointClosed) && !errors.Is(err, denied.NotSignalable) {
				t.Errorf("late: %v", err)
			}
		})
		r := x.Wait()
		r.WantResult("hi")
		wantSuspended(t, r.Waits, 10*time.Hour, 10*time.Hour+time.Second)
		r.Want(fftest.Want{
			Least: 10 * time.Hour,
			Most:  10*time.Hour + 2*time.Second, // the nap has ended at once
		})
		wg.Wait()
	})
}

// Several waits, numbered in a loop, each with a step of its own.
func TestLoop(t *testing.T) {
	runs := map[string]int{}
	rounds := func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		var all []string
		for i := range 4 {
			name := fmt.Sprintf("round-%d", i)
			word, err := handler.Await[string](ctx, task, name)
			if err != nil {
				return "", err
			}
			if _, err := handler.Step(ctx, task, "note-"+name,
				func(context.Context) (int, error) { runs[name]++; return 0, nil }); err != nil {
				return "", err
			}
			all = append(all, word)
		}
		return strings.Join(all, " "), nil
	}
	r := fftest.Run(t, greet, fftest.Answered(rounds, fftest.Signal("round-0", "a"),
		fftest.Approve("round-1", "b", flowfabric.By("bob")).After(day),
		fftest.Signal("round-2", "c").After(time.Minute), fftest.Signal("round-3", "d")), "")
	r.WantResult("a b c d")
	r.Want(fftest.Want{
		Waits: []string{"round-0", "round-1", "round-2", "round-3"},
		Steps: []string{"note-round-0", "note-round-1", "note-round-2", "note-round-3"},
	})
	wantSuspended(t, r.Waits, day+time.Minute, day+time.Minute+time.Second)
	for name, n := range runs {
		if n != 1 {
			t.Errorf("step of %s was run %d times", name, n)
		}
	}
}

// Two parties, each with its own waitpoint, and one answer that comes when it is all over.
func TestAllOf(t *testing.T) {
	both := func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		got, err := task.Wait(ctx, "both", suspend.AllOf(suspend.Signal("legal"), suspend.Signal("sales")),
			suspend.ResumeAfter(time.Hour))
		if err != nil {
			return "", err
		}
		var all []string
		for _, s := range got.Signals {
			text, err := suspend.Decode[string](s)
			if err != nil {
				return "", err
			}
			all = append(all, s.WaitpointKey+" "+text)
		}
		return strings.Join(all, ", "), nil
	}
	r := fftest.Run(t, greet,
		fftest.Answered(both, fftest.Signal("sales", "go").After(day), fftest.Signal("legal", "ok").After(2*day)), "")
	r.WantResult("sales go, legal ok")
	wantSuspended(t, r.Waits, 2*day, 2*day+time.Second)
	r.Want(fftest.Want{Least: 2*day + time.Hour, Most: 2*day + time.Hour + 2*time.Second})
}

// The attempt's timeout stands still while it is suspended, and goes on where it was.
func TestAttemptTimeoutExcludesTheWait(t *testing.T) {
	slow := handler.Define[time.Duration, string]("slow-wait", flowfabric.Timeout(time.Minute),
		handler.Retry(0, time.Second, time.Second))
	for after, want := range map[time.Duration]bool{35 * time.Second: true, 45 * time.Second: false} {
		r := fftest.Run(t, slow,
			fftest.Answered(func(ctx context.Context, task *handler.Task, after time.Duration) (string, error) {
				_, err := handler.Step(ctx, task, "before", func(ctx context.Context) (int, error) {
					time.Sleep(20 * time.Second)
					return 0, nil
				})
				if err != nil {
					return "", err
				}
				got, err := handler.Await[string](ctx, task, "approve")
				if err != nil {
					return "", err
				}
				select {
				case <-time.After(after):
					return got, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}, fftest.Signal("approve", "yes").After(2*day)), after)
		if want {
			r.WantResult("yes")
		} else {
			r.Want(fftest.Want{Failure: causes.Timeout})
		}
		r.Want(fftest.Want{
			Least: 2*day + 20*time.Second + min(after, 40*time.Second),
			Most:  2*day + 25*time.Second + min(after, 40*time.Second),
		})
	}
}

// A worker that dies, or drains, while an execution is suspended holds nothing of it.
func TestWorkersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		w := fftest.New(t, runtime.Config{}, handler.Bind(greet, a.Handle))
		x := fftest.Submit(w, greet, "")
		x.AwaitSuspension()
		w.Kill()
		w.Sleep(day)
		w.Drain()
		x.Answer(fftest.Signal("approve", "yes"))
		r := x.Wait()
		r.WantResult("yes")
		r.Want(fftest.Want{Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial}})
		a.once(t, "draft", "publish")
	})
}

// The answer is there, and the worker dies before the handler has used it: the next attempt gets it, too.
func TestKilledAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []string
		w := fftest.New(t, runtime.Config{},
			handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				got, err := handler.Await[string](ctx, task, "approve")
				if err != nil {
					return "", err
				}
				answers = append(answers, got)
				if len(answers) == 1 {
					<-ctx.Done()
					return "", ctx.Err()
				}
				return got, nil
			}))
		x := fftest.Submit(w, greet, "")
		x.Answer(fftest.Signal("approve", "yes"))
		w.Sleep(5 * time.Second)
		w.Kill()
		r := x.Wait()
		r.WantResult("yes")
		r.Want(fftest.Want{
			Waits:    []string{"approve"},
			Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptReclaim},
		})
		if !slices.Equal(answers, []string{"yes", "yes"}) {
			t.Errorf("answers %q", answers)
		}
	})
}

// What is wrong with a test of waits is said.
func TestUnansweredIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(c *complaints)
		want string
	}{
		"nobody answers": {func(c *complaints) { fftest.Run(c, greet, newAsking().Handle, "") },
			`it is suspended, attempt 1, and waits (waiting_for_signal) for somebody to answer; open waitpoints: ["approve"]`},
		"another key": {func(c *complaints) {
			fftest.Run(c, greet, fftest.Answered(newAsking().Handle, fftest.Signal("aprove", 1)), "")
		},
			`open waitpoints: ["approve"]`},
		"ended before": {func(c *complaints) {
			w := fftest.New(c, runtime.Config{}, handler.Bind(greet, echo))
			fftest.Submit(w, greet, "").AwaitSuspension()
		}, "it is completed"},
		"refused": {func(c *complaints) {
			w := fftest.New(c, runtime.Config{}, handler.Bind(greet, newAsking().Handle))
			fftest.Submit(w, greet, "").Answer(fftest.Signal("approve", 1, client.SignalName("__reserved")))
		}, "__reserved"},
		"no choice": {func(c *complaints) {
			w := fftest.New(c, runtime.Config{}, handler.Bind(greet, deciding))
			fftest.Submit(w, greet, "").Answer(fftest.Approve("ship", true))
		}, `signal is no choice of the question, want one of approve, reject); open waitpoints: ["ship"]`},
		"no choice, of somebody around": {func(c *complaints) {
			fftest.Run(c, greet, fftest.Answered(deciding, fftest.Signal("ship", true)), "")
		}, `signal is no choice of the question, want one of approve, reject); open waitpoints: ["ship"]`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { ends(t, c.f).mention(t, c.want) })
		})
	}
	for name, c := range map[string]struct {
		answers []fftest.Answer
		want    string
	}{
		"left": {[]fftest.Answer{fftest.Signal("approve", "yes"), fftest.Signal("approve", "again")},
			"signal on waitpoint approve was never given"},
		"event left": {[]fftest.Answer{fftest.Publish(client.Event{Subject: "order.paid"})},
			"event order.paid was never given"},
		"too late": {[]fftest.Answer{fftest.Resume(flowfabric.By("bob")).After(5 * time.Hour)},
			"resumption was never given"},
		"refused": {[]fftest.Answer{fftest.Approve("approve", "yes", client.SignalName("__reserved"))},
			"approval of waitpoint approve: "},
		"empty": {[]fftest.Answer{{}}, "an empty answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var found *complaints
			synctest.Test(t, func(t *testing.T) {
				found = &complaints{TB: t}
				fftest.Run(found, greet, fftest.Answered(newAsking(suspend.Within(time.Hour),
					suspend.OnTimeout(suspend.Resume)).Handle, c.answers...), "")
			})
			found.mention(t, c.want)
		})
	}
}

// deciding asks a question.
func deciding(ctx context.Context, t *handler.Task, _ string) (string, error) {
	a, err := t.Ask(ctx, "ship", suspend.Question{Title: "Ship it?"})
	return a.Choice, err
}

// What Want says of waits that are not met.
func TestWantWaitsComplains(t *testing.T) {
	var c *complaints
	synctest.Test(t, func(t *testing.T) {
		c = &complaints{TB: t}
		r := fftest.Run(c, greet, fftest.Answered(newAsking().Handle, fftest.Signal("approve", "yes").After(time.Hour)),
			"")
		r.Want(fftest.Want{Waits: []string{"approve"}})
		if len(c.all) > 0 {
			t.Errorf("complaints %q", c.all)
		}
		for _, waits := range [][]string{{}, {"approve: timeout"}, {"deny"}, {"approve", "deny"}} {
			r.Want(fftest.Want{Waits: waits})
		}
	})
	c.mention(t, `waits ["approve: signal"], want []`, `waits ["approve: signal"], want ["approve: timeout"]`,
		`waits ["approve: signal"], want ["deny"]`, `waits ["approve"], want ["approve" "deny"]`)
}

// wantSuspended demands that all waits together lasted at least and at most so long.
func wantSuspended(t *testing.T, waits []fftest.Wait, least, most time.Duration) {
	t.Helper()
	total := time.Duration(0)
	for _, w := range waits {
		total += w.Lasted
	}
	if total < least || total > most {
		t.Errorf("suspended for %s, want %s..%s", total, least, most)
	}
}
