package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

const (
	minCols  = 50
	maxText  = 4 // lines of text per prompt
	redraw   = time.Second / 20
	stalled  = time.Second // without a token, after which no rate is shown
	barWidth = 12
	rateSpan = 20 // tokens that the shown rate looks back
)

// screenHeight is how many rows the panes take, with the intro above and a free line below.
func screenHeight(prompts, lines int) int { return prompts*(lines+2) + 4 }

type paneState uint8

const (
	paneQueued paneState = iota
	paneStreaming
	paneWaiting // for another worker
	paneDone
	paneFailed
)

// pane is what is known of one prompt.
type pane struct {
	prompt Prompt
	state  paneState
	kept   string // of earlier runs
	text   string // of this one
	tokens int
	note   string
	times  []time.Time // of the last tokens
	rate   string
}

// screen is the live view: a pane per prompt, drawn again at a fixed pace over the lines of the last time.
type screen struct {
	out   io.Writer
	size  func() (cols, rows int)
	color bool
	stop  context.CancelFunc
	loop  conc.WaitGroup

	mu     sync.Mutex
	panes  []*pane
	notice string
	drawn  int // lines above the cursor
}

func newScreen(out io.Writer, prompts []Prompt, color bool, size func() (cols, rows int)) *screen {
	ctx, stop := context.WithCancel(context.Background())
	s := &screen{out: out, size: size, color: color, stop: stop}
	for _, p := range prompts {
		s.panes = append(s.panes, &pane{prompt: p})
	}
	fmt.Fprint(out, "\x1b[?25l") // hide the cursor
	s.loop.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			s.draw()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return s
}

// Close implements View.
func (s *screen) Close() {
	s.stop()
	s.loop.Wait()
	s.draw()
	fmt.Fprint(s.out, "\x1b[?25h")
}

func (s *screen) update(i int, fn func(*pane)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.panes[i])
}

// Token implements View.
func (s *screen) Token(i int, text string) {
	now := time.Now()
	s.update(i, func(p *pane) {
		p.state = paneStreaming
		p.text += printable(text)
		p.tokens++
		p.times = append(p.times, now)
		if extra := len(p.times) - rateSpan; extra > 0 {
			p.times = p.times[extra:]
		}
		p.rate = perSecond(len(p.times)-1, now.Sub(p.times[0]))
	})
}

// Lost implements View.
func (s *screen) Lost(i int, what string) {
	s.update(i, func(p *pane) { p.state, p.note, p.rate, p.times = paneWaiting, what, "", nil })
}

// Resume implements View.
func (s *screen) Resume(i int, what string, kept Kept) {
	s.update(i, func(p *pane) {
		p.state, p.kept, p.text, p.tokens, p.note = paneStreaming, printable(kept.Text), "", kept.Tokens, what
		p.rate, p.times = "", nil
	})
}

// Notice implements View.
func (s *screen) Notice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = text
}

// Done implements View.
func (s *screen) Done(i int, answer Answer, _ int, err error) {
	s.update(i, func(p *pane) {
		if err != nil {
			p.state, p.note = paneFailed, printable(err.Error())
			return
		}
		p.state, p.tokens, p.rate = paneDone, answer.Tokens, perSecond(answer.Tokens, answer.Duration)
		if len(p.kept)+len(p.text) < len(answer.Text) { // what was recorded but not streamed again
			p.kept, p.text = "", printable(answer.Text)
		}
	})
}

// draw replaces the lines of the last time with one write.
func (s *screen) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	cols, rows := s.size()
	cols = max(cols-1, 20) // the last column makes some terminals wrap
	lines := min(max((rows-4)/max(len(s.panes), 1)-2, 1), maxText)
	var b bytes.Buffer
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	s.drawn = 0
	put := func(line string) {
		b.WriteString("\r" + line + "\x1b[K\n")
		s.drawn++
	}
	for i, p := range s.panes {
		put(s.header(i, p, cols))
		body := s.body(p, cols, lines)
		for n := range lines {
			if n < len(body) {
				put("    " + body[n])
			} else {
				put("")
			}
		}
		put("")
	}
	put(s.paint(yellow, truncate(s.notice, cols)))
	_, _ = s.out.Write(b.Bytes())
}

// header is "● 1 prompt … ████░░░░ 63/150 29/s".
func (s *screen) header(i int, p *pane, cols int) string {
	mark, tone, rate := "●", palette[i%len(palette)], p.rate
	switch p.state {
	case paneQueued:
		mark = "·"
	case paneWaiting:
		mark, tone = "◌", yellow
	case paneDone:
		mark, tone = "✓", green
	case paneFailed:
		mark, tone = "✗", red
	case paneStreaming:
		if n := len(p.times); n > 0 && time.Since(p.times[n-1]) > stalled {
			mark, rate = "◌", ""
		}
	}
	filled := min(p.tokens*barWidth/max(p.prompt.MaxTokens, 1), barWidth)
	if p.state == paneDone {
		filled = barWidth
	}
	bar := s.paint(tone, strings.Repeat("█", filled)) + s.paint(dim, strings.Repeat("░", barWidth-filled))
	figures := fmt.Sprintf(" %4d tokens %6s", p.tokens, rate)
	room := max(cols-barWidth-len(figures)-6, 8)
	title := truncate(printable(p.prompt.Text), room)
	pad := strings.Repeat(" ", max(room-columns(title), 0))
	return s.paint(tone, fmt.Sprintf("%s %d ", mark, i+1)) + s.paint(bold, title) + pad + " " +
		bar + s.paint(dim, figures)
}

// body is the note, if there is one, and the last lines of the answer; what an earlier attempt left is dim.
func (s *screen) body(p *pane, cols, lines int) []string {
	width := cols - 4
	var body []string
	if p.note != "" {
		tone := yellow
		if p.state == paneFailed {
			tone = red
		}
		body = append(body, s.paint(tone, truncate(p.note, width)))
	}
	text := wrap(p.kept+p.text, width)
	old := len(strings.Join(strings.Fields(p.kept), " ")) // bytes of text that are dim
	var painted []string
	for _, line := range text {
		n := min(max(old, 0), len(line))
		if n == len(line) {
			painted = append(painted, s.paint(dim, line))
		} else {
			painted = append(painted, s.paint(dim, line[:n])+line[n:])
		}
		old -= len(line) + 1
	}
	return append(body, painted[max(len(painted)-max(lines-len(body), 0), 0):]...)
}

// Colours as SGR parameters.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

var palette = []string{"36", "35", "34", "32", "96", "95"}

// paint colours text unless colours are off (NO_COLOR).
func (s *screen) paint(sgr, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}
