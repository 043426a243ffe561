package runtime

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// withoutPolls is a store whose polls find nothing, so that work is found by rings alone. It tells where this worker
// is registered since it last found something.
type withoutPolls struct {
	store
	worker    *Worker
	forwarded atomic.Int64
	mu        sync.Mutex
	worked    map[uint16]bool
	waits     map[uint16]bool
}

func (d *withoutPolls) Poll(context.Context, []uint16) ([]engine.PollState, int, error) {
	return nil, 0, nil
}

func (d *withoutPolls) ForwardRing(ctx context.Context, partition uint16, subscription string) (int, error) {
	d.forwarded.Add(1)
	return d.store.ForwardRing(ctx, partition, subscription)
}

func (d *withoutPolls) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	reply, err := d.store.ClaimNext(ctx, req)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && len(reply.Claims) > 0 {
		d.worked[req.Partition] = true
	}
	// the subscription covers the table
	d.waits[req.Partition] = err == nil && reply.Registered && len(reply.Routes) == 0
	return reply, err
}

func (d *withoutPolls) waitsIn(partition uint16, worked bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waits[partition] && d.worked[partition] == worked
}

// crew is two workers of one kind on a server of two partitions that only rings can tell of work.
type crew struct {
	*testing.T
	ctx    context.Context
	url    string
	engine *engine.Engine
	kind   *handler.Definition[string, string]
}

func newCrew(t *testing.T, url string) *crew {
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	e, err := engine.Open(ctx,
		engine.Config{CallTimeout: time.Hour, URL: url, Partitions: 2, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(e.Close)
	return &crew{t, ctx, url, e, handler.Define[string, string]("k")}
}

// start runs a worker until the test ends; stop begins its drain.
func (c *crew) start(concurrency int, fn func(context.Context, *handler.Task, string) (string, error)) (
	d *withoutPolls, stop func()) {
	c.Helper()
	w, err := New(Config{URL: c.url, Concurrency: concurrency, DisableMaintenance: true, LeaseTTL: time.Hour,
		Logger: slog.New(slog.DiscardHandler)}, handler.Bind(c.kind, fn))
	if err != nil {
		c.Fatal(err)
	}
	d = &withoutPolls{worker: w, worked: map[uint16]bool{}, waits: map[uint16]bool{}}
	w.open = func(ctx context.Context, cfg Config) (store, func(), error) {
		s, release, err := open(ctx, cfg)
		d.store = s
		return d, release, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	var wg conc.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			c.Error(err)
		}
	})
	c.Cleanup(func() { cancel(); wg.Wait() })
	return d, cancel
}

func (c *crew) submit(partition uint16, in string) {
	c.Helper()
	x := engine.NewExecution{ID: mint.ID(partition), Start: flowfabric.Start{Namespace: "default",
		Lane: "default", Kind: "k"},
		Payload: []byte(`"` + in + `"`)}
	if created, err := c.engine.CreateExecutions(c.ctx, partition, []engine.NewExecution{x}); err != nil ||
		created[0].Err != nil {
		c.Fatal(err, created)
	}
}

func (c *crew) eventually(what string, ok func() bool) {
	c.Helper()
	testwait.Until(c.T, what, ok)
}

// A worker that was rung and cannot follow forwards the ring to one that can: because it is full, or because it drains
// . No poll and no tick helps here.
func TestRingIsForwarded(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"embedded": func(t *testing.T) string { return testserver.Embedded(t) },
		"redis":    func(t *testing.T) string { return testserver.Redis(t) },
	} {
		for why, slots := range map[string]int{"full": 1, "draining": 2} {
			t.Run(name+", "+why, func(t *testing.T) {
				c := newCrew(t, url(t))
				blocked, unblock, ran := make(chan struct{}), make(chan struct{}), make(chan string, 4)
				release := sync.OnceFunc(func() { close(unblock) })
				defer release()
				first, stop := c.start(slots, func(_ context.Context, _ *handler.Task, in string) (string, error) {
					if in == "block" {
						close(blocked)
						<-unblock
					}
					return in, nil
				})
				c.submit(0, "route")
				c.submit(1, "route")
				c.eventually("the first worker waits in both", func() bool {
					return first.waitsIn(0, true) && first.waitsIn(1, true)
				})
				c.submit(1, "block")
				<-blocked
				// It registered first, so it will be rung first.
				second, _ := c.start(1, func(_ context.Context, _ *handler.Task, in string) (string, error) {
					ran <- in
					return in, nil
				})
				c.eventually("the second worker waits", func() bool {
					return second.waitsIn(0, false) && second.waitsIn(1, false)
				})
				if why == "draining" {
					stop()
					c.eventually("the first worker drains", func() bool { return first.worker.Ready() != nil })
				}
				before := first.forwarded.Load()
				c.submit(0, "forwarded")
				select {
				case in := <-ran:
					if n := first.forwarded.Load() - before; in != "forwarded" || n != 1 {
						t.Errorf("the second worker ran %q after %d forwards, want one", in, n)
					}
				case <-c.ctx.Done():
					t.Errorf("the second worker was never rung, after %d forwards", first.forwarded.Load()-before)
				}
			})
		}
	}
}
