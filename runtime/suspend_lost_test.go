package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// forgetful loses the replies to the first calls about waiting, after they have taken effect.
type forgetful struct {
	store
	suspends, pends atomic.Int64
}

func (f *forgetful) SuspendExecution(ctx context.Context, fence flowfabric.Fence,
	q engine.Suspension) (engine.Suspended, error) {
	s, err := f.store.SuspendExecution(ctx, fence, q)
	if n := f.suspends.Add(1); err == nil && n%3 != 0 {
		return engine.Suspended{}, fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	return s, err
}

func (f *forgetful) CreatePendingWaitpoint(ctx context.Context, fence flowfabric.Fence, name string, m engine.Minted,
	life time.Duration) (engine.Opened, error) {
	o, err := f.store.CreatePendingWaitpoint(ctx, fence, name, m, life)
	if n := f.pends.Add(1); err == nil && n%2 != 0 {
		return engine.Opened{}, fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	return o, err
}

// A suspension whose reply is lost twice, and a pending waitpoint whose reply is lost, are there once; so is a wait
// that was answered early.
func TestLostRepliesOfWaits(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	defer server.Close()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 1, Logger: quiet})
	must.No(t, err)
	defer e.Close()
	var runs atomic.Int64
	w, err := New(Config{URL: server.URL(), Logger: quiet, LeaseTTL: time.Hour,
		TokenKeys: "k:" + strings.Repeat("01", 32)},
		handler.Bind(handler.Define[string, string]("k"),
			func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				runs.Add(1)
				token, err := task.Pending(ctx, "early", time.Hour)
				if err != nil {
					return "", err
				}
				if _, err := handler.Step(ctx, task, "signal", func(ctx context.Context) (string, error) {
					d, err := e.DeliverSignal(ctx, token.Execution(), token.Waitpoint(), token.Digest(),
						suspend.SentSignal{Name: "s", Payload: []byte(`"a"`)})
					return string(d.Effect), err
				}); err != nil {
					return "", err
				}
				a, err := handler.Await[string](ctx, task, "early")
				if err != nil {
					return "", err
				}
				b, err := handler.Await[string](ctx, task, "late")
				return a + b, err
			}))
	must.No(t, err)
	f := &forgetful{}
	w.open = func(ctx context.Context, cfg Config) (store, func(), error) {
		s, release, err := open(ctx, cfg)
		f.store = s
		return f, release, err
	}
	run, stop := context.WithCancel(ctx)
	var wg conc.WaitGroup
	wg.Go(func() {
		if err := w.Run(run); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	defer stop()
	x := engine.NewExecution{ID: mint.ID(0), Start: flowfabric.Start{Namespace: "default",
		Lane: "default", Kind: "k"},
		Payload: []byte(`""`)}
	if created, err := e.CreateExecutions(ctx, 0, []engine.NewExecution{x}); err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	reach := func(code codes.Code) {
		t.Helper()
		testwait.Progress(t, "it is "+string(code), func() (bool, any) {
			s, err := e.ReadExecution(ctx, x.ID)
			must.No(t, err)
			return s.Code == code, s.Code
		})
	}
	reach(codes.AwaitingSignal)
	testwait.Progress(t, "lost calls to suspend are repeated", func() (bool, any) {
		// an answer must not overtake the repeats
		n := f.suspends.Load()
		return n >= 6, n
	})
	u, err := e.ReadSuspension(ctx, x.ID)
	if err != nil || len(u.Waitpoints) != 2 || u.Name != "late" {
		t.Errorf("suspension %+v, %v", u, err)
	}
	if _, err := e.ApproveWaitpoint(ctx, x.ID, "late",
		suspend.SentSignal{Name: "s", Source: "anna", Payload: []byte(`"b"`)}); err != nil {
		t.Fatal(err)
	}
	reach(codes.Completed)
	events, err := e.ReadHistory(ctx, x.ID)
	must.No(t, err)
	suspended := 0
	for _, ev := range events {
		if ev.Kind == timeline.EventSuspended {
			suspended++
		}
	}
	result, _, err := e.ReadResult(ctx, x.ID, 1)
	if suspended != 1 || string(result) != `"ab"` || runs.Load() != 3 || err != nil {
		t.Errorf("suspended %d times, result %s, %d runs, %v", suspended, result, runs.Load(), err)
	}
	if f.suspends.Load() != 6 || f.pends.Load() != 2 {
		t.Errorf("%d calls to suspend, %d to open a waitpoint, want 6 and 2", f.suspends.Load(), f.pends.Load())
	}
}
