package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// unique makes a flow of two nodes, whose names begin with name, under a key that one flow has at a time. It returns
// the flow, and the one that the answer is about.
func (w *env) unique(key uuid.UUID, name string, mode engine.SealMode) (g *graph, of flowfabric.FlowID) {
	w.Helper()
	g = w.flow().node(name+"1", nil).node(name+"2", []string{name + "1"})
	q := g.whole(mode)
	q.Key = key
	made, err := w.e.CreateFlow(w.ctx, q)
	w.no(err)
	w.check()
	again, err := w.e.CreateFlow(w.ctx, q)
	w.no(err)
	w.all("a repeat", eq(again.Already, true), eq(again.Other, made.Other))
	w.check()
	g.drain()
	if of = g.id; made.Other != (flowfabric.FlowID{}) {
		of = made.Other
	}
	return g, of
}

// done completes both nodes.
func (g *graph) done(name string) {
	g.Helper()
	for _, node := range []string{name + "1", name + "2"} {
		g.complete(g.claim()[node], "")
	}
}

// replaying replays one member and tells the answer.
func (g *graph) replaying(node string) string {
	g.Helper()
	return strings.Join(g.replays(engine.Replay{Request: mint.UUID()}, node), " ")
}

// Flows of which one at a time has a key.
var flowUniqueScenarios = []scenario{
	{name: "a unique flow is the only one of its key until it has ended", run: func(w *env) {
		key := uuid.New()
		a, of := w.unique(uuid.UUID(key), "a", engine.SealClosed)
		same(w, "the first", of, a.id)
		_, of = w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "the second", of, a.id)
		other, of := w.unique(uuid.New(), "c", engine.SealClosed)
		same(w, "another key", of, other.id)
		claimed := a.claim()
		same(w, "claimed", len(claimed), 2)
		a.complete(claimed["a1"], "")
		_, of = w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "halfway", of, a.id)
		a.complete(a.claim()["a2"], "")
		a.ends(flowfabric.FlowCompleted)
		d, of := w.unique(uuid.UUID(key), "d", engine.SealClosed)
		same(w, "after the end", of, d.id)
		_, of = w.unique(uuid.UUID(key), "e", engine.SealClosed)
		same(w, "beside the new one", of, d.id)
	}},
	{name: "a cancelled unique flow has its key until its last member has ended", run: func(w *env) {
		key := uuid.New()
		a, _ := w.unique(uuid.UUID(key), "a", engine.SealClosed)
		running := a.claim()["a1"]
		a.abort(flowfabric.CancelPending)
		_, of := w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "while a member runs", of, a.id)
		a.complete(running, "")
		b, of := w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "after its end", of, b.id)
	}},
	{name: "a unique flow that is not released has its key until it is given up", run: func(w *env) {
		key := uuid.New()
		a, _ := w.unique(uuid.UUID(key), "a", "")
		_, of := w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "meanwhile", of, a.id)
		w.advance(24*time.Hour + time.Second)
		w.tick()
		a.drain()
		b, of := w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "a day later", of, b.id)
	}},
	{name: "a replay of a unique flow takes the key again, unless another flow has it", run: func(w *env) {
		key := uuid.New()
		a, _ := w.unique(uuid.UUID(key), "a", engine.SealClosed)
		a.fail(a.claim()["a1"])
		a.drain()
		a.ends(flowfabric.FlowFailed)
		b, _ := w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "a replay beside the other", a.replaying("a1"), "key_taken")
		b.fail(b.claim()["b1"])
		b.drain()
		same(w, "a replay", a.replaying("a1"), string(flowfabric.Waiting))
		same(w, "with the node behind it", a.replaying("a2"), string(flowfabric.WaitingChildren))
		_, of := w.unique(uuid.UUID(key), "c", engine.SealClosed)
		same(w, "while it runs again", of, a.id)
		same(w, "a replay of the other", b.replaying("b1"), "key_taken")
		_, err := w.e.ReplayExecution(w.ctx, b.id.Member("b1"), engine.Replay{Request: mint.UUID()})
		same(w, "by its execution", flowfabric.CodeOf(err), "key_taken")
		a.done("a")
		a.ends(flowfabric.FlowCompleted)
	}},
	{name: "an audit gives a unique flow the key that it lost, and a purge frees it", run: func(w *env) {
		key := uuid.New()
		a, _ := w.unique(uuid.UUID(key), "a", engine.SealClosed)
		name := w.k.Keyed(uuid.UUID(key))
		w.set("DEL", name)
		same(w, "findings", len(w.audit(true).Findings), 1)
		_, of := w.unique(uuid.UUID(key), "b", engine.SealClosed)
		same(w, "after the repair", of, a.id)
		w.set("SET", w.k.Keyed(uuid.New()), ids.UUID(a.id).String()+" f")
		same(w, "findings", found(w.audit(true)) != "", true)
		a.done("a")
		a.ends(flowfabric.FlowCompleted)
		for _, node := range []string{"a1", "a2"} {
			_, err := w.e.PurgeExecution(w.ctx, a.id.Member(node), 24*time.Hour)
			w.no(err)
		}
		same(w, "records of keys", fmt.Sprint(strings.Count(strings.Join(w.keys(), " "), ":y:")), "0")
	}},
}
