package keeper_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// rig is a keeper on a real server, behind a proxy that can lose answers, and an engine that sees it directly.
type rig struct {
	*testing.T
	ctx    context.Context
	proxy  *proxy
	direct *engine.Engine
	keeper *keeper.Keeper
	digest string
}

func newRig(t *testing.T) *rig {
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	url := testserver.Redis(t, testserver.TCP())
	r := &rig{T: t, ctx: ctx, proxy: newProxy(t, strings.TrimPrefix(url, "redis://"))}
	open := func(url string) *engine.Engine {
		e, err := engine.Open(ctx, engine.Config{URL: url, Partitions: 1, Logger: quiet})
		must.No(t, err)
		t.Cleanup(e.Close)
		return e
	}
	r.direct = open(url)
	r.keeper = keeper.New(keeper.Config{Engine: open(r.proxy.url()), Instance: "i", TTL: time.Hour, Logger: quiet})
	loop, stop := context.WithCancel(ctx)
	var running conc.WaitGroup
	running.Go(func() { _ = r.keeper.Run(loop) })
	t.Cleanup(func() { stop(); running.Wait() })
	return r
}

// submit creates executions of one kind and stores the subscription in them.
func (r *rig) submit(n int) {
	r.Helper()
	for range n {
		x := engine.NewExecution{ID: mint.ID(0), Start: flowfabric.Start{Namespace: "default",
			Lane: "default", Kind: "k"},
			Payload: []byte("{}")}
		if created, err := r.direct.CreateExecutions(r.ctx, 0, []engine.NewExecution{x}); err != nil ||
			created[0].Err != nil {
			r.Fatal(err, created)
		}
	}
	table, err := r.direct.ClaimNext(r.ctx, engine.ClaimRequest{Session: "looker~1", Number: 1, TTL: time.Hour, Max: 1})
	if err != nil || len(table.Routes) != 1 {
		r.Fatal(err, table)
	}
	if r.digest, err = r.direct.SetSubscription(r.ctx, 0,
		engine.Subscription{Classes: []uint64{table.Routes[0].ID}}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) claim(n int) (keeper.Reply, error) {
	return r.keeper.Claim(r.ctx, engine.ClaimRequest{Max: n, Subscription: r.digest, Wait: true})
}

func (r *rig) read(h *keeper.Held) engine.Snapshot {
	r.Helper()
	x, err := r.direct.ReadExecution(r.ctx, h.Fence().Execution)
	if err != nil {
		r.Fatal(err)
	}
	return x
}

// A connection that dies with the answer to a claim on it: the claim had taken effect, its repeat names what it took.
// What then cannot be settled is handed back while its neighbour runs on. Nothing waits for the ttl.
func TestConnectionDiesWithAClaimsAnswer(t *testing.T) {
	r := newRig(t)
	r.submit(4)
	first, err := r.claim(1)
	if err != nil || len(first.Held) != 1 {
		t.Fatal(err, first)
	}
	r.proxy.lose()
	if reply, err := r.claim(2); !errors.Is(err, flowfabric.ErrTransport) {
		t.Fatalf("%+v, %v", reply, err)
	}
	session := first.Held[0].Fence().Session
	if members, err := r.direct.SessionHeld(r.ctx, 0, session); err != nil || len(members) != 3 {
		t.Fatalf("the lost claim took %d: %v", len(members)-1, err)
	}
	r.proxy.restore()
	var second keeper.Reply
	testwait.Until(r.T, "the repeat is answered", func() bool {
		second, err = r.claim(1)
		return err == nil
	})
	if !second.Duplicate || len(second.Held) != 2 || second.Held[0].Fence().Session != session {
		t.Fatalf("repeat: %+v", second)
	}

	poor, rich := second.Held[0], second.Held[1]
	poor.Abandon()
	testwait.Until(r.T, "it is handed back", func() bool { return r.read(poor).Code == codes.WaitingInterrupted })
	if x := r.read(poor); x.Attempts != 1 || x.Retries != 0 || x.Reclaims != 0 {
		t.Errorf("%d attempts, %d retries, %d reclaims", x.Attempts, x.Retries, x.Reclaims)
	}
	for _, h := range []*keeper.Held{first.Held[0], rich} {
		if code := r.read(h).Code; h.Check() != nil || code != codes.Active {
			t.Errorf("the neighbour: %v, %s", h.Check(), code)
		}
	}
	third, err := r.claim(4)
	if err != nil || len(third.Held) != 2 || third.Held[0].Fence().Session != session {
		t.Fatalf("next: %+v, %v", third, err)
	}
}

// The repeat of a claim finds nothing; then the first try arrives after all, from a socket where it had waited. The
// session has work that runs on, so nothing but a look can find what the late claim took.
func TestLateClaimOnARealServer(t *testing.T) {
	r := newRig(t)
	r.submit(1)
	busy, err := r.claim(1)
	if err != nil || len(busy.Held) != 1 {
		t.Fatal(err, busy)
	}
	fence := busy.Held[0].Fence()
	r.submit(1)
	late, err := r.direct.ClaimNext(r.ctx, engine.ClaimRequest{
		Session: fence.Session, Number: fence.Claim + 1, TTL: time.Hour, Max: 1, Subscription: r.digest,
	})
	if err != nil || len(late.Claims) != 1 {
		t.Fatal(err, late)
	}
	orphan := late.Claims[0].Fence.Execution
	r.keeper.Reconnected(0)
	testwait.Until(r.T, "the orphan is handed back", func() bool {
		x, err := r.direct.ReadExecution(r.ctx, orphan)
		return err == nil && x.Code == codes.WaitingInterrupted
	})
	again, err := r.claim(1)
	if err != nil || len(again.Held) != 1 || again.Held[0].Fence().Execution != orphan ||
		again.Held[0].Fence().Session != fence.Session {
		t.Fatalf("next: %+v, %v", again, err)
	}
	if err := busy.Held[0].Check(); err != nil {
		t.Error(err)
	}
}

// More orphans than one page of the answer: all are handed back, what runs stays.
func TestManyOrphans(t *testing.T) {
	r := newRig(t)
	r.submit(250)
	var held []*keeper.Held
	for len(held) < 250 {
		reply, err := r.claim(100)
		if err != nil || len(reply.Held) == 0 {
			t.Fatal(err, reply)
		}
		held = append(held, reply.Held...)
	}
	for i, h := range held {
		if i%5 > 0 {
			h.Abandon()
		}
	}
	session := held[0].Fence().Session
	testwait.Until(r.T, "only what runs is held", func() bool {
		members, err := r.direct.SessionHeld(r.ctx, 0, session)
		return err == nil && len(members) == 50
	})
	for i, h := range held {
		if i%5 == 0 && h.Check() != nil {
			t.Fatalf("hold %d: %v", i, h.Check())
		}
	}
	if err := r.keeper.Close(r.ctx); err != nil {
		t.Error(err)
	}
}

// A lease that an operator revokes ends that handler alone, with a cause that says so; a session that is marked dead
// ends all, and the next claim opens another. What was taken is requeued at once, long before the ttl.
func TestRevokedAndMarkedDead(t *testing.T) {
	r := newRig(t)
	r.submit(3)
	reply, err := r.claim(3)
	if err != nil || len(reply.Held) != 3 {
		t.Fatal(err, reply)
	}
	revoked, others := reply.Held[0], reply.Held[1:]
	if _, err := r.direct.RevokeLease(r.ctx, revoked.Fence().Execution, ""); err != nil {
		t.Fatal(err)
	}
	r.keeper.RenewNow(0) // as the ring does
	<-revoked.Context().Done()
	if cause := context.Cause(revoked.Context()); !errors.Is(cause, denied.LeaseRevoked) ||
		!errors.Is(cause, flowfabric.ErrLeaseLost) {
		t.Errorf("cause %v", cause)
	}
	if err := errors.Join(others[0].Check(), others[1].Check()); err != nil {
		t.Errorf("the neighbours: %v", err)
	}
	revoked.Release()

	if _, err := r.direct.MarkSessionDead(trail.As(r.ctx, "", "test"), 0, others[0].Fence().Session); err != nil {
		t.Fatal(err)
	}
	r.keeper.RenewNow(0)
	for _, h := range others {
		<-h.Context().Done()
		if cause := context.Cause(h.Context()); !errors.Is(cause, flowfabric.ErrLeaseLost) ||
			errors.Is(cause, denied.LeaseRevoked) {
			t.Errorf("cause %v", cause)
		}
		h.Release()
	}
	for requeued := 0; requeued < 3; {
		tick, err := r.direct.Tick(r.ctx, 0, "ticker", false)
		must.No(t, err)
		requeued += tick.Requeued
	}
	next, err := r.claim(3)
	if err != nil || len(next.Held) != 3 || next.Held[0].Fence().Session == revoked.Fence().Session {
		t.Fatalf("next: %+v, %v", next, err)
	}
}
