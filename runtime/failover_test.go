package runtime_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// onePartition starts a worker of one kind on a server of its own with a single partition.
func onePartition(t *testing.T, h func(context.Context, *handler.Task, string) (string, error)) (
	*engine.Engine, rueidis.Client) {
	t.Helper()
	url := testserver.Redis(t)
	e, err := engine.Open(t.Context(), engine.Config{CallTimeout: time.Hour, URL: url, Partitions: 1})
	must.No(t, err)
	t.Cleanup(e.Close)
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{strings.TrimPrefix(url, "unix://")},
		DisableCache: true, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	must.No(t, err)
	t.Cleanup(raw.Close)
	worker, err := runtime.New(runtime.Config{URL: url}, handler.Bind(handler.Define[string, string]("kind-a"), h))
	must.No(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return e, raw
}

func createKind(t *testing.T, e *engine.Engine, kind string) flowfabric.ExecutionID {
	t.Helper()
	x := engine.NewExecution{ID: mint.ID(0), Start: flowfabric.Start{Namespace: "default",
		Lane: "default", Kind: kind},
		Payload: []byte(`"x"`)}
	c, err := e.CreateExecutions(t.Context(), 0, []engine.NewExecution{x})
	if err != nil || c[0].Err != nil {
		t.Fatal(err, c)
	}
	return x.ID
}

func ended(t *testing.T, e *engine.Engine, id flowfabric.ExecutionID) func() bool {
	return func() bool {
		s, err := e.ReadExecution(t.Context(), id)
		return err == nil && s.Code == codes.Completed
	}
}

// A failover loses the row of a route, and a kind that this worker does not serve gets its id. Its work is handed back
// untouched; the worker's own kind, under a new id, goes on.
func TestAnotherKindUnderALostRouteID(t *testing.T) {
	var ran atomic.Int32
	e, raw := onePartition(t, func(context.Context, *handler.Task, string) (string, error) {
		ran.Add(1)
		return "",
			nil
	})
	first := createKind(t, e, "kind-a")
	testwait.Until(t, "the first has ended", ended(t, e, first))
	k := keys.Of(0)
	do := func(args ...string) rueidis.RedisResult {
		return raw.Do(t.Context(), raw.B().Arbitrary(args...).Build())
	}
	testwait.Until(t, "the worker waits", func() bool {
		digests, err := do("SMEMBERS", k.Digests()).AsStrSlice()
		return err == nil && len(digests) == 1
	})
	for _, lost := range [][]string{{"DEL", k.Routes(), k.RouteIDs(), k.RouteLog()},
		{"HDEL", string(k), "table", "routes"}} {
		must.No(t, do(lost...).Error())
	}
	other := createKind(t, e, "kind-b")
	testwait.Until(t, "the other kind's work was handed back", func() bool {
		s, err := e.ReadExecution(t.Context(), other)
		return err == nil && s.Code == codes.WaitingInterrupted
	})
	testwait.Until(t, "the worker's own kind goes on", ended(t, e, createKind(t, e, "kind-a")))
	if s, err := e.ReadExecution(t.Context(), other); err != nil || s.Code != codes.WaitingInterrupted ||
		ran.Load() != 2 {
		t.Errorf("the other kind is %s (%v), the handler ran %d times", s.Code, err, ran.Load())
	}
}

// Progress is a hint: a partition that is frozen for a moment costs no attempt.
func TestProgressOfAFrozenPartition(t *testing.T) {
	began, frozen, said := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	e, _ := onePartition(t, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		close(began)
		<-frozen
		err := task.Progress(ctx, 50, "half")
		said <- err
		return "", err
	})
	id := createKind(t, e, "kind-a")
	<-began
	must.No(t, e.FreezePartition(trail.As(t.Context(), "", "slot move"), 0))
	close(frozen)
	if err := <-said; err != nil {
		t.Errorf("progress: %v", err)
	}
	must.No(t, e.ThawPartition(t.Context(), 0))
	testwait.Until(t, "it has ended", ended(t, e, id))
	if s, err := e.ReadExecution(t.Context(), id); err != nil || s.Attempts != 1 || s.Retries != 0 {
		t.Errorf("%d attempts, %d retries, %v", s.Attempts, s.Retries, err)
	}
}
