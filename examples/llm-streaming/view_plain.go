package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const plainWidth = 88

// plain prints whole lines, each with the number of its prompt. It writes no control codes, so that logs read well.
type plain struct {
	mu   sync.Mutex
	out  io.Writer
	line []string // what has not made a line yet, by prompt
}

func newPlain(out io.Writer, prompts []Prompt) *plain {
	p := &plain{out: out, line: make([]string, len(prompts))}
	for i, prompt := range prompts {
		p.print(i, fmt.Sprintf("prompt: %s", printable(prompt.Text)))
	}
	return p
}

func (p *plain) print(i int, text string) { fmt.Fprintf(p.out, "[%d] %s\n", i+1, text) }

// flush prints what is left of a line; mark says that the rest is missing.
func (p *plain) flush(i int, mark string) {
	if rest := strings.TrimSpace(p.line[i]); rest != "" {
		p.print(i, rest+mark)
	}
	p.line[i] = ""
}

// Token implements View: a line goes out when the next word would not fit.
func (p *plain) Token(i int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(i, text)
}

// say prints what makes whole lines of an answer and keeps the rest.
func (p *plain) say(i int, text string) {
	p.line[i] += printable(text)
	width := plainWidth - len(fmt.Sprintf("[%d] ", i+1))
	for columns(strings.TrimSpace(p.line[i])) > width {
		lines := wrap(p.line[i], width)
		if len(lines) < 2 {
			return
		}
		p.print(i, lines[0])
		p.line[i] = strings.Join(lines[1:], " ")
	}
}

// Lost implements View.
func (p *plain) Lost(i int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush(i, " …")
	p.print(i, "!! "+what)
}

// Resume implements View. Lines that are printed stay, so the answer begins again with what is kept.
func (p *plain) Resume(i int, what string, kept Kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush(i, " …")
	p.print(i, ">> "+what)
	p.say(i, kept.Text)
}

// Notice implements View.
func (p *plain) Notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "*** %s\n", text)
}

// Done implements View.
func (p *plain) Done(i int, answer Answer, attempts int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.flush(i, " …")
		p.print(i, "failed: "+printable(err.Error()))
		return
	}
	p.flush(i, "")
	p.print(i, "done: "+tally(answer, attempts))
}

// Close implements View.
func (p *plain) Close() {}

// tally is an answer in figures: "150 tokens in 5.2s (29/s), attempt 2".
func tally(a Answer, attempts int) string {
	text := fmt.Sprintf("%s in %s", plural(a.Tokens, "token"), a.Duration.Round(100*time.Millisecond))
	if rate := perSecond(a.Tokens, a.Duration); rate != "" {
		text += " (" + rate + ")"
	}
	if attempts > 1 {
		text += fmt.Sprintf(", %d attempts", attempts)
	}
	return text
}
