package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// Persist makes a fenced call until it is answered: nothing else than an answer, the loss of the hold, or the
// end of ctx stops it. The answer may be that an earlier, unanswered try had taken effect.
func (h *Held) Persist(ctx context.Context, call func(context.Context) error) error {
	return h.Read(ctx, func(ctx context.Context) error {
		err := call(ctx)
		if err != nil {
			h.Refused(err)
		}
		return err
	})
}

// Read is [Held.Persist] for a call whose refusal says nothing about the hold, such as a read of another execution.
func (h *Held) Read(ctx context.Context, call func(context.Context) error) error {
	var pause *backoff.ExponentialBackOff // the usual case pays for none
	for {
		if err := h.Check(); err != nil {
			return err
		}
		err := call(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if !flowfabric.Retryable(err) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if pause == nil {
			pause = backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
				backoff.WithMaxInterval(2*time.Second), backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
		}
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// NotOurs reports an answer that says the execution is no longer held under this fence.
func NotOurs(err error) bool {
	for _, gone := range []error{
		denied.NotActive, denied.StaleLease, denied.LeaseExpired, denied.LeaseRevoked,
		denied.NoExecution, denied.Terminal, denied.StaleAppend, denied.StreamClosed,
	} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
