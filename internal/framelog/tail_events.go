package framelog

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// shared is the event of a frame that was published: mostly the same for all who follow, so one of them makes it.
func (t *tailer) shared(f stream.Frame, slot *atomic.Pointer[Event]) *Event {
	for {
		old := slot.Load()
		if old != nil && old.run == t.again {
			return old
		}
		e := &Event{TailEvent: stream.TailEvent{Kind: stream.TailFrame, Attempt: t.attempt, Frame: f,
			Position: t.position(t.cursor)}, shared: true, run: t.again}
		if slot.CompareAndSwap(old, e) {
			return e
		}
	}
}

// deliver yields what a look has brought.
func (t *tailer) deliver(page Page, meta engine.StreamMeta) error {
	if !t.begun && !t.only && t.attempt < meta.Kept { // what a later input has pushed out is skipped
		return nil
	}
	if !t.begun && meta.Attempts >= t.attempt {
		if err := t.start(meta); err != nil {
			return err
		}
	}
	rest := gap{trimmed: page.Trimmed}
	resumed := page.Resumed
	for _, f := range page.Frames {
		for len(resumed) > 0 && resumed[0].First.Compare(f.ID) <= 0 {
			missing, err := t.resume(resumed[0], meta)
			if err != nil {
				return err
			}
			rest.trimmed -= missing.trimmed
			resumed = resumed[1:]
		}
		before := justBefore(f)
		missing := t.cursor.advance(f, meta)
		rest.trimmed -= missing.trimmed
		if err := t.emitGap(missing, before); err != nil {
			return err
		}
		if f.Type == limits.FrameOfChild {
			if err := t.announce(f); err != nil {
				return err
			}
			continue
		}
		if err := t.emit(stream.TailEvent{Kind: stream.TailFrame, Frame: f}); err != nil {
			return err
		}
	}
	for _, r := range resumed { // what they begin with is not shown or not stored any more
		missing, err := t.resume(r, meta)
		if err != nil {
			return err
		}
		rest.trimmed -= missing.trimmed
	}
	if t.cursor.known && page.Next.known { // after the last frame that is stored
		rest.missed = t.cursor.missing(page.Next.sequence, page.Next.durables).missed
	}
	t.cursor = page.Next
	return t.emitGap(rest, t.cursor)
}

// start tells that the attempt has begun, and which frames of the ones before it stay.
func (t *tailer) start(meta engine.StreamMeta) error {
	if meta.Type == flowfabric.AttemptReplay { // which may have forgotten steps of any of them
		t.upto, t.covered = 0, nil
	}
	t.upto = max(t.upto, min(meta.Kept, t.attempt))
	for ; t.upto < t.attempt; t.upto++ {
		var earlier engine.StreamMeta
		if err := t.persist(func() (err error) {
			earlier, err = t.feed.src.ReadAttemptStream(t.ctx, t.feed.id, t.upto)
			return err
		}); err != nil {
			return err
		}
		t.cover(earlier)
	}
	t.begun = true
	return t.emit(stream.TailEvent{Kind: stream.TailAttempt, Type: meta.Type, At: meta.BeganAt,
		Reused: slices.Clone(t.covered)})
}

// cover notes which frames of attempt upto stay.
func (t *tailer) cover(meta engine.StreamMeta) {
	if meta.Recorded.Sequence > 0 {
		t.covered = append(t.covered, stream.Covered{Attempt: t.upto, Recorded: meta.Recorded.Sequence})
	}
}

// resume tells of a run, once, where its first frame comes, and returns what is missing before that.
func (t *tailer) resume(r stream.Resumption, meta engine.StreamMeta) (missing gap, err error) {
	if r.Run <= t.again {
		return gap{}, nil
	}
	missing = t.cursor.reach(beforeRun(r), meta)
	if err := t.emitGap(missing, t.cursor); err != nil {
		return gap{}, err
	}
	t.again = r.Run
	return missing, t.emit(stream.TailEvent{Kind: stream.TailResumed, Resumed: r})
}

// following are the attempts that are to begin, by the state of the execution.
var following = map[codes.Code]flowfabric.AttemptType{"R1t": flowfabric.AttemptRetry,
	"R2b": flowfabric.AttemptRetry, "R1r": flowfabric.AttemptReclaim, "R2r": flowfabric.AttemptReclaim,
	"R1p": flowfabric.AttemptReplay}

// pending tells, once, what the execution waits for: an answer, or the attempt that is to begin.
func (t *tailer) pending(meta engine.StreamMeta) error {
	if kind, ok := following[meta.Code]; ok && !t.begun && !t.told && !t.only && meta.Attempts == t.attempt-1 &&
		t.attempt > 1 {
		t.told = true
		return t.emit(stream.TailEvent{Kind: stream.TailRetry, Type: kind, At: meta.Due, Category: meta.Category,
			Message: meta.Message})
	}
	state, _ := codes.Project(meta.Code)
	if state.Public != flowfabric.Suspended || !t.begun || meta.Attempts != t.attempt || meta.Epoch == t.looked {
		return nil
	}
	var record suspend.Record
	var now engine.StreamMeta
	if err := t.persist(func() (err error) {
		if record, err = t.feed.src.ReadSuspension(t.ctx, t.feed.id); err == nil {
			now, err = t.feed.src.ReadAttemptStream(t.ctx, t.feed.id, t.attempt)
		}
		return err
	}); err != nil {
		return err
	}
	if record.State != flowfabric.Suspended || !record.ClosedAt.IsZero() ||
		now.Epoch != meta.Epoch {
		return nil // it went on; the next look tells how, and what was put out before it waits again
	}
	t.looked = meta.Epoch
	if mark(record) == t.wait {
		return nil
	}
	t.wait = mark(record)
	at := t.parts(t.cursor)
	at.Wait = t.wait
	return t.emitAt(stream.TailEvent{Kind: stream.TailSuspended, At: record.CreatedAt, Suspension: &record},
		stream.Position(tailpos.Text(at)))
}

// mark tells suspensions of an execution apart.
func mark(r suspend.Record) uint64 { return max(1, binary.BigEndian.Uint64(r.ID[8:])) }

// emitGap tells what is missing. Frames that are not durable count only for a tail that was up to date before and fell
// behind: who joins late has not lost what was not meant to last. at is where a tail goes on that knows of the gap.
func (t *tailer) emitGap(missing gap, at Place) error {
	if !t.current || t.durable {
		missing.missed = 0
	}
	if missing == (gap{}) {
		return nil
	}
	return t.emitAt(stream.TailEvent{Kind: stream.TailGap, Trimmed: missing.trimmed, Missed: missing.missed},
		t.position(at))
}

// emit yields one event.
func (t *tailer) emit(e stream.TailEvent) error { return t.emitAt(e, t.position(t.cursor)) }

// emitAt yields one event, behind which is a position.
func (t *tailer) emitAt(e stream.TailEvent, p stream.Position) error {
	t.own.TailEvent = e
	t.own.Attempt, t.own.Position = t.attempt, p
	return t.pass(&t.own)
}

// announce leaves a frame to the merge that announces a child. It is no event of a tail.
func (t *tailer) announce(f stream.Frame) error {
	switch {
	case t.hides:
		return nil
	case t.poll == nil:
		return errAnnounced
	}
	return t.emit(stream.TailEvent{Kind: stream.TailFrame, Frame: f})
}

// pass yields one event; a tail whose context has ended yields no more.
func (t *tailer) pass(e *Event) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	t.busy, t.last = true, e.Position
	if !t.yield(e, nil) {
		return errLeft
	}
	return nil
}

// finish ends a drained attempt and moves on to the next, or ends the tail.
func (t *tailer) finish(meta engine.StreamMeta) error {
	if t.begun {
		next := stream.Position(tailpos.Text(tailpos.Parts{Attempt: t.attempt + 1}))
		if err := t.emitAt(stream.TailEvent{Kind: stream.TailAttemptEnd, At: meta.EndedAt, Reason: meta.ClosedReason,
			Category: meta.Category,
			Message:  meta.Message, By: meta.By, Recorded: meta.Recorded.Sequence}, next); err != nil {
			return err
		}
		if t.only {
			return errDone
		}
	}
	if state, ok := codes.Project(meta.Code); ok && state.Terminal() && meta.Attempts <= t.attempt {
		if t.ended != 0 && t.ended == meta.End.At.UnixMilli() {
			return errDone // which was told
		}
		t.attempt = meta.Attempts // 0 if none began
		if err := t.emitAt(stream.TailEvent{Kind: stream.TailEnd, State: state.Public, At: meta.End.At,
			Category: meta.End.Category,
			Message:  meta.End.Message, By: meta.End.By, Source: meta.End.Source},
			stream.Position(tailpos.Text(tailpos.Parts{Attempt: meta.Attempts + 1,
				Stage: tailpos.Over, Ms: uint64(meta.End.At.UnixMilli())}))); err != nil {
			return err
		}
		return errDone
	}
	if !t.only && t.attempt < meta.Kept {
		t.attempt, t.begun, t.upto, t.covered = meta.Kept-1, false, meta.Kept, nil
	}
	if t.begun && t.upto == t.attempt {
		t.cover(meta)
		t.upto++
	}
	t.attempt, t.begun, t.told, t.current, t.cursor = t.attempt+1, false, false, false, PlaceAt(stream.Cursor{})
	t.again, t.wait, t.looked = 0, 0, 0
	return nil
}
