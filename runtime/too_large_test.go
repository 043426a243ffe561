package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What is too large or not well formed would be so at every attempt: a handler that returns the refusal fails at once
// and for good, with a reason that names what it was and the limit.
func TestWhatIsRefusedForItselfIsNotRetried(t *testing.T) {
	step := func(name string, value any) func(context.Context, *handler.Task) error {
		return func(ctx context.Context, task *handler.Task) error {
			_, err := handler.Step(ctx, task, name, func(context.Context) (any, error) { return value, nil })
			return err
		}
	}
	for name, x := range map[string]struct {
		do   func(context.Context, *handler.Task) error
		says string
	}{
		"frame": {func(ctx context.Context, task *handler.Task) error {
			return task.Frame(ctx, "token", strings.Repeat("x", limits.MaxFrame+1))
		}, "payload has 65537 bytes, want at most 65536"},
		"best-effort frame": {func(ctx context.Context, task *handler.Task) error {
			return task.Live(ctx, "token", strings.Repeat("x", limits.MaxFrame+1), time.Minute)
		}, "payload has 65537 bytes"},
		"type of a frame": {func(ctx context.Context, task *handler.Task) error {
			return task.Frame(ctx, strings.Repeat("t", 129), "x")
		}, "invalid_input"},
		"patch": {func(ctx context.Context, task *handler.Task) error {
			return task.Summary(ctx, map[string]any{"x": strings.Repeat("x", limits.MaxFrame)})
		}, "payload_too_large"},
		"no object": {func(ctx context.Context, task *handler.Task) error { return task.Summary(ctx, 7) },
			"invalid_input"},
		"summary": {func(ctx context.Context, task *handler.Task) error {
			var failed error
			for i := range 6 {
				failed = errors.Join(failed,
					task.Summary(ctx, map[string]any{fmt.Sprint(i): strings.Repeat("x", 60<<10)}), task.Flush(ctx))
			}
			return failed
		}, "summary_too_large"},
		"step":             {step("big", strings.Repeat("x", limits.MaxStepBytes)), "want at most 262144"},
		"unencodable step": {step("channel", make(chan int)), "encode value"},
		"name of a step":   {step("é", 1), "want printable ASCII"},
		"progress": {func(ctx context.Context, task *handler.Task) error {
			return task.Progress(ctx, 1, strings.Repeat("x", limits.MaxReason+1))
		}, "1025 bytes, want at most 1024"},
		"percent": {func(ctx context.Context, task *handler.Task) error { return task.Progress(ctx, 101, "") },
			"want 0..100"},
		"condition": {func(ctx context.Context, task *handler.Task) error {
			_, err := task.Wait(ctx, "w", suspend.Count(0, suspend.SignalCount))
			return err
		}, ""},
		"title of a question": {func(ctx context.Context, task *handler.Task) error {
			_, err := task.Ask(ctx, "w", suspend.Question{Title: "a\nb"})
			return err
		}, "control character 0x0a"},
		"no title": {func(ctx context.Context, task *handler.Task) error {
			_, err := task.Ask(ctx, "w", suspend.Question{})
			return err
		}, "title of the question is empty"},
		"name of a wait": {func(ctx context.Context, task *handler.Task) error {
			_, err := handler.Await[string](ctx, task, "é")
			return err
		}, "want printable ASCII"},
		"end of a wait": {func(ctx context.Context, task *handler.Task) error {
			_, err := handler.Await[string](ctx, task, "w", suspend.Within(-time.Second))
			return err
		}, "want 1ms to ten years"},
		"name of a mailbox": {func(ctx context.Context, task *handler.Task) error {
			_, err := handler.Receive[string](ctx, task, "é")
			return err
		}, "mailbox"},
		"mailbox to drain": {func(ctx context.Context, task *handler.Task) error {
			_, err := task.Drain(ctx, "")
			return err
		}, "mailbox"},
		"life of a waitpoint": {func(ctx context.Context, task *handler.Task) error {
			_, err := task.Pending(ctx, "w", time.Nanosecond)
			return err
		}, "life until the wait begins"},
		"waitpoint to close": {func(ctx context.Context, task *handler.Task) error {
			return task.CloseWaitpoint(ctx, "w")
		}, "invalid_input"},
		"wait for children": {func(ctx context.Context, task *handler.Task) error {
			set := flow.Children("parts")
			flow.Child(set, "c", greet, "x")
			return task.WaitChildren(ctx, set, suspend.Within(-time.Second))
		}, "want 1ms to ten years"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.start(runtime.Config{},
				handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
					if err := x.do(ctx, task); err != nil {
						return "", fmt.Errorf("handler: %w", err)
					}
					return "taken", nil
				}))
			id := w.submit("x", retries(5))
			got := w.reach(id, codes.Failed, codes.Completed)
			if got.State.Public != flowfabric.Failed || got.Attempts != 1 ||
				!strings.Contains(got.Failure.Message, x.says) {
				t.Errorf("%s after %d attempts: %s", got.State.Public, got.Attempts, got.Failure.Message)
			}
		})
	}
}
