package handler_test

import (
	"context"
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// policies answers reads of an execution. Nothing else of a ResultReader is asked.
type policies struct {
	tasks.ResultReader
	retry flowfabric.RetryPolicy
	err   error
	reads int
}

func (p *policies) ReadExecution(ctx context.Context, _ flowfabric.ExecutionID) (engine.Snapshot, error) {
	p.reads++
	return engine.Snapshot{Snapshot: flowfabric.Snapshot{Policy: flowfabric.Policy{Retry: p.retry}}},
		errors.Join(p.err, ctx.Err())
}

// A failing handler learns what comes next. The suite of package conformance compares this with what the server does.
func TestRetryIn(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		failure error
		retries int
		pause   time.Duration
		again   bool
		reads   int
	}{
		"a first failure": {boom, 0, time.Second, true, 1},
		"a third failure": {boom, 2, 4 * time.Second, true, 1},
		"the longest":     {boom, 3, 5 * time.Second, true, 1},
		"the last":        {boom, 4, 0, false, 1},
		"permanent":       {handler.Permanent(boom), 0, 0, false, 0},
		"a pause":         {handler.RetryAfter(time.Minute, boom), 0, time.Minute, true, 1},
		"a last pause":    {handler.RetryAfter(time.Minute, boom), 4, 0, false, 1},
		"not listed":      {handler.Category("net", boom), 0, 0, false, 1},
	} {
		p := &policies{retry: flowfabric.RetryPolicy{MaxRetries: 4, Initial: time.Second, Max: 5 * time.Second,
			Multiplier: 2, Categories: []flowfabric.Category{"handler_error"}}}
		task := newTask(tasks.Config{Claim: &engine.Claim{Retries: tc.retries}, Results: p})
		f := handler.Classify(t.Context(), task, tc.failure).Failure
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // an attempt whose time is over asks, too
		for range 2 {
			if pause, again, err := task.RetryIn(ctx, f); pause != tc.pause || again != tc.again || err != nil {
				t.Errorf("%s: %s, %t, %v", name, pause, again, err)
			}
		}
		if p.reads != tc.reads {
			t.Errorf("%s: %d reads, want %d", name, p.reads, tc.reads)
		}
	}
	away := newTask(tasks.Config{Results: &policies{err: flowfabric.ErrTransport}})
	if _, again, err := away.RetryIn(t.Context(), handler.Failure{}); again || !errors.Is(err,
		flowfabric.ErrTransport) {
		t.Error(again, err)
	}
	if pause, again, err := newTask(tasks.Config{}).RetryIn(t.Context(), handler.Failure{}); pause != 0 || again ||
		err != nil {
		t.Errorf("alone: %s, %t, %v", pause, again, err)
	}
}
