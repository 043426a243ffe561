package fftest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// gated is an environment whose store a test may talk to itself.
type gated struct {
	*Env
	e   *engine.Engine
	ran []time.Duration
}

func inGates(t *testing.T, f func(g *gated)) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{}
		began := time.Now()
		g.Env = New(t, runtime.Config{}, handler.Bind(handler.Define[string, string]("k"),
			func(context.Context, *handler.Task, string) (string, error) {
				g.ran = append(g.ran, time.Since(began).Round(time.Minute))
				return "", nil
			}))
		url, release := inproc.Listen(g.dial)
		defer release()
		var err error
		g.e, err = engine.Open(t.Context(),
			engine.Config{URL: url, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		g.no(err)
		defer g.e.Close()
		f(g)
	})
}

func (g *gated) no(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *gated) submit(n int, gates ...flowfabric.Gate) (ids []flowfabric.ExecutionID) {
	g.t.Helper()
	payload, _ := json.Marshal("x")
	for range n {
		x := engine.NewExecution{ID: mint.ID(0), Payload: payload,
			Start: testgate.Asks(flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}, gates...)}
		created, err := g.e.CreateExecutions(g.t.Context(), 0, []engine.NewExecution{x})
		g.no(err)
		g.no(created[0].Err)
		ids = append(ids, x.ID)
	}
	return ids
}

func (g *gated) done(ids []flowfabric.ExecutionID) {
	g.t.Helper()
	for _, id := range ids {
		g.no(g.await(g.t.Context(), id))
	}
}

// A window of a day lets three start; the environment steps over the day in which the others wait.
func TestRateInVirtualTime(t *testing.T) {
	inGates(t, func(g *gated) {
		_, _, _, err := g.e.PutGate(g.t.Context(),
			admission.Gate{Name: "daily", Rate: 3, Window: flowfabric.Millis(20 * time.Hour), Concurrency: 1}, 0)
		g.no(err)
		g.done(g.submit(7, flowfabric.Gate("daily")))
		if len(g.ran) != 7 || g.ran[2] > time.Minute || g.ran[3] < 20*time.Hour ||
			g.ran[5] > 20*time.Hour+time.Minute || g.ran[6] < 40*time.Hour {
			t.Errorf("ran at %v", g.ran)
		}
		g.Sleep(time.Second)
		q, err := g.e.ReadGate(g.t.Context(), "daily", 0, 0, 0)
		if err != nil || q.Held != 0 {
			t.Error(q.Held, err)
		}
	})
}

// An amount that is exhausted for a month.
func TestAmountInVirtualTime(t *testing.T) {
	inGates(t, func(g *gated) {
		b := admission.Gate{Name: "monthly", Reset: flowfabric.Millis(30 * 24 * time.Hour),
			Limits: map[string]admission.Limit{"tokens": {Hard: 1}}}
		_, _, _, err := g.e.PutGate(g.t.Context(), b, 0)
		g.no(err)
		_, err = g.e.ReportUsage(g.t.Context(),
			admission.Usage{Gate: "monthly", Key: "k", Amounts: map[string]int64{"tokens": 1}})
		g.no(err)
		g.done(g.submit(1, flowfabric.Gate("monthly")))
		if len(g.ran) != 1 || g.ran[0] != 30*24*time.Hour {
			t.Errorf("ran at %v", g.ran)
		}
	})
}

// Two tenants, one at once each and two an hour: neither waits for the other, and each obeys its own limit.
func TestLimitsOfKeysInVirtualTime(t *testing.T) {
	type job struct{ Tenant string }
	started := map[string][]time.Duration{}
	running, most := map[string]int{}, map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began := time.Now()
		definition := handler.Define[job, string]("job")
		env := New(t, runtime.Config{},
			handler.Bind(definition, func(ctx context.Context, _ *handler.Task, in job) (string, error) {
				mu.Lock()
				started[in.Tenant] = append(started[in.Tenant], time.Since(began).Round(time.Minute))
				running[in.Tenant]++
				most[in.Tenant] = max(most[in.Tenant], running[in.Tenant])
				mu.Unlock()
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				running[in.Tenant]--
				return "", ctx.Err()
			}))
		var all []*Execution[string]
		for range 4 {
			for _, tenant := range []string{"red ink", "blue"} {
				all = append(all, Submit(env, definition, job{tenant},
					flowfabric.LimitKey(tenant, flowfabric.Limit{Concurrency: 1, Rate: 2, Per: time.Hour})))
			}
		}
		for _, x := range all {
			x.Wait()
		}
	})
	for _, tenant := range []string{"red ink", "blue"} {
		at := started[tenant]
		if len(at) != 4 || most[tenant] != 1 || at[1] > 10*time.Minute || at[2] < time.Hour || at[3] > 2*time.Hour {
			t.Errorf("%s: started at %v, %d at once", tenant, at, most[tenant])
		}
	}
}
