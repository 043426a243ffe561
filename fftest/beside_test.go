package fftest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Who reads beside a run is there while it goes on, outlives the deaths of its worker, and has read all of it when the
// report is looked at.
func TestBeside(t *testing.T) {
	var said stream.Transcript
	retold := 0
	fftest.Crashes(t, greet, func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		said = stream.Transcript{}
		begun := make(chan struct{}) // the handler waits for its reader
		fx.Beside = func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
			first := true
			for e, err := range c.Execution(id).Tail(ctx) {
				if err != nil {
					t.Error(err)
					return
				}
				if said.Add(e) {
					retold++
				}
				if e.Kind == stream.TailFrame && first {
					first = false
					close(begun)
				}
			}
		}
		return func(ctx context.Context, task *handler.Task, in string) (string, error) {
			return handler.Step(ctx, task, "talk", func(ctx context.Context) (string, error) {
				if err := task.Frame(ctx, "token", "a"); err != nil {
					return "", err
				}
				if err := task.Flush(ctx); err != nil {
					return "", err
				}
				select {
				case <-begun:
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
				return in, task.Frame(ctx, "token", "b")
			})
		}
	}, "x", func(r *fftest.Report[string]) {
		if kept := r.Kept("token"); said.Text() != "ab" || !slices.Equal(kept, []string{"a", "b"}) {
			t.Errorf("%s: the reader has %q, the report %q", r.Crash, said.Text(), kept)
		}
	})
	if retold == 0 {
		t.Error("the reader was never told anything again")
	}
}

// What goes on for too long beside a run is ended, and fails the test.
func TestBesideIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &complaints{TB: t}
		var ended atomic.Int64
		began := time.Now()
		r := fftest.Run(c, greet, func(context.Context, *handler.Task, string) (string, error) { return "", nil }, "",
			fftest.Also(func(fx *fftest.Effects) []handler.Binding {
				fx.Beside = func(ctx context.Context, _ *client.Client, _ flowfabric.ExecutionID) {
					<-ctx.Done()
					ended.Store(int64(time.Since(began)))
				}
				return nil
			}))
		c.mention(t, "what runs beside the execution goes on 1m0s after its end")
		if d := time.Duration(ended.Load()); d < time.Minute || len(c.all) != 1 || r.Err != nil {
			t.Errorf("it ended after %s, %q, %v", d, c.all, r.Err)
		}
	})
}
