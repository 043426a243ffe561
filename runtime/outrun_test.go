package runtime

import (
	"context"
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// outrun refuses frames as the server does of an execution that has ended, before any notice of it.
type outrun struct {
	store
	state codes.Code
}

func (o outrun) AppendFrames(context.Context, flowfabric.Fence, uint64, []stream.Frame) (engine.Appended, error) {
	return engine.Appended{}, denied.New("ff_append_frames", "stream_closed", string(o.state))
}

// A handler whose frames are refused because the execution was cancelled is told so, and not that its lease was lost.
func TestRefusalThatOutranTheNotice(t *testing.T) {
	for state, want := range map[codes.Code]error{
		codes.Cancelled: flowfabric.ErrCancelled, codes.Expired: flowfabric.ErrDeadline,
		codes.Completed: flowfabric.ErrLeaseLost,
	} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t, quiet, func(s store) store { return outrun{s, state} })
			opened, told, ready := b.worker.open, make(chan error, 1), make(chan struct{})
			var err error
			cfg := b.worker.cfg
			cfg.URL = b.worker.target().URL
			b.worker, err = New(cfg, handler.Bind(handler.Define[string, string]("k"),
				func(ctx context.Context, task *handler.Task, _ string) (string, error) {
					defer close(ready)
					if err := task.Frame(ctx, "token", "x"); err != nil {
						return "", err
					}
					<-ctx.Done()
					told <- context.Cause(ctx)
					return "", context.Cause(ctx)
				}))
			must.No(t, err)
			b.worker.open = opened
			b.run(t, ready)
			if cause := <-told; !errors.Is(cause, want) {
				t.Errorf("the cause is %v, want %v", cause, want)
			}
		})
	}
}
