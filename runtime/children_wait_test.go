package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// slow is a kind whose handler runs until it is cancelled.
func slow(cancelled *atomic.Int32) handler.Binding {
	return handler.Bind(handler.Define[string, string]("slow", flowfabric.Retries(0)),
		func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), flowfabric.ErrCancelled) {
				cancelled.Add(1)
			}
			return "", ctx.Err()
		})
}

var slowly = handler.Define[string, string]("slow", flowfabric.Retries(0))

// Fail-fast: the parent goes on when one child has failed, and the other is cancelled, of which its handler hears.
func TestChildrenFailFast(t *testing.T) {
	servers(t, func(w *env) {
		var cancelled atomic.Int32
		w.start(runtime.Config{}, append(echoes(), slow(&cancelled),
			handler.Bind(parent, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				set := flow.Children("parts", flow.FailFast(), flow.CancelRemaining())
				good, open := flow.Child(set, "good", echo, "x"),
					flow.Child(set, "open", slowly, "", flowfabric.Priority(9))
				bad := flow.Child(set, "bad", broken, "no", flow.After(good))
				if err := task.WaitChildren(ctx, set); err != nil {
					return "", err
				}
				_, failed := handler.ChildResult(ctx, task, bad)
				_, never := handler.ChildResult(ctx, task, open)
				if !errors.Is(failed, flowfabric.ErrFailed) || !errors.Is(never, denied.NotTerminal) {
					return "", fmt.Errorf("%w, %w", failed, never)
				}
				return fmt.Sprint(handler.ChildOutcome(task, good), " ", handler.ChildOutcome(task, bad)), nil
			}))...)
		id := w.submitKind("parent", "")
		if s := w.reach(id, codes.Completed, codes.Failed); w.result(id, 1) != `"completed failed"` {
			t.Errorf("got %s, %s %s", w.result(id, 1), s.Failure.Category, s.Failure.Message)
		}
		if s := w.reach(id.Child("parts", "open"), codes.Cancelled, codes.CancelN); s.Code == codes.Cancelled {
			w.eventually("the handler hears of it", func() bool { return cancelled.Load() == 1 })
		}
	})
}

// Children, a signal, a message or an operator: whichever comes first ends the wait, and the handler knows which.
func TestChildrenOrSomethingElse(t *testing.T) {
	servers(t, func(w *env) {
		var cancelled atomic.Int32
		w.start(runtime.Config{TokenKeys: keyA, DrainTimeout: -1}, append(echoes(), slow(&cancelled),
			handler.Bind(parent, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				set := flow.Children("parts", flow.First())
				kind := map[bool]*handler.Definition[string, string]{true: echo, false: slowly}[in == "children"]
				child := flow.Child(set, "c", kind, "x")
				r, err := task.WaitChildrenOr(ctx, set, suspend.AnyOf(suspend.Signal("stop"), suspend.Mailbox("user")))
				if err != nil {
					return "", err
				}
				messages, err := task.Drain(ctx, "user")
				return fmt.Sprint(r.Cause, len(r.Signals), len(messages), handler.ChildOutcome(task, child)), err
			}))...)
		for in, want := range map[string]string{"children": `"children0 0completed"`, "signal": `"signal1 0"`,
			"message": `"message0 1"`, "operator": `"operator0 0"`} {
			id := w.submitKind("parent", in)
			if in != "children" {
				w.reach(id, codes.AwaitingChildren)
			}
			switch in {
			case "signal":
				w.signalled(id, "stop", `"x"`, "resume_condition_satisfied")
			case "message":
				if _, err := w.engine.SendMessage(w.ctx, id,
					engine.Message{Mailbox: "user", Encoding: "utf8", Payload: []byte("stop")}); err != nil {
					t.Fatal(err)
				}
			case "operator":
				if _, err := w.engine.ResumeExecution(trail.As(w.ctx, "op", ""), id,
					engine.ResumeRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			if s := w.reach(id, codes.Completed, codes.Failed); w.result(id, 1) != want {
				t.Errorf("%s: got %s, want %s, %s %s", in, w.result(id, 1), want, s.Failure.Category, s.Failure.Message)
			}
		}
	})
}

// A wait for children alone that an operator ends has no answer, as one for a signal.
func TestChildrenAndAnOperator(t *testing.T) {
	servers(t, func(w *env) {
		var cancelled atomic.Int32
		w.start(signing(), slow(&cancelled),
			handler.Bind(parent, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				set := flow.Children("parts", flow.CancelRemaining())
				child := flow.Child(set, "c", slowly, "")
				err := task.WaitChildren(ctx, set, suspend.ResumeAfter(0))
				if !errors.Is(err, flowfabric.ErrNoSignal) {
					return "", err
				}
				return "told " + string(handler.ChildOutcome(task, child)), nil
			}))
		id := w.submitKind("parent", "")
		w.reach(id, codes.AwaitingChildren)
		if _, err := w.engine.ResumeExecution(trail.As(w.ctx, "op", ""), id, engine.ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		if s := w.reach(id, codes.Completed, codes.Failed); w.result(id, 1) != `"told "` {
			t.Errorf("got %s, %s %s", w.result(id, 1), s.Failure.Category, s.Failure.Message)
		}
		w.reach(id.Child("parts", "c"), codes.Cancelled, codes.CancelN)
	})
}
