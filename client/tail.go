package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Tail yields an execution's frames as they are appended, beginning with those that exist, and ends after the
// event that says the execution has ended, with an error (the cause of ctx, [ErrClosed], flowfabric.ErrNotFound),
// or when the loop is left. Tails of one execution share a subscription. The events of children that the handler shows
// come among its own, see package stream, "Following".
func (e *Execution[Out]) Tail(ctx context.Context, opts ...TailOption) iter.Seq2[stream.TailEvent,
	error] {
	c, id := e.client, e.id
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

// TailOption says what a tail delivers; without any it follows all attempts from the first frame to the end. Options
// that exclude each other make the tail end with flowfabric.ErrInvalidInput.
type TailOption struct{ set func(*framelog.TailOptions) }

// OnlyAttempt follows one attempt, 1 for the first, which may lie in the future, and ends with it.
func OnlyAttempt(number uint32) TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.Attempt = &number }}
}

// From goes on behind an event: the position is its TailEvent.Position, of this tail or another one of the same
// execution. What follows is what that tail would have delivered next, no more and no less, but for three things that
// do not last: frames that were not meant to, a TailRetry of an attempt that has begun since, and a TailSuspended of
// what has been answered since. The zero position is the beginning. Behind the TailEnd the tail ends at once, unless
// the execution was replayed since. A child that has ended is not followed again when it is replayed.
func From(position stream.Position) TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.From = position }}
}

// FromNow skips the frames that are stored when the tail begins, and children that were announced before. Excludes
// [From].
func FromNow() TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.FromNow = true }}
}

// WithoutBestEffort leaves out the frames that were not meant to last; durable frames and summary deltas remain.
func WithoutBestEffort() TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.WithoutBestEffort = true }}
}

// WithoutChildren leaves out the events of children that the handler shows (flow.Streamed). A position behind such an
// event is then one of the execution itself.
func WithoutChildren() TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.WithoutChildren = true }}
}

// Stored ends the tail, without an error, where it would wait for something to happen. What the execution waits for
// at that moment, stream.TailSuspended or stream.TailRetry, is still told.
func Stored() TailOption {
	return TailOption{func(o *framelog.TailOptions) { o.Stored = true }}
}

// Transcript reads what an execution has put out as it stands now, over all runs and attempts and without what was
// repeated. To follow on from there, tail with [From] of its Position and add the events to it. It holds all frames
// in memory, those of children that the handler shows too.
//
// Errors: flowfabric.ErrNotFound; ErrResultPurged; the context's cause; [ErrClosed].
func (e *Execution[Out]) Transcript(ctx context.Context) (*stream.Transcript, error) {
	t := &stream.Transcript{}
	for event, err := range e.Tail(ctx, Stored()) {
		if err != nil {
			return nil, err
		}
		t.Add(event)
	}
	return t, nil
}
