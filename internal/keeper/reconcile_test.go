package keeper_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
)

// An execution that could not be settled goes back to the queue at once, while its neighbours go on under the same
// session, and the next claim takes it up.
func TestAbandonedHoldIsHandedBack(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		held := b.mustClaim(2)
		held[0].Abandon()
		synctest.Wait()
		if b.server.holds(held[0].Fence()) || b.server.queued() != 1 {
			b.Fatal("not handed back")
		}
		again := b.mustClaim(1)[0]
		if again.Fence().Execution != held[0].Fence().Execution || again.Fence().Session != held[0].Fence().Session {
			b.Errorf("the next claim: %v", again.Fence())
		}
		time.Sleep(3 * ttl)
		if err := errors.Join(held[1].Check(), again.Check()); err != nil {
			b.Errorf("the neighbours: %v", err)
		}
		if n := b.server.count("release"); n != 1 {
			b.Errorf("%d hand-backs", n)
		}
	})
}

// A hand-back that meets no server is repeated; one that the server can never do costs the session, not its work.
func TestHandBackThatFails(t *testing.T) {
	t.Run("unreachable", func(t *testing.T) {
		inBubble(t, 2, func(b *bench) {
			held := b.mustClaim(2)
			b.server.set("release", unheard)
			held[0].Abandon()
			time.Sleep(ttl / 2)
			if n := b.server.count("release"); n < 3 || n > 10 || b.server.queued() != 0 {
				b.Fatalf("%d tries in half a ttl", n)
			}
			b.server.set("release", none)
			time.Sleep(ttl / 8)
			if b.server.queued() != 1 || held[1].Check() != nil {
				b.Errorf("%d queued, the neighbour: %v", b.server.queued(), held[1].Check())
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		inBubble(t, 3, func(b *bench) {
			held := b.mustClaim(2)
			b.server.fail("release", denied.New("ff_release_execution", "internal_script_error"))
			held[0].Abandon()
			time.Sleep(ttl / 2)
			next := b.mustClaim(1)[0]
			if next.Fence().Session == held[0].Fence().Session || b.server.count("release") != 3 {
				b.Fatalf("a session with an orphan takes claims, after %d tries", b.server.count("release"))
			}
			time.Sleep(3 * ttl)
			if err := held[1].Check(); err != nil {
				b.Fatalf("the neighbour of an abandoned hold: %v", err)
			}
			b.server.settle(held[1].Fence())
			held[1].Release()
			time.Sleep(ttl + time.Second)
			if b.server.session(held[0].Fence().Session).alive() {
				b.Error("the orphan's session is still kept alive")
			}
			if err := next.Check(); err != nil {
				b.Errorf("the new session: %v", err)
			}
		})
	})
}

// What nobody can settle is not handed round for ever: the fourth time it is revoked, which counts a reclaim, whatever
// else its session holds. One success in between forgives.
func TestPoisonIsRevoked(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		for range 2 {
			b.mustClaim(1)[0].Abandon()
			synctest.Wait()
		}
		h := b.mustClaim(1)[0]
		b.server.settle(h.Fence())
		b.server.queue = append(b.server.queue, h.Fence().Execution)
		h.Release()
		for range 3 {
			b.mustClaim(1)[0].Abandon()
			synctest.Wait()
		}
		if n := b.server.count("release"); n != 5 {
			b.Fatalf("handed back %d times, want 5", n)
		}
		b.server.add(1)
		both := b.mustClaim(2)
		last, neighbour := both[0], both[1]
		if last.Fence().Execution != h.Fence().Execution {
			last, neighbour = neighbour, last
		}
		last.Abandon()
		synctest.Wait()
		if b.server.count("release") != 5 || len(b.server.revoked) != 1 ||
			b.server.revoked[0] != last.Fence().Execution {
			b.Errorf("handed back %d times, revoked %v", b.server.count("release"), b.server.revoked)
		}
		time.Sleep(2 * ttl)
		if err := neighbour.Check(); err != nil || len(b.server.revoked) != 1 {
			b.Errorf("the neighbour: %v, revoked %d", err, len(b.server.revoked))
		}
		b.server.settle(neighbour.Fence())
		neighbour.Release()
	})
}

// A claim that was given up as lost, and whose repeat found nothing, arrives after all. What it takes is found by the
// next look and handed back.
func TestClaimThatArrivesLate(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(map[bool]string{false: "first claim", true: "later claim"}[open], func(t *testing.T) {
			work := map[bool]int{true: 1}[open]
			inBubble(t, work, func(b *bench) {
				var busy *keeper.Held
				if open {
					busy = b.mustClaim(1)[0]
				}
				b.server.set("claim", unheard)
				if _, err := b.claim(1); !errors.Is(err, flowfabric.ErrTransport) {
					b.Fatal(err)
				}
				late := b.server.last
				b.server.set("claim", none)
				if reply, err := b.claim(1); err != nil || len(reply.Held) != 0 {
					b.Fatalf("repeat: %+v, %v", reply, err)
				}
				b.server.add(1)
				reply, err := b.server.ClaimNext(b.ctx, late)
				if err != nil || len(reply.Claims) != 1 {
					b.Fatalf("late: %+v, %v", reply, err)
				}
				time.Sleep(ttl / 4)
				if b.server.holds(reply.Claims[0].Fence) || b.server.queued() != 1 {
					b.Fatal("the late claim's execution is an orphan")
				}
				if h := b.mustClaim(1)[0]; !h.Trusted() || busy != nil && !busy.Trusted() {
					b.Error("the session did not survive")
				}
			})
		})
	}
}

// Nothing is looked for while a claim is unresolved: its repeat names what it took, and nothing is lost or doubled.
func TestNoHandBackWhileAClaimIsPending(t *testing.T) {
	inBubble(t, 4, func(b *bench) {
		first := b.mustClaim(1)[0]
		b.server.set("claim", lost)
		_, _ = b.claim(2)
		looks := b.server.count("held")
		b.keeper.Reconnected(0)
		time.Sleep(ttl / 2)
		if n := b.server.count("held"); n != looks || b.server.count("release") != 0 {
			b.Fatalf("%d looks, %d hand-backs while the claim was unresolved", n-looks, b.server.count("release"))
		}
		b.server.set("claim", none)
		if held := b.mustClaim(1); len(held) != 2 || !first.Trusted() {
			b.Fatalf("%d held", len(held))
		}
		time.Sleep(ttl / 2)
		if b.server.count("held") == looks || b.server.count("release") != 0 || b.server.queued() != 1 {
			b.Errorf("%d looks, %d hand-backs after it", b.server.count("held")-looks, b.server.count("release"))
		}
	})
}

// A claim in flight has the turn: a look that is due waits for it, and a claim waits for a look.
func TestLooksAndClaimsTakeTurns(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		held := b.mustClaim(1)
		var mu sync.Mutex
		var order []string
		did := func(what string) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		b.server.hook = func(method string) {
			switch method {
			case "claim":
				b.keeper.Reconnected(0)
				did("claimed")
			case "held":
				did("looked")
			}
		}
		held = append(held, b.mustClaim(1)...)
		time.Sleep(10 * time.Millisecond) // the look has begun
		held = append(held, b.mustClaim(1)...)
		time.Sleep(3 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(order, []string{"claimed", "looked", "claimed", "looked"}) {
			b.Errorf("order %v", order)
		}
		for _, h := range held {
			if !h.Trusted() || !b.server.holds(h.Fence()) {
				b.Errorf("%v was handed back", h.Fence())
			}
		}
	})
}

// What only this side believes to be held is lost after two looks; one look may have met a settling call under way.
func TestHoldThatTheServerForgot(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		held := b.mustClaim(3)
		b.server.settle(held[0].Fence()) // the server forgot, and left no notice
		b.server.hide(held[1].Fence().Execution, true)
		for range 2 { // the second comes too soon to confirm the first
			b.keeper.Reconnected(0)
			synctest.Wait()
			for _, h := range held {
				if err := h.Check(); err != nil {
					b.Fatalf("too soon: %v", err)
				}
			}
			time.Sleep(time.Second)
		}
		if n := b.server.count("held"); n != 2 {
			b.Fatalf("%d looks", n)
		}
		b.server.hide(held[1].Fence().Execution, false)
		time.Sleep(ttl/3 + 2*time.Second)
		b.wantCause(held[0], flowfabric.ErrLeaseLost)
		if err := errors.Join(held[1].Check(), held[2].Check()); err != nil {
			b.Errorf("those still held: %v", err)
		}
	})
}

// When a notice says why, that is the cause, not the look's.
func TestNoticeKnowsBetterThanTheLook(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		h := b.mustClaim(1)[0]
		b.server.take(h.Fence(), "revoked") // and the ring is lost
		time.Sleep(time.Second)
		if h.Check() != nil {
			b.Fatal("nobody told the keeper yet")
		}
		b.server.set("renew", unheard) // the next renewal fails, the one after it brings doubt and notice
		time.Sleep(ttl/3 + time.Second)
		b.server.set("renew", none)
		time.Sleep(ttl / 10)
		b.wantCause(h, denied.LeaseRevoked)
		b.wantCause(h, flowfabric.ErrLeaseLost)
		if b.server.count("held") == 0 {
			b.Error("no look after a renewal that failed")
		}
	})
}

// A look that misses a hold asks for the notices at once.
func TestLookAsksForNotices(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		held := b.mustClaim(2)
		b.server.take(held[0].Fence(), "cancelled") // and the ring is lost
		held[1].Abandon()
		b.wantCause(held[0], flowfabric.ErrCancelled)
	})
}

// Without any trouble the sets are compared at every tenth renewal.
func TestLooksAreRare(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		h := b.mustClaim(1)[0]
		time.Sleep(7 * ttl) // 20 renewals and a little
		if n, renewals := b.server.count("held"), b.server.count("renew"); n != renewals/10 || n != 2 {
			b.Errorf("%d looks in %d renewals", n, renewals)
		}
		if h.Check() != nil || b.server.count("release") != 0 {
			b.Errorf("the hold: %v, %d hand-backs", h.Check(), b.server.count("release"))
		}
	})
}

// An answer that can never be read must not block the partition: after three the session is given up and expires.
func TestGarbledClaim(t *testing.T) {
	inBubble(t, 2, func(b *bench) {
		b.server.fail("claim", denied.New("ff_claim_next", "parse"))
		for range 3 {
			if _, err := b.claim(1); !errors.Is(err, denied.Reply) {
				b.Fatal(err)
			}
		}
		old := b.server.last.Session
		b.server.fail("claim", nil)
		next := b.mustClaim(1)[0]
		if next.Fence().Session == old || b.server.last.Number != 1 {
			b.Fatal("the session was used again")
		}
		time.Sleep(ttl + time.Second)
		if b.server.session(old).alive() || next.Check() != nil {
			b.Errorf("the orphans' session lives: %v; the new one: %v", b.server.session(old).alive(), next.Check())
		}
	})
}

// A session that ends while its claim is unresolved takes the claim with it: the next one opens a session at number 1,
// and what the dead one still holds expires with it.
func TestDeadSessionWithPendingClaim(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		h := b.mustClaim(1)[0]
		b.server.set("claim", lost)
		_, _ = b.claim(1)
		b.server.set("renew", blackHole)
		<-h.Context().Done()
		b.server.set("claim", none)
		b.server.set("renew", none)
		next := b.mustClaim(1)[0]
		old := b.server.session(h.Fence().Session)
		if next.Fence().Session == h.Fence().Session || b.server.last.Number != 1 || len(old.held) != 2 {
			b.Fatalf("next %v, the old session holds %d", next.Fence(), len(old.held))
		}
		time.Sleep(ttl)
		if old.alive() || !next.Trusted() {
			b.Error("the dead session is kept alive")
		}
		if held, err := b.keeper.Unresolved(b.ctx); err != nil || len(held) != 0 {
			b.Errorf("unresolved after it: %d, %v", len(held), err)
		}
	})
}

// A session that the server says is not empty although nothing runs here gives that back before it is closed.
func TestOrphansAreHandedBackBeforeTheClose(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		h := b.mustClaim(1)[0]
		h.Release() // without having settled it
		time.Sleep(ttl + 2*time.Second)
		if !b.server.session(h.Fence().Session).closed || b.server.queued() != 1 {
			b.Errorf("closed %v, %d queued", b.server.session(h.Fence().Session).closed, b.server.queued())
		}
	})
	inBubble(t, 1, func(b *bench) {
		h := b.mustClaim(1)[0]
		h.Release()
		if err := b.keeper.Close(b.ctx); err != nil || b.server.queued() != 1 {
			b.Errorf("Close: %v, %d queued", err, b.server.queued())
		}
	})
}
