package framelog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Appender is the one call that a [Writer] needs; *engine.Engine is one. It must not keep or change frames.
type Appender interface {
	AppendFrames(ctx context.Context, fence flowfabric.Fence, first uint64,
		frames []stream.Frame) (engine.Appended, error)
}

// Reader is what [Read] needs; *engine.Engine is one.
type Reader interface {
	ReadLog(ctx context.Context, q engine.LogRange) ([]stream.Frame, error)
	ReadAttemptStream(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (engine.StreamMeta, error)
	ReadRuns(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after stream.Cursor,
		limit int) ([]stream.Resumption, error)
}

// Validate checks a frame as [Writer.Append] does, in this process and at once. The error
// names field and limit and wraps [flowfabric.ErrPayloadTooLarge] or [flowfabric.ErrInvalidInput].
func Validate(f stream.Frame) error {
	bad := func(field, want string, args ...any) error {
		return fmt.Errorf("frame: %w: %s, want %s", flowfabric.ErrInvalidInput, field, fmt.Sprintf(want, args...))
	}
	switch {
	case len(f.Payload) > limits.MaxFrame:
		return fmt.Errorf("frame: %w: payload has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge,
			len(f.Payload), limits.MaxFrame)
	case len(f.Type) > limits.MaxFrameType:
		return bad(fmt.Sprintf("type has %d bytes", len(f.Type)), "at most %d", limits.MaxFrameType)
	case len(f.Correlation) > limits.MaxCorrelation:
		return bad(fmt.Sprintf("correlation has %d bytes", len(f.Correlation)), "at most %d", limits.MaxCorrelation)
	case len(f.Source) > limits.MaxFrameSource:
		return bad(fmt.Sprintf("source has %d bytes", len(f.Source)), "at most %d", limits.MaxFrameSource)
	case strings.Contains(f.Correlation+f.Source, engine.UnitSeparator):
		return bad("correlation or source has a unit separator", "text without U+001F")
	case !f.ProducedAt.IsZero() && (f.ProducedAt.Before(time.UnixMilli(0)) || f.ProducedAt.UnixMilli() > 1<<53-1):
		return bad(fmt.Sprintf("produced at %s", f.ProducedAt), "1970 or later, below 2^53 ms")
	}
	switch {
	case f.Mode > stream.ModeBestEffort:
		return bad(fmt.Sprintf("mode is %d", f.Mode), "durable, summary or best_effort")
	case f.Mode != stream.ModeBestEffort && f.TTL != 0:
		return bad(fmt.Sprintf("ttl is %s", f.TTL), "none, as the mode is %s", f.Mode)
	case f.Mode == stream.ModeBestEffort && (f.TTL < limits.MinLiveTTL || f.TTL > limits.MaxLiveTTL):
		return bad(fmt.Sprintf("ttl is %s", f.TTL), "%s..%s", limits.MinLiveTTL, limits.MaxLiveTTL)
	case f.Mode == stream.ModeSummary && f.Encoding != "" && f.Encoding != stream.JSON:
		return bad(fmt.Sprintf("encoding of a summary delta is %.20q", f.Encoding), "%s", stream.JSON)
	}
	switch f.Encoding {
	case "", stream.UTF8:
		if !utf8.Valid(f.Payload) {
			return bad("payload is not valid UTF-8", "valid text with encoding %s (or encoding %s)", stream.UTF8,
				stream.Bytes)
		}
	case stream.JSON:
		if !json.Valid(f.Payload) {
			return bad("payload is not valid JSON", "one JSON value with encoding %s", stream.JSON)
		}
	case stream.Bytes:
	default:
		return bad(fmt.Sprintf("encoding is %.20q", f.Encoding), "%s, %s or %s", stream.UTF8, stream.JSON, stream.Bytes)
	}
	return nil
}
