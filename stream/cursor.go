package stream

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Cursor is a place in one attempt's stream: its start, its end, a millisecond, or an entry. The zero value is
// before the first frame, "0-0". A Cursor that came from a [Page] or a frame also remembers the producer sequence,
// which makes the report of a trim gap exact; its text form does not carry that. What follows a cursor in the middle of a run is
// the rest of that run; the next run is told of before its first frame.
type Cursor struct {
	form     form
	id       engine.StreamID
	sequence uint64 // of the last frame at or before id
	durables uint64 // durable frames at or before id
	known    bool   // sequence and durables are meaningful
}

type form uint8

const (
	formEntry form = iota // <ms>-<seq>
	formMs
	formStart
	formEnd
)

var greatest = engine.StreamID{Ms: math.MaxUint64, Seq: math.MaxUint64}

// CursorAt is the cursor of an entry id.
func CursorAt(id engine.StreamID) Cursor { return Cursor{id: id} }

// CursorOf is the cursor of a frame: reading after it continues with the next one.
func CursorOf(f Frame) Cursor {
	return Cursor{id: f.ID, sequence: f.Sequence, durables: f.Durables, known: true}
}

// ParseCursor reads start, end, <ms> or <ms>-<seq>, both of ASCII digits and at most 2^64−1. It refuses everything
// else, "-", "+" and "" included; the error wraps [flowfabric.ErrInvalidInput].
func ParseCursor(text string) (Cursor, error) {
	switch text {
	case "start":
		return Cursor{form: formStart}, nil
	case "end":
		return Cursor{form: formEnd}, nil
	}
	ms, seq, entry := strings.Cut(text, "-")
	c := Cursor{form: formMs}
	var ok bool
	if c.id.Ms, ok = digits(ms); ok && entry {
		c.form = formEntry
		c.id.Seq, ok = digits(seq)
	}
	if !ok {
		return Cursor{}, fmt.Errorf("%w: cursor %.60q, want start, end, <ms> or <ms>-<seq>", flowfabric.ErrInvalidInput, text)
	}
	return c, nil
}

// digits reads a number; ParseUint alone would do but for a sign and the cost of its error.
func digits(s string) (uint64, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// String is the text that [ParseCursor] reads.
func (c Cursor) String() string {
	switch c.form {
	case formStart:
		return "start"
	case formEnd:
		return "end"
	case formMs:
		return strconv.FormatUint(c.id.Ms, 10)
	}
	return strconv.FormatUint(c.id.Ms, 10) + "-" + strconv.FormatUint(c.id.Seq, 10)
}

// MarshalText implements encoding.TextMarshaler.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with the rules of [ParseCursor].
func (c *Cursor) UnmarshalText(text []byte) error {
	parsed, err := ParseCursor(string(text))
	if err == nil {
		*c = parsed
	}
	return err
}

// lower is c as an exclusive lower bound: a millisecond stands for its first entry, <ms>-0. End has none.
func (c Cursor) lower() Cursor {
	c.known = c.known || c.id == engine.StreamID{}
	c.form = formEntry
	return c
}

// upper is c as an inclusive upper bound: a millisecond includes all its entries. nil means no bound.
func (c Cursor) upper() *engine.StreamID {
	switch c.form {
	case formEnd:
		return nil
	case formMs:
		return &engine.StreamID{Ms: c.id.Ms, Seq: math.MaxUint64}
	}
	id := c.id
	return &id
}

// gap is what lies between two places of a stream and cannot be read any more.
type gap struct {
	trimmed uint64 // durable frames
	missed  uint64 // frames of other modes, as far as both places are known
}

// advance moves c past f and returns what is missing between the two. When the place of c is not known, every durable
// frame before f counts if c lies before the first retained one: an upper bound.
func (c *Cursor) advance(f Frame, meta engine.StreamMeta) (missing gap) {
	before := f.Durables
	if f.Mode == engine.ModeDurable && before > 0 {
		before--
	}
	switch {
	case c.known:
		missing = c.missing(f.Sequence-min(f.Sequence, 1), before)
	case meta.Trimmed > 0 && c.id.Compare(meta.FirstID) < 0:
		missing.trimmed = before
	}
	*c = CursorOf(f)
	return missing
}

// missing is what was never delivered between a known c and a place with so many frames before it.
func (c *Cursor) missing(frames, durables uint64) (g gap) {
	g.trimmed = durables - min(c.durables, durables)
	all := frames - min(c.sequence, frames)
	g.missed = all - min(g.trimmed, all)
	return g
}
