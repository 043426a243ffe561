package conformance

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Routes are counted from a partition's first boot on, lanes close and open exactly theirs, and purges have their
// price.
var countingScenarios = []scenario{
	{name: "the retention is stored beside the policy, not in it", run: func(w *env) {
		policy := flowfabric.Policy{Retry: valid.DefaultRetry(), StreamFrames: 77}
		policy.Retry.Categories = []flowfabric.Category{"a", "b"}
		plain := w.create(func(x *engine.NewExecution) { x.Policy = policy })
		kept := w.create(func(x *engine.NewExecution) { x.Policy = policy }, retention(90*time.Second))
		w.all("policy, retention", eq(w.core(kept)["po"], w.core(plain)["po"]), eq(w.core(kept)["rt"], "90"))
		same(w, "categories", w.hash(w.k.Attempts(ids.UUID(kept)))["categories"], "a,b")
		same(w, "without one", w.core(plain)["rt"], "")
	}},
	{name: "a second boot does not reset the count of route uses", run: func(w *env) {
		made := w.createN(3, delay(time.Hour))
		w.advance(time.Second)
		w.must("ff_boot", proto)
		same(w, "count", w.hash(w.k.RouteUse())[w.core(made[0])["r"]], "3")
		for _, id := range made {
			w.cancel(id)
			_, err := w.e.PurgeExecution(w.ctx, id, 24*time.Hour)
			w.no(err)
			w.check()
		}
		w.all("rows, made, counts", eq(len(w.hash(w.k.Routes())), 0), eq(len(w.hash(w.k.RouteIDs())), 0),
			eq(len(w.hash(w.k.RouteUse())), 0))
	}},
	{name: "a tick drops entries of missing or live executions from the index of ended ones", run: func(w *env) {
		live := w.create()
		gone := uuid.NewString()
		w.set("ZADD", w.k.Done(), "5", gone, "6", ids.UUID(live).String())
		w.set("ZADD", w.k.Unsuccessful(), "5", gone, "6", ids.UUID(live).String())
		w.quiet = true
		same(w, "purged", w.tick().Purged, 0)
		w.quiet = false
		w.check()
		w.all("filed", eq(len(w.dump().ZSets[":done"]), 0), eq(len(w.dump().ZSets[":unsuccessful"]), 0))
	}},
	{name: "a tick limits its purges by the attempts that they remove", run: func(w *env) {
		made := w.createN(10, delay(time.Hour), retention(time.Second))
		w.quiet = true
		for _, id := range made {
			w.cancel(id)
			w.editRecord(ids.UUID(id), func(f fields) { f["s"], f["n"] = "T3", "200" })
		}
		w.advance(time.Second)
		r := w.tick()
		w.all("purged, more", eq(r.Purged, 2), eq(r.More, true)) // each counts as fifty
		for range 4 {
			r = w.tick()
		}
		w.all("more", eq(r.Purged, 2), eq(w.tick().More, false))
	}},
	{name: "a lane change affects only its own routes, and opening the lane wakes waiting workers", run: func(w *env) {
		mine, alike, other := w.create(lane("batch")), w.create(lane("batch2")), w.create(lane("x"), kind("batch"))
		set := func(state flowfabric.LaneState, routes int) {
			w.Helper()
			a := w.e.SetLane(w.ctx, wire.SetLane{Namespace: "default", Lane: "batch", State: string(state)})[w.p]
			w.no(a.Err)
			w.check()
			w.all("state, routes", eq(a.Reply.State, string(state)), eq(a.Reply.Routes, routes), eq(a.Already, false))
		}
		set("paused", 1)
		k := w.worker("w1")
		for range 2 {
			claims := k.claim(1)
			if len(claims) != 1 || claims[0].Fence.Execution != alike && claims[0].Fence.Execution != other {
				w.Fatalf("claimed %v", claims)
			}
		}
		same(w, "registered", k.nothing().Registered, true)
		ear := w.listen(engine.BellChannel(w.p, "w1"))
		w.cancel(w.create(lane("batch"))) // what ends without ever being handed out leaves no more behind
		w.tick()
		ear.silent()
		set("active", 1)
		ear.hears("w")
		k.one(mine)
	}},
	{name: "opening a lane wakes an idle tick owner", run: func(w *env) {
		set := func(state flowfabric.LaneState) {
			w.Helper()
			w.setLane("default", state, "")
		}
		set("paused")
		w.create()
		same(w, "idle", w.tick().Idle, true)
		bell := w.listen(engine.BellChannel(w.p, ticker))
		set("draining")
		bell.hears("t")
		same(w, "idle", w.tick().Idle, false)
	}},
	{name: "work that ends in a paused lane wakes the tick for its purge", run: func(w *env) {
		w.setLane("default", "paused", "")
		id := w.create(retention(2 * time.Second))
		same(w, "idle", w.tick().Idle, true)
		w.cancel(id)
		wake, _ := strconv.ParseInt(w.root()["wake"], 10, 64)
		if wake == 0 || wake > w.now()+2000 {
			w.Fatalf("wake is %d, now is %d", wake, w.now())
		}
	}},
}
