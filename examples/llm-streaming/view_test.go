package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var twoPrompts = []Prompt{{Text: "first\x1b[2J", MaxTokens: 10}, {Text: "second", MaxTokens: 10}}

// script is what a run with a crash shows.
func script(v View) {
	for range 20 {
		v.Token(0, " abcdefghi")
	}
	v.Token(1, "Hello,")
	v.Token(1, " world\x1b[31m\n")
	v.Notice("killed worker-1")
	v.Lost(0, "the lease of attempt 1 ran out")
	v.Resume(0, "attempt 2 continues", Kept{Text: "kept", Tokens: 1})
	v.Token(0, " and more.")
	v.Done(0, Answer{Text: "kept and more.", Tokens: 30, Duration: time.Second}, 2, nil)
	v.Done(1, Answer{}, 1, errors.New("no\nluck"))
	v.Close()
}

func TestPlainView(t *testing.T) {
	var out bytes.Buffer
	script(newPlain(&out, twoPrompts))
	want := `[1] prompt: first [2J
[2] prompt: second
[1] abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi
[1] abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi abcdefghi
*** killed worker-1
[1] abcdefghi abcdefghi abcdefghi abcdefghi …
[1] !! the lease of attempt 1 ran out
[1] >> attempt 2 continues
[1] kept and more.
[1] done: 30 tokens in 1s (30/s), 2 attempts
[2] Hello, world [31m …
[2] failed: no luck
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestScreen(t *testing.T) {
	for _, color := range []bool{true, false} {
		var out bytes.Buffer
		script(newScreen(&out, twoPrompts, color, func() (int, int) { return 60, 24 }))
		text := out.String()
		if !strings.HasPrefix(text, "\x1b[?25l") || !strings.HasSuffix(text, "\x1b[?25h") {
			t.Error("the cursor is not hidden and shown again")
		}
		if colored := strings.Contains(text, "m\u2713") || strings.Contains(text, "[32m"); colored != color {
			t.Errorf("color %t: %q", color, text)
		}
		if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b[31m\n") {
			t.Error("a prompt or token reached the terminal's control codes")
		}
		last := text[strings.LastIndex(text, "A\r")+1:]
		for _, want := range []string{"✓", "✗", "kept", "and more.", "no luck", "killed worker-1"} {
			if !strings.Contains(last, want) {
				t.Errorf("color %t: the last screen lacks %q: %q", color, want, last)
			}
		}
	}
}

func TestNewViewOnAPipeIsPlain(t *testing.T) {
	if _, ok := newView(&bytes.Buffer{}, func(string) string { return "" }, twoPrompts, false).(*plain); !ok {
		t.Error("a buffer got the live view")
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":              nil,
		"  a  bb ccc ":  {"a bb", "ccc"},
		"abcdefgh ij":   {"abcde", "fgh", "ij"},
		"one two three": {"one", "two", "three"},
		"日本語":           {"日本", "語"},
	} {
		if got := wrap(text, 5); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := truncate("日本語", 5); got != "日本…" {
		t.Errorf("truncated %q", got)
	}
}
