package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// refusal is one way to present a token that opens nothing.
type refusal struct {
	what   string
	id     flowfabric.ExecutionID
	wp     flowfabric.UUID
	digest string
}

// refusals builds waitpoints in every state, and presents to each a token that is not its own; among them the genuine
// token of another execution's waitpoint.
func (w *env) refusals() (all []refusal) {
	w.Helper()
	add := func(what string, id flowfabric.ExecutionID, wp flowfabric.UUID, digest string) {
		all = append(all, refusal{what, id, wp, digest})
	}
	never := minted("never")
	open := w.sleeps()
	other := w.sleeps()
	add("unknown execution", mint.ID(w.p), never.ID, never.Digest)
	add("unknown execution, genuine token", mint.ID(w.p), open.wp.ID, open.wp.Digest)
	add("unknown waitpoint", open.id, never.ID, never.Digest)
	add("unknown waitpoint, genuine token", open.id, never.ID, open.wp.Digest)
	add("foreign waitpoint", open.id, other.wp.ID, other.wp.Digest)
	add("foreign token", open.id, open.wp.ID, other.wp.Digest)
	add("active", open.id, open.wp.ID, flip(open.wp.Digest, 0))
	add("active, last bit", open.id, open.wp.ID, flip(open.wp.Digest, 255))
	_, c := w.holder(deadline(24 * time.Hour))
	pending, closed, expired := w.pend(c.Fence, "pending"), w.pend(c.Fence, "closed"), minted("expired")
	_, err := w.e.CloseWaitpoint(w.ctx, c.Fence, closed.ID)
	w.no(err)
	_, err = w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", expired, time.Second)
	w.no(err)
	w.advance(time.Second)
	add("due", c.Fence.Execution, expired.ID, flip(expired.Digest, 1))
	w.settleTime()
	same(w, "expired", w.waitpoint(c.Fence.Execution, expired).State, "expired")
	all[len(all)-1].what = "expired"
	add("pending", c.Fence.Execution, pending.ID, flip(pending.Digest, 1))
	add("closed", c.Fence.Execution, closed.ID, flip(closed.Digest, 1))
	resumed := w.sleeps()
	w.signal(resumed.id, resumed.wp, "go", waitwords.EffectSatisfied)
	w.claims(resumed.id)
	add("resumed", resumed.id, resumed.wp.ID, flip(resumed.wp.Digest, 1))
	ended := w.sleeps()
	w.cancel(ended.id)
	add("terminal", ended.id, ended.wp.ID, flip(ended.wp.Digest, 1))
	purged := w.sleeps()
	w.cancel(purged.id)
	_, err = w.e.PurgeExecution(w.ctx, purged.id, 0)
	w.no(err)
	w.check()
	add("purged, genuine token", purged.id, purged.wp.ID, purged.wp.Digest)
	return all
}

// Tokens that are not genuine, and signals that come more than once.
var forgeryScenarios = []scenario{
	{name: "every refused token gets the same reply after the same commands", needs: []string{"Native"},
		run: func(w *env) {
			w.seed()
			all := w.refusals()
			old := w.sleeps(within(time.Hour, "fail"))
			same(w, "rotated", w.setKey("rotate", "k2", 0, true).code, "OK")
			all = append(all, refusal{"a key that is gone", old.id, old.wp.ID, flip(old.wp.Digest, 1)})
			w.stop() // so that all of them come in one second
			m := w.monitor()
			want, ran := "", ""
			w.unchanged("refusals", func() {
				for _, x := range all {
					mark := uuid.NewString()
					reply, commands := m.call("ff_deliver_signal", mark, proto, ids.UUID(x.id).String(), x.wp.String(),
						x.digest, mark, "go", "", "", "", "", "key", "1000", "", "json", "payload")
					if want == "" {
						want, ran = reply, strings.Join(commands, "\n")
						w.Logf("%q after\n%s", want, ran)
						if !strings.Contains(want, "invalid_token") || len(commands) < 3 {
							w.Fatalf("%q after %q", want, ran)
						}
					}
					same(w, x.what+": reply", reply, want)
					same(w, x.what+": commands", strings.Join(commands, "\n"), ran)
				}
			})
		}},
	{name: "a refused token is counted, and its waitpoint records it once a second", run: func(w *env) {
		w.seed()
		w.stop()
		s, old := w.sleeps(), w.sleeps(within(time.Hour, "fail"))
		present := func(id flowfabric.ExecutionID, wp flowfabric.UUID, digest string, want error) {
			w.Helper()
			_, err := w.e.DeliverSignal(w.ctx, id, wp, digest, suspend.SentSignal{Name: "go"})
			w.is(err, want)
			w.check()
		}
		counted := func() int {
			p, err := w.e.DescribePartition(w.ctx, w.p)
			w.no(err)
			return p.TokensRefused
		}
		first := counted()
		same(w, "before", w.waitpoint(s.id, s.wp).RefusedAt.IsZero(), true)
		for range 3 {
			present(s.id, s.wp.ID, flip(s.wp.Digest, 3), flowfabric.ErrInvalidToken)
		}
		at := w.waitpoint(s.id, s.wp).RefusedAt
		w.all("told", eq(counted()-first, 3), eq(at.UnixMilli(), 1800000000000))
		w.pass(time.Second)
		same(w, "it does not move by itself", w.waitpoint(s.id, s.wp).RefusedAt.Equal(at), true)
		present(s.id, s.wp.ID, flip(s.wp.Digest, 4), flowfabric.ErrInvalidToken)
		same(w, "again", w.waitpoint(s.id, s.wp).RefusedAt.Equal(at.Add(time.Second)), true)
		// What is made up is counted likewise, and takes room for the latest 256 only.
		for range 300 {
			present(mint.ID(w.p), mint.UUID(), s.wp.Digest, flowfabric.ErrInvalidToken)
		}
		w.all("made up", eq(counted()-first, 304), eq(w.size(w.k.Refused()), 256))
		same(w, "a good one is no refusal", w.signal(s.id, s.wp, "go", waitwords.EffectSatisfied).Effect,
			waitwords.EffectSatisfied)
		same(w, "rotated", w.setKey("rotate", "k2", time.Second, true).code, "OK")
		w.pass(time.Second)
		present(old.id, old.wp.ID, old.wp.Digest, flowfabric.ErrTokenExpired)
		w.all("an expired one", eq(counted()-first, 305), eq(w.waitpoint(old.id, old.wp).RefusedAt.IsZero(), false))
	}},
	{name: "forged tokens and digests are never accepted", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		pending := w.pend(c.Fence, "p")
		active := w.sleeps(waitFor(names(1, 1, ""), minted("wp")))
		try := func(id flowfabric.ExecutionID, m engine.Minted, digest string) error {
			_, err := w.e.DeliverSignal(w.ctx, id, m.ID, digest, suspend.SentSignal{Name: "go"})
			return err
		}
		n := w.rounds(int(min(100000, number("FLOWFABRIC_SOAK", 2000))))
		var accepted atomic.Int32
		w.unchanged("forgery", func() {
			step := 256 / w.rounds(256)
			for bit := 0; bit < 256; bit += step { // of the digest
				w.is(try(active.id, active.wp, flip(active.wp.Digest, bit)), flowfabric.ErrInvalidToken)
				w.is(try(c.Fence.Execution, pending, flip(pending.Digest, bit)), flowfabric.ErrInvalidToken)
			}
			genuine := tokenOf(active.wp)
			for bit := 0; bit < 8*len(genuine); bit += step { // of the token
				forged := []byte(genuine)
				forged[bit/8] ^= 1 << (bit % 8)
				w.is(try(active.id, active.wp, digestOf(string(forged))), flowfabric.ErrInvalidToken)
			}
			for _, digest := range []string{"", active.wp.Digest[:63], active.wp.Digest + "0",
				strings.ToUpper(active.wp.Digest), tokenOf(active.wp), active.wp.Nonce, strings.Repeat("0", 64),
				" " + active.wp.Digest[1:]} {
				w.is(try(active.id, active.wp, digest), flowfabric.ErrInvalidToken)
			}
			together(8, func(i int) {
				for range (n + 7) / 8 {
					b := make([]byte, 32)
					_, _ = rand.Read(b)
					if err := try(active.id, active.wp, hex.EncodeToString(b)); !errors.Is(err,
						flowfabric.ErrInvalidToken) {
						w.Errorf("%x: %v", b, err)
						accepted.Add(1)
					}
				}
			})
		})
		same(w, "accepted", accepted.Load(), 0)
		w.Logf("%d random digests", n)
		w.signal(c.Fence.Execution, pending, "go", waitwords.EffectBuffered)
		w.signal(active.id, active.wp, "go", waitwords.EffectSatisfied)
	}},
	{name: "four token keys are valid at once, each until its own grace ends", run: func(w *env) {
		w.seed()
		var all []sleeper
		for _, next := range []string{"k2", "k3", "k4", ""} {
			current, _ := w.keyState()
			_, c := w.holder()
			m := mintedBy(current, "wp")
			all = append(all, sleeper{c.Fence.Execution, c.Fence, m})
			w.suspend(c.Fence, waitFor(names(1, 2, "go", "on"), m))
			if next != "" {
				same(w, "rotated", w.setKey("rotate", next, time.Hour, true).code, "OK")
				w.advance(10 * time.Minute)
			}
		}
		for _, s := range all {
			w.signal(s.id, s.wp, "go", waitwords.EffectAppended)
		}
		w.advance(30 * time.Minute) // the first key was retired an hour ago
		for i, s := range all {
			if i == 0 {
				w.refuses("under the first key", flowfabric.ErrTokenExpired, "",
					w.delivering(s.id, s.wp, suspend.SentSignal{Name: "on"}))
				continue
			}
			w.signal(s.id, s.wp, "on", waitwords.EffectSatisfied)
		}
	}},
	{name: "a signal that is delivered 1,000 times at once counts once", run: func(w *env) {
		w.seed()
		n := w.rounds(1000)
		if !w.srv.Features.Native {
			n = 40 // Lua is the slow part there
		}
		for _, by := range []string{"key", "id"} {
			for want, condition := range map[suspend.Effect]string{waitwords.EffectSatisfied: names(1, 1, "go"),
				waitwords.EffectAppended: names(1, 2, "go", "go"), waitwords.EffectNone: names(1, 1, "no"),
				waitwords.EffectBuffered: ""} {
				_, c := w.holder()
				id := c.Fence.Execution
				m := minted("wp")
				if want == waitwords.EffectBuffered {
					m = w.pend(c.Fence, "wp")
				} else {
					w.suspend(c.Fence, waitFor(condition, m))
				}
				answers, errs := make([]suspend.Delivered, n), make([]error, n)
				sent := make([]suspend.SentSignal, n)
				for i := range sent {
					sent[i] = suspend.SentSignal{ID: mint.UUID(), Name: "go", IdempotencyKey: "key"}
					if by == "id" {
						sent[i] = suspend.SentSignal{ID: sent[0].ID, Name: "go"}
					}
				}
				together(n, func(i int) { answers[i], errs[i] = w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, sent[i]) })
				w.no(errors.Join(errs...))
				w.check()
				first := 0
				for i, a := range answers {
					if a.Signal == sent[i].ID {
						first++
					}
					w.all("answer", eq(a.Signal, answers[0].Signal), eq(a.Effect, want),
						eq(a.Duplicate, a.Signal != sent[i].ID))
				}
				what := string(want) + " by " + by
				same(w, what, first, map[string]int{"key": 1, "id": n}[by])
				same(w, what, w.logged(id, m), "go "+string(want))
				same(w, what, w.waitpoint(id, m).Signals, 1)
				switch want {
				case waitwords.EffectSatisfied:
					w.all(what, eq(told(w.claims(id).Resume), "signal: go"),
						eq(strings.Count(w.kinds(id), "resumed"), 1))
				case waitwords.EffectBuffered:
					w.suspend(c.Fence, waitFor(names(1, 2, "go", "go")), onPending(m))
					w.all(what, eq(w.record(id).Signals, 1), eq(w.record(id).Matched, 1))
				default:
					same(w, what, w.record(id).Signals, 1)
				}
			}
		}
	}},
}

// flip changes one bit of a digest.
func flip(digest string, bit int) string {
	b, err := hex.DecodeString(digest)
	if err != nil {
		panic(err)
	}
	b[bit/8] ^= 1 << (bit % 8)
	return hex.EncodeToString(b)
}
