package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Token keys of the tests.
var (
	keyA = "A:" + strings.Repeat("a1", 32)
	keyB = "B:" + strings.Repeat("b2", 32)
)

// signing is the configuration of a worker whose handlers may wait for signals.
func signing() runtime.Config { return runtime.Config{TokenKeys: keyA} }

// envAt is an environment on a server that is there.
func envAt(t *testing.T, url string) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Partitions: 4, Logger: quiet})
	must.No(t, err)
	t.Cleanup(e.Close)
	return &env{T: t, ctx: ctx, url: url, engine: e}
}

// servers runs a test on the embedded server and on a real one.
func servers(t *testing.T, f func(w *env)) {
	t.Run("embedded", func(t *testing.T) { f(newEnv(t)) })
	t.Run("redis", func(t *testing.T) { f(envAt(t, testserver.Redis(t))) })
}

// signalled approves the waitpoint of a key and expects an effect.
func (w *env) signalled(id flowfabric.ExecutionID, key, payload string, effect suspend.Effect) {
	w.Helper()
	d, err := w.engine.ApproveWaitpoint(w.ctx, id, key,
		suspend.SentSignal{Name: "signal", Source: "anna", Payload: []byte(payload)})
	if err != nil || d.Effect != effect {
		w.Fatalf("signal on %s: %+v, %v", key, d, err)
	}
}

// present signals with a token, as outsiders do.
func (w *env) present(token suspend.Token, payload string) (suspend.Delivered, error) {
	return w.engine.DeliverSignal(w.ctx, token.Execution(), token.Waitpoint(), token.Digest(),
		suspend.SentSignal{Name: "signal", Payload: []byte(payload)})
}

// result is the stored result of an attempt.
func (w *env) result(id flowfabric.ExecutionID, attempt uint32) string {
	w.Helper()
	r, _, err := w.engine.ReadResult(w.ctx, id, attempt)
	must.No(w, err)
	return string(r)
}

// events counts an execution's history by kind.
func (w *env) events(id flowfabric.ExecutionID) map[string]int {
	w.Helper()
	all, err := w.engine.ReadHistory(w.ctx, id)
	must.No(w, err)
	n := map[string]int{}
	for _, e := range all {
		n[e.Kind]++
	}
	return n
}

func (w *env) suspension(id flowfabric.ExecutionID) suspend.Record {
	w.Helper()
	s, err := w.engine.ReadSuspension(w.ctx, id)
	must.No(w, err)
	return s
}

type waiting = func(context.Context, *handler.Task, string) (string, error)

// Several waits of a handler, in a loop with numbered names, with steps between and frames before: one attempt, nothing
// repeated, and the frames of a run are there as soon as its execution is suspended.
func TestAwait(t *testing.T) {
	servers(t, func(w *env) {
		var steps atomic.Int64
		w.start(signing(), handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			var words []string
			for i := range 3 {
				name := fmt.Sprintf("word-%d", i)
				if _, err := handler.Step(ctx, task, "before-"+name, func(ctx context.Context) (int64, error) {
					return steps.Add(1), nil
				}); err != nil {
					return "", err
				}
				if err := task.Frame(ctx, "log", name); err != nil {
					return "", err
				}
				word, err := handler.Await[string](ctx, task, name, suspend.Because(suspend.ReasonApproval))
				if err != nil {
					return "", fmt.Errorf("wrapped: %w", err)
				}
				words = append(words, word)
			}
			return strings.Join(words, " "), nil
		}))
		id := w.submit("x")
		var want []string
		for i := range 3 {
			key := fmt.Sprintf("word-%d", i)
			w.eventually("it waits for "+key, func() bool {
				s := w.suspension(id)
				return s.State == flowfabric.Suspended && s.Name == key
			})
			for n := range i + 1 {
				want = append(want, fmt.Sprintf("word-%d", n))
			}
			frames, err := w.engine.ReadFrames(w.ctx, id, 1, stream.Cursor{}, 100)
			var got []string
			for _, f := range frames {
				got = append(got, string(f.Payload))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("frames %q, want %q, %v", got, want, err)
			}
			w.signalled(id, key, fmt.Sprintf(`"%d"`, i), waitwords.EffectSatisfied)
		}
		got := w.reach(id, codes.Completed)
		if r := w.result(id, 1); r != `"0 1 2"` || got.Attempts != 1 || got.Retries != 0 || steps.Load() != 3 {
			t.Errorf("result %s, %d attempts, %d retries, %d steps run", r, got.Attempts, got.Retries, steps.Load())
		}
		if n := w.events(id); n[timeline.EventSuspended] != 3 || n[timeline.EventResumed] != 3 {
			t.Errorf("history %v", n)
		}
	})
}

// Signals that come before the waits suffice: the hold is kept, the handler runs again, also several times, and what
// was answered first is still known.
func TestEarlySignalsKeepTheHold(t *testing.T) {
	servers(t, func(w *env) {
		var mu sync.Mutex
		var epochs []uint64
		var tokens []string
		calls := map[string]int{}
		cfg := signing()
		cfg.OnCall = func(function string, _ time.Duration, _ error) {
			mu.Lock()
			defer mu.Unlock()
			calls[function]++
		}
		w.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			var words []string
			mu.Lock()
			epochs = append(epochs, task.Fence().Epoch)
			mu.Unlock()
			for _, key := range []string{"a", "b", "c"} {
				token, err := task.Pending(ctx, key, time.Hour)
				if err != nil {
					return "", err
				}
				mu.Lock()
				tokens = append(tokens, token.Reveal())
				mu.Unlock()
				if _, err := handler.Step(ctx, task, "hand out "+key, func(context.Context) (string, error) {
					d, err := w.present(token, `"`+key+`"`)
					return string(d.Effect), err
				}); err != nil {
					return "", err
				}
				word, err := handler.Await[string](ctx, task, key)
				if err != nil {
					return "", err
				}
				words = append(words, word)
			}
			return strings.Join(words, ""), nil
		}))
		id := w.submit("x")
		w.reach(id, codes.Completed)
		mu.Lock()
		defer mu.Unlock()
		if r := w.result(id, 1); r != `"abc"` {
			t.Errorf("result %s", r)
		}
		if len(epochs) != 4 || len(slices.Compact(epochs)) != 1 {
			t.Errorf("runs under epochs %v, want four under one", epochs)
		}
		slices.Sort(tokens)
		if distinct := slices.Compact(tokens); len(distinct) != 3 {
			t.Errorf("%d tokens of 3 waitpoints", len(distinct))
		}
		if calls["ff_suspend_execution"] != 3 || calls["ff_create_pending_waitpoint"] != 3 ||
			w.events(id)[timeline.EventSuspended] != 0 {
			t.Errorf("calls %v, history %v", calls, w.events(id))
		}
	})
}

// A worker that drains still suspends a handler that returns its wait: in time, or after its context ended.
func TestDrainSuspends(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			asked, finish := make(chan struct{}), make(chan struct{})
			cfg := signing()
			if late {
				cfg.DrainTimeout = -1
			}
			worker := w.start(cfg,
				handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
					word, err := handler.Await[string](ctx, task, "go")
					if err == nil {
						return word, nil
					}
					close(asked)
					if late {
						<-ctx.Done()
					} else {
						<-finish
					}
					return "", err
				}))
			id := w.submit("x")
			<-asked
			var stopping conc.WaitGroup
			stopping.Go(func() {
				if err := worker.stop(); err != nil {
					t.Error(err)
				}
			})
			w.eventually("it drains", func() bool { return worker.Ready() != nil })
			close(finish)
			stopping.Wait()
			w.reach(id, codes.AwaitingSignal)
			w.signalled(id, "go", `"on"`, waitwords.EffectSatisfied)
			w.start(signing(), handler.Bind(greet,
				func(ctx context.Context, task *handler.Task, _ string) (string, error) {
					return handler.Await[string](ctx, task, "go")
				}))
			if got := w.reach(id, codes.Completed); got.Attempts != 1 || w.result(id, 1) != `"on"` {
				t.Errorf("%d attempts, result %s", got.Attempts, w.result(id, 1))
			}
		})
	}
}

// What a handler does wrong about waiting fails it, with a category that says so.
func TestWaitMistakes(t *testing.T) {
	w := newEnv(t)
	handlers := map[string]waiting{
		"ignored": func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			_, _ = handler.Await[string](ctx, task, "go")
			return "done", nil
		},
		"in a step": func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			return handler.Step(ctx, task, "s", func(ctx context.Context) (string, error) {
				return handler.Await[string](ctx, task, "go")
			})
		},
		"closed": func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			// its waitpoint served another wait
			if _, err := task.Pending(ctx, "key", time.Hour); err != nil {
				return "", err
			}
			if _, err := task.Wait(ctx, "first", suspend.Signal("key"), suspend.Within(time.Millisecond),
				suspend.OnTimeout(suspend.Resume)); !errors.Is(err, flowfabric.ErrWaitTimeout) {
				return "", err
			}
			_, err := task.Wait(ctx, "second", suspend.Signal("key"))
			return "", err
		},
	}
	w.start(signing(), handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		return handlers[in](ctx, task, in)
	}))
	for name, want := range map[string][2]string{
		"ignored":   {causes.AwaitIgnored, "wait go had asked to suspend"},
		"in a step": {causes.HandlerError, "wait go is inside step s"},
		"closed":    {causes.Suspend, "suspend refused"},
	} {
		got := w.reach(w.submit(name), codes.Failed)
		if reason := got.AttemptLog[0].Message; string(got.Failure.Category) != want[0] || !strings.Contains(reason,
			want[1]) ||
			got.Attempts != 1 {
			t.Errorf("%s: %d attempts, category %s, %s", name, got.Attempts, got.Failure.Category, reason)
		}
	}
}

// Without token keys only what needs no waitpoint can be waited for. Keys can be configured, so it is tried again.
func TestNoTokenKeys(t *testing.T) {
	t.Setenv(suspend.EnvTokenKeys, "")
	w := envAt(t, testserver.Redis(t))
	w.start(runtime.Config{},
		handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
			switch in {
			case "pending":
				_, err := task.Pending(ctx, "go", time.Hour)
				return "", err
			case "operator":
				r, err := task.Wait(ctx, "go", suspend.Operator())
				return r.By, err
			}
			return handler.Await[string](ctx, task, "go")
		}))
	for in, category := range map[string]string{"await": causes.Suspend, "pending": causes.HandlerError} {
		got := w.reach(w.submit(in, retries(1)), codes.Failed)
		if reason := got.AttemptLog[0].Message; string(got.Failure.Category) != category || got.Retries != 1 ||
			!strings.Contains(reason, suspend.EnvTokenKeys) {
			t.Errorf("%s: %d retries, category %s, %s", in, got.Retries, got.Failure.Category, reason)
		}
	}
	id := w.submit("operator")
	w.reach(id, codes.AwaitingSignal)
	if _, err := w.engine.ResumeExecution(trail.As(w.ctx, "bob", ""), id, engine.ResumeRequest{}); err != nil {
		t.Fatal(err)
	}
	w.reach(id, codes.Completed)
	if r := w.result(id, 1); r != `"bob"` {
		t.Errorf("result %s", r)
	}
}

// A worker without token keys says so when it starts: with a warning where others sign tokens.
func TestAStartWithoutTokenKeysIsTold(t *testing.T) {
	t.Setenv(suspend.EnvTokenKeys, "")
	w := envAt(t, testserver.Redis(t))
	start := func(keys string) string {
		var log safeLog
		w.start(runtime.Config{TokenKeys: keys, Logger: slog.New(slog.NewTextHandler(&log, nil))}, greetBinding())
		return log.text()
	}
	if text := start(""); !strings.Contains(text, "no token keys: handlers that wait for signals") ||
		strings.Contains(text, "level=WARN") {
		t.Errorf("on a fresh store: %s", text)
	}
	if text := start(keyA); strings.Contains(text, "token keys") {
		t.Errorf("with keys: %s", text)
	}
	if text := start(""); !strings.Contains(text, "level=WARN") || !strings.Contains(text,
		"no token keys, and others of this store sign tokens") || !strings.Contains(text, "kid=A") {
		t.Errorf("where others sign: %s", text)
	}
}

// safeLog keeps what is logged.
type safeLog struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *safeLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// A worker whose keys cannot verify what is signed here does not start.
func TestForeignKeyring(t *testing.T) {
	w := newEnv(t)
	must.No(t, w.start(signing(), greetBinding()).stop())
	for keys, want := range map[string]error{keyB: flowfabric.ErrConfig,
		"A:" + strings.Repeat("c3", 32): denied.KidConflict} {
		worker, err := runtime.New(runtime.Config{URL: w.url, TokenKeys: keys, Logger: quiet}, greetBinding())
		must.No(t, err)
		if err := worker.Run(w.ctx); !errors.Is(err, want) || strings.Contains(err.Error(), "c3c3") ||
			strings.Contains(err.Error(), "b2b2") {
			t.Errorf("run: %v, want %v", err, want)
		}
	}
	for _, keys := range []string{keyB + "," + keyA, keyA + "," + keyB} {
		w.start(runtime.Config{TokenKeys: keys}, greetBinding())
	}
}

// A key is rotated under running workers, whichever of the two keys is first in their rings: they learn from a refusal
// which one signs, and mint again.
func TestRotationUnderWorkers(t *testing.T) {
	for _, order := range []string{keyA + "," + keyB, keyB + "," + keyA} {
		t.Run(order[:1]+" first", func(t *testing.T) {
			w := newEnv(t)
			if err := w.start(signing(), greetBinding()).stop(); err != nil { // A signs
				t.Fatal(err)
			}
			w.start(runtime.Config{TokenKeys: order},
				handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
					if in == "pending" {
						if _, err := task.Pending(ctx, "go", time.Hour); err != nil {
							return "", err
						}
					}
					return handler.Await[string](ctx, task, "go")
				}))
			signs := func(kid string) (id flowfabric.ExecutionID) {
				t.Helper()
				for _, in := range []string{"fresh", "pending"} {
					id = w.submit(in)
					w.reach(id, codes.AwaitingSignal)
					if p := w.suspension(id).Waitpoints; len(p) != 1 || p[0].Kid != kid {
						t.Errorf("%s: waitpoints %+v, want one signed with %s", in, p, kid)
					}
				}
				return id
			}
			old := signs("A")
			ring, err := tokenkeys.Parse(keyB)
			must.No(t, err)
			key, _ := ring.First()
			for _, r := range w.engine.RotateTokenKey(w.ctx, key, 0, true) { // at once, so that A is refused
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			for range 8 { // all partitions
				id := signs("B")
				w.signalled(id, "go", `"on"`, waitwords.EffectSatisfied)
				w.reach(id, codes.Completed)
			}
			w.signalled(old, "go", `"on"`, waitwords.EffectSatisfied) // operators need no token
			w.reach(old, codes.Completed)
		})
	}
}

// A wait that was answered needs its token key no more: neither a wait named unlike its waitpoints, nor a waitpoint
// that got no signal, nor one that [handler.On] waited on. The key is rotated out and removed between the first wait
// and the second.
func TestAnsweredWaitNeedsItsKeyNoMore(t *testing.T) {
	servers(t, func(w *env) {
		handle := func(ctx context.Context, task *handler.Task, in string) (string, error) {
			for _, who := range []string{"ivy", "raj"} {
				if _, err := task.Pending(ctx, who, time.Hour); err != nil {
					return "", err
				}
			}
			either := suspend.AnyOf(suspend.Signal("ivy"), suspend.Signal("raj"))
			if in == "on" {
				if _, ok := task.Resumed(); !ok {
					return "", handler.On(either)
				}
			} else if _, err := task.Wait(ctx, "decision", either); err != nil {
				return "", err
			}
			return handler.Await[string](ctx, task, "second")
		}
		first := w.start(signing(), handler.Bind(greet, handle))
		ids := []flowfabric.ExecutionID{w.submit("wait"), w.submit("on")}
		for _, id := range ids {
			w.reach(id, codes.AwaitingSignal)
			w.signalled(id, "raj", `"yes"`, waitwords.EffectSatisfied)
			w.eventually("it waits again", func() bool {
				s := w.suspension(id)
				return s.State == flowfabric.Suspended && s.Name == "second"
			})
		}
		must.No(t, first.stop())
		ring, err := tokenkeys.Parse(keyB)
		must.No(t, err)
		key, _ := ring.First()
		for _, r := range w.engine.RotateTokenKey(w.ctx, key, 0, true) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		w.start(runtime.Config{TokenKeys: keyB}, handler.Bind(greet, handle))
		for _, id := range ids {
			w.signalled(id, "second", `"on"`, waitwords.EffectSatisfied)
			w.reach(id, codes.Completed)
		}
	})
}

// What was answered and not asked for by the handler that completed is told: it was changed.
func TestChangedHandlerIsTold(t *testing.T) {
	w := newEnv(t)
	old := w.start(signing(),
		handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if _, err := task.Pending(ctx, "letter", time.Hour); err != nil {
				return "", err
			}
			if _, err := handler.Await[string](ctx, task, "first"); err != nil {
				return "", err
			}
			return handler.Await[string](ctx, task, "second")
		}))
	id := w.submit("x")
	w.reach(id, codes.AwaitingSignal)
	w.signalled(id, "first", `"1"`, waitwords.EffectSatisfied)
	w.eventually("it waits again", func() bool { return w.suspension(id).Name == "second" })
	must.No(t, old.stop())
	w.signalled(id, "second", `"2"`, waitwords.EffectSatisfied)
	log := records{"without using recorded steps", make(chan slog.Record, 8)}
	cfg := signing()
	cfg.Logger = slog.New(log)
	w.start(cfg, greetBinding())
	w.reach(id, codes.Completed)
	select {
	case r := <-log.seen:
		r.Attrs(func(a slog.Attr) bool {
			if got := fmt.Sprint(a.Value.Any()); a.Key == "steps" &&
				got != "[wait first wait second waitpoint letter]" {
				t.Errorf("unused: %s", got)
			}
			return true
		})
	case <-w.ctx.Done():
		t.Error("nothing was logged")
	}
}

// What an operator, and the time, make of a wait.
func TestOtherAnswers(t *testing.T) {
	servers(t, func(w *env) {
		late := []suspend.Option{suspend.Within(20 * time.Millisecond), suspend.OnTimeout(suspend.Resume)}
		w.start(signing(), handler.Bind(greet,
			func(ctx context.Context, task *handler.Task, in string) (string, error) {
				switch in {
				case "await":
					_, err := handler.Await[string](ctx, task, "go")
					if errors.Is(err, flowfabric.ErrNoSignal) {
						return "no signal", nil
					}
					return "", err
				case "wait":
					r, err := task.Wait(ctx, "go", suspend.Signal("go"))
					return string(r.Cause) + " " + r.By + " " + r.Reason, err
				case "on": // a state machine of its own
					if r, ok := task.Resumed(); ok {
						return string(r.Cause), nil
					}
					return "", handler.On(suspend.Signal("go"), late...)
				}
				_, err := handler.Await[string](ctx, task, "go", late...)
				if errors.Is(err, flowfabric.ErrWaitTimeout) {
					return "too late", nil
				}
				return "", err
			}))
		for in, want := range map[string]string{"await": `"no signal"`, "wait": `"operator bob because"`,
			"time": `"too late"`, "on": `"timeout"`} {
			id := w.submit(in)
			if in == "await" || in == "wait" {
				w.reach(id, codes.AwaitingSignal)
				if _, err := w.engine.ResumeExecution(trail.As(w.ctx, "bob", "because"), id,
					engine.ResumeRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			w.reach(id, codes.Completed)
			if r := w.result(id, 1); r != want {
				t.Errorf("%s: result %s, want %s", in, r, want)
			}
		}
	})
}
