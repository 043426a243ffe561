package runtime_test

import (
	"context"
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Progress shows while the handler runs, belongs to its attempt, and ends with the lease, whose loss the handler gets
// to know.
func TestProgress(t *testing.T) {
	w := newEnv(t)
	told, lost := make(chan struct{}), make(chan error, 1)
	w.start(runtime.Config{},
		handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if task.Attempt() > 1 {
				return "done", nil
			}
			if err := errors.Join(task.Progress(ctx, 40, "page 4"), task.Progress(ctx, -1, "page 5")); err != nil {
				return "", err
			}
			close(told)
			<-ctx.Done()
			err := task.Progress(context.WithoutCancel(ctx), 50, "") // the task knows, whatever context it is given
			lost <- err
			return "", err
		}))
	id := w.submit("x")
	<-told
	got, err := w.engine.ReadExecution(w.ctx, id)
	if err != nil || got.Progress.Percent == nil || *got.Progress.Percent != 40 ||
		got.Progress.Message != "page 5" || got.Progress.At.IsZero() {
		t.Errorf("%+v, %v", got.Progress, err)
	}
	if _, err := w.engine.RevokeLease(w.ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; !errors.Is(err, flowfabric.ErrLeaseLost) {
		t.Errorf("progress after the lease was taken: %v", err)
	}
	got = w.reach(id, codes.Completed)
	if got.Attempts != 2 || got.Retries != 0 || got.Reclaims != 1 || got.Progress != (engine.Progress{}) {
		t.Errorf("%d attempts, %d retries, %d reclaims, progress %+v", got.Attempts, got.Retries, got.Reclaims,
			got.Progress)
	}
}
