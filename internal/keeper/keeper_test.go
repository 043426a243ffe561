package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 30 * time.Second

// bench is a running keeper on a fake server inside a bubble of virtual time.
type bench struct {
	*testing.T
	server *server
	keeper *keeper.Keeper
	ctx    context.Context
	skew   atomic.Int64 // added to the wall clock, as a machine that slept would see it
}

// inBubble runs body with a keeper whose loop runs, in virtual time.
func inBubble(t *testing.T, work int, body func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, server: newServer(work)}
		b.keeper = keeper.New(keeper.Config{Engine: b.server, Instance: "i", TTL: ttl,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Clock: func() keeper.Instant {
				i := keeper.SystemClock()
				i.Wall = i.Wall.Add(time.Duration(b.skew.Load()))
				return i
			}})
		ctx, cancel := context.WithCancel(context.Background())
		b.ctx = ctx
		var loop conc.WaitGroup
		loop.Go(func() { _ = b.keeper.Run(ctx) })
		body(b)
		cancel()
		loop.Wait()
	})
}

func (b *bench) claim(n int) (keeper.Reply, error) {
	return b.keeper.Claim(b.ctx, engine.ClaimRequest{Max: n, Subscription: "aa", Wait: true})
}

func (b *bench) mustClaim(n int) []*keeper.Held {
	b.Helper()
	reply, err := b.claim(n)
	if err != nil || len(reply.Held) == 0 {
		b.Fatalf("claim: %d held, %v", len(reply.Held), err)
	}
	return reply.Held
}

func (b *bench) wantCause(h *keeper.Held, want error) {
	b.Helper()
	synctest.Wait()
	if got := context.Cause(h.Context()); !errors.Is(got, want) {
		b.Fatalf("cause of the context: %v, want %v", got, want)
	}
}

// Renewal keeps a session alive for as long as it holds something, with one call per ttl/3.
func TestRenewalKeepsHoldsAlive(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		held := b.mustClaim(2)
		time.Sleep(10 * ttl)
		for _, h := range held {
			if err := h.Check(); err != nil || !h.Healthy() {
				t.Fatalf("after ten ttl: %v", err)
			}
		}
		if n := b.server.count("renew"); n < 28 || n > 32 {
			t.Errorf("%d renewals in ten ttl, want 30", n)
		}
	})
}

// A claim that finds nothing does not use up its number and opens no session; one that does opens it.
func TestClaimNumbers(t *testing.T) {
	inBubble(t, 0, func(b *bench) {
		for range 3 {
			reply, err := b.claim(1)
			if err != nil || !reply.Registered || b.server.last.Number != 1 {
				t.Fatalf("empty claim: %+v, %v, number %d", reply, err, b.server.last.Number)
			}
		}
		b.server.add(2)
		b.mustClaim(1)
		b.mustClaim(1)
		if b.server.last.Number != 2 {
			t.Errorf("third claim has number %d, want 2", b.server.last.Number)
		}
	})
}

// A lost reply is repeated under its number and names what it had handed out: no orphan.
func TestLostClaimReplyIsRepeated(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.server.set("claim", lost)
		if _, err := b.claim(3); !errors.Is(err, flowfabric.ErrTransport) {
			t.Fatalf("claim: %v", err)
		}
		b.server.set("claim", none)
		reply, err := b.claim(1)
		if err != nil || !reply.Duplicate || len(reply.Held) != 3 || b.server.last.Number != 1 {
			t.Fatalf("repeat: %+v, %v", reply, err)
		}
		b.mustClaim(1)
		if b.server.last.Number != 2 {
			t.Errorf("next number %d, want 2", b.server.last.Number)
		}
	})
}

// Before a drain hands back, unresolved claims are repeated without claiming anything new.
func TestUnresolvedThenClose(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.server.set("claim", lost)
		_, _ = b.claim(2)
		b.server.set("claim", none)
		held, err := b.keeper.Unresolved(b.ctx)
		if err != nil || len(held) != 2 || len(b.server.queue) != 1 {
			t.Fatalf("unresolved: %d held, %d queued, %v", len(held), len(b.server.queue), err)
		}
		for _, h := range held {
			b.server.settle(h.Fence())
			h.Release()
		}
		must.No(t, b.keeper.Close(b.ctx))
		if !b.server.session(held[0].Fence().Session).closed {
			t.Error("the empty session was not closed")
		}
		if _, err := b.claim(1); !errors.Is(err, flowfabric.ErrDraining) {
			t.Errorf("claim after close: %v", err)
		}
	})
}

// Each cause of a lost notice becomes the cause of the handler's context; more than one page is fetched at once.
func TestLostNotices(t *testing.T) {
	causes := []struct {
		wire string
		want error
	}{
		{"cancelled", flowfabric.ErrCancelled}, {"expired", flowfabric.ErrDeadline},
		{"attempt_timeout", flowfabric.ErrAttemptTimeout}, {"revoked", flowfabric.ErrLeaseLost},
		{"revoked", denied.LeaseRevoked}, {"over_budget", flowfabric.ErrOverBudget},
		{"unheard_of", flowfabric.ErrLeaseLost},
	}
	inBubble(t, len(causes)+1, func(b *bench) {
		held := b.mustClaim(len(causes) + 1)
		for i, c := range causes {
			b.server.take(held[i].Fence(), c.wire)
		}
		b.keeper.RenewNow(0)
		for i, c := range causes {
			b.wantCause(held[i], c.want)
		}
		if err := held[len(causes)].Check(); err != nil {
			t.Errorf("the untouched hold: %v", err)
		}
		b.keeper.RenewNow(0)
		synctest.Wait()
		if x := b.server.session(held[0].Fence().Session); len(x.lost) != 0 {
			t.Errorf("%d notices were not acknowledged", len(x.lost))
		}
	})
}

// What somebody says to a run takes no hold away. Who listens later hears of it, the newest 16 notices.
func TestNoticesThatTakeNothing(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		held := b.mustClaim(2)
		for n := range 16 + 2 {
			b.server.tell(held[0].Fence(), fmt.Sprint("message:", n))
		}
		b.server.tell(held[1].Fence(), "stop:x")
		b.keeper.RenewNow(0)
		synctest.Wait()
		var heard []string
		held[0].Listen(func(cause string) { heard = append(heard, cause) })
		if len(heard) != 16 || heard[0] != "message:2" {
			t.Errorf("heard %q", heard)
		}
		b.server.tell(held[0].Fence(), "stop:y")
		b.keeper.RenewNow(0)
		synctest.Wait()
		if last := heard[len(heard)-1]; last != "stop:y" {
			t.Errorf("heard %q", last)
		}
		held[0].Listen(nil)
		for _, h := range held {
			if err := h.Check(); err != nil || h.Context().Err() != nil {
				t.Errorf("%v, %v", err, h.Context().Err())
			}
		}
	})
}

// A notice may overtake the reply of the claim it belongs to.
func TestLostNoticeOvertakesClaim(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		first := b.mustClaim(1)[0]
		b.server.hook = func(method string) {
			if method != "claim" {
				return
			}
			for _, c := range b.server.session(first.Fence().Session).held {
				if c.Fence.Execution != first.Fence().Execution {
					b.server.take(c.Fence, "cancelled")
				}
			}
			b.keeper.RenewNow(0)
			time.Sleep(time.Second) // the reply is slow, the renewal is not
		}
		second := b.mustClaim(1)[0]
		b.wantCause(second, flowfabric.ErrCancelled)
	})
}

// A black-holed store: trust ends before the server's expiry, and with it every context.
func TestBlackHoleEndsTrust(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		start := time.Now()
		h := b.mustClaim(1)[0]
		b.server.set("renew", blackHole)
		<-h.Context().Done()
		after := time.Since(start)
		b.wantCause(h, flowfabric.ErrLeaseLost)
		if after < ttl*8/10 || after > ttl*9/10+time.Second {
			t.Errorf("lost after %v, want just past %v", after, ttl*9/10)
		}
		if h.Failures() < 3 || h.Healthy() {
			t.Errorf("%d failures, healthy %v", h.Failures(), h.Healthy())
		}
	})
}

// Failing renewals make a lease unhealthy at the third, and one success heals it.
func TestHealth(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		h := b.mustClaim(1)[0]
		b.server.set("renew", lost)
		for h.Failures() < 2 {
			time.Sleep(100 * time.Millisecond)
		}
		if !h.Healthy() {
			t.Error("unhealthy after two failures")
		}
		for h.Failures() < 3 {
			time.Sleep(100 * time.Millisecond)
		}
		if h.Healthy() || !h.Trusted() {
			t.Errorf("after three failures: healthy %v, trusted %v", h.Healthy(), h.Trusted())
		}
		b.server.set("renew", none)
		time.Sleep(ttl / 3)
		if !h.Healthy() {
			t.Error("not restored by a renewal")
		}
	})
}

// A machine that slept: only the wall clock moved. Check notices at once, the loop within a second.
func TestWallClockJump(t *testing.T) {
	for _, look := range []struct {
		name string
		do   func(h *keeper.Held)
	}{
		{"check", func(h *keeper.Held) { _ = h.Check() }},
		{"loop", func(h *keeper.Held) { time.Sleep(1100 * time.Millisecond) }},
	} {
		t.Run(look.name, func(t *testing.T) {
			inBubble(t, 2, func(b *bench) {
				h := b.mustClaim(1)[0]
				time.Sleep(time.Second)
				b.skew.Store(int64(ttl))
				look.do(h)
				b.wantCause(h, flowfabric.ErrLeaseLost)
				again := b.mustClaim(1)[0]
				if again.Fence().Session == h.Fence().Session {
					t.Error("a lost session was used again")
				}
			})
		})
	}
	t.Run("set back", func(t *testing.T) {
		inBubble(t, 1, func(b *bench) {
			h := b.mustClaim(1)[0]
			b.skew.Store(-int64(24 * time.Hour))
			time.Sleep(3 * ttl)
			if err := h.Check(); err != nil {
				t.Errorf("a clock set back cost the lease: %v", err)
			}
		})
	})
}

// An expired session loses everything under it and is replaced, never revived.
func TestExpiredSession(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		h := b.mustClaim(1)[0]
		b.server.session(h.Fence().Session).expiry = time.Time{}
		next := b.mustClaim(1)[0] // answered lease_expired, repeated under a new session
		b.wantCause(h, flowfabric.ErrLeaseLost)
		if next.Fence().Session == h.Fence().Session || b.server.last.Number != 1 || !next.Trusted() {
			t.Errorf("next: %v, number %d", next.Fence(), b.server.last.Number)
		}
		next.Refused(denied.New("ff_complete", "lease_expired"))
		b.wantCause(next, flowfabric.ErrLeaseLost)
	})
}

// An idle session is closed after a ttl; the next claim opens another.
func TestIdleSessionIsClosed(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		h := b.mustClaim(1)[0]
		b.server.settle(h.Fence())
		h.Release()
		h.Release()
		time.Sleep(ttl + 2*time.Second)
		if !b.server.session(h.Fence().Session).closed {
			t.Fatal("still open after an idle ttl")
		}
		renewals := b.server.count("renew")
		time.Sleep(10 * ttl)
		if n := b.server.count("renew"); n != renewals {
			t.Errorf("%d renewals of a closed session", n-renewals)
		}
		if next := b.mustClaim(1)[0]; next.Fence().Session == h.Fence().Session {
			t.Error("a closed session was used again")
		}
	})
}

// A newer local hold of the same execution ends the older one.
func TestNewerHoldWins(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		old := b.mustClaim(1)[0]
		b.server.queue = append(b.server.queue, old.Fence().Execution) // requeued without our knowledge
		again := b.mustClaim(1)[0]
		b.wantCause(old, flowfabric.ErrLeaseLost)
		old.Release()
		if err := again.Check(); err != nil {
			t.Errorf("the newer hold: %v", err)
		}
		if n := len(b.keeper.Holding()); n != 1 {
			t.Errorf("%d holds, want 1", n)
		}
	})
}
