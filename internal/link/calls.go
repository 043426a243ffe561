package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Recheck is how often a waiter reads although no event came: the net under a lost event.
const Recheck = 5 * time.Second

// Jitter is d, give or take a tenth.
func Jitter(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5) }

// Repeatable tells errors after which the same call may be made again.
func Repeatable(err error) bool {
	return errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, flowfabric.ErrPartitionFrozen)
}

// Persist repeats a call while its outcome is unknown or the partition is frozen, for at most most. If a try was sent
// and not answered, and the server then refuses a repeat before the function runs, the outcome is still unknown:
// flowfabric.ErrTransport.
func Persist[T any](ctx context.Context, most time.Duration, call func() (T, error)) (T, error) {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(most))
	sent := false
	return backoff.RetryWithData(func() (T, error) {
		out, err := call()
		if err == nil {
			return out, nil
		}
		if sent {
			err = engine.Unanswered(err)
		}
		sent = sent || errors.Is(err, flowfabric.ErrTransport) && !engine.NotSent(err)
		if !Repeatable(err) {
			err = backoff.Permanent(err)
		}
		return out, err
	}, backoff.WithContext(pauses, ctx))
}

// Final tells errors that waiting cannot repair. A read that failed because ctx ended is left to the wait itself.
func Final(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !flowfabric.Retryable(err)
}

// Ended is the error of a context that has ended, with its cause when that says more.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// NotSent is the error of a submit that its caller's context ended before anything was sent.
func NotSent(ctx context.Context) error {
	return fmt.Errorf("submit: %w (nothing was sent)", Ended(ctx))
}
