package runtime

import (
	"context"
	"fmt"
	"strconv"
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

// dependants counts how members of flows are claimed: with a completion, or by a call of its own. With lose every
// completion that claims takes effect and its first reply is lost.
type dependants struct {
	store
	lose               bool
	seen               sync.Map
	joined, own, found atomic.Int64
}

func (h *dependants) CompleteExecutions(ctx context.Context, p uint16, items []engine.Completion,
	next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error) {
	s, c, err := h.store.CompleteExecutions(ctx, p, items, next)
	if next == nil || err != nil {
		return s, c, err
	}
	h.joined.Add(1)
	h.found.Add(int64(len(c.Claims)))
	if _, again := h.seen.LoadOrStore(items[0].Fence, true); h.lose && !again {
		return nil, nil, fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	return s, c, nil
}

func (h *dependants) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	h.own.Add(1)
	return h.store.ClaimNext(ctx, req)
}

// The members of a chain come to the worker that ended the one before with that end: no ring and no claim lie
// between. And if the answers are lost, everything is still settled once and run once.
func TestChainsNeedNoClaims(t *testing.T) {
	for _, lose := range []bool{false, true} {
		t.Run(fmt.Sprint("lost ", lose), func(t *testing.T) {
			const length = 30
			ctx, cancel := testwait.Context(t, t.Context())
			defer cancel()
			url := testserver.Redis(t)
			e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Partitions: 2, Logger: quiet})
			must.No(t, err)
			defer e.Close()
			var runs [length]atomic.Int64
			worker, err := New(Config{URL: url, Logger: quiet, LeaseTTL: time.Hour},
				handler.Bind(handler.Define[int, int]("k"),
					func(_ context.Context, _ *handler.Task, n int) (int, error) {
						runs[n].Add(1)
						return n, nil
					}))
			must.No(t, err)
			h := &dependants{lose: lose}
			worker.open = func(ctx context.Context, cfg Config) (store, func(), error) {
				s, release, err := open(ctx, cfg)
				h.store = s
				return h, release, err
			}
			run, stop := context.WithCancel(ctx)
			var wg conc.WaitGroup
			defer wg.Wait()
			defer stop()
			wg.Go(func() {
				if err := worker.Run(run); err != nil {
					t.Error(err)
				}
			})

			id := flowfabric.FlowID(mint.ID(1))
			members := make([]engine.FlowMember, length)
			for i := range members {
				name := strconv.Itoa(i)
				members[i] = engine.FlowMember{Node: name,
					NewExecution: engine.NewExecution{ID: id.Member(name),
						Start: flowfabric.Start{Namespace: "default", Lane: "default",
							Kind: "k"}, Payload: []byte(name)}}
				if i > 0 {
					members[i].Edges = []engine.FlowEdge{{From: members[i-1].ID}}
				}
			}
			if _, err := e.CreateFlow(ctx, engine.NewFlow{ID: id, Namespace: "default", Kind: "chain", Members: members,
				Mode: engine.SealClosed}); err != nil {
				t.Fatal(err)
			}
			testwait.Progress(t, "the flow has ended", func() (bool, any) {
				f, err := e.DescribeFlow(ctx, id)
				must.No(t, err)
				return !f.EndedAt.IsZero(), fmt.Sprint(f.Count)
			})
			for i := range runs {
				if n := runs[i].Load(); n != 1 {
					t.Errorf("member %d ran %d times", i, n)
				}
			}
			joined, own, found := h.joined.Load(), h.own.Load(), h.found.Load()
			if !lose && (joined < length-2 || found < length-2 || own > length/3) {
				t.Errorf(
					"%d completions claimed, and found %d members, want nearly all of %d; and %d claims of their own, want few",
					joined, found, length, own)
			}
			if lose && joined < length/6 { // each that is lost is settled again alone, and claimed for by a claim round
				t.Errorf("%d completions claimed: no reply worth mentioning was lost", joined)
			}
		})
	}
}
