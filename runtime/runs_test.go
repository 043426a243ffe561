package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// told is what a tail of an execution heard: tokens, and in brackets what it said of them.
type told struct {
	*env
	id    flowfabric.ExecutionID
	tail  conc.WaitGroup
	words []string
	text  []stream.Frame // what a reader shows who drops what is repeated
	seen  atomic.Int64   // tokens
}

// follow tails an execution until it ends.
func (w *env) follow(id flowfabric.ExecutionID) *told {
	w.Helper()
	hub := framelog.NewHub(w.engine)
	w.Cleanup(hub.Close)
	x := &told{env: w, id: id}
	drop := func(attempt uint32, recorded uint64, before int) {
		kept := x.text[:before]
		for _, f := range x.text[before:] {
			if f.Sequence <= recorded {
				kept = append(kept, f)
			}
		}
		x.text = kept
	}
	x.tail.Go(func() {
		before := 0 // frames of earlier attempts
		for e, err := range hub.Tail(w.ctx, id, framelog.TailOptions{}) {
			switch {
			case err != nil:
				w.Error(err)
				return
			case e.Kind == stream.TailAttempt:
				before = len(x.text)
			case e.Kind == stream.TailFrame:
				x.words, x.text = append(x.words, string(e.Frame.Payload)), append(x.text, e.Frame)
				x.seen.Add(1)
			case e.Kind == stream.TailResumed:
				x.words = append(x.words, fmt.Sprintf("[%s>%d]", e.Resumed.Reason, e.Resumed.Recorded))
				drop(e.Attempt, e.Resumed.Recorded, before)
			case e.Kind == stream.TailAttemptEnd && e.Reason != "attempt_success":
				x.words = append(x.words, fmt.Sprintf("[%s>%d]", e.Reason, e.Recorded))
				drop(e.Attempt, e.Recorded, before)
			}
		}
	})
	return x
}

// want fails unless the tail heard this, and a second one, which reads what is stored, hears the same; clean is the
// text without what was repeated.
func (x *told) want(sequence, clean string) {
	x.Helper()
	x.reach(x.id, codes.Completed)
	x.tail.Wait()
	again := x.follow(x.id)
	again.tail.Wait()
	for name, tail := range map[string]*told{"live": x, "stored": again} {
		var text []string
		for _, f := range tail.text {
			text = append(text, string(f.Payload))
		}
		if got := strings.Join(tail.words, " "); got != sequence {
			x.Errorf("%s: the tail heard %s\nwant              %s", name, got, sequence)
		}
		if got := strings.Join(text, " "); got != clean {
			x.Errorf("%s: without what is repeated %s\nwant %s", name, got, clean)
		}
	}
}

// speak appends tokens in a step; stop, if given, runs before the last one.
func speak(ctx context.Context, t *handler.Task, step, tokens string, stop func(context.Context) error) error {
	_, err := handler.Step(ctx, t, step, func(ctx context.Context) (string, error) {
		all := strings.Fields(tokens)
		for i, token := range all {
			if i == len(all)-1 && stop != nil {
				if err := t.Flush(ctx); err != nil {
					return "", err
				}
				if err := stop(ctx); err != nil {
					return "", err
				}
			}
			if err := t.Frame(ctx, "token", token); err != nil {
				return "", err
			}
		}
		return step, nil
	})
	return err
}

// A worker that drains at once hands its execution back in the middle of a step. Its successor says the step's tokens
// again.
func TestDrainTellsWhichTokensAreRepeated(t *testing.T) {
	servers(t, func(w *env) {
		stopped := make(chan struct{})
		var runs atomic.Int64
		bind := handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if err := speak(ctx, task, "one", "a b", nil); err != nil {
				return "", err
			}
			first := runs.Add(1) == 1
			return "", speak(ctx, task, "two", "c d e", func(ctx context.Context) error {
				if !first {
					return nil
				}
				close(stopped)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		worker := w.start(runtime.Config{DrainTimeout: -1}, bind)
		id := w.submit("x")
		tail := w.follow(id)
		<-stopped
		w.eventually("four tokens are heard", func() bool { return tail.seen.Load() == 4 })
		if err := worker.stop(); err != nil {
			t.Error(err)
		}
		w.start(runtime.Config{}, bind)
		tail.want("a b c d [released>2] c d e", "a b c d e")
	})
}

// A delay inside a step ends the run: the step is not recorded.
func TestDelayTellsWhichTokensAreRepeated(t *testing.T) {
	servers(t, func(w *env) {
		var runs atomic.Int64
		w.start(runtime.Config{},
			handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				run := runs.Add(1)
				if err := speak(ctx, task, "one", "a b", nil); err != nil {
					return "", err
				}
				if err := speak(ctx, task, "two", "c d e", func(context.Context) error {
					if run == 1 {
						return handler.Delay(time.Millisecond)
					}
					return nil
				}); err != nil {
					return "", err
				}
				return "", speak(ctx, task, "three", "f g", func(context.Context) error {
					if run == 2 {
						return handler.Delay(time.Millisecond)
					}
					return nil
				})
			}))
		tail := w.follow(w.submit("x"))
		tail.want("a b c d [delayed>2] c d e f [delayed>7] f g", "a b c d e f g")
	})
}

// What a handler says before it waits it says again after it, whether it was suspended or its answer was there already.
func TestSuspensionTellsWhichTokensAreRepeated(t *testing.T) {
	servers(t, func(w *env) {
		w.start(signing(), handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			token, err := task.Pending(ctx, "early", time.Hour)
			if err != nil {
				return "", err
			}
			if err := speak(ctx, task, "one", "a b", nil); err != nil {
				return "", err
			}
			if _, err := handler.Step(ctx, task, "hand out", func(context.Context) (string, error) {
				d, err := w.present(token, `"x"`)
				return string(d.Effect), err
			}); err != nil {
				return "", err
			}
			if err := task.Frame(ctx, "token", "asks"); err != nil {
				return "", err
			}
			if _, err := handler.Await[string](ctx, task, "early"); err != nil {
				return "", err
			}
			if err := speak(ctx, task, "two", "c", nil); err != nil {
				return "", err
			}
			if err := task.Frame(ctx, "token", "waits"); err != nil {
				return "", err
			}
			if _, err := handler.Await[string](ctx, task, "late"); err != nil {
				return "", err
			}
			return "", speak(ctx, task, "three", "d e", nil)
		}))
		id := w.submit("x")
		tail := w.follow(id)
		w.eventually("it waits", func() bool { return w.suspension(id).Name == "late" })
		w.signalled(id, "late", `"x"`, waitwords.EffectSatisfied)
		// asks and waits are said outside of steps, in every run: before a recorded step they cannot be told from its
		// tokens.
		tail.want("a b asks [suspended>2] asks c waits [suspended>5] asks waits d e", "a b asks c asks waits d e")
	})
}

// A worker that dies in the middle of a step leaves it to another attempt: the end of the first one says what is
// repeated.
func TestCrashTellsWhichTokensAreRepeated(t *testing.T) {
	servers(t, func(w *env) {
		said := make(chan struct{})
		bind := handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if err := speak(ctx, task, "one", "a b", nil); err != nil {
				return "", err
			}
			return "", speak(ctx, task, "two", "c d e", func(ctx context.Context) error {
				if task.Attempt() > 1 {
					return nil
				}
				close(said)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		w.start(runtime.Config{Instance: "crashes"}, bind)
		id := w.submit("x")
		tail := w.follow(id)
		<-said
		w.eventually("four tokens are heard", func() bool { return tail.seen.Load() == 4 })
		w.start(runtime.Config{}, bind)
		// Its session ends as that of a process that was killed, only sooner.
		if _, err := w.engine.MarkSessionDead(trail.As(w.ctx, "", "killed"), id.Partition(),
			w.snapshot(id).Session); err != nil {
			t.Fatal(err)
		}
		tail.want("a b c d [lease_expired>2] c d e", "a b c d e")
	})
}
