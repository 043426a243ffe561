package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// setLane says something about a lane of the default namespace in this partition; "" leaves state or retention.
func (w *env) setLane(name string, state flowfabric.LaneState, keep string) answer {
	w.Helper()
	a := w.fcall("ff_set_lane", protoOf("anna", ""), "default", name, string(state), keep, "")
	w.check()
	return a
}

// laneIs fails unless the lane is listed in this state, with this retention, by whom, and with so many routes and so
// much that waits.
func (w *env) laneIs(name string, state flowfabric.LaneState, kept time.Duration, by string, routes,
	waiting int) engine.Lane {
	w.Helper()
	p := w.e.Lanes(w.ctx)[w.p]
	w.no(p.Err)
	i := slices.IndexFunc(p.Reply, func(l engine.Lane) bool { return l.Namespace == "default" && l.Lane == name })
	if i < 0 {
		w.Fatalf("lane %s is not listed: %+v", name, p.Reply)
	}
	l := p.Reply[i]
	w.all("lane "+name, eq(l.State, string(state)), eq(l.Retention.Completed, kept), eq(l.By, by), eq(l.Routes, routes),
		eq(l.Waiting, waiting))
	return l
}

// creating tries to admit one execution and returns the answer to it.
func (w *env) creating(opts ...option) engine.Created {
	w.Helper()
	c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item(opts...)})
	w.no(err)
	w.check()
	return c[0]
}

var laneScenarios = []scenario{
	{name: "a paused lane accepts work and dispatches none from that moment on", run: func(w *env) {
		runs := w.create()
		k := w.worker("w1")
		f := k.one(runs).Fence
		stays := w.createN(3)
		same(w, "ready before", len(w.ready()), 1)
		sameDeep(w, "paused", w.setLane("default", flowfabric.LanePaused, ""),
			answer{1, "OK", []string{"paused", "0", "1"}})
		same(w, "ready right after", len(w.ready()), 0)
		k.nothing()
		accepted := w.create()
		same(w, "ready after a create", len(w.ready()), 0)
		next := k.request(5)
		settled, claimed, err := w.e.CompleteExecutions(w.ctx, w.p,
			[]engine.Completion{{Fence: f, Result: []byte("r")}}, &next)
		w.no(err)
		w.no(settled[0].Err) // what runs goes on
		same(w, "claimed in the same call", len(claimed.Claims), 0)
		w.laneIs("default", "paused", 0, "anna", 1, 4)
		idle := w.worker("idle")
		idle.nothing()
		ear := w.listen(engine.BellChannel(w.p, "idle"))
		w.create()
		w.tick()
		ear.silent()
		sameDeep(w, "resumed", w.setLane("default", flowfabric.LaneActive, ""),
			answer{1, "OK", []string{"active", "0", "1"}})
		same(w, "ready right after it", len(w.ready()), 1)
		ear.hears("w")
		got := map[flowfabric.ExecutionID]bool{}
		for _, c := range k.claim(10) {
			got[c.Fence.Execution] = true
		}
		same(w, "claimed", len(got), 5)
		for _, id := range append(stays, accepted) {
			same(w, "claimed "+id.String(), got[id], true)
		}
		same(w, "root", w.root()["lanes"], "")
	}},
	{name: "a draining lane dispatches work and accepts only duplicates", run: func(w *env) {
		digest := func(x *engine.NewExecution) { x.Digest = "d" }
		known := w.item(digest)
		_, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{known})
		w.no(err)
		w.setLane("default", flowfabric.LaneDraining, "")
		w.unchanged("creates", func() {
			for _, o := range [][]option{nil, {delay(time.Hour)}, {kind("new")}} {
				w.is(w.creating(o...).Err, flowfabric.ErrLaneClosed)
			}
			other := known
			other.Digest = "other"
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item(), known, other, w.item(lane(""))})
			w.no(err)
			w.is(c[0].Err, flowfabric.ErrLaneClosed)
			w.no(c[1].Err)
			w.all("known", eq(c[1].Duplicate, true), eq(c[1].State, "waiting"))
			w.is(c[2].Err, denied.Idempotency)
			w.is(c[3].Err, flowfabric.ErrInvalidInput)
		})
		c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{w.item(), w.item(lane("open"))})
		w.no(err)
		w.is(c[0].Err, flowfabric.ErrLaneClosed)
		w.no(c[1].Err) // each item is judged alone
		w.check()
		k := w.worker("w1")
		k.can = func(r engine.Route) bool { return r.Lane == "default" }
		f := k.one(known.ID).Fence
		w.release(f) // comes back into the lane and goes out again
		w.no(w.complete(k.one(known.ID).Fence, "").Err)
		k.nothing()
		w.replay(known.ID, engine.Replay{Force: true})
		k.one(known.ID)
		w.laneIs("default", "draining", 0, "anna", 1, 0)
	}},
	{name: "a disabled lane neither accepts nor dispatches work", run: func(w *env) {
		id := w.create()
		w.setLane("default", flowfabric.LaneDisabled, "")
		k := w.worker("w1")
		k.nothing()
		w.is(w.creating().Err, flowfabric.ErrLaneClosed)
		w.create(lane("other"))
		same(w, "ready", len(w.ready()), 1)
		w.setLane("default", flowfabric.LaneDraining, "") // from there on it is drained
		same(w, "ready", len(w.ready()), 2)
		k.can = func(r engine.Route) bool { return r.Lane == "default" }
		k = w.worker("w2")
		k.can = func(r engine.Route) bool { return r.Lane == "default" }
		k.one(id)
		w.is(w.creating().Err, flowfabric.ErrLaneClosed)
	}},
	{name: "a lane can be paused before it exists, and its new routes start paused", run: func(w *env) {
		w.setLane("later", flowfabric.LanePaused, "")
		w.laneIs("later", "paused", 0, "anna", 0, 0)
		k := w.worker("w1")
		ids := []flowfabric.ExecutionID{w.create(lane("later")), w.create(lane("later"), kind("a")),
			w.create(lane("later"), capabilities("gpu"))}
		same(w, "ready", len(w.ready()), 0)
		w.laneIs("later", "paused", 0, "anna", 3, 3)
		k.nothing()
		same(w, "routes known", len(k.routes), 3)
		w.setLane("later", flowfabric.LaneActive, "")
		same(w, "ready", len(w.ready()), 3)
		for _, id := range ids {
			k.one(id)
		}
	}},
	{name: "work that comes back into a paused lane waits there", run: func(w *env) {
		// Every way into a queue, with what brings it there while the lane is paused.
		for _, way := range []struct {
			from codes.Code
			to   codes.Code
			by   func(x placed)
		}{
			{"R2af", "R1f", func(placed) { w.advance(time.Hour); w.settleTime() }},
			{"R2ai", "R1i", func(placed) { w.advance(time.Hour); w.settleTime() }},
			{"R2b", "R1t", func(placed) { w.advance(time.Hour); w.settleTime() }},
			{"R2r", "R1r", func(placed) { w.advance(time.Hour); w.settleTime() }},
			{"R2c", "R1i", func(placed) { w.advance(time.Hour); w.settleTime() }},
			{"A1", "R1i", func(x placed) { w.release(x.fence) }},
			{"A2", "R1r", func(placed) { w.settleTime() }},
			{"A3", "R1r", func(placed) { w.settleTime() }},
			{"S1", "R1i", func(x placed) { w.signal(x.id, x.waitpoint, "go", waitwords.EffectSatisfied) }},
			{"S5", "R1i", func(x placed) { w.resume(x.id) }},
			{"T2", "R1p", func(x placed) { w.replay(x.id, engine.Replay{}) }},
			{"T1", "R1p", func(x placed) { w.replay(x.id, engine.Replay{Force: true}) }},
			{"R1f", "R1f", func(x placed) {
				_, _, err := w.e.ChangePriority(w.ctx, x.id, 9)
				w.no(err)
			}},
		} {
			w.reset()
			x := w.state(way.from)
			w.setLane("default", flowfabric.LanePaused, "")
			way.by(x)
			w.check()
			w.code(x.id, way.to)
			same(w, fmt.Sprint("ready after ", way.from), len(w.ready()), 0)
			k := w.worker("other")
			k.nothing()
			w.tick() // nor does the tick's repeated ring find anything
			same(w, fmt.Sprint("ready after a tick after ", way.from), len(w.ready()), 0)
			w.setLane("default", flowfabric.LaneActive, "")
			k.one(x.id)
		}
	}},
	{name: "a lane change affects no other lane and no other namespace", run: func(w *env) {
		elsewhere := func(x *engine.NewExecution) { x.Namespace = "other" }
		w.create()
		theirs, fast := w.create(elsewhere), w.create(lane("default2"))
		w.setLane("default", flowfabric.LanePaused, "60")
		same(w, "ready", len(w.ready()), 3) // the ring of the first class, and the second with its ring
		k := w.worker("w1")
		got := map[flowfabric.ExecutionID]flowfabric.Fence{}
		for _, c := range k.claim(10) {
			got[c.Fence.Execution] = c.Fence
		}
		same(w, "claimed", len(got), 2)
		w.no(w.complete(got[theirs], "").Err)
		w.no(w.complete(got[fast], "").Err)
		for _, id := range []flowfabric.ExecutionID{theirs, fast} {
			score, err := w.do("ZSCORE", w.k.Done(), ids.UUID(id).String()).AsFloat64()
			w.no(err)
			same(w, "kept", int64(score)-w.at(id, "en"), (24 * time.Hour).Milliseconds())
		}
		w.laneIs("default2", "active", 0, "", 1, 0)
	}},
	{name: "a repeated lane change does nothing, and a partial one keeps the rest", run: func(w *env) {
		w.create()
		sameDeep(w, "nothing was ever said", w.setLane("default", flowfabric.LaneActive, "0"),
			answer{1, "ALREADY_SATISFIED", []string{"active", "0", "1"}})
		same(w, "and nothing is kept", len(w.hash(w.k.Lanes())), 0)
		w.setLane("default", flowfabric.LanePaused, "")
		since := w.laneIs("default", "paused", 0, "anna", 1, 1).Since
		w.advance(time.Minute)
		w.unchanged("the same again", func() {
			sameDeep(w, "again", w.fcall("ff_set_lane", protoOf("bert", ""), "default", "default", "paused", "", ""),
				answer{1, "ALREADY_SATISFIED", []string{"paused", "0", "1"}})
		})
		sameDeep(w, "retention alone", w.setLane("default", "", "3600"),
			answer{1, "OK", []string{"paused", "3600", "1"}})
		same(w, "since", w.laneIs("default", "paused", time.Hour, "anna", 1, 1).Since, since)
		sameDeep(w, "state alone", w.setLane("default", flowfabric.LaneActive, ""),
			answer{1, "OK", []string{"active", "3600", "1"}})
		if now := w.laneIs("default", "active", time.Hour, "anna", 1, 1).Since; !now.After(since) {
			w.Fatalf("since %s, was %s", now, since)
		}
		same(w, "special", w.root()["lanes"], "1")
		w.setLane("default", "", "0")
		same(w, "as usual", w.root()["lanes"], "")
	}},
	{name: "at most 1,024 lanes can be configured", run: func(w *env) {
		rows := []string{"HSET", w.k.Lanes()}
		for i := range 1023 {
			rows = append(rows, "default\x1fl"+strconv.Itoa(i), "paused 0 1700000000000 anna")
		}
		w.set(rows...)
		w.set("HSET", string(w.k), "lanes", "1")
		same(w, "1,024", w.setLane("last", flowfabric.LanePaused, "").code, "OK")
		w.unchanged("1,025", func() {
			a := w.setLane("too many", flowfabric.LanePaused, "")
			sameDeep(w, "answer", a, answer{0, "invalid_input", []string{"lane: at most 1024 are configured"}})
		})
		same(w, "a known one", w.setLane("l7", flowfabric.LaneActive, "").code, "OK")
		w.create(lane("too many")) // a lane need not be configured
		w.is(w.creating(lane("l8"), kind("{")).Err, flowfabric.ErrInvalidInput)
	}},
}
