package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

// Bounds of spec 30 §6.1. Bytes are payload bytes; a frame counts until it has been acknowledged.
const (
	queueFrames   = 1024
	queueBytes    = 1 << 20
	triggerFrames = 64
	triggerBytes  = 128 << 10

	// DefaultLinger is how long a frame waits for company before its batch is sent.
	DefaultLinger = 20 * time.Millisecond
)

// WriterConfig is what a [Writer] needs. Appender and Fence are required.
type WriterConfig struct {
	Appender Appender
	Fence    flowfabric.Fence // of the attempt the frames belong to

	// LastSequence is the producer sequence of the attempt's last frame, as the claim returned it; 0 for a new
	// attempt. The first frame gets the next one.
	LastSequence uint64

	// Context bounds how long a batch that the server did not answer is sent again; nil means as long as Close
	// allows. It should be the context of the lease, not the handler's: a drain or a timeout of the attempt
	// must not stop the last flush. When it ends, what is not acknowledged counts as fenced (spec 30 §6.3).
	Context context.Context

	// Cancel ends the task's context with a cause; called at most once, when the writer is fenced. The cause wraps
	// flowfabric.ErrLeaseLost. May be nil.
	Cancel func(cause error)

	Linger time.Duration // 0 = DefaultLinger; negative = none
	Logger *slog.Logger  // tells of batches that have to be sent again; nil = slog.Default()
}

// Writer collects the frames of one attempt and appends them in batches of at most 100 frames and 512 KiB, in call
// order, one batch in flight. A batch leaves when 64 frames or 128 KiB are queued, when its oldest frame is 20 ms
// old (Linger), and on Flush and Close. At most 1,024 frames or 1 MiB are queued; then Append waits.
//
// The writer starts its goroutine with the first frame and ends it in Close or when it is fenced; one that gets no
// frame costs nothing and need not be closed. Safe for concurrent use; each frame of one goroutine keeps its
// place. Spec 30 §6.
type Writer struct {
	cfg   WriterConfig
	tasks conc.WaitGroup
	wake  chan struct{} // capacity 1: something to do for the flusher
	gate  chan struct{} // capacity 1: held by the Append that is first in line for room

	mu       sync.Mutex
	queue    []Frame // not acknowledged, oldest first; the first sending ones are in flight
	bytes    int     // of queue
	sending  int
	sent     int       // bytes of the frames in flight
	since    time.Time // when the oldest frame that is not in flight came, or before
	next     uint64    // sequence of the next frame
	acked    uint64
	flushTo  uint64
	dropped  uint64
	blocked  int           // Appends waiting for room
	changed  chan struct{} // closed at the next change somebody waits for; nil when nobody does
	abandon  context.CancelCauseFunc
	closing  bool
	err      error // sticky
	once     sync.Once
	closeErr error
}

// errAbandoned is the cause with which Close gives up on a batch.
var errAbandoned = errors.New("the writer was closed before the server answered")

// NewWriter builds the writer of one attempt. It starts nothing.
func NewWriter(cfg WriterConfig) *Writer {
	cfg.Linger = max(cmp.Or(cfg.Linger, DefaultLinger), 0)
	if cfg.Context == nil {
		cfg.Context = context.Background()
	}
	return &Writer{cfg: cfg, next: cfg.LastSequence + 1, acked: cfg.LastSequence}
}

// Append queues one frame; the payload is copied. While the queue is full it waits for room or for ctx to end
// and then returns its cause. A nil error means queued, not stored: see Flush.
//
// Errors: what [Validate] says, at once and without effect on other frames; the sticky error of an earlier
// batch (matches [flowfabric.ErrLeaseLost] when fenced); [flowfabric.ErrTaskConsumed] after Close.
func (w *Writer) Append(ctx context.Context, f Frame) error {
	if err := Validate(f); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("append frame: %w", context.Cause(ctx))
	}
	f.ID, f.Payload = engine.StreamID{}, bytes.Clone(f.Payload)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked > 0 || !w.room(len(f.Payload)) {
		if err := w.await(ctx, len(f.Payload)); err != nil {
			return err
		}
	}
	if err := w.refused(); err != nil {
		return err
	}
	return w.push(f)
}

// room tells whether a frame of size bytes fits, or will never be asked to wait because the writer has stopped.
func (w *Writer) room(size int) bool {
	return w.err != nil || w.closing || len(w.queue) < queueFrames && w.bytes+size <= queueBytes
}

// refused is why the writer takes no more frames, or nil.
func (w *Writer) refused() error {
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return fmt.Errorf("append frame: %w: the writer is closed", flowfabric.ErrTaskConsumed)
	case w.cfg.Context.Err() != nil:
		return fmt.Errorf("append frame: %w: %w", flowfabric.ErrLeaseLost, context.Cause(w.cfg.Context))
	}
	return nil
}

// await waits, in line with other Appends, until room returns true. Called and returns with the lock held.
func (w *Writer) await(ctx context.Context, size int) error {
	if w.gate == nil {
		w.gate = make(chan struct{}, 1)
	}
	w.blocked++
	defer func() { w.blocked-- }()
	w.mu.Unlock()
	select {
	case w.gate <- struct{}{}: // the runtime serves senders in order
		defer func() { <-w.gate }()
	case <-ctx.Done():
	}
	w.mu.Lock()
	for ctx.Err() == nil && !w.room(size) {
		w.waitChange(ctx)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("append frame: the queue is full: %w", context.Cause(ctx))
	}
	return nil
}

// waitChange releases the lock until the next change or the end of ctx, and takes it again.
func (w *Writer) waitChange(ctx context.Context) {
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	changed := w.changed
	w.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	w.mu.Lock()
}

func (w *Writer) broadcast() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

func (w *Writer) kick() {
	select {
	case w.wake <- struct{}{}:
	default: // nil before the first frame, or already kicked
	}
}

func (w *Writer) push(f Frame) error {
	before := w.bytes - w.sent
	after := before + len(f.Payload)
	f.Sequence = w.next
	w.next++
	w.queue = append(w.queue, f)
	w.bytes += len(f.Payload)
	waiting := len(w.queue) - w.sending
	if waiting == 1 {
		w.since = time.Now()
	}
	if w.wake == nil {
		w.start()
	}
	if waiting == 1 || waiting == triggerFrames || before < triggerBytes && after >= triggerBytes {
		w.kick()
	}
	return nil
}

// start is called once, under the lock, by the first frame; so it happens before any Wait in Close.
func (w *Writer) start() {
	w.wake = make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(w.cfg.Context)
	w.abandon = cancel
	w.tasks.Go(func() { w.run(ctx) })
}

// Flush sends what is queued without lingering and returns once everything appended before the call has been
// acknowledged. An error matches [flowfabric.ErrUnflushed]: some of it has not, because ctx ended (the writer
// goes on trying) or because the writer has stopped for good (then it also matches the sticky error).
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush(ctx)
}

func (w *Writer) flush(ctx context.Context) error {
	target := w.next - 1
	if w.flushTo < target {
		w.flushTo = target
		w.kick()
	}
	for {
		switch {
		case w.acked >= target:
			return nil
		case w.err != nil:
			return w.err
		case ctx.Err() != nil:
			return fmt.Errorf("flush frames of %s: %w: %d not acknowledged: %w", w.cfg.Fence, flowfabric.ErrUnflushed, target-w.acked, context.Cause(ctx))
		}
		w.waitChange(ctx)
	}
}

// Close flushes and stops the writer, waits for its goroutine, and refuses further frames. When ctx ends first,
// the batch in flight is given up. It returns what Flush would; further calls return the same. A nil error
// means that every frame ever appended is stored.
func (w *Writer) Close(ctx context.Context) error {
	w.once.Do(func() { w.closeErr = w.close(ctx) })
	return w.closeErr
}

func (w *Writer) close(ctx context.Context) error {
	w.mu.Lock()
	w.closing = true
	w.broadcast()
	w.kick()
	err := w.flush(ctx)
	abandon := w.abandon
	w.mu.Unlock()
	if abandon == nil {
		return nil // there never was a frame
	}
	if err != nil {
		abandon(errAbandoned)
	}
	w.tasks.Wait()
	abandon(nil)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked == w.next-1 {
		return nil // the answer came after all
	}
	return err
}

// LastAcknowledged is the sequence of the last frame that the server has confirmed, LastSequence before the first.
func (w *Writer) LastAcknowledged() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// Dropped is how many frames were queued but given up, because the writer was fenced, failed, or closed in vain.
// A frame whose answer was lost counts although it may be stored.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}
