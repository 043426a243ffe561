package stream

import (
	"fmt"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Cursor is a place in one attempt's stream: the ID of a frame, or a place between frames. A tail that resumes after
// a cursor goes on with the first later frame. The zero value, "0-0", is before the first frame. Cursors are
// comparable; their order is that of the frames.
type Cursor struct {
	Ms  uint64 // milliseconds of the server's clock
	Seq uint64 // place within the millisecond
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

// String is the text "<ms>-<seq>".
func (c Cursor) String() string {
	return strconv.FormatUint(c.Ms, 10) + "-" + strconv.FormatUint(c.Seq, 10)
}

// Compare orders cursors of one stream: -1, 0 or +1.
func (c Cursor) Compare(o Cursor) int {
	switch {
	case c.Ms < o.Ms || c.Ms == o.Ms && c.Seq < o.Seq:
		return -1
	case c == o:
		return 0
	}
	return 1
}

// MarshalText implements encoding.TextMarshaler.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads "<ms>-<seq>", or "<ms>" for "<ms>-0", both of ASCII digits and at most 2^64−1. The error wraps
// [flowfabric.ErrInvalidInput] and leaves c as it is.
func (c *Cursor) UnmarshalText(text []byte) error {
	ms, seq, entry := strings.Cut(string(text), "-")
	var read Cursor
	var ok bool
	if read.Ms, ok = digits(ms); ok && entry {
		read.Seq, ok = digits(seq)
	}
	if !ok {
		return fmt.Errorf("%w: cursor %.60q, want <ms> or <ms>-<seq>", flowfabric.ErrInvalidInput, text)
	}
	*c = read
	return nil
}
