package framelog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Pauses between two sendings of one batch. The engine has repeated the call a few times before.
const (
	resendFirst  = 50 * time.Millisecond
	resendAtMost = 2 * time.Second
)

// run is the writer's goroutine: it takes a batch when one is due, sends it until that is decided, and waits
// otherwise; it holds a timer only while frames are waiting for company.
func (w *Writer) run(ctx context.Context) {
	defer w.exited()
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		batch, wait, done := w.take()
		switch {
		case done:
			return
		case batch != nil:
			if err := w.send(ctx, batch); err != nil {
				w.stop(ctx, err)
				return
			}
			w.acknowledge(batch)
			continue
		}
		var linger <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			linger = timer.C
		}
		select {
		case <-w.wake:
			timer.Stop()
		case <-linger:
		case <-ctx.Done():
			w.stop(ctx, ctx.Err())
			return
		}
	}
}

// take returns the next batch if it is due, else how long to wait for it (0: until woken). done says that the
// writer was closed and everything is acknowledged.
func (w *Writer) take() (batch []stream.Frame, wait time.Duration, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.queue)
	if n == 0 {
		return nil, 0, w.closing
	}
	due := w.closing || !w.gone(w.flushTo) || n >= triggerFrames || w.bytes >= triggerBytes
	if !due {
		if wait = w.cfg.Linger - time.Since(w.since); wait > 0 {
			return nil, wait, false
		}
	}
	count, size := 0, 0
	more := 2 * w.cfg.Room // of a delta its document, too
	for count < min(n, limits.MaxAppendFrames) &&
		size+w.queue[count].weight()+more*(count+1) <= limits.MaxAppendBytes {
		size += w.queue[count].weight()
		count++
	}
	w.sending, w.sent = count, size
	return w.prepare(w.queue[:count]), 0, false
}

// prepare numbers the frames of a batch. Its last delta carries the document, its last best-effort frame how many of
// them to keep.
func (w *Writer) prepare(taken []queued) []stream.Frame {
	w.batch = w.batch[:0]
	delta, live, lives := -1, -1, 0
	for i := range taken {
		taken[i].Sequence = w.acked + 1 + uint64(i)
		w.batch = append(w.batch, taken[i].Frame)
		switch taken[i].Mode {
		case stream.ModeSummary:
			delta = i
		case stream.ModeBestEffort:
			live, lives = i, lives+1
		}
	}
	if delta >= 0 {
		document := taken[delta].document
		w.batch[delta].Document = document.Append(make([]byte, 0, document.Size))
	}
	if live >= 0 {
		w.batch[live].Keep = w.live.keep(lives, taken[live].TTL, time.Now())
	}
	return w.batch
}

// send appends one batch, again and again while its outcome is unknown. Sequences make the repeats exact.
func (w *Writer) send(ctx context.Context, batch []stream.Frame) error {
	first, last := batch[0].Sequence, batch[len(batch)-1].Sequence
	once := func() error {
		answer, err := w.cfg.Appender.AppendFrames(ctx, w.cfg.Fence, first, batch)
		switch {
		case err == nil && answer.LastSequence < last:
			err = fmt.Errorf("%w: last sequence %d after frames %d..%d", denied.Reply, answer.LastSequence, first, last)
			return backoff.Permanent(err)
		case err == nil:
			return nil
		case ctx.Err() == nil && flowfabric.Retryable(err):
			return err
		}
		return backoff.Permanent(err)
	}
	if err := once(); err == nil { // the usual case pays for no backoff state
		return nil
	} else if permanent, ok := errors.AsType[*backoff.PermanentError](err); ok {
		return permanent.Err
	} else {
		w.logger().Warn("frames were not acknowledged; the writer sends them again", "first", first, "last", last,
			"error", err)
	}
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(resendFirst),
		backoff.WithMaxInterval(resendAtMost), backoff.WithMaxElapsedTime(0))
	if err := pause(ctx, pauses.NextBackOff()); err != nil {
		return err
	}
	return backoff.Retry(once, backoff.WithContext(pauses, ctx))
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Writer) logger() *slog.Logger {
	logger := w.cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	return logger.With("execution", w.cfg.Fence.Execution.String(), "attempt", w.cfg.Fence.Attempt)
}

func (w *Writer) acknowledge(batch []stream.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = batch[len(batch)-1].Sequence
	w.bytes -= w.sent
	rest := copy(w.queue, w.queue[w.sending:])
	clear(w.queue[rest:]) // let the payloads go
	w.queue = w.queue[:rest]
	clear(w.batch)
	w.sending, w.sent = 0, 0
	w.broadcast()
}

// stop ends the writer for good: the queue is dropped, the error sticks, and a fenced task is cancelled.
func (w *Writer) stop(ctx context.Context, err error) {
	fenced := isFenced(err)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		fenced = !errors.Is(err, errAbandoned)
	}
	w.mu.Lock()
	dropped := len(w.queue)
	switch {
	case fenced:
		err = fmt.Errorf("append frames of %s: %w: %w (%w: %d dropped after frame %d)", w.cfg.Fence,
			flowfabric.ErrLeaseLost, err, denied.Unflushed, dropped, w.acked)
	default:
		err = fmt.Errorf("append frames of %s: %w (%w: %d dropped after frame %d)", w.cfg.Fence,
			err, denied.Unflushed, dropped, w.acked)
	}
	w.halt(err)
	w.mu.Unlock()
	if fenced && dropped > 0 && w.cfg.Cancel != nil {
		w.cfg.Cancel(err)
	}
}

func (w *Writer) halt(err error) {
	w.err = err
	w.dropped += uint64(len(w.queue))
	if len(w.queue) > 0 {
		w.lost = w.queue[0].ticket
	}
	w.queue, w.batch, w.bytes, w.sending, w.sent = nil, nil, 0, 0, 0
	w.broadcast()
}

// exited frees the waiters when the goroutine ends by a panic, which Close then raises again.
func (w *Writer) exited() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && (!w.closing || len(w.queue) > 0) {
		w.halt(fmt.Errorf("append frames of %s: %w: the writer panicked", w.cfg.Fence, denied.Unflushed))
	}
}

var fencing = []error{
	denied.StaleAppend, denied.StreamClosed, denied.NotActive, denied.NoExecution, denied.FrameGap,
	denied.SummaryConflict, denied.LeaseExpired, denied.LeaseRevoked, denied.StaleLease, flowfabric.ErrLeaseLost,
}

// isFenced tells whether the server's answer means that this process no longer holds the attempt.
func isFenced(err error) bool {
	for _, f := range fencing {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}
