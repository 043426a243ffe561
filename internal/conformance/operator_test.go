package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

func (w *env) replay(id flowfabric.ExecutionID, q engine.Replay) {
	w.Helper()
	already, err := w.e.ReplayExecution(trail.As(w.ctx, "me", "why not"), id, q)
	w.no(err)
	same(w, "replay already", already, false)
	w.check()
}

func (w *env) revoke(id flowfabric.ExecutionID) {
	w.Helper()
	already, err := w.e.RevokeLease(trail.As(w.ctx, "op", "told to"), id, "")
	w.no(err)
	same(w, "revoke already", already, false)
	w.check()
}

// kinds lists what happened to an execution, in order.
func (w *env) kinds(id flowfabric.ExecutionID) string {
	w.Helper()
	events, err := w.e.ReadHistory(w.ctx, id)
	w.no(err)
	var out []string
	for _, e := range events {
		out = append(out, string(e.Kind))
	}
	return strings.Join(out, " ")
}

var operatorScenarios = []scenario{
	{name: "progress belongs to an attempt, and the next attempt clears it", run: func(w *env) {
		id := w.create(retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		type progress struct {
			percent int
			message string
		}
		shown := func() progress {
			w.check()
			p := w.read(id).Progress
			out := progress{-1, p.Message}
			if p.Percent != nil {
				out.percent = *p.Percent
			}
			return out
		}
		same(w, "none yet", shown(), progress{-1, ""})
		w.no(w.e.UpdateProgress(w.ctx, f, 50, "half"))
		same(w, "stored", shown(), progress{50, "half"})
		w.no(w.e.UpdateProgress(w.ctx, f, 60, ""))
		same(w, "an empty message keeps the last", shown(), progress{60, "half"})
		w.no(w.e.UpdateProgress(w.ctx, f, -1, "more"))
		same(w, "no percent keeps the last", shown(), progress{60, "more"})
		stale := f
		stale.Attempt++
		w.unchanged("another attempt", func() { w.is(w.e.UpdateProgress(w.ctx, stale, 70, ""), denied.StaleLease) })
		w.unchanged("a text that would be cut", func() { // it is refused, so that nobody reads half of it
			w.is(w.e.UpdateProgress(w.ctx, f, 70, strings.Repeat("x", limits.MaxReason+1)), flowfabric.ErrInvalidInput)
		})
		w.fail(f, "x")
		same(w, "kept between the attempts", shown(), progress{60, "more"})
		w.advance(time.Second)
		w.settleTime()
		g := k.one(id).Fence
		same(w, "cleared by the next attempt", shown(), progress{-1, ""})
		w.no(w.e.UpdateProgress(w.ctx, g, -1, "only text"))
		same(w, "no percent", shown(), progress{-1, "only text"})
	}},
	{name: "a changed priority reorders waiting work, or applies when the work is queued again", run: func(w *env) {
		ids := w.createN(3, priority(2))
		change := func(id flowfabric.ExecutionID, to, wantOld, wantNew int) {
			w.Helper()
			old, now, err := w.e.ChangePriority(w.ctx, id, to)
			w.no(err)
			w.check()
			w.all("old and new", eq(old, wantOld), eq(now, wantNew))
		}
		change(ids[2], 5, 2, 5)
		w.unchanged("the same again", func() { change(ids[2], 5, 5, 5) })
		change(ids[1], 0, 2, 0)
		change(ids[1], -7, 0, 0)
		k := w.worker("w1")
		for _, want := range []int{2, 0, 1} {
			k.one(ids[want])
		}
		high := w.create(priority(9000))
		old := w.create(delay(time.Second))
		change(old, 99999, 0, 9000)
		w.advance(time.Second)
		w.settleTime()
		k.one(high) // same priority, but older
		c := k.one(old)
		same(w, "applied on promotion", c.Priority, 9000)
		change(old, 3, 9000, 3)
		w.release(c.Fence)
		same(w, "a holder's too, for the next time", w.read(old).Priority, 3)
		w.cancel(old)
		_, _, err := w.e.ChangePriority(w.ctx, old, 1)
		w.is(err, denied.NotActive)
		_, _, err = w.e.ChangePriority(w.ctx, mint.ID(w.p), 1)
		w.is(err, flowfabric.ErrNotFound)
		for _, code := range reachable {
			if code[0] != 'T' {
				w.reset()
				x := w.state(code)
				change(x.id, 7, 0, 7)
				same(w, "and nothing else", string(w.read(x.id).Code), string(code))
			}
		}
	}},
	{name: "an operator runs a delayed execution now, or changes its delay", run: func(w *env) {
		due := map[codes.Code]string{"R2af": "R1f", "R2ai": "R1i", "R2b": "R1t", "R2r": "R1r", "R2c": "R1i"}
		set := func(id flowfabric.ExecutionID, d time.Duration) (bool, error) {
			return w.e.SetDelay(trail.As(w.ctx, "anna b", "mail is back"), id, engine.DelayChange{Delay: d})
		}
		for _, code := range reachable {
			w.reset()
			x := w.state(code)
			before := w.read(x.id)
			switch {
			case due[code] != "":
				for _, d := range []time.Duration{2 * time.Hour, time.Second} { // later, and sooner
					already, err := set(x.id, d)
					w.no(err)
					w.check()
					w.all("changed", eq(already, false), eq(w.stateOf(x.id), string(code)))
					facts, err := w.e.Explain(w.ctx, x.id)
					w.no(err)
					w.all("who and why", eq(facts.HeldBy, "anna b"), eq(facts.HoldReason, "mail is back"))
				}
				w.advance(time.Second)
				w.settleTime()
				same(w, "at the new time", w.stateOf(x.id), due[code])
				w.reset()
				x = w.state(code)
				request := engine.DelayChange{Request: mint.UUID()}
				already, err := w.e.SetDelay(w.ctx, x.id, request)
				w.no(err)
				w.check()
				w.all("at once", eq(already, false), eq(w.stateOf(x.id), due[code]))
				w.unchanged("the same request", func() {
					already, err := w.e.SetDelay(w.ctx, x.id, request)
					w.no(err)
					same(w, "already", already, true)
				})
				after := w.read(x.id)
				w.all("no retry, no reclaim", eq(after.Retries, before.Retries), eq(after.Reclaims, before.Reclaims),
					eq(after.Priority, before.Priority))
				w.unchanged("it waits for no time any more",
					func() { _, err := set(x.id, time.Hour); w.is(err, denied.NotEligible) })
			case code[0] == 'T':
				w.unchanged(string(code), func() { _, err := set(x.id, 0); w.is(err, denied.NotActive) })
			case strings.HasPrefix(string(code), "R1") || strings.HasPrefix(string(code), "G1"):
				w.unchanged(string(code),
					func() { already, err := set(x.id, 0); w.no(err); same(w, "already", already, true) })
			default:
				w.unchanged(string(code), func() { _, err := set(x.id, 0); w.is(err, denied.NotEligible) })
			}
		}
		_, err := set(mint.ID(w.p), 0)
		w.is(err, flowfabric.ErrNotFound)
	}},
	{name: "a pause before a retry that an operator ends is followed by that retry, and a repeat finds it claimed",
		run: func(w *env) {
			x := w.state("R2b")
			request := engine.DelayChange{Request: mint.UUID()}
			_, err := w.e.SetDelay(trail.As(w.ctx, "anna", ""), x.id, request)
			w.no(err)
			c := x.worker.one(x.id)
			same(w, "type", string(c.Type), string(flowfabric.AttemptRetry))
			already, err := w.e.SetDelay(w.ctx, x.id, request)
			w.no(err)
			same(w, "already", already, true)
			events, err := w.e.ReadHistory(w.ctx, x.id)
			w.no(err)
			told := 0
			for _, e := range events {
				if e.Kind == timeline.EventDelay {
					told++
					w.all("event", eq(e.By, "anna"), eq(e.Until.IsZero(), true))
				}
			}
			same(w, "told once", told, 1)
		}},
	{name: "a holder whose lease is revoked is refused and told, and its work is requeued", run: func(w *env) {
		id := w.create(timeout(time.Hour), deadline(2*time.Hour), retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		other := k.one(w.create()).Fence
		w.frames(f, 1, 1)
		w.tick()
		_, err := w.e.RevokeLease(w.ctx, id, "w9~9")
		w.is(err, denied.StaleLease)
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.revoke(id)
		ear.hears("l")
		s := w.code(id, "A3")
		w.all("shown", eq(s.State.Public, "active"), eq(s.Phase().OwnershipState, "lease_revoked"),
			eq(s.Session, k.session))
		w.unchanged("again", func() {
			already, err := w.e.RevokeLease(w.ctx, id, "")
			w.no(err)
			same(w, "already", already, true)
		})
		for name, call := range w.everyFencedCall(f) {
			want := denied.LeaseRevoked
			if name == "append" {
				want = denied.StaleAppend
			}
			w.unchanged(name, func() { w.is(call(), want) })
		}
		w.unchanged("progress", func() { w.is(w.e.UpdateProgress(w.ctx, f, 1, ""), denied.LeaseRevoked) })
		m, err := w.e.ReadAttemptStream(w.ctx, id, 1)
		w.no(err)
		w.all("stream", eq(m.Closed, true), eq(m.ClosedReason, "lease_revoked"))
		r := w.renew(k, 0)
		w.all("notices", eq(len(r.Lost), 1), eq(r.Lost[0].Execution, id), eq(r.Lost[0].Cause, "revoked"))
		same(w, "requeued", w.tick().Requeued, 1)
		s = w.code(id, "R1r")
		w.all("its attempt", eq(s.AttemptLog[0].State, "interrupted_reclaimed"),
			eq(s.AttemptLog[0].Category, "lease_revoked"), eq(s.Reclaims, 1), eq(s.Retries, 0))
		n := w.worker("w2").one(id)
		w.all("next", eq(n.Type, "reclaim"), eq(n.Fence.Attempt, 2))
		same(w, "history", w.kinds(id), "created claimed revoked attempt_ended claimed")
		w.no(w.complete(n.Fence, "").Err)
		w.no(w.complete(other, "").Err) // the rest of the session is untouched
	}},
	{name: "a repeated revocation request does not revoke the next holder's lease", run: func(w *env) {
		id := w.create()
		w.worker("w1").one(id)
		args := []string{proto, ids.UUID(id).String(), "", request.String()}
		w.must("ff_revoke_lease", args...)
		w.tick()
		two := w.worker("w2")
		f := two.one(id).Fence
		w.unchanged("the request again", func() {
			sameDeep(w, "answer", w.fcall("ff_revoke_lease", args...),
				answer{1, "ALREADY_SATISFIED", []string{"already_revoked"}})
		})
		w.no(w.e.UpdateProgress(w.ctx, f, 1, ""))
		w.revoke(id) // another request does
		w.code(id, "A3")
	}},
	{name: "only the lease of an active execution can be revoked", run: func(w *env) {
		for _, code := range reachable {
			w.reset()
			x := w.state(code)
			w.unchanged(string(code), func() {
				if code == "A1" {
					return
				}
				already, err := w.e.RevokeLease(w.ctx, x.id, "")
				if code == "A2" || code == "A3" {
					w.no(err)
					same(w, "already", already, true)
				} else {
					w.is(err, denied.NotActive)
				}
			})
		}
		_, err := w.e.RevokeLease(w.ctx, mint.ID(w.p), "")
		w.is(err, flowfabric.ErrNotFound)
	}},
	{name: "revocations count as reclaims", run: func(w *env) {
		id := w.create(reclaims(1), deadline(time.Hour))
		for i := range 2 {
			w.worker("w" + strconv.Itoa(i)).one(id)
			w.revoke(id)
			r := w.tick()
			w.all("requeued, exhausted", eq(r.Requeued, 1-i), eq(r.Exhausted, i))
		}
		s := w.code(id, "T2")
		w.all("end", eq(s.Failure.Category, "max_reclaims_exceeded"), eq(s.Attempts, 2))
	}},
	{name: "after a revocation, a cancel and a replay, the same worker can claim and complete it", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		k.one(id)
		w.revoke(id)
		w.cancel(id)
		w.replay(id, engine.Replay{})
		n := k.one(id)
		w.all("claim", eq(n.Type, "replay"), eq(n.Fence.Attempt, 2))
		r := w.renew(k, 1)
		same(w, "renewed", len(r.Lost), 0)
		w.no(w.complete(n.Fence, "").Err)
	}},
	{name: "a session that an operator declares dead is refused, and its work is requeued", run: func(w *env) {
		ids := w.createN(2)
		k := w.worker("w1")
		f := k.claim(2)[0].Fence
		w.tick()
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		already, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "gone"), w.p, k.session)
		w.no(err)
		w.check()
		same(w, "already", already, false)
		ear.hears("l")
		for name, call := range w.everyFencedCall(f) {
			want := denied.LeaseExpired
			if name == "append" {
				want = denied.StaleAppend
			}
			w.unchanged(name, func() { w.is(call(), want) })
		}
		_, err = w.e.RenewSession(w.ctx, w.p, k.session, k.ttl, 0)
		w.is(err, denied.LeaseExpired)
		_, err = w.e.ClaimNext(w.ctx, k.request(1))
		w.is(err, denied.LeaseExpired)
		w.unchanged("again", func() {
			already, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "gone"), w.p, k.session)
			w.no(err)
			same(w, "already", already, true)
		})
		same(w, "requeued", w.tick().Requeued, 2)
		for _, id := range ids {
			w.code(id, "R1r")
		}
		_, err = w.e.MarkSessionDead(w.ctx, w.p, "w1~never")
		w.is(err, denied.NoSession)
	}},
	{name: "an execution can be replayed from every end, a success only if forced", run: func(w *env) {
		for _, code := range []codes.Code{"T1", "T2", "T3", "T3n", "T4", "T4n"} {
			w.reset()
			x := w.state(code, priority(4))
			before := w.read(x.id)
			score := w.at(x.id, "ct")
			if code == "T1" {
				w.unchanged("unforced", func() {
					_, err := w.e.ReplayExecution(w.ctx, x.id, engine.Replay{})
					w.is(err, denied.ReplayNotAllowed)
				})
			}
			w.replay(x.id, engine.Replay{Force: true})
			s := w.code(x.id, "R1p")
			w.all(string(code)+" reset", eq(s.Retries, 0), eq(s.Reclaims, 0), eq(s.Replays, 1),
				eq(s.Failure.Category, ""), eq(s.CancelledBy, ""), eq(s.CancelSource, ""), eq(s.CancelReason, ""),
				eq(s.EndedAt.IsZero(), true), eq(s.DelayUntil.IsZero(), true))
			w.all("kept", eq(s.Epoch, before.Epoch), eq(s.Attempts, before.Attempts), eq(s.Priority, 4),
				eq(s.CreatedAt.UnixMilli(), score))
			events, err := w.e.ReadHistory(w.ctx, x.id)
			w.no(err)
			e := events[len(events)-1]
			w.all("lineage", eq(e.Kind, "replayed"), eq(e.State, codes.Shown(code).Public), eq(e.By, "me"),
				eq(e.Reason, "why not"),
				eq(e.Until.Equal(before.EndedAt), true))
			k := w.worker("w2")
			n := k.one(x.id)
			w.all("claim", eq(n.Type, "replay"), eq(n.Fence.Attempt, before.Attempts+1),
				eq(n.Fence.Epoch > before.Epoch, true), eq(n.LastSequence, 0))
			w.no(w.complete(n.Fence, "").Err)
			_, ok, err := w.e.ReadResult(w.ctx, x.id, n.Fence.Attempt)
			w.no(err)
			same(w, "a void completion has no result", ok, false)
			if code == "T1" {
				old := w.read(x.id).AttemptLog[0]
				w.all("the first run's record", eq(old.State, "ended_success"),
					eq(old.EndedAt.Equal(before.EndedAt), true), eq(old.Session, x.worker.session))
				kept, _, err := w.e.ReadResult(w.ctx, x.id, 1)
				w.no(err)
				same(w, "and result", string(kept), "r")
			}
		}
	}},
	{name: "replays are limited, recognised when repeated, and refused before the end", run: func(w *env) {
		x := w.state("T3n")
		k := w.worker("w2")
		request := engine.Replay{Request: mint.UUID()}
		for i := range 10 {
			request.Request = mint.UUID()
			w.replay(x.id, request)
			w.unchanged("the same request again", func() {
				already, err := w.e.ReplayExecution(w.ctx, x.id, request)
				w.no(err)
				same(w, "already", already, true)
			})
			same(w, "replays", w.read(x.id).Replays, i+1)
			w.no(w.complete(k.one(x.id).Fence, "").Err)
			request.Force = true
		}
		w.unchanged("also after the end", func() {
			already, err := w.e.ReplayExecution(w.ctx, x.id, request)
			w.no(err)
			same(w, "already", already, true)
		})
		w.unchanged("the eleventh", func() {
			_, err := w.e.ReplayExecution(w.ctx, x.id, engine.Replay{Force: true})
			w.is(err, denied.ReplaysExhausted)
		})
		never := w.create(func(n *engine.NewExecution) { n.Policy.MaxReplays = -1 })
		w.cancel(never)
		_, err := w.e.ReplayExecution(w.ctx, never, engine.Replay{})
		w.is(err, denied.ReplaysExhausted)
		for _, code := range reachable {
			if code[0] != 'T' {
				w.reset()
				y := w.state(code)
				w.unchanged(string(code), func() {
					_, err := w.e.ReplayExecution(w.ctx, y.id, engine.Replay{Force: true})
					w.is(err, denied.NotTerminal)
				})
			}
		}
		_, err = w.e.ReplayExecution(w.ctx, mint.ID(w.p), engine.Replay{})
		w.is(err, flowfabric.ErrNotFound)
	}},
	{name: "a replay gets its full deadline, timeout and retries again", run: func(w *env) {
		id := w.create(deadline(10*time.Second), timeout(4*time.Second), retries(1))
		w.advance(10 * time.Second)
		w.settleTime()
		w.code(id, "T4n")
		for range 2 { // the second span is the first's, not what was left of it
			w.advance(time.Minute)
			w.replay(id, engine.Replay{})
			c := w.worker("w1").one(id)
			same(w, "span", c.DeadlineIn > 9*time.Second && c.DeadlineIn <= 10*time.Second, true)
			same(w, "timeout", c.TimeLeft, 4*time.Second)
			same(w, "retries", w.fail(c.Fence, "x").Retry, true)
			w.advance(10 * time.Second)
			w.settleTime()
			s := w.code(id, "T4")
			w.all("end", eq(s.Failure.Category, "execution_deadline"), eq(s.Retries, 1))
		}
	}},
	{name: "a replay keeps the recorded steps unless told to drop them", run: func(w *env) {
		id := w.create()
		for i, q := range []engine.Replay{{}, {}, {DropSteps: true, Force: true}, {Force: true}} {
			if i > 0 {
				w.replay(id, q)
			}
			c := w.worker("w" + strconv.Itoa(i)).one(id)
			same(w, "steps", len(c.Steps), []int{0, 1, 0, 1}[i])
			if len(c.Steps) == 0 {
				_, err := w.e.RecordStep(w.ctx, c.Fence, "s", []byte(strconv.Itoa(i)), 0)
				w.no(err)
			}
			if i == 0 {
				w.fail(c.Fence, "x")
			} else {
				w.no(w.complete(c.Fence, "").Err)
			}
		}
	}},
	{name: "up to 64 tags can be set and removed at any time, also after the end", run: func(w *env) {
		id := w.create(tags(map[string]string{"a.b": "1", "c.d": "2"}))
		all := func() string {
			w.check()
			var out []string
			for k, v := range w.read(id).Tags {
				out = append(out, k+"="+v)
			}
			slices.Sort(out)
			return strings.Join(out, " ")
		}
		w.no(w.e.SetTags(w.ctx, id, map[string]string{"a.b": "3", "e.f": ""}, []string{"c.d", "no.such"}))
		same(w, "tags", all(), "a.b=3 e.f=")
		w.unchanged("again", func() { w.no(w.e.SetTags(w.ctx, id, map[string]string{"a.b": "3"}, []string{"c.d"})) })
		many := map[string]string{}
		for i := range 62 {
			many["n.x"+strconv.Itoa(i)] = "v"
		}
		w.no(w.e.SetTags(w.ctx, id, many, nil))
		w.unchanged("the 65th", func() {
			w.is(w.e.SetTags(w.ctx, id, map[string]string{"o.p": "v"}, nil), flowfabric.ErrInvalidInput)
		})
		w.no(w.e.SetTags(w.ctx, id, map[string]string{"o.p": "v"}, []string{"a.b"}))
		w.unchanged("a bad key", func() {
			for _, key := range []string{"", "a", "A.b", "a.", ".a", "a..b", "a.b-c", strings.Repeat("a", 63) + ".b"} {
				w.is(w.e.SetTags(w.ctx, id, map[string]string{key: "v"}, nil), denied.TagKey)
				a := w.fcall("ff_set_tags", proto, ids.UUID(id).String(), "execution", "1", key, "v", "0")
				same(w, "code", a.code, "invalid_tag_key")
			}
			w.is(w.e.SetTags(w.ctx, id, map[string]string{"a.b": strings.Repeat("v", 257)}, nil),
				flowfabric.ErrInvalidInput)
		})
		gone := []string{"e.f", "o.p"}
		for k := range many {
			gone = append(gone, k)
		}
		w.no(w.e.SetTags(w.ctx, id, nil, gone))
		same(w, "none left", all(), "")
		c := w.worker("w1").one(id)
		same(w, "claimed without", len(c.Tags), 0)
		w.no(w.complete(c.Fence, "").Err)
		w.no(w.e.SetTags(w.ctx, id, map[string]string{"late.tag": "x"}, nil))
		same(w, "also when it has ended", all(), "late.tag=x")
		w.is(w.e.SetTags(w.ctx, mint.ID(w.p), many, nil), flowfabric.ErrNotFound)
	}},
	{name: "the history stores only departures from the happy path, at most 1,000", run: func(w *env) {
		id := w.create(retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		n, err := w.do("EXISTS", w.k.History(ids.UUID(id))).AsInt64()
		w.no(err)
		same(w, "the happy path keeps none", n, 0)
		w.delay(f, time.Second)
		w.advance(time.Second)
		w.settleTime()
		w.release(k.one(id).Fence)
		w.advance(time.Millisecond)
		_, _, err = w.e.ChangePriority(w.ctx, id, 3)
		w.no(err)
		w.advance(time.Millisecond)
		w.fail(k.one(id).Fence, "io")
		w.advance(2 * time.Second)
		w.settleTime()
		w.advance(time.Millisecond)
		k.one(id)
		w.advance(time.Millisecond)
		w.cancel(id)
		w.advance(time.Millisecond)
		w.replay(id, engine.Replay{})
		w.advance(time.Millisecond)
		w.no(w.complete(k.one(id).Fence, "").Err)
		same(w, "events", w.kinds(id),
			"created claimed delayed claimed released priority claimed attempt_ended claimed cancelled attempt_ended replayed claimed ended")
		two := w.create()
		for i := range 1010 {
			_, _, err = w.e.ChangePriority(w.ctx, two, 1+i%2)
			w.no(err)
		}
		w.check()
		events, err := w.e.ReadHistory(w.ctx, two)
		w.no(err)
		same(w, "bounded", len(events), 1001)
	}},
	{name: "the history lists every claim once", run: func(w *env) {
		w.seed()
		id := w.create(retries(1))
		k := w.worker("w1")
		claims := func() (out []string) {
			events, err := w.e.ReadHistory(w.ctx, id)
			w.no(err)
			for _, e := range events {
				if e.Kind == timeline.EventClaimed {
					out = append(out, fmt.Sprint(e.Attempt, " ", e.Detail))
				}
			}
			return out
		}
		f := k.one(id).Fence
		w.suspend(f)
		w.all("suspended", eq(w.kinds(id), "created claimed suspended"), eqList(claims(), "1 initial"))
		w.resume(id)
		w.all("resumed", eq(w.kinds(id), "created claimed suspended resumed"), eqList(claims(), "1 initial"))
		f = k.one(id).Fence
		w.all("claimed again", eq(w.kinds(id), "created claimed suspended resumed claimed"),
			eqList(claims(), "1 initial", "1 resumed"))
		w.suspend(f)
		w.all("suspended again", eq(w.kinds(id), "created claimed suspended resumed claimed suspended"),
			eqList(claims(), "1 initial", "1 resumed"))
		w.resume(id)
		w.delay(k.one(id).Fence, time.Minute)
		same(w, "delayed", strings.HasSuffix(w.kinds(id), "resumed claimed delayed"), true)
		w.cancel(id)
		w.replay(id, engine.Replay{})
		w.suspend(k.one(id).Fence)
		sameList(w, "suspended after a replay", claims(), "1 initial", "1 resumed", "1 resumed", "2 replay")
	}},
	{name: "a completed execution shows no failure category or reason", run: func(w *env) {
		id := w.create(retries(1))
		k := w.worker("w1")
		_, err := w.e.FailExecution(w.ctx, k.one(id).Fence, engine.Failure{Category: "c1", Reason: "boom"})
		w.no(err)
		w.advance(time.Hour)
		w.settleTime()
		s := w.read(id)
		w.all("while it is retried", eq(s.Failure.Category, "c1"), eq(s.Failure.Message, "boom"))
		w.complete(w.worker("w2").one(id).Fence, "r")
		s = w.read(id)
		w.all("completed", eq(s.Failure.Category, ""), eq(s.Failure.Message, ""), eq(s.AttemptLog[0].Message, "boom"))
	}},
	{name: "a purge leaves only a tombstone, which still recognises duplicates", run: func(w *env) {
		digest := func(x *engine.NewExecution) { x.Digest = "d1" }
		for _, code := range []codes.Code{"T1", "T2", "T3n", "T4"} {
			w.reset()
			x := w.state(code, digest, tags(map[string]string{"a.b": "c"}), deadline(time.Second))
			item := w.item(digest)
			item.ID = x.id
			already, err := w.e.PurgeExecution(w.ctx, x.id, 0)
			w.no(err)
			same(w, "already", already, false)
			w.check()
			left := 0
			for _, key := range w.keys() {
				if strings.Contains(key, ids.UUID(x.id).String()) {
					same(w, "what is left", key, w.k.Tombstone(ids.UUID(x.id)))
					left++
				}
			}
			same(w, "left", left, 1)
			w.unchanged("a duplicate", func() {
				c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{item})
				w.no(err)
				w.no(c[0].Err)
				state, _ := codes.Project(code)
				w.all("answer", eq(c[0].Duplicate, true), eq(c[0].State, state.Public))
				c, err = w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{item, item})
				w.no(err)
				w.all("in a batch of alike ones", eq(c[0].Duplicate, true), eq(c[1].Duplicate, true))
				item.Digest = "d2"
				c, err = w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{item})
				w.no(err)
				w.is(c[0].Err, denied.Idempotency)
			})
			_, err = w.e.ReadExecution(w.ctx, x.id)
			w.is(err, flowfabric.ErrResultPurged)
			_, err = w.e.ReadHistory(w.ctx, x.id)
			w.is(err, flowfabric.ErrResultPurged)
			_, err = w.e.ReadAttemptStream(w.ctx, x.id, 1)
			w.is(err, flowfabric.ErrResultPurged)
			_, err = w.e.ReplayExecution(w.ctx, x.id, engine.Replay{Force: true})
			w.is(err, flowfabric.ErrNotFound)
			w.unchanged("again", func() {
				already, err := w.e.PurgeExecution(w.ctx, x.id, 0)
				w.no(err)
				same(w, "already", already, true)
			})
			w.set("DEL", w.k.Tombstone(ids.UUID(x.id))) // as after its time
			_, err = w.e.ReadExecution(w.ctx, x.id)
			w.is(err, flowfabric.ErrNotFound)
			_, err = w.e.PurgeExecution(w.ctx, x.id, 0)
			w.is(err, flowfabric.ErrNotFound)
			y := w.state(code, digest, deadline(time.Second))
			_, err = w.e.PurgeExecution(w.ctx, y.id, 0)
			w.no(err)
			w.advance(24 * time.Hour) // the server's clock decides, whatever became of the key
			_, err = w.e.ReadExecution(w.ctx, y.id)
			w.is(err, flowfabric.ErrNotFound)
			_, err = w.e.ReadAttemptStream(w.ctx, y.id, 1)
			w.is(err, flowfabric.ErrNotFound)
		}
		for _, code := range reachable {
			if code[0] != 'T' {
				w.reset()
				x := w.state(code)
				w.unchanged(string(code), func() {
					_, err := w.e.PurgeExecution(w.ctx, x.id, 0)
					w.is(err, denied.NotTerminal)
				})
			}
		}
		_, err := w.e.PurgeExecution(w.ctx, mint.ID(w.p), time.Hour)
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a purge of many attempts proceeds in bounded slices", run: func(w *env) {
		x := w.state("T1")
		w.quiet = true
		for attempt := range 450 { // as after that many reclaims
			w.set("SET", w.k.Result(ids.UUID(x.id), uint32(attempt+1)), "r")
		}
		w.editRecord(ids.UUID(x.id), func(f fields) { f["n"] = "450" })
		for _, want := range []string{"1", "1", "0"} {
			same(w, "more", w.must("ff_purge_execution", proto, ids.UUID(x.id).String(), "86400000").slots[0], want)
			if want == "1" {
				_, err := w.e.ReplayExecution(w.ctx, x.id, engine.Replay{Force: true})
				w.is(err, flowfabric.ErrNotFound)
			}
		}
		w.quiet = false
		w.check()
	}},
	{name: "a frozen partition changes nothing until it is thawed", run: func(w *env) {
		x := w.state("A1")
		before := w.digest("root")
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "slot move"), w.p))
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "twice"), w.p))
		same(w, "reason", w.root()["frozen"], "slot move")
		for name, call := range w.everyFencedCall(x.fence) {
			w.unchanged(name, func() { w.is(call(), flowfabric.ErrPartitionFrozen) })
		}
		_, err := w.e.ClaimNext(w.ctx, x.worker.request(1))
		w.is(err, flowfabric.ErrPartitionFrozen)
		same(w, "everything else", w.digest("root"), before)
		w.no(w.e.ThawPartition(w.ctx, w.p))
		w.no(w.e.ThawPartition(w.ctx, w.p))
		w.check()
		w.no(w.complete(x.fence, "").Err)
	}},
	{name: "a full worker forwards its wake to another one that waits", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		full, other := w.worker("full"), w.worker("other")
		full.nothing()
		w.create() // rings only who is registered, and that is full
		ear := w.listen(engine.BellChannel(w.p, "other"))
		blind := w.worker("blind")
		blind.can = func(engine.Route) bool { return false }
		blind.nothing()
		heard, err := w.e.ForwardRing(w.ctx, w.p, full.subscription)
		w.no(err)
		same(w, "nobody else waits", heard, 0)
		c := other.claim(1)[0]
		other.nothing() // registered now
		w.set("ZREM", w.k.Waiters(other.subscription), "other")
		w.release(c.Fence) // nobody is there to be rung
		w.set("ZADD", w.k.Waiters(other.subscription), strconv.FormatInt(w.now()+180000, 10), "other")
		w.set("SADD", w.k.Digests(), other.subscription)
		ear.silent()
		heard, err = w.e.ForwardRing(w.ctx, w.p, full.subscription)
		w.no(err)
		same(w, "heard", heard, 1)
		ear.hears("w")
		w.check()
		w.unchanged("an unknown subscription", func() {
			heard, err := w.e.ForwardRing(w.ctx, w.p, "abcdef")
			w.no(err)
			same(w, "heard", heard, 0)
		})
	}},
	{name: "a new route wakes more than 64 waiting workers over several ticks", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		all := w.everything()
		waiting := func() int { return len(w.dump().ZSets[":w:"+all]) }
		for i := range 150 {
			k := w.worker("w" + strconv.Itoa(i))
			k.subscription = all
			_, err := w.e.ClaimNext(w.ctx, k.request(1))
			w.no(err)
		}
		w.advance(time.Millisecond)
		w.create(kind("brand new"))
		same(w, "left after the create", waiting(), 150-64)
		w.advance(time.Millisecond)
		late := w.worker("late")
		late.subscription = all
		_, err := w.e.ClaimNext(w.ctx, late.request(1)) // knows the new route: must not be rung for it
		w.no(err)
		w.tick()
		same(w, "after one tick", waiting(), 150-128+1)
		w.tick()
		same(w, "after two", waiting(), 1)
		w.tick()
		w.tick()
		same(w, "the late one still waits", waiting(), 1)
		same(w, "done", w.root()["ring"], "")
	}},
}
