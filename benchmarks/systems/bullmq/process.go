package bullmq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

// request is what a process is asked for; which fields count depends on the operation. Payloads are base64 in JSON.
type request struct {
	ID          int      `json:"id,omitempty"` // 0 wants no answer
	Op          string   `json:"op"`
	Payloads    [][]byte `json:"payloads,omitempty"`
	Batch       int      `json:"batch,omitempty"`
	Submitters  int      `json:"submitters,omitempty"`
	PerCall     int      `json:"perCall,omitempty"`
	Worker      int      `json:"worker,omitempty"`
	Concurrency int      `json:"concurrency,omitempty"`
	Counts      bool     `json:"counts,omitempty"`
	Ask         int      `json:"ask,omitempty"`
	Typed       bool     `json:"typed,omitempty"`
	WorkMS      float64  `json:"workMS,omitempty"` // that a counting handler takes
}

// message is what a process says: an answer, or news without an id.
type message struct {
	ID      int             `json:"id"`
	Error   string          `json:"error"`
	At      int64           `json:"at"` // of the machine's monotonic clock, in ns
	Took    []time.Duration `json:"took"`
	Count   int             `json:"count"`
	Worker  int             `json:"worker"`
	Handled int             `json:"handled"`
	Ask     int             `json:"ask"`
	Payload []byte          `json:"payload"`
	Trouble string          `json:"trouble"`
}

// at is a moment that can be compared with others of the kind only.
func (m message) at() time.Time { return time.Unix(0, m.At) }

// process is a running script. It ends when its input does, so also when this process is killed.
type process struct {
	script string
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   *limited // on stderr
	reader conc.WaitGroup

	writing sync.Mutex
	mu      sync.Mutex
	news    func(message)
	last    int
	waiting map[int]chan<- message
	ended   error // set when nothing comes any more
}

// start starts a script of the directory and waits until it is there. The end of ctx kills it.
func (s System) start(ctx context.Context, url, script string) (*process, error) {
	where, err := connection(url)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(map[string]any{"connection": where})
	if err != nil {
		return nil, err
	}
	p := &process{script: script, said: &limited{}, waiting: map[int]chan<- message{}}
	p.cmd = exec.CommandContext(ctx, s.node(), filepath.Join(s.dir(), script), string(settings))
	p.cmd.Stderr = p.said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s %s: %w", s.node(), script, err)
	}
	p.reader.Go(func() { p.read(out) })
	if _, err := p.call(ctx, request{Op: "ready"}); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// listen sets who is told news, by one goroutine.
func (p *process) listen(news func(message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news = news
}

// read hands on what the process says until it ends, and then wakes everyone who still waits.
func (p *process) read(out io.Reader) {
	lines := json.NewDecoder(out)
	var err error
	for {
		var m message
		if err = lines.Decode(&m); err != nil {
			break
		}
		p.mu.Lock()
		if news := p.news; m.ID == 0 {
			p.mu.Unlock()
			if news != nil {
				news(m)
			}
			continue
		}
		answer := p.waiting[m.ID]
		delete(p.waiting, m.ID)
		p.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
	if !errors.Is(err, io.EOF) { // it does not speak our language
		_ = p.cmd.Process.Kill()
	} else {
		err = nil
	}
	err = errors.Join(err, p.cmd.Wait())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = fmt.Errorf("%s has ended", p.script); err != nil {
		p.ended = fmt.Errorf("%w: %w", p.ended, err)
	}
	if text := p.said.String(); text != "" {
		p.ended = fmt.Errorf("%w; it said: %s", p.ended, text)
	}
	for id, answer := range p.waiting {
		delete(p.waiting, id)
		close(answer)
	}
}

// call asks for something and waits for the answer.
func (p *process) call(ctx context.Context, r request) (message, error) {
	answer := make(chan message, 1)
	p.mu.Lock()
	if p.ended != nil {
		defer p.mu.Unlock()
		return message{}, p.ended
	}
	p.last++
	r.ID = p.last
	p.waiting[r.ID] = answer
	p.mu.Unlock()
	if err := p.tell(r); err != nil { // it does not listen any more: why?
		_ = p.cmd.Process.Kill()
		p.reader.Wait()
		return message{}, fmt.Errorf("%w: %w", err, p.ended)
	}
	select {
	case m, ok := <-answer:
		if !ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			return m, p.ended
		}
		if m.Error != "" {
			return m, fmt.Errorf("%s: %s: %s", p.script, r.Op, m.Error)
		}
		return m, nil
	case <-ctx.Done():
		return message{}, fmt.Errorf("%s: %s: %w", p.script, r.Op, context.Cause(ctx))
	}
}

// tell writes a request.
func (p *process) tell(r request) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("%s: %s: %w", p.script, r.Op, err)
	}
	return nil
}

// close ends the process and waits until it has ended. It is an error if it had ended before.
func (p *process) close() error {
	p.mu.Lock()
	before := p.ended
	p.mu.Unlock()
	p.writing.Lock()
	_ = p.in.Close()
	p.writing.Unlock()
	late := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	p.reader.Wait()
	return before
}

// limited keeps the beginning of what is written to it.
type limited struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *limited) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(text[:min(len(text), max(0, 4096-l.text.Len()))])
	return len(text), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.text.Bytes()))
}
