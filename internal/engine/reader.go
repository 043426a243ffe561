package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// reader walks the slots of a reply. The first slot of an unexpected shape stops it: later reads return zero
// values, and fail returns the error. Nothing is ever coerced.
type reader struct {
	op      string
	slots   []rueidis.RedisMessage
	at      int
	already bool // the envelope said ALREADY_SATISFIED
	err     error
}

func (r *reader) fail() error {
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", r.op, denied.Reply, r.err)
}

func (r *reader) stop(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) text() string {
	if r.err != nil {
		return ""
	}
	if r.at >= len(r.slots) {
		r.stop("slot %d of %d", r.at, len(r.slots))
		return ""
	}
	s, err := r.slots[r.at].ToString()
	if err != nil {
		r.stop("slot %d: %w", r.at, err)
		return ""
	}
	r.at++
	return s
}

// bytes returns a slot without copying it: the driver made it for this reply alone, and nothing else of the reply
// shares its memory.
func (r *reader) bytes() []byte {
	s := r.text()
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

func (r *reader) number() int64 {
	s := r.text()
	if r.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		r.stop("slot %d is %q, want a number", r.at-1, clip(s))
		return 0 // not the limit that ParseInt returns for a number out of range
	}
	return n
}

func (r *reader) unsigned() uint64 {
	n := r.number()
	if n < 0 {
		r.stop("slot %d is negative", r.at-1)
		return 0
	}
	return uint64(n)
}

// count reads the length of a list of size slots an element.
func (r *reader) count(size int) int {
	n := r.number()
	if r.err == nil && (n < 0 || int(n) > (len(r.slots)-r.at)/max(size, 1)) {
		r.stop("slot %d announces %d elements, %d slots are left", r.at-1, n, len(r.slots)-r.at)
		return 0
	}
	return int(n)
}

func (r *reader) flag() bool {
	switch s := r.text(); s {
	case "1":
		return true
	case "0":
	default:
		r.stop("slot %d is %q, want 0 or 1", r.at-1, clip(s))
	}
	return false
}

// millis reads a duration; an empty slot is 0.
func (r *reader) millis() time.Duration {
	if r.at < len(r.slots) {
		if s, err := r.slots[r.at].ToString(); err == nil && s == "" {
			r.at++
			return 0
		}
	}
	return time.Duration(r.number()) * time.Millisecond
}

// retentions reads for how long things are kept, see valid.PackRetentions.
func (r *reader) retentions() flowfabric.Retentions {
	kept, err := valid.UnpackRetentions(r.text())
	if err != nil {
		r.stop("%w", err)
	}
	return kept
}

func (r *reader) instant() time.Time {
	n := r.number()
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

func (r *reader) id(partition uint16) flowfabric.ExecutionID {
	s := r.text()
	if r.err != nil {
		return flowfabric.ExecutionID{}
	}
	u, err := uuid.Parse(s)
	if err != nil {
		r.stop("slot %d: %w", r.at-1, err)
	}
	return flowfabric.MakeExecutionID(partition, u)
}

func (r *reader) uuid() uuid.UUID {
	s := r.text()
	if r.err != nil {
		return uuid.Nil
	}
	u, err := uuid.Parse(s)
	if err != nil {
		r.stop("slot %d: %w", r.at-1, err)
	}
	return u
}

// answer reads one item's answer: its mark and what follows it. '+' is done, '=' it already held, '~' it replaced
// something; what begins with '-' is refused.
func (r *reader) answer() (text string, mark byte, refused error) {
	s := r.text()
	if r.err != nil {
		return "", 0, r.err
	}
	if s == "" || !strings.Contains("+=~-", s[:1]) {
		r.stop("slot %d is %q, want an answer", r.at-1, clip(s))
		return "", 0, r.err
	}
	if s[0] != '-' {
		return s[1:], s[0], nil
	}
	code, detail, _ := strings.Cut(s[1:], " ")
	if code == "execution_not_active" {
		return "", 0, denied.New(r.op, code, strings.Split(detail, " ")...)
	}
	return "", 0, denied.New(r.op, code, detail)
}

// settled is answer, for what cannot replace anything.
func (r *reader) settled() (text string, already bool, refused error) {
	text, mark, refused := r.answer()
	return text, mark == '=', refused
}

func (r *reader) pairs() map[string]string {
	n := r.count(2)
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := r.text()
		m[k] = r.text()
	}
	return m
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
