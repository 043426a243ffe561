package engine

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// reader is a wire.Reader with what only this package reads.
type reader struct {
	wire.Reader
	op    string
	slots slots // of an answer of the driver, here because a pointer to them needs no memory of its own
}

// slots are those of the driver.
type slots []rueidis.RedisMessage

func (s slots) Len() int                   { return len(s) }
func (s slots) Text(i int) (string, error) { return s[i].ToString() }

func (r *reader) fail() error { return unread(r.op, r.Err) }

// unread is the error for an answer in which something cannot be read, or cannot be; nil if err is.
func unread(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", op, denied.Reply, err)
}

// bytes returns a slot without copying it.
func (r *reader) bytes() []byte { return owned(r.Text()) }

// owned is a text of an answer as bytes, without copying it: the driver made it for this answer alone, and nobody keeps
// the text. It is nil for none.
func owned(s string) []byte {
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// values are payloads by their names.
func (r *reader) values() map[string][]byte {
	n := r.Count(2)
	m := make(map[string][]byte, n)
	for range n {
		name := r.Text()
		m[name] = r.bytes()
	}
	return m
}

func (r *reader) number() int64 { return int64(r.Int()) }

func (r *reader) unsigned() uint64 {
	n := r.number()
	if n < 0 {
		r.Stop("slot %d is negative", r.At())
		return 0
	}
	return uint64(n)
}

// answer reads one item's answer: its mark and what follows it. '+' is done, '=' it already held, '~' it replaced
// something; what begins with '-' is refused.
func (r *reader) answer() (text string, mark byte, refused error) {
	s := r.Text()
	if r.Err != nil {
		return "", 0, r.Err
	}
	if s == "" || !strings.Contains("+=~-", s[:1]) {
		r.Stop("slot %d is %q, want an answer", r.At(), clip(s))
		return "", 0, r.Err
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

// decoded reads the texts of an answer.
func decoded[T any](op string, texts []string, read func(text string) (T, error)) (out []T, err error) {
	for _, text := range texts {
		x, err := read(text)
		if err != nil {
			return nil, unread(op, err)
		}
		out = append(out, x)
	}
	return out, nil
}

// parts reads what the library has joined of n parts.
func parts(what string, of []string, n int) *reader {
	r := &struct {
		reader
		of wire.Texts
	}{reader{op: what}, of}
	r.Reader = wire.NewReader(&r.of, 0)
	if len(of) != n {
		r.Stop("%d parts, want %d", len(of), n)
	}
	return &r.reader
}

// packed reads texts that the library has written as "<length>:<text>", with the unit separator between two.
func packed[T any](text string, read func(text string) (T, error)) (out []T, err error) {
	for more := true; more; {
		size, tail, ok := strings.Cut(text, ":")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 0 || n > len(tail) {
			return nil, fmt.Errorf("%w: text %d of a list is cut short", denied.Reply, len(out))
		}
		x, err := read(tail[:n])
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if text, more = strings.CutPrefix(tail[n:], unit); !more && text != "" {
			return nil, fmt.Errorf("%w: %d bytes follow a list", denied.Reply, len(text))
		}
	}
	return out, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
