package conformance

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What a rotation means for waitpoints that are open.
var rotationScenarios = []scenario{
	{name: "a rotation that would strand an open waitpoint is refused unless forced", run: func(w *env) {
		w.seed()
		stranding := func(details string) {
			w.Helper()
			w.unchanged("a rotation", func() {
				a := w.setKey("rotate", "k2", time.Hour, false)
				w.all("code", eq(a.code, "grace_too_short"), eq(strings.Join(a.slots, " "), details))
			})
		}
		s := w.sleeps(within(2*time.Hour, "fail"))
		stranding("k1 1 " + strconv.FormatInt(w.record(s.id).TimeoutAt.UnixMilli(), 10))
		forever := w.sleeps()
		stranding("k1 2 9999999999999")
		w.cancel(forever.id)
		_, c := w.holder()
		o, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", minted("p"), 3*time.Hour)
		w.no(err)
		stranding("k1 2 " + strconv.FormatInt(o.ExpiresAt.UnixMilli(), 10))
		a := w.setKey("rotate", "k2", time.Hour, true)
		w.all("forced", eq(a.code, "OK"), eq(strings.Join(a.slots, " "), "rotated k1 0 2"))
		w.signal(s.id, s.wp, "other", waitwords.EffectNone) // within the grace
		w.advance(time.Hour)
		w.refuses("after the grace", flowfabric.ErrTokenExpired, "",
			w.delivering(s.id, s.wp, suspend.SentSignal{Name: "go"}))
		forged := s.wp
		forged.Digest = flip(s.wp.Digest, 0)
		w.refuses("a forged token of the old key", flowfabric.ErrInvalidToken, "",
			w.delivering(s.id, forged, suspend.SentSignal{Name: "go"}))
		w.refuses("a token of the old key", denied.KidNotCurrent, "k2", w.reissuing(s.id, anew("k1", s.wp)))
		fresh := anew("k2", s.wp)
		w.no(w.reissuing(s.id, fresh)())
		w.check()
		w.signal(s.id, fresh, "go", waitwords.EffectSatisfied)
		w.refuses("a closed waitpoint", denied.WaitpointNotOpen, "resumed", w.reissuing(s.id, anew("k2", s.wp)))
	}},
	{name: "a reissued token replaces the old token of an open waitpoint", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		active := w.sleeps()
		recorded, plain := minted("recorded"), w.pend(c.Fence, "plain")
		_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "recorded", recorded, time.Hour)
		w.no(err)
		w.refuses("an unknown waitpoint", denied.NoWaitpoint, "", w.reissuing(id, minted("x")))
		w.refuses("of another execution", denied.NoWaitpoint, "", w.reissuing(id, anew(kid, active.wp)))
		for old, id := range map[engine.Minted]flowfabric.ExecutionID{active.wp: active.id, plain: id, recorded: id} {
			fresh := anew(kid, old)
			for range 2 {
				key, err := w.e.ReissueToken(trail.As(w.ctx, "op", ""), id, fresh)
				w.no(err)
				w.check()
				same(w, "key", key, old.Key)
			}
			w.refuses("the old token of "+old.Key, flowfabric.ErrInvalidToken, "",
				w.delivering(id, old, suspend.SentSignal{Name: "other"}))
			d, err := w.deliver(id, fresh, suspend.SentSignal{Name: "other"})
			w.no(err)
			same(w, "open", d.Open, true)
			if old == recorded {
				recorded = fresh
			}
		}
		w.all("told once each", eq(strings.Count(w.kinds(active.id), "token_reissued"), 1),
			eq(strings.Count(w.kinds(id), "token_reissued"), 2))
		w.release(c.Fence) // the next claim brings the new token's making
		got, err := engine.DecodeOpened(k.one(id).Steps[engine.StepWaitpoint+"recorded"])
		w.no(err)
		w.all("recorded", eq(got.ID, recorded.ID), eq(got.Key, "recorded"), eq(got.Kid, kid),
			eq(got.Nonce, recorded.Nonce))
	}},
	{name: "tokens that are issued while keys rotate are all accepted", run: func(w *env) {
		w.seed()
		w.stop()
		k := w.worker("w1")
		n := w.rounds(1000) / 8 * 8
		claims := w.takes(k, n)
		waits := make([]engine.Minted, n)
		turns := make(chan struct{})
		var refusals atomic.Int32
		var minters sync.WaitGroup
		w.quiet = true
		for i := range 8 {
			minters.Go(func() {
				current := "gone" // as if the last use was long ago
				for at := i; at < n; at += 8 {
					if at%64 == i {
						turns <- struct{}{}
					}
					s, err := w.suspendUnder(current, claims[at].Fence, &waits[at])
					if errors.Is(err, denied.KidNotCurrent) {
						coded, _ := errors.AsType[*flowfabric.Error](err)
						current = denied.Slot(coded, 0)
						refusals.Add(1)
						s, err = w.suspendUnder(current, claims[at].Fence, &waits[at])
					}
					if err != nil {
						w.Errorf("suspension %d under %s: %v", at, current, err)
						continue
					}
					if i%2 == 0 { // the others keep what they know
						current = s.Kid
					}
				}
			})
		}
		go func() {
			minters.Wait()
			close(turns)
		}()
		next := 2
		for range turns { // 50 ms between rotations and a grace of 10 s: no key ends while this runs
			w.pass(50 * time.Millisecond)
			same(w, "rotated", w.setKey("rotate", "k"+strconv.Itoa(next), 10*time.Second, true).code, "OK")
			next++
		}
		w.quiet = false
		w.check()
		same(w, "asked for the current key", refusals.Load(), 8)
		kids := map[string]bool{}
		for i, c := range claims {
			kids[waits[i].Kid] = true
			d, err := w.e.DeliverSignal(w.ctx, c.Fence.Execution, waits[i].ID, waits[i].Digest,
				suspend.SentSignal{Name: "go"})
			w.no(err)
			same(w, "effect", d.Effect, waitwords.EffectSatisfied)
		}
		w.check()
		w.Logf("%d suspensions under %d keys", n, len(kids))
	}},
}

// anew is the identity of a waitpoint with a new token.
func anew(kid string, m engine.Minted) engine.Minted {
	n := mintedBy(kid, m.Key)
	n.ID = m.ID
	n.Digest = digestOf(tokenOf(n))
	return n
}

// reissuing tells a re-issue's error only.
func (w *env) reissuing(id flowfabric.ExecutionID, m engine.Minted) func() error {
	return func() error { _, err := w.e.ReissueToken(trail.As(w.ctx, "op", ""), id, m); return err }
}

// suspendUnder suspends for 3 s on a waitpoint that is minted under a key; one that was rotated out signs what ends
// before it.
func (w *env) suspendUnder(kid string, f flowfabric.Fence, m *engine.Minted) (engine.Suspended, error) {
	*m = mintedBy(kid, "wp")
	return w.e.SuspendExecution(w.ctx, f, suspension(waitFor(names(1, 1, "go"), *m), within(3*time.Second, "fail")))
}
