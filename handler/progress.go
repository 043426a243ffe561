package handler

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Progress reports how far this attempt got, for people and programs that read the execution: percent is
// 0..100, or -1 to keep the last one; message is up to 1 KiB, "" keeps the last one. It overwrites what was there and
// leaves no trace; a new attempt begins without progress. It is one call to the server, so a loop should not make it
// for every item; for output that must not be lost there are frames.
//
// Errors: flowfabric.ErrInvalidInput before any call; what took the lease away (ErrLeaseLost, ErrCancelled), also as
// the answer of the server, and the handler's context ends then; code task_consumed after the handler returned;
// ErrTransport, which may be ignored; the context's cause.
func (t *Task) Progress(ctx context.Context, percent int, message string) error {
	if percent < -1 || percent > 100 {
		return denied.Last(fmt.Errorf("%w: progress of %d percent, want 0..100, or -1 to keep the last",
			flowfabric.ErrInvalidInput, percent))
	}
	if len(message) > limits.MaxReason {
		return denied.Last(fmt.Errorf("%w: progress message has %d bytes, want at most %d", flowfabric.ErrInvalidInput,
			len(message), limits.MaxReason))
	}
	if err := t.lost(ctx); err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("progress: %w", context.Cause(ctx))
	}
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()
	if ended {
		return fmt.Errorf("progress: %w: the handler has returned", denied.TaskConsumed)
	}
	if t.cfg.Progress == nil {
		return nil
	}
	if err := t.cfg.Progress.UpdateProgress(ctx, t.Fence(), percent, message); err != nil {
		return fmt.Errorf("progress: %w", t.refuse(err))
	}
	return nil
}
