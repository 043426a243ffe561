package client

import (
	"cmp"
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// pageReader is the part of the engine that reads pages.
type pageReader interface {
	ReadLog(ctx context.Context, q engine.LogRange) ([]stream.Frame, error)
	ReadSignals(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
		offset int) ([]suspend.StoredSignal, int, error)
}

// Frames reads a page of the durable frames of an attempt, 1 for the first, in order, without waiting for more. The
// zero range begins with the first frame; the next page is After the ID of the last frame of the page before. A page
// is cut at 4 MiB of payload; an empty one says that there is no more now. [Execution.Tail] follows them live,
// and tells of attempts and children. A frame of type flowfabric.child is no output: it announces a child that tails
// show, see flow.Streamed. [Execution.SummaryOf] tells how many bytes the stream of an attempt has.
//
// Errors: flowfabric.ErrInvalidInput for limit, attempt and id; ErrNotFound and ErrResultPurged when there is no such
// execution any more.
func (e *Execution[Out]) Frames(ctx context.Context, attempt uint32,
	in stream.Range) ([]stream.Frame, error) {
	c, id := e.client, e.id
	if err := c.admit("frames of", id); err != nil {
		return nil, err
	}
	limit := cmp.Or(in.Limit, 1000)
	if limit < 1 || limit > limits.MaxReadFrames {
		return nil, fmt.Errorf("frames of %s: %w: limit %d, want 1..%d", id, flowfabric.ErrInvalidInput, limit,
			limits.MaxReadFrames)
	}
	q := engine.LogRange{Execution: id, Attempt: attempt, Mode: stream.ModeDurable, After: in.After, Limit: limit}
	if in.Until != (stream.Cursor{}) {
		q.To = &in.Until
	}
	frames, err := c.store.ReadLog(ctx, q)
	if err == nil && len(frames) == 0 { // none yet, or there is no such execution, or a fork refers to others' frames
		var meta engine.StreamMeta
		meta, err = c.store.ReadAttemptStream(ctx, id, attempt)
		if err == nil && !meta.Owner.IsZero() && in.After.Compare(meta.LastID) < 0 {
			if q.Execution = meta.Owner; q.To == nil || q.To.Compare(meta.LastID) > 0 {
				q.To = &meta.LastID
			}
			frames, err = c.store.ReadLog(ctx, q)
		}
	}
	if err != nil {
		return nil, link.Operated("frames of", id, err)
	}
	return frames, nil
}

// SignalLog reads a page of up to 100 signals that a waitpoint accepted, oldest first, from offset on, and how many
// are kept in all: the newest 1,000. A payload is there only while the signal is buffered. The waitpoints of an
// execution are in [Execution.Suspension].
//
// Errors: flowfabric.ErrNotFound for execution and waitpoint, ErrResultPurged; ErrInvalidInput for a negative offset.
func (e *Execution[Out]) SignalLog(ctx context.Context, waitpoint flowfabric.UUID,
	offset int) (page []suspend.StoredSignal, total int, err error) {
	c, id := e.client, e.id
	if err := c.admit("signals of", id); err != nil {
		return nil, 0, err
	}
	if offset < 0 {
		return nil, 0, fmt.Errorf("signals of %s: %w: offset %d, want 0 or more", id, flowfabric.ErrInvalidInput,
			offset)
	}
	if page, total, err = c.store.ReadSignals(ctx, id, waitpoint, offset); err != nil {
		return nil, 0, link.Operated("signals of", id, err)
	}
	return page, total, nil
}
