package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/session"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// choosy is a store that, of the first batch of several completions, settles only the first item.
type choosy struct {
	store
	chosen atomic.Bool
}

func (c *choosy) CompleteExecutions(ctx context.Context, p uint16, items []engine.Completion,
	next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error) {
	if len(items) == 1 || !c.chosen.CompareAndSwap(false, true) {
		return c.store.CompleteExecutions(ctx, p, items, next)
	}
	settled, reply, err := c.store.CompleteExecutions(ctx, p, items[:1], next)
	for range items[1:] {
		settled = append(settled,
			engine.Settled{Err: denied.New("ff_complete_execution", flowfabric.CodeOf(flowfabric.ErrOutOfMemory))})
	}
	return settled, reply, err
}

// Of a batch of completions each gets its own answer: what was refused is settled again, by itself, and the worker
// does not end before.
func TestCompletedBatch(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	defer server.Close()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 1, Logger: quiet})
	must.No(t, err)
	defer e.Close()
	const all = 16
	var begun atomic.Int64
	together := make(chan struct{})
	kind := handler.Define[string, string]("k")
	w, err := New(Config{URL: server.URL(), Logger: quiet, LeaseTTL: time.Hour, Concurrency: 2 * all},
		handler.Bind(kind, func(ctx context.Context, _ *handler.Task, in string) (string, error) {
			if begun.Add(1) == all {
				close(together)
			}
			select {
			case <-together:
			case <-ctx.Done():
			}
			return in, nil
		}))
	must.No(t, err)
	c := &choosy{}
	w.open = func(ctx context.Context, cfg Config) (store, func(), error) {
		s, release, err := open(ctx, cfg)
		c.store = s
		return c, release, err
	}
	var items []engine.NewExecution
	for range all {
		items = append(items, engine.NewExecution{ID: mint.ID(0),
			Start: flowfabric.Start{Namespace: "default",
				Lane: "default", Kind: "k"}, Payload: []byte(`"x"`)})
	}
	if _, err := e.CreateExecutions(ctx, 0, items); err != nil {
		t.Fatal(err)
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
	for _, x := range items {
		testwait.Until(t, "it has completed", func() bool {
			s, err := e.ReadExecution(ctx, x.ID)
			must.No(t, err)
			if s.Attempts > 1 {
				t.Errorf("%s took %d attempts", x.ID, s.Attempts)
			}
			return s.Code == codes.Completed
		})
	}
	if !c.chosen.Load() {
		t.Error("there was no batch of several")
	}
}

// Completions of members of flows claim nothing more once the worker drains: they are left to be settled alone, and
// their slots are free.
func TestNoClaimWhileDraining(t *testing.T) {
	s := testScheduler(1, newSlots(8))
	c := &claimer{sched: s, slots: s.slots, session: &session.Session{Source: s.source}}
	c.draining.Store(true)
	kept := s.slots.take(3)
	if settled, made, err := c.completeAndClaim(0, make([]engine.Completion, 3), kept); made || settled != nil ||
		err != nil {
		t.Errorf("while draining: %v, made %v, %v", settled, made, err)
	}
	if s.slots.free() != 8 {
		t.Errorf("%d slots free; want untouched", s.slots.free())
	}
}
