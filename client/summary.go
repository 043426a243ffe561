package client

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/stream"
)

// summaries is the part of the engine that reads summary documents.
type summaries interface {
	ReadAttemptStream(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (engine.StreamMeta, error)
	ReadSummary(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (stream.Summary, error)
}

// Summary reads the summary document that the handler's Task.Summary calls have made so far, of the newest attempt.
// It is there until the execution is purged, and needs no tail. Version 0: the attempt has none (yet), or there is no
// such attempt. Document is one JSON object; json.Unmarshal reads it.
//
// Errors: flowfabric.ErrNotFound, ErrResultPurged.
func (e *Execution[Out]) Summary(ctx context.Context) (stream.Summary, error) {
	return e.client.summary(ctx, e.id, 0)
}

// SummaryOf is [Execution.Summary] of one attempt, 1 for the first.
func (e *Execution[Out]) SummaryOf(ctx context.Context, attempt uint32) (stream.Summary, error) {
	if attempt == 0 {
		return stream.Summary{}, fmt.Errorf("summary of %s: %w: attempts count from 1", e.id,
			flowfabric.ErrInvalidInput)
	}
	return e.client.summary(ctx, e.id, attempt)
}

// summary reads the document of an attempt, 0 is the newest.
func (c *Client) summary(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (stream.Summary, error) {
	if err := c.admit("summary of", id); err != nil {
		return stream.Summary{}, err
	}
	meta, err := c.store.ReadAttemptStream(ctx, id, max(attempt, 1))
	if err != nil {
		return stream.Summary{}, link.Operated("summary of", id, err)
	}
	if attempt == 0 && meta.Attempts > 1 {
		attempt = meta.Attempts
		if meta, err = c.store.ReadAttemptStream(ctx, id, attempt); err != nil {
			return stream.Summary{}, link.Operated("summary of", id, err)
		}
	}
	s, err := c.store.ReadSummary(ctx, id, max(attempt, 1))
	if err != nil {
		return stream.Summary{}, link.Operated("summary of", id, err)
	}
	s.StreamBytes = meta.Bytes
	return s, nil
}
