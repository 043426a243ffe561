package stream

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Summary is the summary document of an attempt: one JSON object, merged from deltas (spec 30 §3.1).
type Summary = engine.Summary

const (
	// SummaryNull as a member of a delta stores a JSON null; a null itself deletes the member.
	SummaryNull = "__ff_null__"
	// SummaryText as the beginning of a member's string stores the rest of it as it is: the text "__ff_null__" is
	// stored by "__ff_text__" followed by it. Elements of arrays are always stored as they are.
	SummaryText = "__ff_text__"
)

// SummaryReader reads the document that an earlier pass has left; *engine.Engine is one.
type SummaryReader interface {
	ReadSummary(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (engine.Summary, error)
}

// MergeSummary applies a delta, the payload of a frame of engine.ModeSummary, to a document and returns the new one, as
// the attempt's writer does: an RFC 7396 merge patch on objects, in which [SummaryNull] stands for a stored null. An empty
// document is {}. Numbers keep their digits; members come out in order of their keys.
//
// A tail that knows the document of version n and gets the delta of version n+1 has the document of n+1.
//
// Errors: [flowfabric.ErrInvalidInput] for what is not one JSON object, has over 16 levels of objects, a number beyond
// float64's range or bytes that are not UTF-8; [flowfabric.ErrSummaryTooLarge] for a new document over 256 KiB.
func MergeSummary(document, delta []byte) ([]byte, error) {
	target, err := parseDocument(document)
	if err != nil {
		return nil, fmt.Errorf("summary document: %w", err)
	}
	patch, err := parseObject(delta)
	if err != nil {
		return nil, fmt.Errorf("summary delta: %w", err)
	}
	next, err := mergeSummary(target, patch)
	if err != nil {
		return nil, err
	}
	return next.append(make([]byte, 0, next.size)), nil
}

// summary is the document of an attempt as the deltas that its writer has queued make it.
type summary struct {
	document *value
	version  uint64
}

// appendDelta is Append for a summary delta.
func (w *Writer) appendDelta(ctx context.Context, f Frame) error {
	patch, err := parseObject(f.Payload)
	if err != nil {
		return fmt.Errorf("summary delta: %w", err)
	}
	if err := w.loadSummary(ctx); err != nil {
		return err
	}
	q := queued{Frame: f, patch: patch}
	q.ID, q.Encoding, q.Payload = engine.StreamID{}, JSON, patch.append(make([]byte, 0, patch.size))

	w.mu.Lock()
	defer w.mu.Unlock()
	merge := func() error {
		q.document, err = mergeSummary(w.summary.document, patch)
		return err
	}
	if merge() == nil && w.extend(q) {
		return nil
	}
	if w.blocked > 0 || err == nil && !w.room(q.weight()) {
		// Until this delta is first in line others may change the document.
		if err := w.await(ctx, func() bool { return merge() != nil || w.room(q.weight()) }); err != nil {
			return err
		}
	}
	if err := w.refused(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	w.summary.document, w.summary.version = q.document, w.summary.version+1
	q.SummaryVersion = w.summary.version
	w.push(q)
	return nil
}

// extend merges a delta into the newest queued frame, if that is a delta of the same kind which still waits and there
// is room. The two are one version.
func (w *Writer) extend(q queued) bool {
	at := len(w.queue) - 1
	if at < w.sending || w.blocked > 0 || w.refused() != nil {
		return false
	}
	last := &w.queue[at]
	if last.Mode != engine.ModeSummary || last.Type != q.Type || last.Correlation != q.Correlation {
		return false
	}
	both, ok := composed(last.patch, q.patch)
	grown := both.size + q.document.size - last.weight()
	if !ok || both.size > flowfabric.MaxFrame || w.bytes+grown > queueBytes {
		return false
	}
	w.bytes += grown
	last.patch, last.document, last.ProducedAt = both, q.document, q.ProducedAt
	last.Payload = both.append(make([]byte, 0, both.size))
	w.summary.document = q.document
	return true
}

// loadSummary finds out what document the first delta is merged into: none in a new attempt, else the stored one, which
// is read once, because from then on only this writer changes it.
func (w *Writer) loadSummary(ctx context.Context) error {
	w.mu.Lock()
	known := w.summary != nil
	w.mu.Unlock()
	if known {
		return nil
	}
	s := &summary{document: object(nil)}
	if w.cfg.LastSequence > 0 {
		if w.cfg.Summaries == nil {
			return fmt.Errorf("summary: %w: WriterConfig.Summaries is missing, an earlier pass may have left a document", flowfabric.ErrConfig)
		}
		stored, err := w.cfg.Summaries.ReadSummary(ctx, w.cfg.Fence.Execution, w.cfg.Fence.Attempt)
		if err != nil {
			return fmt.Errorf("summary: %w", err)
		}
		if s.document, err = parseDocument(stored.Document); err != nil {
			return fmt.Errorf("summary: %w: the stored document: %w", flowfabric.ErrCorrupt, err)
		}
		s.version = stored.Version
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.summary == nil { // or another delta came first
		w.summary = s
	}
	return nil
}

func parseDocument(text []byte) (*value, error) {
	if len(text) == 0 {
		return object(nil), nil
	}
	return parseObject(text)
}

func mergeSummary(document, patch *value) (*value, error) {
	next := merged(document, patch)
	if next.size > flowfabric.MaxSummary {
		return nil, fmt.Errorf("summary: %w: the document would have %d bytes, want at most %d",
			flowfabric.ErrSummaryTooLarge, next.size, flowfabric.MaxSummary)
	}
	return next, nil
}
