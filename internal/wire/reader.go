package wire

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Reader walks the slots of a reply. The first slot of an unexpected shape stops it: later reads return zero values,
// and Err is the error. Nothing is ever coerced.
type Reader struct {
	Already bool // the envelope said ALREADY_SATISFIED
	Err     error

	slots Slots
	at    int
}

// Slots are those of a reply.
type Slots interface {
	Len() int
	Text(i int) (string, error)
}

// Texts are slots that are texts.
type Texts []string

func (t Texts) Len() int                   { return len(t) }
func (t Texts) Text(i int) (string, error) { return t[i], nil }

// NewReader reads slots from one on.
func NewReader(slots Slots, from int) Reader { return Reader{slots: slots, at: from} }

// Stop makes the reader fail, unless it has failed before.
func (r *Reader) Stop(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
	}
}

// At is the number of the last slot that was read.
func (r *Reader) At() int { return r.at - 1 }

// Left is how many slots are left.
func (r *Reader) Left() int {
	if r.slots == nil {
		return 0
	}
	return r.slots.Len() - r.at
}

// More tells whether there are slots left.
func (r *Reader) More() bool { return r.Err == nil && r.Left() > 0 }

// Text reads a slot as it is.
func (r *Reader) Text() string {
	if r.Err != nil {
		return ""
	}
	if r.Left() <= 0 {
		r.Stop("slot %d of %d", r.at, r.at)
		return ""
	}
	s, err := r.slots.Text(r.at)
	if err != nil {
		r.Stop("slot %d: %w", r.at, err)
		return ""
	}
	r.at++
	return s
}

// Fixed reads a slot that has one text.
func (r *Reader) Fixed(want string) {
	if s := r.Text(); r.Err == nil && s != want {
		r.Stop("slot %d is %q, want %q", r.at-1, clip(s), want)
	}
}

// Int reads a whole number.
func (r *Reader) Int() int {
	s := r.Text()
	if r.Err != nil {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		r.Stop("slot %d is %q, want a number", r.at-1, clip(s))
		return 0 // not the limit that Atoi returns for a number out of range
	}
	return n
}

// UUID reads one, in whatever way it is written. Its bytes fit every type of UUIDs.
func (r *Reader) UUID() [16]byte {
	s := r.Text()
	if r.Err != nil {
		return uuid.Nil
	}
	id, err := uuid.Parse(s)
	if err != nil {
		r.Stop("slot %d: %w", r.at-1, err)
	}
	return id
}

// empty tells whether the next slot is none, and skips it then.
func (r *Reader) empty() bool {
	if r.Text() == "" {
		return true
	}
	r.at--
	return false
}

// IntOr0 reads a number; none is 0, which is no value of it.
func (r *Reader) IntOr0() int {
	if r.empty() {
		return 0
	}
	return r.Int()
}

// UUIDOr0 reads a UUID; none is the one of zeros.
func (r *Reader) UUIDOr0() [16]byte {
	if r.empty() {
		return uuid.Nil
	}
	return r.UUID()
}

// IntOr reads a number; none is nil.
func (r *Reader) IntOr() *int {
	if r.empty() {
		return nil
	}
	n := r.Int()
	return &n
}

// Flag reads 0 or 1.
func (r *Reader) Flag() bool {
	switch s := r.Text(); s {
	case "1":
		return true
	case "0":
	default:
		r.Stop("slot %d is %q, want 0 or 1", r.at-1, clip(s))
	}
	return false
}

// Millis reads a duration; none is 0.
func (r *Reader) Millis() time.Duration { return time.Duration(r.IntOr0()) * time.Millisecond }

// MillisOr reads a duration; none is nil.
func (r *Reader) MillisOr() *time.Duration {
	if r.empty() {
		return nil
	}
	d := r.Millis()
	return &d
}

// Instant reads a time; 0 is the zero one.
func (r *Reader) Instant() time.Time {
	n := r.Int()
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n)).UTC()
}

// InstantOr0 reads a time; none is the zero one.
func (r *Reader) InstantOr0() time.Time {
	if r.empty() {
		return time.Time{}
	}
	return r.Instant()
}

// Count reads the length of a list of so many slots an element.
func (r *Reader) Count(width int) int {
	n := r.Int()
	if r.Err == nil && (n < 0 || n > r.Left()/max(width, 1)) {
		r.Stop("slot %d announces %d elements, %d slots are left", r.at-1, n, r.Left())
		return 0
	}
	return n
}

// Pairs reads names with their values.
func (r *Reader) Pairs() map[string]string {
	n := r.Count(2)
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := r.Text()
		m[k] = r.Text()
	}
	return m
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
