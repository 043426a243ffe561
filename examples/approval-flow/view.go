package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
)

// view prints what happens, line by line, each under what it belongs to. Safe for concurrent use.
type view struct {
	mu    sync.Mutex
	out   io.Writer
	label string // of the last line
}

// line prints one line; the label is there once for several lines in a row.
func (v *view) line(label, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	shown := label
	if label == v.label {
		shown = ""
	} else if v.label != "" {
		fmt.Fprintln(v.out)
	}
	v.label = label
	fmt.Fprintf(v.out, "%-11s%s\n", shown, printable(fmt.Sprintf(format, args...)))
}

// printable keeps what people typed from moving the cursor: control characters become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
}
