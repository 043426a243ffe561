package stream

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Frame is one entry of an attempt's stream. A producer fills in Type (≤ 128 bytes), Payload (≤ 64 KiB) and, if
// wanted, Encoding, Correlation (≤ 256 bytes), Source (≤ 64 bytes) and ProducedAt; ID and Sequence are given.
// Correlation and Source have no unit separator (U+001F). Frames that are read may be shared between readers: their
// Payload must not be changed.
//
// Mode says what becomes of it. A durable frame, the default, is kept. The Payload of [ModeSummary] is a
// delta for the attempt's summary document, see [MergeSummary]. A frame of [ModeBestEffort] is for those who listen
// now; its TTL is 1 to 60 s, best 5 to 30 s. All modes of an attempt have one order.
type Frame struct {
	ID          Cursor `json:"cursor"`                // given by the server
	Sequence    uint64 `json:"sequence"`              // 1, 2, 3 … per attempt, all modes together
	Type        string `json:"type,omitempty"`        // ≤ 128 bytes, for example token, log, progress
	Encoding    string `json:"-"`                     // utf8 (default), json or bytes
	Correlation string `json:"correlation,omitempty"` // ≤ 256 bytes
	// who wrote it, for example a model or a tool; ≤ 64 bytes, default none
	Source     string    `json:"source,omitempty" jsonschema:"its writer, for example a model or a tool"`
	ProducedAt time.Time `json:"produced_at,omitzero"`
	Payload    []byte    `json:"-"` // ≤ 64 KiB; of a summary delta the merge patch; see MarshalJSON
	// Encrypted says that the reader has no key for the frame: the payload is as it is stored, with encoding
	// bytes. Given when read.
	Encrypted bool `json:"encrypted,omitempty" jsonschema:"the payload is as stored: the server has no key for it"`

	Mode FrameMode `json:"mode" jsonschema:"durable, summary or best_effort"`
	// TTL is how long the live log outlives its newest best-effort frame, half of it; 1 s … 60 s
	TTL time.Duration `json:"-"`

	// of the document that a summary delta made; given when read
	SummaryVersion uint64 `json:"summary_version,omitempty"`

	// Document and Keep are set by the writer of an attempt only and are never read back: the document that the last
	// summary delta of a batch makes, and how many entries, 1..16,384, the log of best-effort frames should hold.
	Document []byte `json:"-"`
	Keep     int    `json:"-"`

	// Durables is how many durable frames the attempt has up to this frame, itself included; given when read.
	Durables uint64 `json:"-"`
	// Run is the number of the run that appended the frame, see [Resumption]; 0 when a handler reads its own stream.
	Run uint32 `json:"run,omitempty"`
}

// Range is a part of the frames of an attempt. The zero value is its beginning.
type Range struct {
	After Cursor // exclusive; zero: from the first frame
	Until Cursor // inclusive; zero: to the last frame
	Limit int    // 1..10,000 frames; 0 is 1,000
}

type plainFrame Frame

// writtenFrame is a frame in JSON.
type writtenFrame struct {
	plainFrame
	Text   *string         `json:"text,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

// MarshalJSON writes the payload by its encoding: in value what is JSON, in text what is UTF-8, else in base64.
func (f Frame) MarshalJSON() ([]byte, error) {
	v := writtenFrame{plainFrame: plainFrame(f)}
	switch {
	case f.Encoding == JSON && utf8.Valid(f.Payload) && json.Valid(f.Payload):
		v.Value = f.Payload
	case f.Encoding != Bytes && utf8.Valid(f.Payload):
		v.Text = new(string(f.Payload))
	default:
		v.Base64 = f.Payload
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Frame) UnmarshalJSON(text []byte) error {
	var v writtenFrame
	err := json.Unmarshal(text, &v)
	switch *f = Frame(v.plainFrame); {
	case v.Value != nil:
		f.Encoding, f.Payload = JSON, v.Value
	case v.Text != nil:
		f.Encoding, f.Payload = UTF8, []byte(*v.Text)
	default:
		f.Encoding, f.Payload = Bytes, v.Base64
	}
	return err
}

// The encodings of a payload. Empty means UTF8.
const (
	UTF8  = "utf8"  // valid UTF-8 text
	JSON  = "json"  // one valid JSON value
	Bytes = "bytes" // anything
)

// FrameMode says what becomes of a frame. The zero value is ModeDurable.
type FrameMode uint8

// The modes of a frame.
const (
	ModeDurable    FrameMode = iota // kept up to the retention of the attempt's frames
	ModeSummary                     // a delta, merged into the attempt's summary document; about the last 64 are kept
	ModeBestEffort                  // for those who listen now: gone seconds after the last one
)

var modes = [...]string{ModeDurable: "durable", ModeSummary: "summary", ModeBestEffort: "best_effort"}

// String is the mode's name: durable, summary or best_effort.
func (m FrameMode) String() string {
	if int(m) >= len(modes) {
		return "unknown"
	}
	return modes[m]
}

// MarshalText is the name.
func (m FrameMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a name.
func (m *FrameMode) UnmarshalText(name []byte) error {
	i := slices.Index(modes[:], string(name))
	if i < 0 {
		return fmt.Errorf("%w: mode %.60q", flowfabric.ErrInvalidInput, name)
	}
	*m = FrameMode(i)
	return nil
}
