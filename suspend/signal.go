package suspend

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Deliverer brings a signal to a waitpoint for whoever holds its token, of which digest is [Token.Digest]; *client.Client and
// *engine.Engine are two.
type Deliverer interface {
	DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID, digest string, s engine.NewSignal) (engine.Delivered, error)
}

// CheckSignal refuses what a server refuses before it looks at tokens: flowfabric.ErrInvalidInput names the field and its
// limit, ErrPayloadTooLarge the size of a payload of more than 64 KiB. Spec 20 §8.
func CheckSignal(s engine.NewSignal) error {
	if err := checkSignalName(s.Name); err != nil {
		return err
	}
	for _, field := range [...]struct {
		what, text string
		limit      int
	}{
		{"signal category", s.Category, flowfabric.MaxSignalCategory},
		{"signal source type", s.SourceType, flowfabric.MaxSignalCategory},
		{"signal source", s.Source, flowfabric.MaxSignalSource},
		{"signal correlation", s.Correlation, flowfabric.MaxCorrelation},
		{"idempotency key", s.IdempotencyKey, flowfabric.MaxIdempotencyKey},
	} {
		if err := checkText(field.what, field.text, field.limit); err != nil {
			return err
		}
	}
	switch s.Encoding {
	case "", "json", "utf8", "bytes":
	default:
		return fmt.Errorf("%w: signal encoding %.20q, want json, utf8 or bytes", flowfabric.ErrInvalidInput, s.Encoding)
	}
	if s.DedupTTL < 0 || s.DedupTTL > flowfabric.MaxDedupTTL {
		return fmt.Errorf("%w: a signal is remembered for %v, want up to %v", flowfabric.ErrInvalidInput, s.DedupTTL, flowfabric.MaxDedupTTL)
	}
	if len(s.Payload) > flowfabric.MaxSignal {
		return fmt.Errorf("%w: a signal of %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(s.Payload), flowfabric.MaxSignal)
	}
	return nil
}
