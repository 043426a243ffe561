package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// onRedis is an environment on a Redis server with 16 partitions.
func onRedis(t *testing.T) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	w := &env{T: t, ctx: ctx, url: testserver.Redis(t)}
	var err error
	if w.engine, err = engine.Open(ctx,
		engine.Config{CallTimeout: time.Hour, URL: w.url, Partitions: 16, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.engine.Close)
	return w
}

// owns gives all ticks to a process of the given name. It is as good as killed: nobody listens, and nobody ticks.
func (w *env) owns(instance string) {
	w.Helper()
	for p := range w.engine.Partitions() {
		if r, err := w.engine.Tick(w.ctx, p, instance, false); err != nil || !r.Owner {
			w.Fatalf("partition %d: %+v, %v", p, r, err)
		}
	}
}

// The owner of all ticks was killed, and a new worker starts. From then on every delay is on time, in each partition.
// 40 delays, 1,000 with FLOWFABRIC_SOAK.
func TestTimersAfterTheOwnerWasKilled(t *testing.T) {
	rounds := 2
	if os.Getenv("FLOWFABRIC_SOAK") != "" {
		rounds = 50
	}
	w := onRedis(t)
	began, ran := time.Now(), testwait.Running(t)
	var lateness []time.Duration
	for round := range rounds {
		w.owns(fmt.Sprintf("killed-%d", round))
		r := w.start(runtime.Config{}, greetBinding())
		delays := map[flowfabric.ExecutionID]time.Duration{}
		for i := range 20 {
			delay := time.Duration(1+rand.IntN(1000)) * time.Millisecond
			id := w.submit("x", func(x *engine.NewExecution) {
				x.ID, x.Delay = mint.ID(uint16((round*20+i)%16)), flowfabric.Millis(delay)
			})
			delays[id] = delay
		}
		for id, delay := range delays {
			s := w.reach(id, codes.Completed)
			lateness = append(lateness, s.ClaimedAt.Sub(s.CreatedAt)-delay)
		}
		must.No(t, r.stop())
	}
	slices.Sort(lateness)
	n := len(lateness)
	t.Logf("%d delays: half at most %v late, 99 %% at most %v, all at most %v", n, lateness[n/2], lateness[n*99/100],
		lateness[n-1])
	if stood := time.Since(began) - ran(); lateness[n-1] > 1200*time.Millisecond+stood {
		t.Errorf("a delay came %v late", lateness[n-1])
	}
}

// An operator gives up the worker that owns the ticks, and hangs: what it held runs elsewhere at once, not when its
// ticks are overdue.
func TestOwnerIsMarkedDead(t *testing.T) {
	w := onRedis(t)
	id := w.submit("x")
	p := id.Partition()
	q := engine.ClaimRequest{Partition: p, Session: "hung~1", Number: 1, Max: 1, TTL: time.Hour}
	table, err := w.engine.ClaimNext(w.ctx, q)
	must.No(t, err)
	if q.Subscription, err = w.engine.SetSubscription(w.ctx, p,
		engine.Subscription{Classes: []uint64{table.Routes[0].ID}}); err != nil {
		t.Fatal(err)
	}
	if reply, err := w.engine.ClaimNext(w.ctx, q); err != nil || len(reply.Claims) != 1 {
		t.Fatal(reply, err)
	}
	w.owns("hung")
	var channels []string
	for p := range w.engine.Partitions() {
		channels = append(channels, engine.BellChannel(p, "hung"))
	}
	ctx, cancel := context.WithCancel(w.ctx)
	listening := make(chan struct{})
	var hung conc.WaitGroup
	defer hung.Wait()
	defer cancel()
	hung.Go(func() { _ = w.engine.Subscribe(ctx, 0, channels, func() { close(listening) }, func(string, string) {}) })
	<-listening
	w.start(runtime.Config{}, greetBinding())
	c, err := client.Connect(w.ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: w.url,
		Logger: quiet})
	must.No(t, err)
	defer c.Close()
	marked, ran := time.Now(), testwait.Running(t)
	if held, err := admin.New(c).MarkWorkerDead(w.ctx, "hung"); err != nil || held != 1 {
		t.Fatal(held, err)
	}
	s := w.reach(id, codes.Completed)
	if took := s.AttemptLog[0].EndedAt.Sub(marked); took > 1200*time.Millisecond+time.Since(marked)-ran() {
		t.Errorf("its work was free %v after it was given up", took)
	}
}
