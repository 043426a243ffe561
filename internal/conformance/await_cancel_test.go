package conformance

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// takes waits for an execution that is cancelled when nobody waits for it any more, and for one that is not.
func (x *waiter) takes(along, left flowfabric.ExecutionID, mode engine.WaitMode, opts ...suspending) {
	x.Helper()
	others, err := x.e.CheckOthers(x.ctx, x.id, []flowfabric.ExecutionID{along, left})
	x.no(err)
	others[0].Node, others[1].Node = "along", "left"
	others[0].Cancel = true
	q := engine.ChildWait{Name: x.wait(), Mode: mode, Others: others}
	x.no(x.e.WaitForOthers(x.ctx, x.fence, q))
	x.check()
	x.unchanged("listed again", func() { x.no(x.e.WaitForOthers(x.ctx, x.fence, q)) })
	x.sleeps(opts...)
}

// What a waiter that asks for it takes along when it waits no more.
var awaitCancelScenarios = []scenario{
	{name: "a waiter that ends cancels what it takes along, with its flow, and nothing else", run: func(w *env) {
		other := w.neighbour()
		for what, ends := range map[string]func(x *waiter){
			"cancelled": func(x *waiter) { x.cancel(x.id) },
			"expired":   func(x *waiter) { x.advance(time.Hour + time.Second); x.tick() },
			"timed out": func(x *waiter) { x.advance(30 * time.Minute); x.tick() },
		} {
			for _, there := range []*env{w, other} {
				w.reset()
				other.reset()
				g := there.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
				left := there.create(lane("left"))
				x := w.waiter(deadline(time.Hour))
				var opts []suspending
				if what == "timed out" {
					opts = append(opts, within(20*time.Minute, "fail"))
				}
				x.takes(g.id.Member("b"), left, engine.WaitAll, opts...)
				spread(w, there)
				g.are(flowfabric.Waiting, "a")
				ends(x)
				spread(w, there)
				g.drain()
				g.are(flowfabric.Cancelled, "a", "b")
				g.ends(flowfabric.FlowCancelled)
				same(w, what, there.read(left).State.Public, flowfabric.Waiting)
				spread(w, there)
				same(w, "list", len(there.hash(there.k.Awaiting(ids.UUID(g.id.Member("b"))))), 0)
			}
		}
	}},
	{name: "a wait that is over cancels what it takes along and has not ended", run: func(w *env) {
		other := w.neighbour()
		for _, there := range []*env{w, other} {
			w.reset()
			other.reset()
			along, left := there.create(lane("along")), there.create(lane("left"))
			x := w.waiter()
			x.takes(along, left, engine.WaitFirst)
			spread(w, there)
			there.ended(left, '+')
			spread(w, there)
			same(w, "told", x.told(), "children map[along: left:completed]")
			same(w, "along", there.read(along).State.Public, flowfabric.Cancelled)
			same(w, "because", there.read(along).CancelReason, "nobody waits for it any more")
		}
	}},
	{name: "what ended before its waiter, and what is told twice, is left alone", run: func(w *env) {
		other := w.neighbour()
		along, left := other.create(lane("along")), other.create(lane("left"))
		x := w.waiter()
		x.takes(along, left, engine.WaitAll)
		spread(w)
		other.ended(along, '+')
		x.cancel(x.id)
		spread(w, other)
		same(w, "along", other.read(along).State.Public, flowfabric.Completed)
		other.replay(along, engine.Replay{Force: true})
		notice := engine.Awaiting{Awaited: along, Waiter: x.id, Token: "1.0", Over: true, Cancel: true}
		other.unchanged("a notice that nobody knows", func() {
			_, err := w.e.NoteWaiters(w.ctx, other.p, []engine.Awaiting{notice}, false)
			w.no(err)
		})
	}},
	{name: "a waiter that is in the flow of what it takes along cancels that alone", run: func(w *env) {
		g := w.flow().node("waits", nil).node("along", nil).node("left", nil).submit(engine.SealClosed)
		x := &waiter{env: w, id: g.id.Member("waits")}
		claims := g.claim()
		x.fence = claims["waits"].Fence
		x.takes(g.id.Member("along"), g.id.Member("left"), engine.WaitAll)
		spread(w)
		x.cancel(x.id)
		spread(w)
		g.drain()
		g.are(flowfabric.Cancelled, "waits", "along")
		g.are(flowfabric.Active, "left")
	}},
}
