//go:build unix

package crash_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

// zombies write under the fences of dead workers, as packets that were on their way for long would, and under
// fences that mix an old part with current ones. Nothing of that may ever be accepted.
type zombies struct {
	t       *testing.T
	engine  *engine.Engine
	mu      sync.Mutex
	graves  []flowfabric.Fence
	refused map[string]int // by code
	active  int            // executions that somebody else held while they were attacked
}

// bury takes fences that a dead worker's journal shows as claimed and not settled.
func (z *zombies) bury(journal string) {
	z.t.Helper()
	held := map[flowfabric.ExecutionID]flowfabric.Fence{}
	err := crash.ReadJournal(journal,
		func(c crash.Claimed) { held[c.Fence.Execution] = c.Fence },
		func(w crash.Written) {
			if w.Operation != "append" && w.Operation != "step" {
				delete(held, w.Execution)
			}
		}, nil)
	if err != nil {
		z.t.Fatal(err)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, f := range held {
		if len(z.graves) < 60 {
			z.graves = append(z.graves, f)
		}
	}
}

// rise attacks until ctx ends.
func (z *zombies) rise(ctx context.Context) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		z.mu.Lock()
		graves := slices.Clone(z.graves)
		z.mu.Unlock()
		for _, f := range graves {
			if ctx.Err() != nil || !z.haunt(ctx, f) {
				continue
			}
			z.mu.Lock()
			z.graves = slices.DeleteFunc(z.graves, func(x flowfabric.Fence) bool { return x == f })
			z.mu.Unlock()
		}
	}
}

// haunt attacks once the server has taken the execution from the dead session; done is true when there is nothing
// left to try.
func (z *zombies) haunt(ctx context.Context, old flowfabric.Fence) (done bool) {
	s, err := z.engine.ReadExecution(ctx, old.Execution)
	if err != nil {
		return false
	}
	taken := slices.ContainsFunc(s.AttemptLog, func(a engine.AttemptRecord) bool {
		return a.Epoch == old.Epoch && a.State == "interrupted_reclaimed"
	})
	if !taken {
		return s.State.Terminal() || s.Epoch != old.Epoch // it was settled before the worker died
	}
	switch s.Code {
	case codes.Active:
		z.active++
	case codes.WaitingReclaim:
		return false // better in a moment, when somebody holds it
	}
	z.attack(ctx, "an old fence", old, true)
	if s.Code != codes.Active {
		return true
	}
	held, err := z.engine.SessionHeld(ctx, old.Execution.Partition(), s.Session)
	if err != nil {
		return true
	}
	for _, h := range held {
		if h.Execution != old.Execution {
			continue
		}
		now := flowfabric.Fence{Execution: h.Execution, Session: s.Session, Claim: h.Claim, Epoch: s.Epoch,
			Attempt: s.Attempts}
		for part, f := range map[string]flowfabric.Fence{
			"an old session": {Execution: now.Execution, Session: old.Session, Claim: now.Claim, Epoch: now.Epoch,
				Attempt: now.Attempt},
			"an old claim": {Execution: now.Execution, Session: now.Session, Claim: now.Claim + 1, Epoch: now.Epoch,
				Attempt: now.Attempt},
			"an old epoch": {Execution: now.Execution, Session: now.Session, Claim: now.Claim, Epoch: old.Epoch,
				Attempt: now.Attempt},
			"an old attempt": {Execution: now.Execution, Session: now.Session, Claim: now.Claim, Epoch: now.Epoch,
				Attempt: old.Attempt},
		} {
			z.attack(ctx, part, f, false)
		}
	}
	return true
}

// attack makes the writes that a holder may make; every one must be answered, and refused.
func (z *zombies) attack(ctx context.Context, how string, f flowfabric.Fence, whole bool) {
	writes := map[string]func() error{
		"append": func() error {
			_, err := z.engine.AppendFrames(ctx, f, 1,
				[]stream.Frame{{Type: "token", Payload: []byte("from the grave")}})
			return err
		},
		"step": func() error {
			_, err := z.engine.RecordStep(ctx, f, "grave", []byte("x"), 0)
			return err
		},
		"complete": func() error {
			out, _, err := z.engine.CompleteExecutions(ctx, f.Execution.Partition(),
				[]engine.Completion{{Fence: f, Result: []byte(`{"Index":-1}`)}}, nil)
			if err == nil {
				err = out[0].Err
			}
			return err
		},
	}
	if whole {
		writes["fail"] = func() error {
			_, err := z.engine.FailExecution(ctx, f, engine.Failure{Category: "grave"})
			return err
		}
		writes["delay"] = func() error {
			_, err := z.engine.DelayExecution(ctx, f, time.Hour, "")
			return err
		}
		writes["release"] = func() error {
			_, err := z.engine.ReleaseExecution(ctx, f)
			return err
		}
	}
	for op, write := range writes {
		err := write()
		if err == nil {
			z.t.Errorf("%s: a %s under %s was accepted: %+v", f.Execution, op, how, f)
			continue
		}
		if answer, ok := errors.AsType[*flowfabric.Error](err); ok {
			z.refused[answer.Code]++
		}
	}
}
