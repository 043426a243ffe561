package stream

import (
	"slices"
	"time"
)

// Frame is one entry of an attempt's stream. A producer fills in Type (≤ 128 bytes), Payload (≤ 64 KiB) and, if
// wanted, Encoding, Correlation (≤ 256 bytes) and ProducedAt; ID and Sequence are given. Frames that are read may
// be shared between readers: their Payload must not be changed.
//
// Mode says what becomes of it. A durable frame, the default, is kept. The Payload of [ModeSummary] is a
// delta for the attempt's summary document, see [MergeSummary]. A frame of [ModeBestEffort] is for those who listen
// now; its TTL is 1 to 60 s, best 5 to 30 s. All modes of an attempt have one order.
type Frame struct {
	ID          Cursor // given by the server
	Sequence    uint64 // producer sequence, 1, 2, 3 … per attempt, all modes together
	Type        string // ≤ 128 bytes, for example token, log, progress
	Encoding    string // utf8 (default), json or bytes
	Correlation string // ≤ 256 bytes
	ProducedAt  time.Time
	Payload     []byte // ≤ 64 KiB; of a summary delta the merge patch

	Mode FrameMode
	TTL  time.Duration // best effort: how long the live log outlives its newest frame, half of it; 1 s … 60 s

	SummaryVersion uint64 // of the document that a summary delta made; given when read

	// Document and Keep are set by the writer of an attempt only and are never read back: the document that the last
	// summary delta of a batch makes, and how many entries, 1..16,384, the log of best-effort frames should hold.
	Document []byte
	Keep     int

	// Durables is how many durable frames the attempt has up to this frame, itself included; given when read.
	Durables uint64
	// Run is the number of the run that appended the frame, see [Resumption]; 0 when a handler reads its own stream.
	Run uint32
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

// String is the mode's name: durable, summary or best_effort.
func (m FrameMode) String() string {
	switch m {
	case ModeDurable:
		return "durable"
	case ModeSummary:
		return "summary"
	case ModeBestEffort:
		return "best_effort"
	}
	return "unknown"
}

// Kept returns the frames that no later run repeats. Both arguments are of one attempt and in order: all frames that
// were read, and all runs that were told of. It shares no memory with frames.
func Kept(frames []Frame, resumed []Resumption) []Frame {
	kept := make([]Frame, 0, len(frames))
	for _, f := range frames {
		if !slices.ContainsFunc(resumed, func(r Resumption) bool { return r.Repeats(f) }) {
			kept = append(kept, f)
		}
	}
	return kept
}
