package framelog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mergepatch"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Bounds of the queue and of a batch. Bytes are payload bytes; a frame counts until it has been acknowledged.
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
	// must not stop the last flush. When it ends, what is not acknowledged counts as fenced.
	Context context.Context

	// Cancel ends the task's context with a cause; called at most once, when the writer is fenced. The cause wraps
	// flowfabric.ErrLeaseLost. May be nil.
	Cancel func(cause error)

	// Summaries reads the document that earlier runs of the attempt have left, once, before the first summary delta.
	// Required for deltas when LastSequence is not 0.
	Summaries SummaryReader

	Room   int           // bytes that a cipher adds to a frame; 0 without one
	Live   LiveSizing    // of best-effort frames
	Linger time.Duration // 0 = DefaultLinger; negative = none
	Logger *slog.Logger  // tells of batches that have to be sent again; nil = slog.Default()
}

// Writer collects the frames of one attempt and appends them in batches of at most 100 frames and 512 KiB, in call
// order, one batch in flight. A batch leaves when 64 frames or 128 KiB are queued, when its oldest frame is 20 ms
// old (Linger), and on Flush and Close. At most 1,024 frames or 1 MiB are queued; then Append waits.
//
// All modes share the queue and its order. A summary delta is merged when it is queued, counts with the document that
// it makes, and is merged into a delta right before it that still waits; a best-effort frame never waits for room, the
// oldest of its kind goes instead.
//
// The writer starts its goroutine with the first frame and ends it in Close or when it is fenced; one that gets no
// frame costs nothing and need not be closed. Safe for concurrent use; each frame of one goroutine keeps its
// place.
type Writer struct {
	cfg   WriterConfig
	tasks conc.WaitGroup
	wake  chan struct{} // capacity 1: something to do for the flusher
	gate  chan struct{} // capacity 1: held by the Append that is first in line for room

	mu       sync.Mutex
	queue    []queued       // not acknowledged, oldest first; the first sending ones are in flight
	batch    []stream.Frame // the frames in flight, as they are sent
	bytes    int            // weight of queue
	sending  int
	sent     int       // weight of the frames in flight
	since    time.Time // when the oldest frame that is not in flight came, or before
	ticket   uint64    // of the newest frame ever queued
	acked    uint64    // sequence of the last acknowledged frame
	flushTo  uint64    // ticket
	lost     uint64    // ticket of the first frame that was given up; 0 = none
	dropped  uint64
	shed     uint64
	summary  *summary      // made by the first delta
	live     estimator     // used by the flusher only
	blocked  int           // Appends waiting for room
	changed  chan struct{} // closed at the next change somebody waits for; nil when nobody does
	abandon  context.CancelCauseFunc
	closing  bool
	err      error // sticky
	once     sync.Once
	closeErr error
}

// queued is a frame with its place in the line. Its sequence is decided when it is sent: until then a best-effort frame
// may go, or a delta be merged into the one before it.
type queued struct {
	stream.Frame
	ticket   uint64
	patch    *mergepatch.Value // of a delta
	document *mergepatch.Value // of a delta: what it makes of the document
}

// weight is what a frame counts for the bounds of queue and batch: whatever its call may have to carry.
func (q *queued) weight() int {
	if q.document == nil {
		return len(q.Payload)
	}
	return len(q.Payload) + q.document.Size
}

// errAbandoned is the cause with which Close gives up on a batch.
var errAbandoned = errors.New("the writer was closed before the server answered")

// NewWriter builds the writer of one attempt. It starts nothing.
func NewWriter(cfg WriterConfig) *Writer {
	cfg.Linger = max(cmp.Or(cfg.Linger, DefaultLinger), 0)
	if cfg.Context == nil {
		cfg.Context = context.Background()
	}
	return &Writer{cfg: cfg, acked: cfg.LastSequence, live: estimator{LiveSizing: cfg.Live}}
}

// Append queues one frame; the payload is copied. While the queue is full it waits for room or for ctx to end
// and then returns its cause; a best-effort frame is dropped instead, or an older one for it ([Writer.Shed]). A nil
// error means queued, not stored: see Flush. The first summary delta of a writer may read the document first.
//
// Errors: what [Validate] says, at once and without effect on other frames; for a delta also what
// [stream.MergeSummary] says, with the document unchanged; the sticky error of an earlier batch (matches
// [flowfabric.ErrLeaseLost] when fenced); [denied.TaskConsumed] after Close.
func (w *Writer) Append(ctx context.Context, f stream.Frame) error {
	if err := Validate(f); err != nil {
		return err
	}
	if len(f.Payload)+w.cfg.Room > limits.MaxFrame {
		return fmt.Errorf("frame: %w: payload has %d bytes, want at most %d where frames are encrypted",
			flowfabric.ErrPayloadTooLarge, len(f.Payload), limits.MaxFrame-w.cfg.Room)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("append frame: %w", context.Cause(ctx))
	}
	if f.Mode == stream.ModeSummary {
		return w.appendDelta(ctx, f)
	}
	f.ID, f.Payload = stream.Cursor{}, bytes.Clone(f.Payload)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked > 0 || !w.room(len(f.Payload)) {
		if f.Mode == stream.ModeBestEffort {
			if !w.makeRoom(len(f.Payload)) {
				return nil
			}
		} else if err := w.await(ctx, func() bool { return w.room(len(f.Payload)) }); err != nil {
			return err
		}
	}
	if err := w.refused(); err != nil {
		return err
	}
	w.push(queued{Frame: f})
	return nil
}

// makeRoom drops the oldest best-effort frames that wait until one of size fits, which it does not if there are too
// few, or if others stand in line: then the new frame is the one that goes.
func (w *Writer) makeRoom(size int) bool {
	for w.blocked == 0 && !w.room(size) {
		oldest := w.sending
		for oldest < len(w.queue) && w.queue[oldest].Mode != stream.ModeBestEffort {
			oldest++
		}
		if oldest == len(w.queue) {
			break
		}
		w.bytes -= w.queue[oldest].weight()
		w.queue = slices.Delete(w.queue, oldest, oldest+1)
		w.shed++
	}
	if w.blocked == 0 && w.room(size) {
		return true
	}
	w.shed++
	return false
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
		return fmt.Errorf("append frame: %w: the writer is closed", denied.TaskConsumed)
	case w.cfg.Context.Err() != nil:
		return fmt.Errorf("append frame: %w: %w", flowfabric.ErrLeaseLost, context.Cause(w.cfg.Context))
	}
	return nil
}

// await waits, in line with other Appends, until there is room. Called and returns with the lock held, and calls room
// with it.
func (w *Writer) await(ctx context.Context, room func() bool) error {
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
	for ctx.Err() == nil && !room() {
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

// push queues what there is room for.
func (w *Writer) push(q queued) {
	before := w.bytes - w.sent
	w.ticket++
	q.ticket = w.ticket
	w.queue = append(w.queue, q)
	w.bytes += q.weight()
	waiting := len(w.queue) - w.sending
	if waiting == 1 {
		w.since = time.Now()
	}
	if w.wake == nil {
		w.start()
	}
	if waiting == 1 || waiting == triggerFrames || before < triggerBytes && w.bytes-w.sent >= triggerBytes {
		w.kick()
	}
}

// start is called once, under the lock, by the first frame; so it happens before any Wait in Close.
func (w *Writer) start() {
	w.wake = make(chan struct{}, 1)
	ctx, cancel := context.WithCancelCause(w.cfg.Context)
	w.abandon = cancel
	w.tasks.Go(func() { w.run(ctx) })
}

// Flush sends what is queued without lingering and returns once everything appended before the call has been
// acknowledged. An error matches [denied.Unflushed]: some of it has not, because ctx ended (the writer
// goes on trying) or because the writer has stopped for good (then it also matches the sticky error).
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush(ctx)
}

func (w *Writer) flush(ctx context.Context) error {
	target := w.ticket
	if w.flushTo < target {
		w.flushTo = target
		w.kick()
	}
	for {
		switch {
		case w.gone(target):
			return nil
		case w.err != nil:
			return w.err
		case ctx.Err() != nil:
			return fmt.Errorf("flush frames of %s: %w: %d not acknowledged: %w", w.cfg.Fence, denied.Unflushed,
				len(w.queue), context.Cause(ctx))
		}
		w.waitChange(ctx)
	}
}

// gone tells whether nothing up to a ticket waits, is in flight, or was given up.
func (w *Writer) gone(ticket uint64) bool {
	switch {
	case w.lost > 0:
		return ticket < w.lost
	case len(w.queue) > 0:
		return ticket < w.queue[0].ticket
	}
	return true
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
	if w.gone(w.ticket) {
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

// Shed is how many best-effort frames went because the queue was full.
func (w *Writer) Shed() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shed
}

// Dropped is how many frames were queued but given up, because the writer was fenced, failed, or closed in vain.
// A frame whose answer was lost counts although it may be stored.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}
