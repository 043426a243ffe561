package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
)

// Kept is the part of an answer that is recorded and stays.
type Kept struct {
	Text   string
	Tokens int
}

// View shows answers while they stream in. i is the index of the prompt. The methods may be called concurrently.
type View interface {
	Token(i int, text string)                           // a piece of the answer
	Lost(i int, what string)                            // an attempt ended without an answer
	Resume(i int, what string, kept Kept)               // the answer goes on after what is kept; the rest is void
	Notice(text string)                                 // about the whole
	Done(i int, answer Answer, attempts int, err error) // nothing follows for this prompt
	Close()                                             // restores the terminal; nothing follows
}

// newView takes the live view when out is a terminal that can show it, and plain lines otherwise.
func newView(out io.Writer, env func(string) string, prompts []Prompt, forcePlain bool) View {
	f, ok := out.(*os.File)
	if ok && !forcePlain && env("TERM") != "dumb" {
		if cols, rows, ok := terminalSize(f); ok && cols >= minCols && rows >= screenHeight(len(prompts), 1) {
			return newScreen(f, prompts, env("NO_COLOR") == "", func() (int, int) {
				if c, r, ok := terminalSize(f); ok {
					return c, r
				}
				return cols, rows
			})
		}
	}
	return newPlain(out, prompts)
}

// printable keeps what a model says from moving the cursor: control characters become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
}

// columns is roughly how many terminal cells a text takes: East Asian characters and emoji count two.
func columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xd7ff, r >= 0xf900 && r <= 0xfaff, r >= 0xff00 && r <= 0xff60,
		r >= 0x1f000 && r <= 0x3ffff:
		return 2
	}
	return 1
}

// truncate cuts text to width cells, with an ellipsis when something is missing.
func truncate(text string, width int) string {
	if columns(text) <= width {
		return text
	}
	return clip(text, width-1) + "…"
}

// clip is as much of text as fits into width cells, but at least one character.
func clip(text string, width int) string {
	used := 0
	for at, r := range text {
		if used += runeColumns(r); used > width && at > 0 {
			return text[:at]
		}
	}
	return text
}

// wrap breaks text into lines of at most width cells, at spaces where there are any.
func wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	push := func() {
		if line != "" {
			lines = append(lines, line)
		}
		line, used = "", 0
	}
	for _, word := range strings.Fields(text) {
		n := columns(word)
		if used > 0 && used+1+n > width {
			push()
		}
		for n > width { // a word longer than a line
			head := clip(word, width)
			lines = append(lines, head)
			word = word[len(head):]
			n = columns(word)
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	push()
	return lines
}

// perSecond is a rate that reads "29/s"; empty as long as there is nothing to tell.
func perSecond(n int, d time.Duration) string {
	if n < 2 || d < 100*time.Millisecond {
		return ""
	}
	return fmt.Sprintf("%.0f/s", float64(n)/d.Seconds())
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
