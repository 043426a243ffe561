package handler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/codes"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// gauge notes progress, or refuses it.
type gauge struct {
	told []string
	err  error
}

func (g *gauge) UpdateProgress(_ context.Context, fence flowfabric.Fence, percent int, message string) error {
	g.told = append(g.told, fmt.Sprint(fence.Epoch, " ", percent, " ", len(message)))
	return g.err
}

func TestProgress(t *testing.T) {
	why := errors.New("why")
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	at, over := strings.Repeat("m", limits.MaxReason), strings.Repeat("m", limits.MaxReason+1)
	for _, tc := range []struct {
		name    string
		ctx     context.Context
		percent int
		message string
		lease   tasks.Lease
		refused error
		want    error
		says    string
		told    bool
	}{
		{name: "lowest", percent: 0, told: true},
		{name: "highest, longest", percent: 100, message: at, told: true},
		{name: "keep", percent: -1, told: true},
		{name: "below", percent: -2, want: flowfabric.ErrInvalidInput, says: "progress of -2 percent, want 0..100"},
		{name: "above", percent: 101, want: flowfabric.ErrInvalidInput, says: "progress of 101 percent"},
		{name: "too long", message: over, want: flowfabric.ErrInvalidInput, says: "1025 bytes, want at most 1024"},
		{name: "cancelled", lease: fixedLease{flowfabric.ErrCancelled}, want: flowfabric.ErrCancelled},
		{name: "lease lost", lease: fixedLease{flowfabric.ErrLeaseLost}, want: flowfabric.ErrLeaseLost},
		{name: "loss known to the context alone", ctx: ended(flowfabric.ErrLeaseLost), want: flowfabric.ErrLeaseLost},
		{name: "context ended", ctx: ended(why), want: why},
		{name: "refused", refused: denied.New("fake", "stale_lease"), want: flowfabric.ErrLeaseLost, told: true},
		{name: "unanswered", refused: flowfabric.ErrTransport, want: flowfabric.ErrTransport, told: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := &gauge{err: tc.refused}
			var cause error
			task := newTask(tasks.Config{Progress: g, Lease: tc.lease, Cancel: func(err error) { cause = err },
				Claim: &engine.Claim{Fence: flowfabric.Fence{Epoch: 7}}})
			ctx := tc.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			err := task.Progress(ctx, tc.percent, tc.message)
			if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			if want := fmt.Sprint(7, " ", tc.percent, " ",
				len(tc.message)); tc.told != (len(g.told) == 1 && g.told[0] == want) {
				t.Errorf("told %q", g.told)
			}
			if lost := tc.refused != nil && errors.Is(tc.want, flowfabric.ErrLeaseLost); lost != (cause != nil) {
				t.Errorf("the context ended with %v", cause)
			}
			if cause != nil { // the task knows now, and asks no more
				if err := task.Progress(ctx, 1, ""); !errors.Is(err, flowfabric.ErrLeaseLost) || len(g.told) != 1 {
					t.Errorf("again: %v, told %q", err, g.told)
				}
			}
		})
	}
}

func TestProgressAfterTheHandlerReturned(t *testing.T) {
	g := &gauge{}
	var leaked *handler.Task
	b := handler.Bind(handler.Define[struct{}, string]("k"),
		func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			leaked = t
			return "", t.Progress(ctx, 50, "half")
		})
	if out := b.Run(context.Background(), newTask(tasks.Config{Progress: g})); out.Kind != codes.OutcomeComplete ||
		len(g.told) != 1 {
		t.Fatalf("%s, told %q", show(out), g.told)
	}
	if err := leaked.Progress(context.Background(), 60, ""); !errors.Is(err, denied.TaskConsumed) || len(g.told) != 1 {
		t.Errorf("%v, told %q", err, g.told)
	}
	if err := newTask(tasks.Config{}).Progress(context.Background(), 1, ""); err != nil {
		t.Errorf("a task that works alone: %v", err)
	}
}
