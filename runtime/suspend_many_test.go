package runtime_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// raw is a plain connection to a server of the testserver package.
func raw(t *testing.T, url string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{strings.TrimPrefix(url, "unix://")},
		DisableCache: true, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		}})
	must.No(t, err)
	t.Cleanup(c.Close)
	return c
}

// gauge reads one of a worker's gauges.
func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := reg.Gather()
	must.No(t, err)
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no gauge %s", name)
	return 0
}

// Suspended executions hold nothing: no slot, so that four of them pass thousands through; no lease; no goroutine.
// All of them complete when they are answered. 1,000 of them, 10,000 with FLOWFABRIC_SOAK.
func TestManySuspended(t *testing.T) {
	count := 1000
	if os.Getenv("FLOWFABRIC_SOAK") != "" {
		count = 10_000
	}
	url := testserver.Redis(t)
	w, c := envAt(t, url), raw(t, url)
	reg := prometheus.NewRegistry()
	cfg := signing()
	cfg.Concurrency, cfg.Registerer = 4, reg
	w.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		return handler.Await[string](ctx, task, "go")
	}))
	first := w.submit("x")
	w.reach(first, codes.AwaitingSignal)
	before := goruntime.NumGoroutine()

	ids := []flowfabric.ExecutionID{first}
	for len(ids) < count {
		p := uint16(len(ids) % 4)
		batch := make([]engine.NewExecution, min(100, count-len(ids)))
		for i := range batch {
			batch[i] = engine.NewExecution{ID: mint.ID(p),
				Start: flowfabric.Start{Namespace: "default", Lane: "default",
					Kind: "greet"}, Payload: []byte(`"x"`)}
			ids = append(ids, batch[i].ID)
		}
		if _, err := w.engine.CreateExecutions(w.ctx, p, batch); err != nil {
			t.Fatal(err)
		}
	}
	await := func(code codes.Code) {
		t.Helper()
		for _, id := range ids {
			w.reach(id, code)
		}
	}
	await(codes.AwaitingSignal)
	w.eventually("no handler runs", func() bool { return gauge(t, reg, "flowfabric_in_flight") == 0 })
	for p := range uint16(4) {
		sessions, err := c.Do(w.ctx, c.B().Zrange().Key(keys.Of(p).Sessions()).Min("0").Max("-1").Build()).AsStrSlice()
		must.No(t, err)
		for _, s := range sessions {
			if held, err := w.engine.SessionHeld(w.ctx, p, s); err != nil || len(held) > 0 {
				t.Errorf("partition %d: session %s holds %d executions, %v", p, s, len(held), err)
			}
		}
	}
	var now int
	w.eventually("there are no more goroutines than before", func() bool {
		now = goruntime.NumGoroutine()
		return now <= before+20
	})
	t.Logf("%d suspended; %d goroutines before, %d now", count, before, now)

	for _, id := range ids {
		w.signalled(id, "go", `"on"`, waitwords.EffectSatisfied)
	}
	await(codes.Completed)
}
