package client

import (
	"context"
	"iter"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Logs yields what the handler of an execution logged with its task's logger, as far as it is kept: of each attempt the
// last 1,000 lines and 256 KiB, see handler.KeepLogs. It begins with the oldest line of the range. With Follow it waits
// for further lines, which come within a second as a rule, and ends with the execution, or with the attempt of the
// range; without, it ends where it would wait.
//
// It ends with an error: flowfabric.ErrInvalidInput for a range; ErrNotFound; ErrResultPurged; the cause of ctx;
// [ErrClosed].
func (e *Execution[Out]) Logs(ctx context.Context, in stream.LogRange) iter.Seq2[stream.LogLine, error] {
	c, id := e.client, e.id
	return func(yield func(stream.LogLine, error) bool) {
		if err := c.admit("logs of", id); err != nil {
			yield(stream.LogLine{}, err)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(c.waits.life, func() { cancel(ErrClosed) })()
		for page, err := range c.store.Log(ctx, id, in) {
			if err != nil {
				yield(stream.LogLine{}, link.Operated("logs of", id, err))
				return
			}
			for _, line := range page.Lines {
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}

// logReader is the part of the engine that reads what handlers logged.
type logReader interface {
	Log(ctx context.Context, id flowfabric.ExecutionID, q stream.LogRange) iter.Seq2[engine.LogPage, error]
}
