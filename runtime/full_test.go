package runtime_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// The store is over its memory limit and every process is started anew. They connect, an operator looks, cancels,
// holds lanes and shortens what is kept, the tick purges, and then work goes on.
func TestEverythingRestartsOverTheMemoryLimit(t *testing.T) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) {
			s := testserver.Start(t, kind)
			ctx, cancel := testwait.Context(t, t.Context())
			defer cancel()
			opened := func() *engine.Engine {
				e, err := engine.Open(ctx,
					engine.Config{CallTimeout: time.Hour, URL: s.URL(), Partitions: 4, Logger: quiet})
				if err != nil {
					t.Fatalf("connect: %v", err)
				}
				t.Cleanup(e.Close)
				return e
			}
			w := &env{T: t, ctx: ctx, url: s.URL(), engine: opened()}
			big := strings.Repeat("x", 256<<10)
			echo := func() handler.Binding {
				return handler.Bind(greet, func(_ context.Context, _ *handler.Task, in string) (string, error) {
					return in, nil
				})
			}
			keys := "a:" + strings.Repeat("a1", 32)
			first := w.start(runtime.Config{Instance: "one", LeaseTTL: time.Second, TokenKeys: keys}, echo())
			var ended []flowfabric.ExecutionID
			for range 24 {
				ended = append(ended, w.submit(big))
			}
			for _, id := range ended {
				w.reach(id, codes.Completed)
			}
			must.No(t, first.stop())
			raw := plain(t, s.URL())
			raw.limit(ctx, raw.used(ctx)+2<<20)
			waiting := []flowfabric.ExecutionID{}
			for {
				x := engine.NewExecution{ID: mint.ID(1),
					Start: flowfabric.Start{Namespace: "default", Lane: "default",
						Kind: "greet"}, Payload: []byte(`"` + big + `"`)}
				_, err := w.engine.CreateExecutions(ctx, 1, []engine.NewExecution{x})
				if errors.Is(err, flowfabric.ErrOutOfMemory) {
					break
				}
				if err != nil || len(waiting) > 100 {
					t.Fatalf("%d were created, then %v", len(waiting), err)
				}
				waiting = append(waiting, x.ID)
			}
			raw.limit(ctx, raw.used(ctx)-1<<20) // connections come and go: it stays over the limit

			w.engine.Close()
			w.engine = opened()
			w.start(runtime.Config{Instance: "two", LeaseTTL: time.Second, TokenKeys: keys}, echo())
			page, err := w.engine.ListExecutions(ctx, 1,
				engine.ListQuery{Index: engine.IndexWaiting, Key: "1", Limit: 100})
			if err != nil || len(page.Executions) != len(waiting) {
				t.Errorf("list: %d of %d, %v", len(page.Executions), len(waiting), err)
			}
			if _, err := w.engine.CancelExecution(ctx, waiting[0],
				engine.Cancellation{Source: engine.CancelOperator}); err != nil {
				t.Errorf("cancel: %v", err)
			}
			if _, err := w.engine.PurgeExecution(ctx, waiting[0], 0); err != nil {
				t.Errorf("purge: %v", err)
			}
			for _, change := range []wire.SetLane{{State: "paused"}, {State: "active"}, {Retention: "1///"}} {
				change.Namespace, change.Lane = "default", "default"
				for _, r := range w.engine.SetLane(ctx, change) {
					if r.Err != nil {
						t.Errorf("lane: %v", r.Err)
					}
				}
			}
			if _, err := w.engine.CreateExecutions(ctx, 1, []engine.NewExecution{{ID: mint.ID(1),
				Start:   flowfabric.Start{Namespace: "default", Lane: "default", Kind: "greet"},
				Payload: []byte(`"in"`)}}); !errors.Is(err, flowfabric.ErrOutOfMemory) {
				t.Errorf("it is not full any more: %v", err)
			}
			if r, err := maintain.Audit(ctx, maintain.AuditConfig{Engine: w.engine, Repair: true}); err != nil ||
				!r.Sound || r.Kinds[engine.FindingRetention] != len(ended) {
				t.Errorf("audit: %+v, %v", r.Kinds, err)
			}
			for _, id := range waiting[1:] { // the tick of the new worker purges, and what was refused is handed out
				w.eventually("what was refused ends", func() bool {
					s, err := w.engine.ReadExecution(ctx, id)
					if errors.Is(err, flowfabric.ErrResultPurged) { // it has ended, and its second is over
						return true
					}
					must.No(t, err)
					return s.Code == codes.Completed
				})
			}
			w.eventually("there is room for more", func() bool { // what the tick has purged
				_, err := w.engine.CreateExecutions(ctx, 1, []engine.NewExecution{{ID: mint.ID(1),
					Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "greet"}}})
				if err != nil && !errors.Is(err, flowfabric.ErrOutOfMemory) {
					t.Fatal(err)
				}
				return err == nil
			})
		})
	}
}

// memory is a plain client that reads and sets what concerns memory.
type memory struct {
	*testing.T
	rueidis.Client
}

func plain(t *testing.T, url string) memory {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	must.No(t, err)
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := rueidis.NewClient(option)
	must.No(t, err)
	t.Cleanup(client.Close)
	return memory{t, client}
}

func (m memory) used(ctx context.Context) int64 {
	m.Helper()
	text, err := m.Do(ctx, m.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		m.Fatal(err)
	}
	_, text, _ = strings.Cut(text, "used_memory:")
	text, _, _ = strings.Cut(text, "\r")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		m.Fatal(err)
	}
	return n
}

func (m memory) limit(ctx context.Context, bytes int64) {
	m.Helper()
	if err := m.Do(ctx, m.B().ConfigSet().ParameterValue().ParameterValue("maxmemory",
		strconv.FormatInt(bytes, 10)).Build()).Error(); err != nil {
		m.Fatal(err)
	}
}
