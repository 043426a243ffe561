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
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
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
	// From is where the tail goes on: the Position of the last event seen.
	From stream.Position
	// FromNow skips what is stored: it begins after the last frame of Attempt or, if that is nil, of the newest
	// attempt, as it is when the tail begins. It excludes From.
	FromNow           bool
	WithoutBestEffort bool // only durable frames and summary deltas
	WithoutChildren   bool // only the events of the execution itself
	Stored            bool // end, without an error, where a tail would wait for something to happen
}

func validate(o TailOptions) error {
	if o.FromNow && o.From != "" {
		return fmt.Errorf("%w: FromNow excludes From", flowfabric.ErrInvalidInput)
	}
	if o.Attempt != nil && *o.Attempt == 0 {
		return fmt.Errorf("%w: attempts count from 1", flowfabric.ErrInvalidInput)
	}
	return nil
}

// Tail follows an execution: for each attempt TailAttempt, its frames in order and once, TailAttemptEnd; then
// TailEnd. While it is suspended, or waits for another attempt, TailSuspended or TailRetry says so, once. Before the
// first frame of each run that goes on with an attempt comes TailResumed: with the frames after its Resumed.Recorded
// dropped (and, when a later attempt follows, those after Recorded of the TailAttemptEnd), what is left is each
// recorded step's output once. It survives lost connections and does not end before its execution does, or ctx.
// Leaving the loop releases everything. Each range over the result is a tail of its own. The events of announced
// children come among its own, see [merge].
//
// An error is the last thing yielded: the cause of ctx, [ErrHubClosed], [flowfabric.ErrNotFound],
// [flowfabric.ErrInvalidInput], or another error of the server that trying again does not help.
func (h *Hub) Tail(ctx context.Context, id flowfabric.ExecutionID, o TailOptions) iter.Seq2[stream.TailEvent, error] {
	return func(yield func(stream.TailEvent, error) bool) {
		for e, err := range h.Follow(ctx, id, o) {
			if !e.Idle && !yield(e.TailEvent, err) {
				return
			}
		}
	}
}

// Follow is Tail for those who write the events down for many readers: they share what they write, see [Event.Text],
// and learn when nothing more is ready, see [Event.Idle]. The event is never nil.
func (h *Hub) Follow(ctx context.Context, id flowfabric.ExecutionID, o TailOptions) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		if err := h.tail(ctx, id, o, yield); err != nil && !errors.Is(err, errLeft) {
			yield(&Event{}, fmt.Errorf("tail %s: %w", id, err))
		}
	}
}

// Ways out of a tail that are no errors to its consumer.
var (
	errLeft = errors.New("the consumer left the loop")
	errDone = errors.New("the tail is complete")

	errAnnounced = errors.New("a child is to be shown")
	errAlone     = errors.New("no child is open any more")
)

func (h *Hub) tail(ctx context.Context, id flowfabric.ExecutionID, o TailOptions,
	yield func(*Event, error) bool) error {
	if err := validate(o); err != nil {
		return err
	}
	place, err := tailpos.ParseMerged(string(o.From))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(ErrHubClosed) })()
	if o.WithoutChildren || o.Attempt != nil && *o.Attempt != place.Own.Attempt {
		place.Children = nil
	}
	for ; ; o.FromNow = false {
		err = errAnnounced
		if len(place.Children) == 0 {
			o.From = stream.Position(tailpos.Text(place.Own))
			err = h.alone(ctx, id, o, &place.Own, yield)
		}
		if errors.Is(err, errAnnounced) {
			err = h.merge(ctx, id, o, &place, yield)
		}
		switch {
		case errors.Is(err, errDone):
			return nil
		case !errors.Is(err, errAlone):
			return err
		}
	}
}

// alone is a tail of the execution itself, which ends with errAnnounced where a child is announced that it shows.
func (h *Hub) alone(ctx context.Context, id flowfabric.ExecutionID, o TailOptions, at *tailpos.Parts,
	yield func(*Event, error) bool) error {
	f, box, err := h.join(id, nil)
	if err != nil {
		return err
	}
	defer h.leave(f, box)
	t := &tailer{ctx: ctx, feed: f, box: box, yield: yield, cursor: PlaceAt(stream.Cursor{}),
		durable: o.WithoutBestEffort, stored: o.Stored, only: o.Attempt != nil, hides: o.WithoutChildren,
		last: o.From, timer: time.NewTimer(lookEvery)}
	defer t.timer.Stop()
	if err = t.place(o); err == nil {
		err = t.begin(o.FromNow)
	}
	if err == nil {
		err = t.run()
	}
	if errors.Is(err, errAnnounced) {
		*at, _ = tailpos.Parse(string(t.last)) // which a tail has made
	}
	return err
}

// tailer is one tail, run by its consumer's goroutine.
type tailer struct {
	ctx   context.Context
	feed  *feed
	box   *inbox
	yield func(*Event, error) bool
	timer *time.Timer
	own   Event           // the last one that no other tailer has
	busy  bool            // something was yielded since the consumer was told that nothing is ready
	last  stream.Position // behind what was yielded

	poll    *poll // of a source of a merge; nil: it waits by itself
	hides   bool  // announced children are not shown
	only    bool
	durable bool // without best-effort frames
	stored  bool // does not wait for anything
	attempt uint32
	begun   bool   // TailAttempt of attempt was delivered
	told    bool   // TailRetry of attempt was delivered
	current bool   // the attempt was followed live before
	cursor  Place  // of the last frame delivered or skipped; its sequence is known after the first read
	again   uint32 // the last run that was told of
	wait    uint64 // the last suspension that was told of, see mark
	looked  uint64 // the epoch under which it was looked at last
	ended   int64  // when the execution had ended as TailEnd told before this tail began, ms

	covered []stream.Covered // of the attempts before upto
	upto    uint32
}

// place puts the tailer where the options say.
func (t *tailer) place(o TailOptions) error {
	p, err := tailpos.Parse(string(o.From))
	if err != nil {
		return err
	}
	t.attempt, t.told = max(1, p.Attempt), p.Stage == tailpos.Announced
	if p.Stage == tailpos.Over {
		t.ended = int64(p.Ms)
	}
	if p.Stage == tailpos.Begun {
		t.begun, t.again, t.wait = true, p.Run, p.Wait
		t.cursor = Place{id: stream.Cursor{Ms: p.Ms, Seq: p.Seq}, sequence: p.Sequence, durables: p.Durables}
		t.cursor.known = p.Sequence > 0 || t.cursor.id == stream.Cursor{}
	}
	if o.Attempt == nil {
		return nil
	}
	switch {
	case p.Attempt > *o.Attempt: // its end was told
		return errDone
	case p.Attempt < *o.Attempt:
		*t = tailer{ctx: t.ctx, feed: t.feed, box: t.box, yield: t.yield, timer: t.timer, poll: t.poll, last: t.last,
			only: true, hides: t.hides, durable: t.durable, stored: t.stored, cursor: PlaceAt(stream.Cursor{}),
			attempt: *o.Attempt, ended: t.ended}
	}
	return nil
}

// position is behind what was delivered, up to the given place of the attempt. It says nothing of what this tail alone
// has heard or was shown: the position behind an event is that event's id for every reader.
func (t *tailer) position(at Place) stream.Position {
	return stream.Position(tailpos.Text(t.parts(at)))
}

func (t *tailer) parts(at Place) tailpos.Parts {
	p := tailpos.Parts{Attempt: t.attempt}
	switch {
	case t.begun:
		p.Stage, p.Ms, p.Seq, p.Run = tailpos.Begun, at.id.Ms, at.id.Seq, t.again
		if at.known {
			p.Sequence, p.Durables = at.sequence, at.durables
		}
	case t.told:
		p.Stage = tailpos.Announced
	}
	return p
}

// look says how the next state of the attempt is learnt.
type look uint8

const (
	lookRead   look = iota // range read from the cursor
	lookState              // ask for the state, read only if it tells of frames
	lookGlance             // the same, but an answer of half a second ago will do
	lookPast               // the same, but an answer will do that is of later than poll.past
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
		if newest := max(meta.Attempts, 1); err == nil && !t.only && newest != t.attempt {
			t.attempt = newest
			meta, err = t.feed.src.ReadAttemptStream(t.ctx, t.feed.id, newest)
		}
		if t.cursor = last(meta); meta.Runs > 1 {
			t.again = meta.Runs
		}
		return err
	})
}

func (t *tailer) run() error {
	how := lookRead
	for {
		page, meta, err := t.observe(how)
		if t.absent(err) {
			if _, err := t.live(); err != nil {
				return err
			}
			how = lookRead
			continue
		}
		if err != nil {
			return err
		}
		if err := t.deliver(page, meta); err != nil {
			return err
		}
		switch {
		case meta.LastID.Compare(t.cursor.id) > 0: // there is more
			how = lookRead
		case meta.Closed || meta.Attempts > t.attempt: // a later attempt fences this one off
			if err := t.finish(meta); err != nil {
				return err
			}
			how = lookRead
		default:
			if err := t.pending(meta); err != nil {
				return err
			}
			if t.stored {
				return errDone
			}
			if t.poll != nil {
				t.poll.now = meta.Now
			}
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
		case lookPast:
			meta, err = t.feed.glance(t.ctx, t.attempt, t.poll.past)
		case lookGlance:
			meta, err = t.feed.glance(t.ctx, t.attempt, time.Time{})
		}
		if how != lookRead && (err != nil || meta.LastID.Compare(t.cursor.id) <= 0) {
			page = pageOf(t.cursor, nil, meta)
			return err
		}
		t.box.caughtUp()
		page, meta, err = attemptLog{r: t.feed.src, id: t.feed.id, attempt: t.attempt,
			durable: t.durable}.page(t.ctx, t.cursor, nil, tailPage)
		return err
	})
	return page, meta, err
}

// persist repeats a read while the server cannot be reached.
func (t *tailer) persist(read func() error) error {
	if err := t.rest(); err != nil {
		return err
	}
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(rereadFirst),
		backoff.WithMaxInterval(rereadAtMost), backoff.WithMaxElapsedTime(0))
	err := backoff.Retry(func() error {
		err := read()
		if err != nil && (t.ctx.Err() != nil || !flowfabric.Retryable(err)) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(policy, t.ctx))
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return err
}

// absent tells whether an error says no more than that the child of a merge was not made yet.
func (t *tailer) absent(err error) bool {
	return t.poll != nil && !t.begun && t.attempt == 1 && errors.Is(err, flowfabric.ErrNotFound)
}

// rest tells the consumer, once, that nothing more is ready: the tail is about to wait, or to ask the server.
func (t *tailer) rest() error {
	if !t.busy || t.poll != nil {
		return nil
	}
	t.busy = false
	if !t.yield(idle, nil) {
		return errLeft
	}
	return nil
}

// live yields what is published until another look is needed, and says which.
func (t *tailer) live() (look, error) {
	t.current = true
	for asked := false; ; {
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
		case len(messages) > 0: // others may have come meanwhile
			continue
		}
		if t.poll != nil {
			if asked {
				return t.poll.look(), nil
			}
			asked = true
			if !t.yield(t.poll.idle(), nil) {
				return 0, errLeft
			}
			continue
		}
		if err := t.rest(); err != nil {
			return 0, err
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
		if f.ID.Compare(t.cursor.id) <= 0 { // the consumer asked for later ones
			t.cursor.sequence, t.cursor.durables = f.Sequence, f.Durables
			continue
		}
		if i == 0 && m.resumed != nil {
			if _, err := t.resume(*m.resumed, engine.StreamMeta{}); err != nil {
				return false, err
			}
		}
		t.cursor = PlaceOf(f)
		if f.Type == limits.FrameOfChild {
			if err := t.announce(f); err != nil {
				return false, err
			}
			continue
		}
		if t.durable && f.Mode == stream.ModeBestEffort {
			continue
		}
		if err := t.pass(t.shared(f, &m.told[i])); err != nil {
			return false, err
		}
	}
	return true, nil
}
