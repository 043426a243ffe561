package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Summary merges a patch into the attempt's summary document: one JSON object that anybody can read at any time, made
// for state of which only the latest counts (progress, counters, what is being worked on). Tails see the patch as a
// frame of type summary and stream.ModeSummary. patch is a struct or map, or JSON text as json.RawMessage or []byte;
// it must encode to an object of at most 16 levels and 64 KiB. RFC 7396 rules: a null deletes the member, an object
// is merged, anything else replaces what was there. A null is stored by the string "__ff_null__". Numbers keep
// all their digits.
//
// Like [Task.Frame] it returns when the patch is queued, in order with the frames; patches that wait together may be
// merged into one. A new attempt begins with no document; after [Delay] or a suspension the attempt's own goes on.
//
// Errors: flowfabric.ErrInvalidInput, and ErrPayloadTooLarge for a patch over 64 KiB or a document over 256 KiB,
// which leave the document and other frames as they are, and are permanent failures if the handler returns them;
// ErrLeaseLost; the context's cause.
func (t *Task) Summary(ctx context.Context, patch any) error {
	text, err := patchText(patch)
	if err != nil {
		return denied.Last(fmt.Errorf("summary: %w: %w", flowfabric.ErrInvalidInput, err))
	}
	if t.cfg.Frames == nil { // what a worker would refuse shows in a unit test, too
		_, err := stream.MergeSummary(nil, text)
		return denied.Last(err)
	}
	return t.FrameBytes(ctx, stream.Frame{Type: "summary", Mode: stream.ModeSummary, Encoding: stream.JSON,
		Payload: text})
}

func patchText(patch any) ([]byte, error) {
	switch p := patch.(type) {
	case json.RawMessage:
		return p, nil
	case []byte:
		return p, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(patch); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// Live is [Task.Frame] for text that matters only to those who listen now, a token ticker for example: it may be lost,
// and it is gone once no such frame has come for twice its ttl, 1 s to 60 s (best 5 s to 30 s; use Frame for what
// should last longer). The newest frame's ttl counts for all. It never waits: when the queue is full the oldest such
// frame that waits is dropped.
//
// Errors: as Frame, and flowfabric.ErrInvalidInput for a ttl out of bounds.
func (t *Task) Live(ctx context.Context, typ, payload string, ttl time.Duration) error {
	return t.FrameBytes(ctx, stream.Frame{Type: typ, Mode: stream.ModeBestEffort, TTL: ttl, Payload: []byte(payload)})
}
