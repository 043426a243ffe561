package framelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

const (
	tailPage = 256 // frames of one range read
	// lookEvery is how often a tail that hears nothing looks at its attempt.
	lookEvery = 2 * time.Second
	// Pauses between reads while the server cannot be reached; the engine has repeated the call before.
	rereadFirst  = 100 * time.Millisecond
	rereadAtMost = 2 * time.Second
)

// TailOptions selects what a tail delivers. The zero value follows all attempts from the first frame to the end.
type TailOptions struct {
	// Attempt, when set, is the only attempt delivered; the tail ends after its TailAttemptEnd, or with TailEnd
	// when the execution ends without it. It may lie in the future.
	Attempt *uint32
	// From is the first attempt followed when Attempt is nil. With After or AfterFrame it resumes a tail: the Attempt
	// and the ID of the Frame of the last event seen.
	From uint32
	// After is the exclusive place in the first attempt delivered.
	After stream.Cursor
	// AfterFrame is After with the frame itself, when it is at hand: the counts of a TailGap are exact then, and otherwise at most
	// too large by frames that were delivered already. It excludes After.
	AfterFrame *stream.Frame
	// FromNow skips what is stored: it begins after the last frame of Attempt or, if that is nil, of the newest
	// attempt, as it is when the tail begins. It excludes From, After and AfterFrame.
	FromNow           bool
	WithoutBestEffort bool // only durable frames and summary deltas
}

func validate(o TailOptions) error {
	switch {
	case o.FromNow && (o.From != 0 || o.After != stream.Cursor{} || o.AfterFrame != nil):
		return fmt.Errorf("%w: FromNow excludes From, After and AfterFrame", flowfabric.ErrInvalidInput)
	case o.AfterFrame != nil && o.After != stream.Cursor{}:
		return fmt.Errorf("%w: AfterFrame excludes After", flowfabric.ErrInvalidInput)
	case o.Attempt != nil && o.From != 0:
		return fmt.Errorf("%w: Attempt excludes From", flowfabric.ErrInvalidInput)
	}
	return nil
}

// Tail follows an execution: for each attempt TailAttempt, its frames in order and once, TailAttemptEnd; then
// TailEnd. Before the first frame of each run that goes on with an attempt comes TailResumed: with the frames after its
// Resumed.Recorded dropped (and, when a later attempt follows, those after Recorded of the TailAttemptEnd), what is left is
// each recorded step's output once. A tail that begins behind a run's first frame does not get that run's TailResumed. It survives lost connections and does not end before its execution does, or ctx. Leaving the loop
// releases everything. Each range over the result is a tail of its own.
//
// An error is the last thing yielded: the cause of ctx, [ErrHubClosed], [flowfabric.ErrNotFound],
// [flowfabric.ErrInvalidInput], or another error of the server that trying again does not help.
func (h *Hub) Tail(ctx context.Context, id flowfabric.ExecutionID, o TailOptions) iter.Seq2[stream.TailEvent, error] {
	return func(yield func(stream.TailEvent, error) bool) {
		if err := h.tail(ctx, id, o, yield); err != nil && !errors.Is(err, errLeft) {
			yield(stream.TailEvent{}, fmt.Errorf("tail %s: %w", id, err))
		}
	}
}

// Ways out of a tail that are no errors to its consumer.
var (
	errLeft = errors.New("the consumer left the loop")
	errDone = errors.New("the tail is complete")
)

func (h *Hub) tail(ctx context.Context, id flowfabric.ExecutionID, o TailOptions, yield func(stream.TailEvent, error) bool) error {
	if err := validate(o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(ErrHubClosed) })()
	f, box, err := h.join(id)
	if err != nil {
		return err
	}
	defer h.leave(f, box)

	t := &tailer{ctx: ctx, feed: f, box: box, yield: yield, attempt: o.From, cursor: PlaceAt(o.After), durable: o.WithoutBestEffort, timer: time.NewTimer(lookEvery)}
	if o.AfterFrame != nil {
		t.cursor = PlaceOf(*o.AfterFrame)
	}
	defer t.timer.Stop()
	if o.Attempt != nil {
		t.attempt, t.only = *o.Attempt, true
	}
	if err = t.begin(o.FromNow); err == nil {
		err = t.run()
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// tailer is one tail, run by its consumer's goroutine.
type tailer struct {
	ctx   context.Context
	feed  *feed
	box   *inbox
	yield func(stream.TailEvent, error) bool
	timer *time.Timer

	only    bool
	durable bool // without best-effort frames
	attempt uint32
	begun   bool  // TailAttempt of attempt was delivered
	current bool  // the attempt was followed live before
	cursor  Place // of the last frame delivered or skipped; its sequence is known after the first read
}

// look says how the next state of the attempt is learnt.
type look uint8

const (
	lookRead   look = iota // range read from the cursor
	lookState              // ask for the state, read only if it tells of frames
	lookGlance             // the same, but an answer of half a second ago will do
)

// begin waits for the subscription, but not longer than a routine look; without it the tail reads.
func (t *tailer) begin(now bool) error {
	select {
	case <-t.feed.standing():
	case <-t.box.signal: // or there is an error to report
	case <-t.timer.C:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	if !now {
		return nil
	}
	return t.persist(func() error {
		meta, err := t.feed.src.ReadAttemptStream(t.ctx, t.feed.id, t.attempt)
		if newest := max(meta.Attempts, 1) - 1; err == nil && !t.only && newest != t.attempt {
			t.attempt = newest
			meta, err = t.feed.src.ReadAttemptStream(t.ctx, t.feed.id, newest)
		}
		t.cursor = last(meta)
		return err
	})
}

func (t *tailer) run() error {
	how := lookRead
	for {
		page, meta, err := t.observe(how)
		if err != nil {
			return err
		}
		if err := t.deliver(page, meta); err != nil {
			return err
		}
		switch {
		case meta.LastID.Compare(t.cursor.id) > 0: // there is more
			how = lookRead
		case meta.Closed || meta.Attempts > t.attempt+1: // a later attempt fences this one off
			if err := t.finish(meta); err != nil {
				return err
			}
			how = lookRead
		default:
			if how, err = t.live(); err != nil {
				return err
			}
		}
	}
}

// observe learns what happened to the attempt since the cursor.
func (t *tailer) observe(how look) (page Page, meta engine.StreamMeta, err error) {
	err = t.persist(func() (err error) {
		switch how {
		case lookState:
			meta, err = t.feed.src.ReadAttemptStream(t.ctx, t.feed.id, t.attempt)
		case lookGlance:
			meta, err = t.feed.glance(t.ctx, t.attempt)
		}
		if how != lookRead && (err != nil || meta.LastID.Compare(t.cursor.id) <= 0) {
			page = pageOf(t.cursor, nil, meta)
			return err
		}
		t.box.caughtUp()
		page, meta, err = attemptLog{t.feed.src, t.feed.id, t.attempt, t.durable}.page(t.ctx, t.cursor, nil, tailPage)
		return err
	})
	return page, meta, err
}

// persist repeats a read while the server cannot be reached.
func (t *tailer) persist(read func() error) error {
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(rereadFirst), backoff.WithMaxInterval(rereadAtMost),
		backoff.WithMaxElapsedTime(0))
	err := backoff.Retry(func() error {
		err := read()
		if err != nil && (t.ctx.Err() != nil || flowfabric.ClassOf(err) != flowfabric.ClassRetry) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(policy, t.ctx))
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return err
}

// deliver yields what a look has brought.
func (t *tailer) deliver(page Page, meta engine.StreamMeta) error {
	if !t.begun && meta.Attempts > t.attempt {
		t.begun = true
		if err := t.emit(stream.TailEvent{Kind: stream.TailAttempt}); err != nil {
			return err
		}
	}
	rest := gap{trimmed: page.Trimmed}
	resumed := page.Resumed
	for _, f := range page.Frames {
		for len(resumed) > 0 && resumed[0].First.Compare(f.ID) <= 0 {
			if err := t.emit(stream.TailEvent{Kind: stream.TailResumed, Resumed: resumed[0]}); err != nil {
				return err
			}
			resumed = resumed[1:]
		}
		missing := t.cursor.advance(f, meta)
		rest.trimmed -= missing.trimmed
		if err := t.emitGap(missing); err != nil {
			return err
		}
		if err := t.emit(stream.TailEvent{Kind: stream.TailFrame, Frame: f}); err != nil {
			return err
		}
	}
	if t.cursor.known && page.Next.known { // after the last frame that is stored
		rest.missed = t.cursor.missing(page.Next.sequence, page.Next.durables).missed
	}
	t.cursor = page.Next
	for _, r := range resumed { // what they begin with is not shown or not stored any more
		if err := t.emit(stream.TailEvent{Kind: stream.TailResumed, Resumed: r}); err != nil {
			return err
		}
	}
	return t.emitGap(rest)
}

// emitGap tells what is missing. Frames that are not durable count only for a tail that was up to date before and fell
// behind: who joins late has not lost what was not meant to last.
func (t *tailer) emitGap(missing gap) error {
	if !t.current || t.durable {
		missing.missed = 0
	}
	if missing == (gap{}) {
		return nil
	}
	return t.emit(stream.TailEvent{Kind: stream.TailGap, Trimmed: missing.trimmed, Missed: missing.missed})
}

// emit yields one event; a tail whose context has ended yields no more.
func (t *tailer) emit(e stream.TailEvent) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	e.Attempt = t.attempt
	if !t.yield(e, nil) {
		return errLeft
	}
	return nil
}

// finish ends a drained attempt and moves on to the next, or ends the tail.
func (t *tailer) finish(meta engine.StreamMeta) error {
	if t.begun {
		if err := t.emit(stream.TailEvent{Kind: stream.TailAttemptEnd, Reason: meta.ClosedReason, Recorded: meta.Recorded.Sequence}); err != nil {
			return err
		}
		if t.only {
			return errDone
		}
	}
	if state, ok := flowfabric.Project(meta.Code); ok && state.Terminal() && meta.Attempts <= t.attempt+1 {
		t.attempt = max(meta.Attempts, 1) - 1
		if err := t.emit(stream.TailEvent{Kind: stream.TailEnd, Code: meta.Code, State: state.Public}); err != nil {
			return err
		}
		return errDone
	}
	t.attempt, t.begun, t.current, t.cursor = t.attempt+1, false, false, PlaceAt(stream.Cursor{})
	return nil
}

// live yields what is published until another look is needed, and says which.
func (t *tailer) live() (look, error) {
	t.current = true
	for {
		messages, heard, err := t.box.take()
		if err != nil {
			return 0, err
		}
		for _, m := range messages {
			if fits, err := t.follow(m); err != nil || !fits {
				return lookRead, err
			}
		}
		switch {
		case heard&newsBehind != 0:
			return lookRead, nil
		case heard&newsState != 0:
			return lookState, nil
		}
		t.timer.Reset(lookEvery)
		select {
		case <-t.box.signal:
		case <-t.timer.C:
			return lookGlance, nil
		case <-t.ctx.Done():
			return 0, context.Cause(t.ctx)
		}
	}
}

// follow yields the frames of a message that are new. fits is false when the tailer must read first: frames are
// missing before these, or they belong to a later attempt. What it leaves of the message is then read, too.
func (t *tailer) follow(m message) (fits bool, err error) {
	if m.attempt != t.attempt {
		return m.attempt < t.attempt, nil
	}
	if !t.begun {
		return false, nil
	}
	for i, f := range m.frames {
		switch {
		case f.Sequence <= t.cursor.sequence:
			continue
		case f.Sequence > t.cursor.sequence+1:
			return false, nil
		}
		t.cursor.sequence, t.cursor.durables = f.Sequence, f.Durables
		if f.ID.Compare(t.cursor.id) <= 0 {
			continue // the consumer asked for later ones
		}
		t.cursor.id = f.ID
		if i == 0 && m.resumed != nil {
			if err := t.emit(stream.TailEvent{Kind: stream.TailResumed, Resumed: *m.resumed}); err != nil {
				return false, err
			}
		}
		if t.durable && f.Mode == stream.ModeBestEffort {
			continue
		}
		if err := t.emit(stream.TailEvent{Kind: stream.TailFrame, Frame: f}); err != nil {
			return false, err
		}
	}
	return true, nil
}
