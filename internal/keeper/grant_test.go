package keeper_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// ungated keeps to itself what its claims are granted, as a gate that could not give it back.
type ungated struct {
	*engine.Engine
	looks, releases atomic.Int32
}

func (u *ungated) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	req.Gates = true
	reply, err := u.Engine.ClaimNext(ctx, req)
	reply.Granted, reply.Grants = len(reply.Grants) > 0, nil
	return reply, err
}

func (u *ungated) SessionHeld(ctx context.Context, partition uint16, session string) ([]engine.Held, error) {
	defer u.looks.Add(1)
	return u.Engine.SessionHeld(ctx, partition, session)
}

func (u *ungated) ReleaseExecution(ctx context.Context, fence flowfabric.Fence) (bool, error) {
	u.releases.Add(1)
	return u.Engine.ReleaseExecution(ctx, fence)
}

// What was granted and is neither claimed nor given back uses its number up. It is held by the session, but no
// orphan: its time is over soon. Meanwhile the session goes on, and may be closed.
func TestGrantsAreNoOrphans(t *testing.T) {
	ctx, cancel := testwait.Context(t, context.Background())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: testserver.Redis(t), Partitions: 1,
		Logger: quiet})
	must.No(t, err)
	defer e.Close()
	create := func(gates ...flowfabric.Gate) flowfabric.ExecutionID {
		x := engine.NewExecution{ID: mint.ID(0), Payload: []byte("{}"),
			Start: testgate.Asks(flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}, gates...)}
		if created, err := e.CreateExecutions(ctx, 0, []engine.NewExecution{x}); err != nil || created[0].Err != nil {
			t.Fatal(err, created)
		}
		return x.ID
	}
	granted := create(flowfabric.Gate("q"))
	u := &ungated{Engine: e}
	k := keeper.New(keeper.Config{Engine: u, Instance: "i", TTL: time.Hour, Logger: quiet})
	loop, stop := context.WithCancel(ctx)
	var running conc.WaitGroup
	running.Go(func() { _ = k.Run(loop) })
	defer func() { stop(); running.Wait() }()

	digest, err := e.SetSubscription(ctx, 0, engine.Subscription{Classes: []uint64{1, 2}})
	must.No(t, err)
	for i := range 2 {
		reply, err := k.Claim(ctx, engine.ClaimRequest{Max: 5, Subscription: digest, Rotation: uint64(i)})
		if err != nil || len(reply.Held) != i || reply.Duplicate {
			t.Fatalf("claim %d: %+v, %v", i+1, reply, err)
		}
		if i == 0 {
			create()
			continue
		}
		if f := reply.Held[0].Fence(); f.Claim != 2 {
			t.Errorf("the second claim has number %d", f.Claim)
		}
		k.Reconnected(0)
		testwait.Until(t, "the session looks for orphans", func() bool { return u.looks.Load() > 0 })
		if _, _, err := e.CompleteExecutions(ctx, 0, []engine.Completion{{Fence: reply.Held[0].Fence()}},
			nil); err != nil {
			t.Fatal(err)
		}
		reply.Held[0].Release()
	}
	if err := k.Close(ctx); err != nil { // what waited for the lease would take an hour
		t.Errorf("close: %v", err)
	}
	x, err := e.ReadExecution(ctx, granted)
	if err != nil || u.releases.Load() > 0 || x.Code != "G1f" || x.Reclaims > 0 {
		t.Errorf("%s, %d releases, %v", x.Code, u.releases.Load(), err)
	}
}
