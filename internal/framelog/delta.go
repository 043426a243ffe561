package framelog

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mergepatch"
	"github.com/flowfabric/flowfabric-go/stream"
)

// SummaryReader reads the document that an earlier run has left; *engine.Engine is one.
type SummaryReader interface {
	ReadSummary(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (stream.Summary, error)
}

// summary is the document of an attempt as the deltas that its writer has queued make it.
type summary struct {
	document *mergepatch.Value
	version  uint64
}

// appendDelta is Append for a summary delta.
func (w *Writer) appendDelta(ctx context.Context, f stream.Frame) error {
	patch, err := mergepatch.Parse(f.Payload)
	if err != nil {
		return fmt.Errorf("summary delta: %w", err)
	}
	if err := w.loadSummary(ctx); err != nil {
		return err
	}
	q := queued{Frame: f, patch: patch}
	q.ID, q.Encoding, q.Payload = stream.Cursor{}, stream.JSON, patch.Append(make([]byte, 0, patch.Size))

	w.mu.Lock()
	defer w.mu.Unlock()
	merge := func() error {
		q.document, err = mergepatch.Merge(w.summary.document, patch)
		if err == nil && q.document.Size+w.cfg.Room > limits.MaxSummary {
			err = fmt.Errorf("summary: %w: the document has %d bytes, want at most %d where it is encrypted",
				flowfabric.ErrPayloadTooLarge, q.document.Size, limits.MaxSummary-w.cfg.Room)
		}
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
	if last.Mode != stream.ModeSummary || last.Type != q.Type || last.Correlation != q.Correlation ||
		last.Source != q.Source {
		return false
	}
	both, ok := mergepatch.Compose(last.patch, q.patch)
	grown := both.Size + q.document.Size - last.weight()
	if !ok || both.Size+w.cfg.Room > limits.MaxFrame || w.bytes+grown > queueBytes {
		return false
	}
	w.bytes += grown
	last.patch, last.document, last.ProducedAt = both, q.document, q.ProducedAt
	last.Payload = both.Append(make([]byte, 0, both.Size))
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
	s := &summary{document: mergepatch.Empty()}
	if w.cfg.LastSequence > 0 {
		if w.cfg.Summaries == nil {
			return fmt.Errorf("summary: %w: WriterConfig.Summaries is missing, an earlier run may have left a document",
				flowfabric.ErrConfig)
		}
		stored, err := w.cfg.Summaries.ReadSummary(ctx, w.cfg.Fence.Execution, w.cfg.Fence.Attempt)
		if err != nil {
			return fmt.Errorf("summary: %w", err)
		}
		if stored.Encrypted {
			return fmt.Errorf("summary: %w: the document of an earlier run", flowfabric.ErrEncrypted)
		}
		if s.document, err = mergepatch.ParseDocument(stored.Document); err != nil {
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
