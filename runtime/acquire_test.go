package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// twoCalls is a gate that lets two calls be made at once. Whoever does not get one at once gives its slot up.
func twoCalls(name string) admission.Gate {
	return admission.Gate{Name: name,
		Service: &admission.Service{Calls: 2, Patience: flowfabric.Millis(time.Millisecond)}}
}

// Executions that wait for their turn give their slots up, use no retry, and go on behind their recorded steps.
func TestAcquireGivesItsSlotUp(t *testing.T) {
	y := newTreasury(t, twoCalls("openai/gpt-5"))
	var calls, making, most, prepared, runs atomic.Int64
	y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		runs.Add(1)
		if _, err := handler.Step(ctx, task, "prepare", func(context.Context) (int64, error) {
			return prepared.Add(1), nil
		}); err != nil {
			return "", err
		}
		return handler.Step(ctx, task, "model", func(ctx context.Context) (string, error) {
			p, err := task.Acquire(ctx, "openai/gpt-5", nil)
			if err != nil {
				return "", err
			}
			calls.Add(1)
			for now := making.Add(1); now > most.Load(); {
				most.Store(now)
			}
			time.Sleep(20 * time.Millisecond)
			making.Add(-1)
			return "done", p.Settle(ctx, nil)
		})
	})
	const all = 12
	var ids []flowfabric.ExecutionID
	for i := range all {
		ids = append(ids, y.submit("acme", fmt.Sprint(i)))
	}
	for _, id := range ids {
		if s := y.reach(id, "T1"); s.Retries != 0 || s.Attempts != 1 {
			t.Errorf("%d retries, %d attempts", s.Retries, s.Attempts)
		}
	}
	if calls.Load() != all || prepared.Load() != all || most.Load() > 2 || runs.Load() <= all {
		t.Errorf("%d calls, at most %d at once, prepared %d times in %d runs", calls.Load(), most.Load(),
			prepared.Load(), runs.Load())
	}
	if s := y.budget("openai/gpt-5").State; s.UnderWay != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// What the handler does not say of a call counts as estimated; without a gate nothing is called.
func TestAcquireForgottenAndUnmade(t *testing.T) {
	y := newTreasury(t, twoCalls("api"))
	y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		_, err := task.Acquire(ctx, in, map[string]int64{"tokens": 1})
		return "done", err
	})
	y.reach(y.submit("acme", "api"), "T1")
	if s := y.budget("api").State; s.UnderWay != 0 {
		t.Errorf("%+v", s)
	}
	s := y.reach(y.submit("acme", "nobody/made-it"), "T2")
	if !strings.Contains(s.Failure.Message, "flowfabric gate create nobody/made-it") {
		t.Errorf("failed with %s", s.Failure.Message)
	}
}

// Alone, as in a unit test of a handler, every call may be made; what cannot be asked for is refused before any call.
func TestAcquireAlone(t *testing.T) {
	task, _ := handler.NewTask(tasks.Config{})
	if _, err := task.Acquire(t.Context(), "a b", nil); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	p, err := task.Acquire(t.Context(), "api", map[string]int64{"tokens": -1})
	if !errors.Is(err, flowfabric.ErrInvalidInput) || p != nil {
		t.Error(p, err)
	}
}
