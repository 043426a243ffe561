package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

const (
	labels = 11 // characters of what stands in front of a line
	perRow = 20 // parts
)

// board prints what happens, line by line, each under what it belongs to; parts that are counted share a line. It
// writes no control codes, so that logs read well. Safe for concurrent use.
type board struct {
	mu    sync.Mutex
	out   io.Writer
	inRow int    // parts in the line that is open; 0 none is
	last  string // label of the last line
}

// counted adds a part to the open line.
func (b *board) counted(part int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inRow == perRow {
		b.close()
	}
	if b.inRow == 0 {
		b.label("counted")
	} else {
		fmt.Fprint(b.out, " ")
	}
	fmt.Fprintf(b.out, "%02d", part)
	b.inRow++
}

// line prints one line; the label is there once for several lines in a row.
func (b *board) line(label, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close()
	b.label(label)
	fmt.Fprintf(b.out, format+"\n", args...)
}

func (b *board) close() {
	if b.inRow > 0 {
		fmt.Fprintln(b.out)
	}
	b.inRow = 0
}

func (b *board) label(label string) {
	shown := label
	if label == b.last {
		shown = ""
	}
	b.last = label
	fmt.Fprintf(b.out, "%-*s", labels, shown)
}

// chart is the ranking, a line for each word.
func (b *board) chart(top []Frequency) {
	const bar = 40
	for i, f := range top {
		b.line("top", "%2d. %-12s %3d %s", i+1, f.Word, f.Times, strings.Repeat("█", max(1, f.Times*bar/top[0].Times)))
	}
}
