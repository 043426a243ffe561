package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Tail yields an execution's frames as they are appended, beginning with those that exist, and ends after the
// event that says the execution has ended, with an error (the cause of ctx, [ErrClosed], flowfabric.ErrNotFound),
// or when the loop is left. Tails of one execution share a subscription.
func (c *Client) Tail(ctx context.Context, id flowfabric.ExecutionID, opts ...TailOption) iter.Seq2[stream.TailEvent, error] {
	var o framelog.TailOptions
	for _, option := range opts {
		option.set(&o)
	}
	return func(yield func(stream.TailEvent, error) bool) {
		if err := c.admit("tail", id); err != nil {
			yield(stream.TailEvent{}, err)
			return
		}
		for event, err := range c.tails.Tail(ctx, id, o) {
			if errors.Is(err, framelog.ErrHubClosed) {
				err = fmt.Errorf("tail %s: %w", id, ErrClosed)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// Tail follows the frames live, see [Client.Tail].
func (e *Execution[Out]) Tail(ctx context.Context, opts ...TailOption) iter.Seq2[stream.TailEvent, error] {
	return e.client.Tail(ctx, e.id, opts...)
}

// TailOption says what a tail delivers; without any it follows all attempts from the first frame to the end. Options that exclude each
// other make the tail end with flowfabric.ErrInvalidInput.
type TailOption struct{ set func(*framelog.TailOptions) }

// OnlyAttempt follows one attempt (zero based), which may lie in the future, and ends with it. Excludes [FromAttempt].
func OnlyAttempt(index uint32) TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.Attempt = &index }}
}

// FromAttempt follows all attempts from this one on (zero based). Together with [AfterFrame] or [After] it resumes a tail: the
// attempt and the frame of the last event seen.
func FromAttempt(index uint32) TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.From = index }}
}

// After skips the frames up to and including the cursor in the first attempt that is delivered. The counts of a stream.TailGap may be
// too large then, by at most the frames that were delivered before; with [AfterFrame] they are exact.
func After(cursor stream.Cursor) TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.After = cursor }}
}

// AfterFrame is [After] with the frame itself, for those who have it at hand. Excludes After.
func AfterFrame(frame stream.Frame) TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.AfterFrame = &frame }}
}

// FromNow skips the frames that are stored when the tail begins. Excludes [FromAttempt], [After] and [AfterFrame].
func FromNow() TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.FromNow = true }}
}

// WithoutBestEffort leaves out the frames that were not meant to last; durable frames and summary deltas remain.
func WithoutBestEffort() TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.WithoutBestEffort = true }}
}
