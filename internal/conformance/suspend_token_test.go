package conformance

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// signalArgs is the wire form of a delivery. Positions: 1 execution, 2 waitpoint, 3 digest, 4 signal, 5 name, 6
// category, 7 source type, 8 source, 9 correlation, 10 key, 11 ttl, 12 created, 13 encoding, 14 payload.
func signalArgs(id flowfabric.ExecutionID, waitpoint, digest, name string) []string {
	return []string{proto, ids.UUID(id).String(), waitpoint, digest, uuid.NewString(), name, "", "", "", "", "", "0",
		"",
		"json", "p"}
}

// flipped is a text with one character changed.
func flipped(text string, at int) string {
	b := []byte(text)
	if b[at] == '0' {
		b[at] = '1'
	} else {
		b[at] = '0'
	}
	return string(b)
}

var tokenScenarios = []scenario{
	// What of a token is no token at all (no colon, an empty part, capitals) is refused before the server is asked.
	// The server sees the SHA-256 of whatever was presented: each of these is simply not the digest of the token.
	{name: "only the exact token of a waitpoint is accepted", run: func(w *env) {
		w.seed()
		_, c, m := w.waiting()
		id, token := c.Fence.Execution, tokenOf(m)
		mac := token[len(kid)+1:]
		for what, text := range map[string]string{
			"nothing": "", "no colon": kid + mac, "no kid": ":" + mac, "no mac": kid + ":",
			"short": token[:len(token)-1], "long": token + "0", "capitals": kid + ":" + strings.ToUpper(mac),
			"another kid": "k2:" + mac, "the first digit": flipped(token, len(kid)+1),
			"the last digit": flipped(token, len(token)-1), "space": token + " ",
			"the token of another": tokenOf(minted("wp")), "its digest": m.Digest,
		} {
			w.unchanged(what, func() {
				_, err := w.e.DeliverSignal(w.ctx, id, m.ID, digestOf(text), suspend.SentSignal{Name: "go"})
				w.is(err, flowfabric.ErrInvalidToken)
			})
		}
		for _, digest := range []string{"", "0", m.Digest[:63], m.Digest + "0", strings.ToUpper(m.Digest),
			flipped(m.Digest, 0), flipped(m.Digest, 63), strings.Repeat("0", 64), strings.Repeat("g", 64), token} {
			w.unchanged("digest "+digest, func() {
				a := w.fcall("ff_deliver_signal", signalArgs(id, m.ID.String(), digest, "go")...)
				sameDeep(w, label("%q", digest), a, answer{0, "invalid_token", []string{}})
			})
		}
		w.signal(id, m, "go", waitwords.EffectSatisfied)
	}},
	{name: "tokens of a rotated key are accepted until its grace ends", run: func(w *env) {
		w.stop()
		w.seed()
		_, c, m := w.waiting()
		id := c.Fence.Execution
		sameDeep(w, "rotated", w.setKey("rotate", "k2", time.Minute, true),
			answer{1, "OK", []string{"rotated", "k1", "0", "1"}})
		w.signal(id, m, "other", waitwords.EffectNone)
		w.pass(time.Minute - time.Millisecond)
		w.signal(id, m, "other", waitwords.EffectNone)
		current, known := w.keyState()
		w.all("keys", eq(current, "k2"), eq(len(known), 2), eq(known[kid].Current, false), eq(known[kid].Open, 1),
			eq(known["k2"].Current, true), eq(known["k2"].ExpiresAt.IsZero(), true))
		w.pass(time.Millisecond)
		w.unchanged("past the grace", func() {
			_, err := w.deliver(id, m, suspend.SentSignal{Name: "go"})
			w.is(err, flowfabric.ErrTokenExpired)
			_, err = w.e.DeliverSignal(w.ctx, id, m.ID, digestOf(flipped(tokenOf(m), len(kid)+1)),
				suspend.SentSignal{Name: "go"})
			w.is(err, flowfabric.ErrInvalidToken)
			_, known = w.keyState()
			same(w, "keys", len(known), 1)
		})
		w.unchanged("nor is anything minted with it", func() {
			f := c.Fence
			_, err := w.e.ReissueToken(trail.As(w.ctx, "op", ""), id, mintedAs(m.ID, kid))
			w.is(err, denied.KidNotCurrent)
			same(w, "the current one", detail(err, 0), "k2")
			_, err = w.e.SuspendExecution(w.ctx, f, suspension())
			w.is(err, denied.NotActive)
		})
		f := w.worker("w5").one(w.create()).Fence
		w.unchanged("nor suspended on it", func() {
			_, err := w.e.SuspendExecution(w.ctx, f, suspension())
			w.is(err, denied.KidNotCurrent)
			same(w, "the current one", detail(err, 0), "k2")
			_, err = w.e.CreatePendingWaitpoint(w.ctx, f, "", minted("p"), time.Hour)
			w.is(err, denied.KidNotCurrent)
		})
		n := mintedBy("k2", "wp")
		w.suspend(f, waitFor(conditionOf(names(1, 1, "go")), n))
		w.signal(f.Execution, n, "go", waitwords.EffectSatisfied)
	}},
	{name: "several rotated keys verify tokens at once, each until its own grace ends", run: func(w *env) {
		w.stop()
		w.seed()
		_, c, m := w.waiting()
		id := c.Fence.Execution
		forced := func(kid string, grace time.Duration) answer {
			a := w.setKey("rotate", kid, grace, true)
			same(w, "rotated to "+kid, a.code, "OK")
			return a
		}
		forced("k2", time.Hour)
		forced("k3", time.Hour)
		w.signal(id, m, "other", waitwords.EffectNone)
		w.pass(30 * time.Minute)
		forced(kid, time.Hour)
		current, known := w.keyState()
		w.all("back", eq(current, "k1"), eq(known[kid].ExpiresAt.IsZero(), true), eq(len(known), 3))
		w.pass(31 * time.Minute) // past what was the grace of k1
		w.signal(id, m, "other", waitwords.EffectNone)
		same(w, "what was forgotten: k2, of which nothing needs the tokens", forced("k4", time.Hour).slots[2], "1")
		w.signal(id, m, "other", waitwords.EffectNone)
		w.pass(time.Hour - time.Millisecond)
		w.signal(id, m, "other", waitwords.EffectNone)
		w.pass(time.Millisecond)
		_, err := w.deliver(id, m, suspend.SentSignal{Name: "go"})
		w.is(err, flowfabric.ErrTokenExpired)
		same(w, "k1 and k3 go", forced("k5", time.Hour).slots[2], "2")
		w.unchanged("the token of a key that is forgotten", func() {
			_, err := w.deliver(id, m, suspend.SentSignal{Name: "go"})
			w.is(err, flowfabric.ErrInvalidToken)
		})
	}},
	// The server knows secrets by their fingerprint alone; whether a secret is hex of the right length is found where
	// it is read.
	{name: "a rotation with a conflicting key, or a grace that never ends, is refused", run: func(w *env) {
		w.seed()
		print := printOf("secret of " + kid)
		call := func(args ...string) answer { return w.fcall("ff_set_token_keys", append([]string{proto}, args...)...) }
		w.unchanged("the same key", func() {
			sameDeep(w, "rotate", w.setKey("rotate", kid, time.Hour, false),
				answer{1, "ALREADY_SATISFIED", []string{"k1", "1"}})
		})
		w.unchanged("the same kid with another secret", func() {
			for _, mode := range []string{"rotate", "seed"} {
				sameDeep(w, mode, call(mode, kid, printOf("x"), "0", "1"),
					answer{0, "rotation_conflict", []string{"k1"}})
			}
		})
		w.unchanged("grace", func() {
			same(w, "grace", call("rotate", "k2", print, "9007199254740991", "0").code, "invalid_grace_ms")
		})
		w.unchanged("grace", func() {
			for _, r := range w.e.RotateTokenKey(w.ctx, suspend.TokenKey{Kid: "k2", Fingerprint: print}, -time.Second,
				true) {
				w.is(r.Err, denied.Grace)
			}
		})
		w.rotate("k2", time.Hour)
		w.unchanged("the kid of a key in its grace with another secret", func() {
			sameDeep(w, "rotate", call("rotate", kid, printOf("x"), "0", "1"),
				answer{0, "rotation_conflict", []string{"k1"}})
		})
		w.advance(time.Hour)
		sameDeep(w, "after it the kid may be used anew", call("rotate", kid, printOf("x"), "0", "0"),
			answer{1, "OK", []string{"rotated", "k2", "1", "0"}})
		w.check()
	}},
	// A start offers its key to every partition and learns what each has; a kid that is taken by another secret is an
	// error.
	{name: "every start seeds the token key where it is missing and detects another secret", run: func(w *env) {
		forget := func(p uint16) { w.set("DEL", keys.Of(p).Kids()) }
		for p := range uint16(partitions) {
			forget(p)
			defer forget(p)
		}
		seed := func(what, kid string, wantSeeded, wantGood int, current string) {
			w.Helper()
			all, err := w.e.SeedTokenKey(w.ctx, suspend.TokenKey{Kid: kid, Fingerprint: printOf("secret of " + kid)})
			w.no(err)
			var seeded, good int
			for _, s := range all {
				if s.Seeded {
					seeded++
				}
				if s.Good {
					good++
				}
			}
			w.all(what, eq(seeded, wantSeeded), eq(good, wantGood), eq(all[w.p].Current, current))
		}
		seed("first", kid, partitions, partitions, kid)
		w.check()
		w.unchanged("again", func() { seed("again", kid, 0, partitions, kid) })
		w.unchanged("another secret", func() {
			_, err := w.e.SeedTokenKey(w.ctx, suspend.TokenKey{Kid: kid, Fingerprint: printOf("x")})
			w.is(err, denied.KidConflict)
		})
		w.unchanged("another kid", func() { seed("another kid", "k2", 0, 0, kid) })
		forget(w.p)
		seed("one partition that was emptied", kid, 1, partitions, kid)
		for _, r := range w.e.RotateTokenKey(w.ctx, suspend.TokenKey{Kid: "k2", Fingerprint: printOf("secret of k2")},
			time.Hour, false) {
			w.no(r.Err)
			w.all("rotated", eq(r.Previous, "k1"), eq(r.Noop, false), eq(r.Open, 0))
		}
		seed("a process with the key before, within its grace", kid, 0, partitions, "k2")
		w.set("HDEL", w.k.Kids(), "k:k2") // torn: the current key is named, and not known
		seed("repaired by its seed", "k2", 1, partitions, "k2")
		current, known := w.keyState()
		w.all("keys", eq(current, "k2"), eq(known["k2"].Current, true),
			eq(known["k2"].Fingerprint, printOf("secret of k2")))
		w.set("HSET", w.k.Kids(), "k:k2", "")
		sameDeep(w, "or by a rotation", w.setKey("rotate", "k2", time.Hour, false),
			answer{1, "OK", []string{"rotated", "", "0", "0"}})
		w.check()
	}},
	// Secrets never come to the server; what may be damaged there is what it knows of a key.
	{name: "without a token key, no token is issued or accepted", run: func(w *env) {
		w.seed()
		k, c, m := w.waiting()
		id := c.Fence.Execution
		f := k.one(w.create()).Fence
		closed := func(what string, want error) {
			w.unchanged(what, func() {
				_, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, suspend.SentSignal{Name: "go"})
				w.is(err, want)
			})
		}
		w.set("DEL", w.k.Kids())
		closed("no keys", flowfabric.ErrNoTokenKeys)
		w.unchanged("nothing is told apart", func() {
			_, err := w.e.DeliverSignal(w.ctx, id, mint.UUID(), m.Digest, suspend.SentSignal{Name: "go"})
			w.is(err, flowfabric.ErrNoTokenKeys)
		})
		w.unchanged("mint", func() {
			_, err := w.e.SuspendExecution(w.ctx, f, suspension())
			w.is(err, flowfabric.ErrNoTokenKeys)
			_, err = w.e.CreatePendingWaitpoint(w.ctx, f, "", minted("p"), time.Hour)
			w.is(err, flowfabric.ErrNoTokenKeys)
			_, err = w.e.ReissueToken(trail.As(w.ctx, "op", ""), id, mintedAs(m.ID, kid))
			w.is(err, flowfabric.ErrNoTokenKeys)
		})
		w.set("HSET", w.k.Kids(), "current", kid)
		closed("a current key that is not known", flowfabric.ErrInvalidToken)
		for _, damaged := range []string{"", "x", "0", printOf("secret of " + kid), printOf("secret of "+kid) + " ",
			printOf("secret of "+kid) + " x", " 0"} {
			w.set("HSET", w.k.Kids(), "k:"+kid, damaged)
			w.unchanged("damaged", func() {
				if d, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, suspend.SentSignal{Name: "go"}); err == nil {
					w.Fatalf("a token of a key that is %q was accepted: %+v", damaged, d)
				}
			})
		}
		w.set("DEL", w.k.Kids())
		w.seed()
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		w.suspend(f)
	}},
	{name: "a token of another execution is refused", run: func(w *env) {
		w.seed()
		_, a, ma := w.waiting()
		_, b, mb := w.waiting()
		for _, x := range []struct {
			id     flowfabric.ExecutionID
			m      engine.Minted
			digest string
		}{
			{b.Fence.Execution, ma, ma.Digest}, {a.Fence.Execution, mb, mb.Digest}, {b.Fence.Execution, mb, ma.Digest},
			{a.Fence.Execution, ma, mb.Digest},
		} {
			w.unchanged("a crossed token", func() {
				_, err := w.e.DeliverSignal(w.ctx, x.id, x.m.ID, x.digest, suspend.SentSignal{Name: "go"})
				w.is(err, flowfabric.ErrInvalidToken)
			})
		}
		w.signal(a.Fence.Execution, ma, "go", waitwords.EffectSatisfied)
		w.code(b.Fence.Execution, "S1")
		w.signal(b.Fence.Execution, mb, "go", waitwords.EffectSatisfied)
	}},
	{name: "a token of an earlier suspension is refused by a later one", run: func(w *env) {
		w.seed()
		for _, end := range []struct {
			how, reason string
			run         func(id flowfabric.ExecutionID)
		}{
			{"operator", "resumed_by_operator", w.resume},
			{"timeout", "timed_out_auto_resume",
				func(flowfabric.ExecutionID) { w.advance(time.Minute); w.settleTime() }},
			{"deadline and replay", "expired:execution_deadline", func(id flowfabric.ExecutionID) {
				w.advance(time.Hour)
				w.settleTime()
				w.code(id, "T4")
				w.replay(id, engine.Replay{})
			}},
			{"cancel and replay", "cancelled",
				func(id flowfabric.ExecutionID) { w.cancel(id); w.replay(id, engine.Replay{}) }},
		} {
			_, c := w.holder(deadline(time.Hour))
			id := c.Fence.Execution
			var opts []suspending
			if end.how == "timeout" {
				opts = append(opts, within(time.Minute, "auto_resume"))
			}
			m := w.stopped(c.Fence, opts...)
			end.run(id)
			w.tooLate(end.how+", not claimed yet", id, m, end.reason)
			n := w.worker("w2").one(id)
			w.tooLate(end.how+", claimed", id, m, end.reason)
			next := w.stopped(n.Fence)
			w.tooLate(end.how+", suspended anew", id, m, end.reason)
			w.unchanged(end.how+", on an operator's word", func() {
				_, err := w.e.ApproveWaitpoint(w.ctx, id, m.ID.String(), suspend.SentSignal{Name: "go", Source: "ann"})
				w.is(err, flowfabric.ErrWaitpointClosed)
			})
			w.signal(id, next, "go", waitwords.EffectSatisfied)
			w.complete(w.worker("w3").one(id).Fence, "")
		}
	}},
	{name: "a sender without the token learns nothing about what exists", run: func(w *env) {
		w.seed()
		_, c, m := w.waiting()
		id := c.Fence.Execution
		_, _, foreign := w.waiting()
		_, ended, gone := w.waiting()
		w.cancel(ended.Fence.Execution)
		_, resumed, used := w.waiting()
		w.signal(resumed.Fence.Execution, used, "go", waitwords.EffectSatisfied)
		bad := digestOf("a guess")
		nobody := mint.ID(w.p)
		w.unchanged("deliveries without the token", func() {
			for what, args := range map[string][]string{
				"no execution": signalArgs(nobody, m.ID.String(), m.Digest, "go"),
				"no waitpoint": signalArgs(id, uuid.NewString(), m.Digest, "go"), "foreign waitpoint": signalArgs(id,
					foreign.ID.String(), foreign.Digest, "go"), "wrong token": signalArgs(id, m.ID.String(), bad, "go"),
				"wrong token of a closed waitpoint": signalArgs(resumed.Fence.Execution, used.ID.String(), bad, "go"),
				"wrong token of an ended execution": signalArgs(ended.Fence.Execution, gone.ID.String(), bad, "go"),
				"no digest":                         signalArgs(id, m.ID.String(), "", "go"),
				"an id that is none":                signalArgs(id, strings.Repeat("x", 36), bad, "go"),
				"a key in place of an id":           signalArgs(id, "current"+strings.Repeat(" ", 29), bad, "go"),
			} {
				sameDeep(w, what, w.fcall("ff_deliver_signal", args...), answer{0, "invalid_token", []string{}})
			}
		})
		for i, args := range [][]string{signalArgs(nobody, m.ID.String(), m.Digest, ""),
			signalArgs(id, m.ID.String(), m.Digest, "")} {
			same(w, "what is wrong with the signal does not tell them apart "+strconv.Itoa(i),
				w.fcall("ff_deliver_signal", args...).code, "invalid_input")
		}
	}},
}

// mintedAs is a new token for a waitpoint that exists.
func mintedAs(id flowfabric.UUID, kid string) engine.Minted {
	m := mintedBy(kid, "")
	m.ID = id
	m.Digest = digestOf(tokenOf(m))
	return m
}
