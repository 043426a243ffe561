package joblog

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

const (
	linger     = 200 * time.Millisecond // for which the first line of a batch waits for others
	pause      = 50 * time.Millisecond  // between batches, however many lines come
	fullLines  = limits.MaxAppendLines  // with which a batch waits no longer
	fullBytes  = 64 << 10
	answerTime = 5 * time.Second // for which one call is waited for
	finalTime  = 2 * time.Second // and all that are left at the end
)

// Appender stores lines, numbered from first on. An error of class [fault.Stop] says that it will never store others.
type Appender interface {
	AppendLines(ctx context.Context, first uint64, lines []stream.LogLine) error
}

// Writer sends the lines of one run in batches, in the order in which they came. Its queue has as many as an attempt
// keeps; when it is full the oldest lines go. Safe for concurrent use. It has no goroutine: a timer sends.
type Writer struct {
	to  Appender
	ctx context.Context

	mu      sync.Mutex
	queue   []stream.LogLine
	bytes   int // of the queue, about
	dropped int // lines that went since the last one that was sent
	timer   *time.Timer
	full    bool // the timer was told that a batch is full
	last    time.Time
	closed  bool

	sending  sync.Mutex
	sequence uint64 // of the last line that was sent
}

// NewWriter is a writer whose calls end with ctx.
func NewWriter(ctx context.Context, to Appender) *Writer { return &Writer{to: to, ctx: ctx} }

func weight(x *stream.LogLine) int { return len(x.Message) + len(x.Attributes) + 16 }

// Add queues a line, and returns at once. A closed writer takes none.
func (w *Writer) Add(line stream.LogLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.queue, w.bytes = append(w.queue, line), w.bytes+weight(&line)
	for len(w.queue) > limits.MaxLogLines || w.bytes > limits.MaxLogBytes {
		w.bytes -= weight(&w.queue[0])
		w.dropped += 1 + w.queue[0].Dropped
		w.queue[0] = stream.LogLine{}
		w.queue = w.queue[1:]
	}
	full := len(w.queue) >= fullLines || w.bytes >= fullBytes
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(linger, w.due)
	case len(w.queue) == 1:
		w.timer.Reset(linger)
	}
	if full && !w.full {
		w.full = true
		w.timer.Reset(max(0, pause-time.Since(w.last)))
	}
}

func (w *Writer) due() { w.send(answerTime) }

// Flush sends what is queued, and returns once that was tried.
func (w *Writer) Flush() { w.send(finalTime) }

// Close is Flush for the last time.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.Flush()
}

// send makes the calls for what is queued. What a call does not store is dropped.
func (w *Writer) send(most time.Duration) {
	w.sending.Lock()
	defer w.sending.Unlock()
	batches := w.take()
	if len(batches) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, most)
	defer cancel()
	for batch := range slices.Chunk(batches, limits.MaxAppendLines) {
		first := w.sequence + 1
		w.sequence += uint64(len(batch)) // also of lines that may or may not be stored: a repeat would be skipped
		err := w.to.AppendLines(ctx, first, batch)
		w.mu.Lock()
		if err != nil {
			for _, x := range batch {
				w.dropped += x.Dropped
				if x.Message != "" || x.Attributes != nil {
					w.dropped++
				}
			}
			if denied.ClassOf(err) == fault.Stop || errors.Is(err, context.Canceled) {
				w.closed, w.queue, w.bytes, w.dropped = true, nil, 0, 0
			}
		}
		w.last = time.Now()
		w.mu.Unlock()
	}
}

// take empties the queue. Its first line tells how many were dropped before it; after the last one of a writer a line
// of its own does.
func (w *Writer) take() []stream.LogLine {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.queue
	if len(lines) == 0 && w.dropped > 0 && w.closed {
		lines = []stream.LogLine{{At: time.Now(), Level: Warn}}
	}
	w.queue, w.bytes, w.full = nil, 0, false
	if len(lines) > 0 {
		lines[0].Dropped = min(lines[0].Dropped+w.dropped, math.MaxInt32/4)
		w.dropped = 0
	}
	return lines
}
