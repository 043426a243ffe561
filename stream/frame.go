package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Frame is one entry of an attempt's stream. A producer fills in Type (≤ 128 bytes), Payload (≤ 64 KiB) and, if
// wanted, Encoding, Correlation (≤ 256 bytes) and ProducedAt; ID and Sequence are given. Frames that are read may
// be shared between readers: their Payload must not be changed.
//
// Mode says what becomes of it (spec 30 §3). A durable frame, the default, is kept. The Payload of engine.ModeSummary is a
// delta for the attempt's summary document, see [MergeSummary]. A frame of engine.ModeBestEffort is for those who listen
// now; its TTL is 1 to 60 s, best 5 to 30 s. All modes of an attempt have one order.
type Frame = engine.Frame

// Resumption tells that an attempt went on in another run, which repeats what the run before it had not recorded.
type Resumption = engine.Resumption

// FramePlace is where a frame stands in the output of an attempt.
type FramePlace = engine.FramePlace

// The encodings of a payload (spec 30 §1.1). Empty means UTF8.
const (
	UTF8  = "utf8"  // valid UTF-8 text
	JSON  = "json"  // one valid JSON value
	Bytes = "bytes" // anything
)

// Appender is the one call that a [Writer] needs; *engine.Engine is one. It must not keep or change frames.
type Appender interface {
	AppendFrames(ctx context.Context, fence flowfabric.Fence, first uint64, frames []engine.Frame) (engine.Appended, error)
}

// Reader is what [Read] needs; *engine.Engine is one.
type Reader interface {
	ReadLog(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, mode engine.FrameMode, after engine.StreamID, to *engine.StreamID, limit int) ([]engine.Frame, error)
	ReadAttemptStream(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (engine.StreamMeta, error)
	ReadRuns(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after engine.StreamID, limit int) ([]engine.Resumption, error)
}

// Validate checks a frame as [Writer.Append] does, in this process and at once (spec 30 §2.2 row 0). The error
// names field and limit and wraps [flowfabric.ErrPayloadTooLarge] or [flowfabric.ErrInvalidInput].
func Validate(f Frame) error {
	bad := func(field, want string, args ...any) error {
		return fmt.Errorf("frame: %w: %s, want %s", flowfabric.ErrInvalidInput, field, fmt.Sprintf(want, args...))
	}
	switch {
	case len(f.Payload) > flowfabric.MaxFrame:
		return fmt.Errorf("frame: %w: payload has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(f.Payload), flowfabric.MaxFrame)
	case len(f.Type) > flowfabric.MaxFrameType:
		return bad(fmt.Sprintf("type has %d bytes", len(f.Type)), "at most %d", flowfabric.MaxFrameType)
	case len(f.Correlation) > flowfabric.MaxCorrelation:
		return bad(fmt.Sprintf("correlation has %d bytes", len(f.Correlation)), "at most %d", flowfabric.MaxCorrelation)
	case !f.ProducedAt.IsZero() && (f.ProducedAt.Before(time.UnixMilli(0)) || f.ProducedAt.UnixMilli() > 1<<53-1):
		return bad(fmt.Sprintf("produced at %s", f.ProducedAt), "1970 or later, below 2^53 ms")
	}
	switch {
	case f.Mode > engine.ModeBestEffort:
		return bad(fmt.Sprintf("mode is %d", f.Mode), "durable, summary or best_effort")
	case f.Mode != engine.ModeBestEffort && f.TTL != 0:
		return bad(fmt.Sprintf("ttl is %s", f.TTL), "none, as the mode is %s", f.Mode)
	case f.Mode == engine.ModeBestEffort && (f.TTL < flowfabric.MinLiveTTL || f.TTL > flowfabric.MaxLiveTTL):
		return bad(fmt.Sprintf("ttl is %s", f.TTL), "%s..%s", flowfabric.MinLiveTTL, flowfabric.MaxLiveTTL)
	case f.Mode == engine.ModeSummary && f.Encoding != "" && f.Encoding != JSON:
		return bad(fmt.Sprintf("encoding of a summary delta is %.20q", f.Encoding), "%s", JSON)
	}
	switch f.Encoding {
	case "", UTF8:
		if !utf8.Valid(f.Payload) {
			return bad("payload is not valid UTF-8", "valid text with encoding %s (or encoding %s)", UTF8, Bytes)
		}
	case JSON:
		if !json.Valid(f.Payload) {
			return bad("payload is not valid JSON", "one JSON value with encoding %s", JSON)
		}
	case Bytes:
	default:
		return bad(fmt.Sprintf("encoding is %.20q", f.Encoding), "%s, %s or %s", UTF8, JSON, Bytes)
	}
	return nil
}
