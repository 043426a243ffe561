package stream

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

// ReadOptions selects one page of an attempt's stream.
type ReadOptions struct {
	After Cursor // exclusive; zero or start = from the beginning, end = nothing but what is known of the stream
	To    Cursor // inclusive; zero or end = no bound. A To before After gives an empty page
	Limit int    // 1..10,000 frames, required; other values are refused, not clamped
}

// Page is a part of an attempt's stream, in order.
type Page struct {
	Frames []Frame
	// Next is the last entry examined: the After of the next page. Without frames it is where the page began.
	Next Cursor

	Exists       bool // at least one frame was ever appended
	Closed       bool // the attempt has ended; more pages may follow: read until EOF
	ClosedReason string
	EOF          bool // closed, and nothing after Next

	// Gap says that frames between After and the page's last were trimmed before they could be read; Trimmed
	// is how many. Without the sequence at After (a parsed cursor) that is an upper bound and a cursor at
	// the newest trimmed frame is taken for one before it.
	Gap     bool
	Trimmed uint64
}

// Read returns one page of the frames of an attempt. A reply is cut near 4 MiB, so a page may be shorter than
// Limit and still not be the last; only EOF ends a stream. An attempt that never wrote, or does not exist
// yet, gives an empty page that is not Closed until it has ended. Needs no lease. Spec 30 §4.
//
// Errors: [flowfabric.ErrInvalidInput] for a limit out of bounds or To = start; [flowfabric.ErrNotFound].
func Read(ctx context.Context, r Reader, id flowfabric.ExecutionID, attempt uint32, o ReadOptions) (Page, error) {
	if o.Limit < 1 || o.Limit > flowfabric.MaxReadFrames {
		return Page{}, fmt.Errorf("read stream of %s: %w: limit is %d, want 1..%d", id, flowfabric.ErrInvalidInput, o.Limit, flowfabric.MaxReadFrames)
	}
	if o.To.form == formStart {
		return Page{}, fmt.Errorf("read stream of %s: %w: To is start, want end, <ms> or <ms>-<seq>", id, flowfabric.ErrInvalidInput)
	}
	if o.After.form == formEnd {
		meta, err := r.ReadAttemptStream(ctx, id, attempt)
		if err != nil {
			return Page{}, fmt.Errorf("read stream of %s: %w", id, err)
		}
		return pageOf(Cursor{id: meta.LastID, sequence: meta.LastSequence, known: true}, nil, meta), nil
	}
	var to *engine.StreamID
	if o.To != (Cursor{}) {
		to = o.To.upper()
	}
	page, _, err := readPage(ctx, r, id, attempt, o.After.lower(), to, o.Limit)
	if err != nil {
		return Page{}, fmt.Errorf("read stream of %s: %w", id, err)
	}
	return page, nil
}

// readPage reads frames first and the metadata after them: what the metadata calls closed cannot have grown since.
func readPage(ctx context.Context, r Reader, id flowfabric.ExecutionID, attempt uint32, after Cursor, to *engine.StreamID, limit int) (Page, engine.StreamMeta, error) {
	var frames []Frame
	var err error
	if after.id != greatest {
		if frames, err = r.ReadFrames(ctx, id, attempt, after.id, to, limit); err != nil {
			return Page{}, engine.StreamMeta{}, err
		}
	}
	meta, err := r.ReadAttemptStream(ctx, id, attempt)
	if err != nil {
		return Page{}, engine.StreamMeta{}, err
	}
	return pageOf(after, frames, meta), meta, nil
}

// pageOf judges what was read after a cursor.
func pageOf(after Cursor, frames []Frame, meta engine.StreamMeta) Page {
	p := Page{Frames: frames, Exists: meta.Exists, Closed: meta.Closed, ClosedReason: meta.ClosedReason}
	for _, f := range frames {
		p.Trimmed += after.advance(f, meta)
	}
	if len(frames) == 0 && meta.Count > 0 && meta.Trimmed == meta.Count && after.id.Compare(meta.LastID) < 0 {
		// Nothing is retained any more: there is no entry to wait for.
		p.Trimmed = meta.LastSequence
		if after.known {
			p.Trimmed -= min(after.sequence, meta.LastSequence)
		}
		after = Cursor{id: meta.LastID}
	}
	rest := meta.LastID.Compare(after.id) > 0
	if !rest && !after.known { // nothing newer, so the stream's last sequence is that of the cursor
		after.sequence, after.known = meta.LastSequence, true
	}
	p.Next, p.Gap, p.EOF = after, p.Trimmed > 0, meta.Closed && !rest
	return p
}
