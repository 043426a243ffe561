// Package wire has the calls of the function library and their answers as Go types. They are generated from the headers
// of package lua; what the grammar of headers cannot say is read by hand in package engine.
package wire

import (
	"slices"
	"strconv"
	"time"
)

//go:generate go run ../contract/generate

// Call is a function of the library with its arguments.
type Call interface {
	Function() string
	// Append writes the arguments behind others, which nearly always are the number of the protocol.
	Append(to []string) []string
}

// Reply is an answer.
type Reply interface {
	// Read reads it. An answer of another form stops the reader.
	Read(r *Reader)
}

func number(n int) string { return strconv.Itoa(n) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func millis(d time.Duration) string { return number(int(d.Milliseconds())) }

// instant writes a time. The zero one is 0.
func instant(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return number(int(t.UnixMilli()))
}

// none writes 0, where it is no value, as none.
func none(n string) string {
	if n == "0" {
		return ""
	}
	return n
}

func numberOr(n *int) string {
	if n == nil {
		return ""
	}
	return number(*n)
}

func millisOr(d *time.Duration) string {
	if d == nil {
		return ""
	}
	return millis(*d)
}

func pairs(to []string, m map[string]string) []string {
	to = append(to, number(len(m)))
	var few [8]string // on the stack
	names := few[:0]
	for key := range m {
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		to = append(to, key, m[key])
	}
	return to
}
