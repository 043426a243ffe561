package suspend

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Validate refuses what a server refuses before it looks at tokens: flowfabric.ErrInvalidInput names the field and its
// limit, ErrPayloadTooLarge the size of a payload of more than 64 KiB.
func (s SentSignal) Validate() error {
	if err := waitwords.CheckSignalName(s.Name); err != nil {
		return err
	}
	for _, field := range [...]struct {
		what, text string
		limit      int
	}{
		{"signal category", s.Category, limits.MaxSignalCategory},
		{"signal source type", s.SourceType, limits.MaxSignalCategory},
		{"signal source", s.Source, limits.MaxSignalSource},
		{"signal correlation", s.Correlation, limits.MaxCorrelation},
		{"idempotency key", s.IdempotencyKey, limits.MaxIdempotencyKey},
	} {
		if err := waitwords.CheckText(field.what, field.text, field.limit); err != nil {
			return err
		}
	}
	switch s.Encoding {
	case "", "json", "utf8", "bytes":
	default:
		return fmt.Errorf("%w: signal encoding %.20q, want json, utf8 or bytes", flowfabric.ErrInvalidInput, s.Encoding)
	}
	if s.DedupTTL < 0 || s.DedupTTL > limits.MaxDedupTTL {
		return fmt.Errorf("%w: a signal is remembered for %v, want up to %v", flowfabric.ErrInvalidInput, s.DedupTTL,
			limits.MaxDedupTTL)
	}
	if len(s.Payload) > limits.MaxSignal {
		return fmt.Errorf("%w: a signal of %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(s.Payload),
			limits.MaxSignal)
	}
	return nil
}

// SentSignal is a signal as its sender wrote it. Names, sources and payloads are claims of the sender, who holds the
// token.
type SentSignal struct {
	ID flowfabric.UUID `json:"-"` // makes a repeat harmless; nil mints one
	// 1..128 bytes, not beginning with "__"
	Name string `json:"name,omitempty" for:"reply" jsonschema:"name of the signal, 1..128 bytes; default the choice of the payload, if it has one, else signal"`
	// ≤ 64 bytes
	Category string `json:"category,omitempty" for:"reply" jsonschema:"a word for readers of the log, at most 64 bytes"`
	// ≤ 64 bytes, for example webhook or person; operator for what operators deliver
	SourceType string `json:"source_type,omitempty"`
	Source     string `json:"source,omitempty"` // ≤ 256 bytes, who
	// ≤ 256 bytes
	Correlation string `json:"correlation,omitempty" for:"reply" jsonschema:"id in the sender's own system, at most 256 bytes"`
	// ≤ 256 bytes; a later signal with the same key is answered like the first
	IdempotencyKey string        `json:"idempotency_key,omitempty" for:"reply"`
	DedupTTL       time.Duration `json:"-"` // how long the key is remembered, ≤ 7 days
	CreatedAt      time.Time     `json:"-"` // the sender's clock; zero: not said
	Encoding       string        `json:"-"` // json (default), utf8 or bytes
	Payload        []byte        `json:"-"` // ≤ 64 KiB
	// W3C traceparent of the sender's span; kept beside Correlation if there is room for both
	Trace string `json:"-"`
}

// Delivered answers a delivery.
type Delivered struct {
	Signal    flowfabric.UUID `json:"signal" jsonschema:"its id, or that of the delivery that it repeats"`
	Effect    Effect          `json:"effect" jsonschema:"its effect on the wait"`
	Duplicate bool            `json:"duplicate" jsonschema:"another delivery with this idempotency key came first"`
	Open      bool            `json:"open" jsonschema:"the waitpoint takes more signals"`
}

// StoredSignal is a signal as it was accepted.
type StoredSignal struct {
	ID             flowfabric.UUID    `json:"id"`
	Waitpoint      flowfabric.UUID    `json:"-"`
	WaitpointKey   string             `json:"waitpoint" jsonschema:"its key"`
	Name           string             `json:"name"`
	Category       string             `json:"category,omitempty"`
	SourceType     string             `json:"source_type,omitempty"`
	Source         string             `json:"source,omitempty" jsonschema:"sender, as the sender claims"`
	Correlation    string             `json:"correlation,omitempty"`
	IdempotencyKey string             `json:"idempotency_key,omitempty"`
	CreatedAt      time.Time          `json:"created_at,omitzero" jsonschema:"by the sender's clock"`
	AcceptedAt     time.Time          `json:"accepted_at,omitzero" jsonschema:"by the server's"`
	Encoding       string             `json:"encoding,omitempty" jsonschema:"json, utf8 or bytes"`
	Effect         Effect             `json:"effect,omitempty"`
	LateBy         flowfabric.Millis  `json:"late_by_ms,omitempty" jsonschema:"after the end of the wait"`
	Order          int64              `json:"order,omitempty" jsonschema:"among all signals that the execution accepted, from 1; none: made by a timeout"`
	Trace          string             `json:"-"` // W3C traceparent of the sender's span
	Payload        flowfabric.Payload `json:"payload"`
}
