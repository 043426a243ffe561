package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// RetryIn tells what follows if the run ends with a failure: the pause before the next attempt, or false when there is
// none, so that the execution ends as failed, or as expired after a last timeout. Middleware asks with the Failure of
// a kind of fail, a handler with [Classify] of the error that it is about to return:
//
//	pause, again, err := t.RetryIn(ctx, handler.Classify(ctx, t, failure).Failure)
//
// The server decides when the outcome is settled, by the same rules; an execution that ends meanwhile, for example
// because it is cancelled or its deadline passes, is not tried again. The first question of a task reads its retry
// policy with one call, even if ctx has ended; a Permanent failure needs none. Errors: ErrTransport and other errors
// of that read. It may be called concurrently.
func (t *Task) RetryIn(ctx context.Context, f Failure) (pause time.Duration, again bool, err error) {
	if f.Permanent || t.cfg.Results == nil { // a task alone has no retries
		return 0, false, nil
	}
	t.mu.Lock()
	policy := t.policy
	t.mu.Unlock()
	if policy == nil {
		ctx, cancel := outlive(ctx, spendGrace)
		defer cancel()
		s, err := t.cfg.Results.ReadExecution(ctx, t.ID())
		if err != nil {
			return 0, false, fmt.Errorf("read the retry policy: %w", denied.Last(err))
		}
		policy = &s.Policy.Retry
		t.mu.Lock()
		t.policy = policy
		t.mu.Unlock()
	}
	pause, again = valid.RetryIn(*policy, t.ID(), t.Retries(), f.Category)
	if again && f.RetryAfter != nil {
		pause = *f.RetryAfter
	}
	return pause, again, nil
}
