package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	column = 27 // characters
	margin = 3  // between two columns
	width  = 88 // of running text
)

// track shows the answers side by side. A row goes out when one of the columns is full, so that a row is the same
// stretch of time for all. It writes no control codes, so that logs read well. Safe for concurrent use.
type track struct {
	mu   sync.Mutex
	out  io.Writer
	row  []string // what each column has of the row that is being filled
	over []bool   // nothing more comes
}

func newTrack(out io.Writer, heads ...string) *track {
	t := &track{out: out, row: make([]string, len(heads)), over: make([]bool, len(heads))}
	t.print(heads)
	for i, head := range heads {
		heads[i] = strings.Repeat("─", utf8.RuneCountInString(head))
	}
	t.print(heads)
	return t
}

// token adds to column i.
func (t *track) token(i int, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = printable(text)
	if t.row[i] == "" {
		text = strings.TrimSpace(text)
	}
	if t.row[i] != "" && utf8.RuneCountInString(t.row[i]+text) > column {
		t.flush()
		text = strings.TrimSpace(text)
	}
	t.row[i] += text
}

// end says how column i ended.
func (t *track) end(i int, how string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
	t.row[i], t.over[i] = how, true
	t.flush()
}

// flush prints the row. Who says nothing for so long shows dots.
func (t *track) flush() {
	empty := true
	for i, cell := range t.row {
		empty = empty && cell == ""
		if cell == "" && !t.over[i] {
			t.row[i] = "…"
		}
	}
	if !empty {
		t.print(t.row)
	}
	clear(t.row)
}

func (t *track) print(cells []string) {
	var line strings.Builder
	for _, cell := range cells {
		line.WriteString(cell + strings.Repeat(" ", max(column+margin-utf8.RuneCountInString(cell), 1)))
	}
	fmt.Fprintln(t.out, strings.TrimRight(line.String(), " "))
}

// printable keeps what a provider says from moving the cursor: control characters become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
}

// fill prints text in lines of at most width characters, each after an indent.
func fill(out io.Writer, indent, text string) {
	line := ""
	for _, word := range strings.Fields(printable(text)) {
		if line != "" && utf8.RuneCountInString(indent+line+" "+word) > width {
			fmt.Fprintln(out, indent+line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		fmt.Fprintln(out, indent+line)
	}
}
