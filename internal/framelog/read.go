package framelog

import (
	"context"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// ReadOptions selects one page of an attempt's stream.
type ReadOptions struct {
	After Place         // exclusive; zero = from the beginning
	To    stream.Cursor // inclusive; zero = no bound. A To before After gives an empty page
	Limit int           // 1..10,000 frames, required; other values are refused, not clamped

	WithoutBestEffort bool // only durable frames and summary deltas
}

// logs are where frames beside the durable ones stand.
func logs(meta engine.StreamMeta, withoutBestEffort bool) (modes []stream.FrameMode) {
	if meta.Summary > 0 {
		modes = append(modes, stream.ModeSummary)
	}
	if meta.Live > 0 && !withoutBestEffort {
		modes = append(modes, stream.ModeBestEffort)
	}
	return modes
}

// Page is a part of an attempt's stream, in order.
type Page struct {
	Frames []stream.Frame
	// Resumed has each run that began between After and Next, in order. Its first frame is one of Frames, unless that
	// was trimmed, has expired or is not shown; the frames that it repeats may be on earlier pages. See
	// [stream.Transcript].
	Resumed []stream.Resumption
	// Next is the last entry examined: the After of the next page. Without frames it is where the page began, or the
	// last of the entries that are not shown or not stored any more.
	Next Place

	Exists       bool // at least one frame was ever appended
	Closed       bool // the attempt has ended; more pages may follow: read until EOF
	ClosedReason string
	// sequence of the last frame of the attempt that a recorded step covers; another attempt repeats the later ones
	Recorded uint64
	EOF      bool // closed, and nothing after Next

	// Gap says that durable frames between After and the page's last were trimmed before they could be read; Trimmed
	// is how many. Without the sequence at After ([PlaceAt]) that is an upper bound.
	Gap     bool
	Trimmed uint64
}

// Read returns one page of the frames of an attempt. A reply is cut near 4 MiB, so a page may be shorter than
// Limit and still not be the last; only EOF ends a stream. An attempt that never wrote, or does not exist
// yet, gives an empty page that is not Closed until it has ended. Needs no lease.
//
// Frames of all modes come in one order; WithoutBestEffort leaves the best-effort ones out.
//
// Errors: [flowfabric.ErrInvalidInput] for a limit out of bounds; [flowfabric.ErrNotFound].
func Read(ctx context.Context, r Reader, id flowfabric.ExecutionID, attempt uint32, o ReadOptions) (Page, error) {
	if o.Limit < 1 || o.Limit > limits.MaxReadFrames {
		return Page{}, fmt.Errorf("read stream of %s: %w: limit is %d, want 1..%d", id, flowfabric.ErrInvalidInput,
			o.Limit, limits.MaxReadFrames)
	}
	var to *stream.Cursor
	if o.To != (stream.Cursor{}) {
		to = &o.To
	}
	log := attemptLog{r: r, id: id, attempt: attempt, durable: o.WithoutBestEffort}
	page, _, err := log.page(ctx, o.After.orStart(), to, o.Limit)
	if err != nil {
		return Page{}, fmt.Errorf("read stream of %s: %w", id, err)
	}
	return page, nil
}

// attemptLog reads the stream of one attempt.
type attemptLog struct {
	r       Reader
	id      flowfabric.ExecutionID
	attempt uint32
	durable bool // without best-effort frames

	owner flowfabric.ExecutionID // who has the frames of an attempt that a fork has taken over; zero: id
}

// from is who has the frames.
func (l attemptLog) from() flowfabric.ExecutionID {
	if l.owner.IsZero() {
		return l.id
	}
	return l.owner
}

// of is a part of the log of one mode.
func (l attemptLog) of(mode stream.FrameMode, after stream.Cursor, to *stream.Cursor, limit int) engine.LogRange {
	return engine.LogRange{Execution: l.from(), Attempt: l.attempt, Mode: mode, After: after, To: to, Limit: limit}
}

// page reads frames first and the metadata after them: what the metadata calls closed cannot have grown since.
// Only if that tells of frames which are not durable are the other logs read.
func (l attemptLog) page(ctx context.Context, after Place, to *stream.Cursor,
	limit int) (Page, engine.StreamMeta, error) {
	var frames []stream.Frame
	var err error
	if after.id != greatest {
		if frames, err = l.r.ReadLog(ctx, l.of(stream.ModeDurable, after.id, to, limit)); err != nil {
			return Page{}, engine.StreamMeta{}, err
		}
	}
	meta, err := l.r.ReadAttemptStream(ctx, l.id, l.attempt)
	if err != nil {
		return Page{}, engine.StreamMeta{}, err
	}
	if l.owner = meta.Owner; !l.owner.IsZero() {
		if to == nil || to.Compare(meta.LastID) > 0 {
			to = &meta.LastID
		}
		if after.id.Compare(*to) < 0 {
			if frames, err = l.r.ReadLog(ctx, l.of(stream.ModeDurable, after.id, to, limit)); err != nil {
				return Page{}, engine.StreamMeta{}, err
			}
		}
	}
	var page Page
	if !meta.Mixed() || after.id == greatest {
		page = pageOf(after, frames, meta)
	} else if page, err = l.mixed(ctx, after, to, limit, frames, meta); err != nil {
		return Page{}, engine.StreamMeta{}, err
	}
	if page.Resumed, err = l.runs(ctx, after.id, page, meta); err != nil {
		return Page{}, engine.StreamMeta{}, err
	}
	return page, meta, nil
}

// runsAtOnce is how many runs one read asks for.
const runsAtOnce = 256

// runs returns the runs that begin on a page and notes with its frames which run each belongs to. A run of which only
// the end is on the page is known by the next one, or is the last. All attempts but those that went on have one run,
// and cost no call.
func (l attemptLog) runs(ctx context.Context, after stream.Cursor, page Page,
	meta engine.StreamMeta) (resumed []stream.Resumption, err error) {
	next, current := []stream.Resumption(nil), meta.Runs
	if meta.Runs > 1 && (len(page.Frames) > 0 || page.Next.id.Compare(after) > 0) {
		for more := true; more; {
			if next, err = l.r.ReadRuns(ctx, l.from(), l.attempt, after, runsAtOnce); err != nil {
				return nil, err
			}
			if !l.owner.IsZero() { // it may have gone on
				next = slices.DeleteFunc(next,
					func(r stream.Resumption) bool { return r.First.Compare(meta.LastID) > 0 })
			}
			n := 0
			for n < len(next) && next[n].First.Compare(page.Next.id) <= 0 {
				n++
			}
			resumed = append(resumed, next[:n]...)
			if more = n == runsAtOnce; more {
				after = next[n-1].First
			}
			next = next[n:]
		}
		switch {
		case len(resumed) > 0:
			current = resumed[0].Run - 1
		case len(next) > 0:
			current = next[0].Run - 1
		}
	}
	at := 0
	for i := range page.Frames {
		for at < len(resumed) && resumed[at].First.Compare(page.Frames[i].ID) <= 0 {
			current = resumed[at].Run
			at++
		}
		page.Frames[i].Run = current
	}
	return resumed, nil
}

// mixed merges the logs of an attempt up to the last entry that the metadata knew: all of them were there then, so
// none of a smaller id can appear later. durable is what was read of the main log before.
func (l attemptLog) mixed(ctx context.Context, after Place, to *stream.Cursor, limit int, durable []stream.Frame,
	meta engine.StreamMeta) (Page, error) {
	bound := meta.LastID
	if to != nil && to.Compare(bound) < 0 {
		bound = *to
	}
	if bound.Compare(after.id) <= 0 {
		return pageOf(after, nil, meta), nil
	}
	from := after.id
	if len(durable) > 0 {
		from = durable[len(durable)-1].ID
	}
	switch {
	case full(durable, limit) || from.Compare(bound) >= 0:
		bound = from // later entries are for the next page
	default:
		rest, err := l.r.ReadLog(ctx, l.of(stream.ModeDurable, from, &bound, limit-len(durable)))
		if err != nil {
			return Page{}, err
		}
		if durable = append(durable, rest...); full(durable, limit) {
			bound = durable[len(durable)-1].ID
		}
	}
	frames := durable
	for _, mode := range logs(meta, l.durable) {
		more, err := l.r.ReadLog(ctx, l.of(mode, after.id, &bound, limit))
		if err != nil {
			return Page{}, err
		}
		if full(more, limit) {
			bound = more[len(more)-1].ID // what follows in this log is not known
		}
		frames = append(frames, more...)
	}
	if all := len(frames); all > 0 {
		if frames = inOrder(frames, bound, limit); len(frames) < all {
			bound = frames[len(frames)-1].ID
		}
	}
	return pageUpTo(bound, after, frames, meta), nil
}

// inOrder is at least one frame: those up to bound, as many as a page may hold.
func inOrder(frames []stream.Frame, bound stream.Cursor, limit int) []stream.Frame {
	slices.SortFunc(frames, func(a, b stream.Frame) int { return a.ID.Compare(b.ID) })
	n, size := 1, len(frames[0].Payload)
	for n < min(len(frames), limit) && frames[n].ID.Compare(bound) <= 0 {
		if size += len(frames[n].Payload); size > limits.MaxReadBytes {
			break
		}
		n++
	}
	return frames[:n]
}

// full tells whether a log may hold more than what was read of it.
func full(frames []stream.Frame, limit int) bool {
	size := 0
	for i := range frames {
		size += len(frames[i].Payload)
	}
	return len(frames) > 0 && (len(frames) >= limit || size > limits.MaxReadBytes-limits.MaxFrame)
}

// last is the place of an attempt's last frame.
func last(meta engine.StreamMeta) Place {
	return Place{id: meta.LastID, sequence: meta.LastSequence, durables: meta.Count, known: true}
}

// pageUpTo is pageOf when everything up to bound was examined, shown or not.
func pageUpTo(bound stream.Cursor, after Place, frames []stream.Frame, meta engine.StreamMeta) Page {
	p := pageOf(after, frames, meta)
	switch at := p.Next; {
	case bound.Compare(at.id) <= 0:
	case bound == meta.LastID:
		if at.known {
			p.Trimmed += at.missing(meta.LastSequence, meta.Count).trimmed
		}
		p.Next, p.Gap, p.EOF = last(meta), p.Trimmed > 0, meta.Closed
	default:
		p.Next = Place{id: bound}
	}
	return p
}

// pageOf judges what was read after a cursor.
func pageOf(after Place, frames []stream.Frame, meta engine.StreamMeta) Page {
	p := Page{Frames: frames, Exists: meta.Exists, Closed: meta.Closed, ClosedReason: meta.ClosedReason,
		Recorded: meta.Recorded.Sequence}
	for _, f := range frames {
		p.Trimmed += after.advance(f, meta).trimmed
	}
	if !meta.Mixed() && len(frames) == 0 && meta.Count > 0 && meta.Trimmed == meta.Count &&
		after.id.Compare(meta.LastID) < 0 {
		// Nothing is retained any more: there is no entry to wait for.
		p.Trimmed = meta.Count
		if after.known {
			p.Trimmed -= min(after.durables, meta.Count)
		}
		after = Place{id: meta.LastID}
	}
	rest := meta.LastID.Compare(after.id) > 0
	if !rest && !after.known { // nothing newer, so what is known of the stream's last frame is true of the cursor
		after.sequence, after.durables, after.known = meta.LastSequence, meta.Count, true
	}
	p.Next, p.Gap, p.EOF = after, p.Trimmed > 0, meta.Closed && !rest
	return p
}
