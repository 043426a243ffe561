package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// asked waits until an execution waits on a key, and answers.
func (y *treasury) asked(id flowfabric.ExecutionID, key, choice string) suspend.Record {
	y.Helper()
	var r suspend.Record
	testwait.Progress(y.T, "it asks: "+key, func() (bool, any) {
		var err error
		if r, err = y.engine.ReadSuspension(y.ctx, id); err != nil {
			return false, err
		}
		open := slices.ContainsFunc(r.Waitpoints, func(w suspend.Waitpoint) bool { return w.Key == key && w.Open() })
		return open, len(r.Waitpoints)
	})
	signal := suspend.SentSignal{Name: choice, Source: "anna"}
	if _, err := y.engine.ApproveWaitpoint(y.ctx, id, key, signal); err != nil {
		y.Fatal(err)
	}
	return r
}

// A gate that asks ends the run, keeps steps, uses no retry, and lets work start though it is used up. An approval
// raises the limit once; what is refused after it is asked anew; a rejection is an error of the handler, in all later
// runs.
func TestGateAsks(t *testing.T) {
	y := newTreasury(t, tokens("b", 100, admission.HardAsk))
	var first, calls atomic.Int64
	var log strings.Builder
	y.work(nil, &log, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		if _, err := handler.Step(ctx, task, "before", func(context.Context) (int64, error) {
			return first.Add(1), nil
		}); err != nil {
			return "", err
		}
		for i := range 2 {
			_, err := handler.Step(ctx, task, fmt.Sprint("call ", i), func(ctx context.Context) (string, error) {
				r, err := task.Reserve(ctx, map[string]int64{"tokens": 70})
				if err != nil {
					return "", err
				}
				calls.Add(1)
				return "", r.Settle(ctx, map[string]int64{"tokens": 70})
			})
			if errors.Is(err, flowfabric.ErrOverBudget) && ctx.Err() == nil {
				return "enough", nil
			}
			if err != nil {
				return "", errors.New("hidden") // whatever it returns
			}
		}
		return "done", task.Spend(ctx, "tokens", 5)
	})
	id := y.submit("acme", "a", "b")
	asked := y.asked(id, "over budget: b tokens=70", "approve")
	if asked.Question == nil || asked.Question.Title != "b needs 70 more tokens for k "+id.String() {
		t.Errorf("%+v", asked.Question)
	}
	s := y.reach(id, "T1")
	if s.Attempts != 1 || s.Retries != 0 || first.Load() != 1 || calls.Load() != 2 {
		t.Errorf("%d attempts, %d retries, %d steps, %d calls", s.Attempts, s.Retries, first.Load(), calls.Load())
	}
	b := y.budget("b")
	if b.Raised["tokens"] != 70 || b.Used["tokens"] != 145 {
		t.Errorf("raised %v, used %v", b.Raised, b.Used)
	}
	if strings.Contains(log.String(), "recorded steps") || strings.Contains(log.String(), "renamed") {
		t.Error(log.String())
	}

	// 25 are left: the first call asks, is granted, and the second one asks anew, under another name
	id = y.submit("acme", "b", "b")
	y.asked(id, "over budget: b tokens=70", "alone")
	y.asked(id, "over budget: b tokens=70 #2", "reject")
	y.reach(id, "T1")
	if b = y.budget("b"); b.Raised["tokens"] != 70+45 || b.Used["tokens"] != 215 {
		t.Errorf("raised %v, used %v", b.Raised, b.Used)
	}

	// the gate is used up, and work starts all the same
	id = y.submit("acme", "c", "b")
	y.asked(id, "over budget: b tokens=70", "reject")
	y.reach(id, "T1")
	y.used("b", 215)
}

// A spend that several gates count, one of which asks, is counted once by each after the approval, and a raise whose
// answer was lost is made once.
func TestGateAsksOfASpend(t *testing.T) {
	y := newTreasury(t, tokens("a", 1000, admission.HardReject), tokens("b", 10, admission.HardAsk))
	var lost atomic.Int64
	y.work(func(s store) store { return raiseLoser{s, &lost} }, io.Discard,
		func(ctx context.Context, task *handler.Task, in string) (string, error) {
			return "", task.Spend(ctx, "tokens", 30)
		})
	id := y.submit("acme", "x", "a", "b")
	y.asked(id, "over budget: b tokens=30", "approve")
	y.reach(id, "T1")
	y.used("a", 30)
	y.used("b", 30)
	if b := y.budget("b"); b.Raised["tokens"] != 30 || lost.Load() != 1 {
		t.Errorf("raised %v, %d answers lost", b.Raised, lost.Load())
	}
}

// raiseLoser loses the answer to the first raise.
type raiseLoser struct {
	store
	lost *atomic.Int64
}

func (s raiseLoser) RaiseLimits(ctx context.Context, x engine.Raise) (map[string]int64, []engine.Waiter, error) {
	raised, wake, err := s.store.RaiseLimits(ctx, x)
	if err == nil && s.lost.CompareAndSwap(0, 1) {
		return nil, nil, flowfabric.ErrTransport
	}
	return raised, wake, err
}
