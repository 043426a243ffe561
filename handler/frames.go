package handler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"unsafe"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// pageFrames is how many frames one read of [Task.Stream] asks for.
const pageFrames = 500

// Frame appends one frame of text to the attempt's stream, where tails see it within milliseconds: typ is up to
// 128 bytes, for example token, log or progress; payload is valid UTF-8 up to 64 KiB. It returns once the frame is
// queued, and waits only while the queue is full. Frames leave in call order, in batches. A frame outside a [Step],
// or in one that was not recorded, is repeated when a later run of the same handler comes by again; readers are told,
// see stream.Resumption.
//
// Errors: flowfabric.ErrInvalidInput, for the type flowfabric.child too, and ErrPayloadTooLarge, for this frame alone,
// which fail the execution for good if the handler returns them (see [Permanent]): the next attempt would be told the
// same; ErrLeaseLost when the server takes no more frames of this run; the context's cause.
func (t *Task) Frame(ctx context.Context, typ, payload string) error {
	// Append copies the payload and changes nothing in it, so the text need not be copied here.
	own := unsafe.Slice(unsafe.StringData(payload), len(payload))
	return t.FrameBytes(ctx, stream.Frame{Type: typ, Payload: own})
}

// FrameBytes appends a frame with every field the producer may choose: Type, Encoding (utf8 if empty, json or
// bytes), Correlation, Source, ProducedAt and Payload, which is copied. Otherwise it is [Task.Frame].
func (t *Task) FrameBytes(ctx context.Context, f stream.Frame) error {
	if f.Type == limits.FrameOfChild {
		return denied.Last(fmt.Errorf("frame: %w: no handler appends frames of type %s", flowfabric.ErrInvalidInput,
			f.Type))
	}
	if t.cfg.Frames == nil {
		return nil
	}
	err := t.cfg.Frames.Append(ctx, f)
	if errors.Is(err, flowfabric.ErrEncrypted) { // of a summary, by an earlier run; another worker may have the key
		return Category(causes.Decode, err)
	}
	return denied.Last(err)
}

// Flush returns once every frame appended before is stored. The end of the handler and of every step flush by
// themselves. An error has code unflushed, or wraps flowfabric.ErrLeaseLost, or the context's cause.
func (t *Task) Flush(ctx context.Context) error {
	if t.cfg.Frames == nil {
		return nil
	}
	return denied.Last(t.cfg.Frames.Flush(ctx))
}

// Stream flushes and then reads the frames of this attempt in order, from the first one retained to the last one
// appended before the loop began; a frame appended inside the loop is not seen. After [Delay] or a suspension
// the attempt goes on, so a handler finds what its earlier runs wrote. That includes frames of a step that was not
// recorded before a drain or delay, which the next run writes again: both come, and nothing here tells them apart
// (Frame.Run is 0). So take the text of what was done from the values of the steps, not from the stream; readers
// outside a handler are told which frames are repeated, see [stream.Transcript]. An error is yielded once, as the last
// item.
func (t *Task) Stream(ctx context.Context) iter.Seq2[stream.Frame, error] {
	return func(yield func(stream.Frame, error) bool) {
		if t.cfg.Reader == nil || t.cfg.Frames == nil {
			return
		}
		if err := t.Flush(ctx); err != nil {
			yield(stream.Frame{}, fmt.Errorf("read own stream: %w", err))
			return
		}
		last := t.cfg.Frames.LastAcknowledged()
		for after := (stream.Cursor{}); ; {
			page, err := t.cfg.Reader.ReadFrames(ctx, t.ID(), t.Attempt(), after, pageFrames)
			if err != nil {
				yield(stream.Frame{}, fmt.Errorf("read own stream: %w", err))
				return
			}
			for _, f := range page {
				if f.Sequence > last {
					return
				}
				if f.Type != limits.FrameOfChild && !yield(f, nil) {
					return
				}
			}
			if len(page) == 0 || page[len(page)-1].Sequence == last {
				return
			}
			after = page[len(page)-1].ID
		}
	}
}
