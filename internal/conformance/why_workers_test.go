package conformance

import (
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// joins registers a worker that takes kind k from the lane default, unless info says otherwise. It returns its name.
func (w *env) joins(prefix string, change func(*flowfabric.WorkerInfo), caps ...string) string {
	w.Helper()
	info := flowfabric.WorkerInfo{Namespaces: []string{"default"}, Lanes: []string{"slow", "default"},
		Kinds:        []string{"other", "k"},
		Capabilities: caps, Concurrency: 4}
	if change != nil {
		change(&info)
	}
	name := w.homed(prefix)
	_, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: name, Token: "t", TTL: ttl, InFlight: 3,
		Info: info})
	w.no(err)
	return name
}

// leaves ends a registration.
func (w *env) leaves(name string) {
	w.Helper()
	_, err := w.e.LeaveWorker(w.ctx, name, "t")
	w.no(err)
}

// counts fails unless an explanation counts the live workers so; -1: it does not.
func (w *env) counts(e explanation, serving, capable int) {
	w.Helper()
	known := func(n *int) int {
		if n == nil {
			return -1
		}
		return *n
	}
	w.all("serving and capable", eq(known(e.Serving), serving), eq(known(e.Capable), capable))
}

var whyWorkerScenarios = []scenario{
	{name: "slots of stuck handlers are explained as not free", run: func(w *env) {
		id := w.createN(1)[0]
		name := w.joins("able", nil)
		says := func(inFlight, stuck int) explanation {
			_, err := w.e.RegisterWorker(w.ctx,
				engine.Registration{Instance: name, Token: "t", TTL: ttl, InFlight: inFlight, Stuck: stuck,
					Info: flowfabric.WorkerInfo{Namespaces: []string{"default"}, Lanes: []string{"default"},
						Kinds:       []string{"k"},
						Concurrency: 4}})
			w.no(err)
			return w.why(id)
		}
		w.says(says(3, 2), explain.WhyWaitingNext,
			"(3 of 4 slots in use when last heard of, 2 of them by handlers that ignore the end of their context)")
		w.says(says(4, 4), explain.WhyWaitingStuck,
			"handlers that ignore the end of their context had 4 of 4 slots when last heard of",
			"its process is restarted")
		w.says(says(4, 0), explain.WhyWaitingNext, "(4 of 4 slots in use when last heard of)")
	}},
	{name: "waiting work is explained by the live workers that can run it", run: func(w *env) {
		ids := w.createN(3)
		first, last := ids[0], ids[2]
		if w.facts(first).Ahead != 0 { // equal ages are ordered by id
			first, last = last, first
		}
		none := w.why(first)
		w.says(none, explain.WhyWaitingNoWorker)
		w.counts(none, 0, 0)
		for what, change := range map[string]func(*flowfabric.WorkerInfo){
			"namespace": func(i *flowfabric.WorkerInfo) { i.Namespaces = []string{"n2"} },
			"lane":      func(i *flowfabric.WorkerInfo) { i.Lanes = []string{"slow"} },
			"kind":      func(i *flowfabric.WorkerInfo) { i.Kinds = []string{"k2"} },
		} {
			name := w.joins("other", change)
			x := w.why(first)
			w.says(x, explain.WhyWaitingNoWorker,
				`no live worker takes kind "k" in lane "default" of namespace "default"`)
			if hint := `Live workers take "k2" from it.`; strings.Contains(x.Next, hint) != (what == "kind") {
				w.Errorf("a worker of another %s: %s", what, x.Next)
			}
			w.leaves(name)
			if *w.why(first).Serving != 0 {
				w.Errorf("a worker of another %s counts", what)
			}
		}
		name := w.joins("able", nil)
		e := w.why(first)
		w.says(e, explain.WhyWaitingNext,
			`1 live worker takes kind "k" in lane "default" of namespace "default" (3 of 4 slots in use when last heard of)`,
			"first in its queue", "The next claim of such a worker takes it.")
		w.counts(e, 1, 1)
		other := w.joins("also", nil, "gpu")
		e = w.why(last)
		w.says(e, explain.WhyWaitingBehind, "2 live workers take kind", "(6 of 8 slots",
			"2 others in its queue are ahead of it")
		w.counts(e, 2, 2)
		w.no(func() error { _, _, err := w.e.ChangePriority(w.ctx, last, 5); return err }())
		w.says(w.why(last), explain.WhyWaitingNext)
		w.worker(name).one(last)
		w.says(w.why(last), explain.WhyActive, `"`+name+`"`)

		_, err := w.e.MarkWorkerDead(trail.As(w.ctx, "", "gone"), other)
		w.no(err)
		w.counts(w.why(first), 1, 1)
		w.advance(ttl)
		w.says(w.why(first), explain.WhyWaitingNoWorker)
	}},
	{name: "a worker counts as able only if it has all the capabilities itself", run: func(w *env) {
		id := w.create(capabilities("eu", "gpu"))
		a := w.joins("a", nil, "gpu")
		b := w.joins("b", nil, "arm")
		w.joins("c", func(i *flowfabric.WorkerInfo) { i.Kinds = []string{"k2"} }, "eu", "gpu")
		e := w.why(id)
		w.says(e, explain.WhyWaitingNoCapability, "2 live workers take kind", `("eu", "gpu")`,
			`"`+a+`", which comes closest, lacks "eu"`)
		w.counts(e, 2, 0)
		w.leaves(a)
		e = w.why(id)
		w.says(e, explain.WhyWaitingNoCapability, "1 live worker takes kind",
			`"`+b+`", which comes closest, lacks "eu", "gpu"`)
		d := w.joins("d", nil, "eu", "fast") // with a's gpu all would be there, but in no worker
		a = w.joins("a", nil, "gpu")
		e = w.why(id)
		w.says(e, explain.WhyWaitingNoCapability, "3 live workers take kind")
		w.counts(e, 3, 0)
		w.leaves(d)
		w.leaves(a)
		able := w.joins("e", nil, "gpu", "eu", "fast")
		e = w.why(id)
		w.says(e, explain.WhyWaitingNext, `1 live worker with the capabilities "eu", "gpu" takes kind "k"`)
		w.counts(e, 2, 1)
		w.worker(able).one(id)
	}},
	{name: "the explanation says so if the worker registry is incomplete", run: func(w *env) {
		id := w.create()
		name := w.joins("cut", func(i *flowfabric.WorkerInfo) { i.Kinds, i.Truncated = []string{"a"}, true })
		e := w.why(id)
		w.says(e, explain.WhyWaitingUnlisted, `worker "`+name+`" takes is not listed in full`)
		w.counts(e, -1, -1)
		w.leaves(name)
		elsewhere := (w.p + 1) % partitions
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "moved"), elsewhere))
		e = w.why(id)
		w.says(e, explain.WhyWaitingUnlisted, "the list of workers could not be read")
		w.joins("able", nil)
		w.says(w.why(id), explain.WhyWaitingNext)
		w.no(w.e.ThawPartition(w.ctx, elsewhere))
		w.advance(2 * time.Minute)
		w.says(w.why(id), explain.WhyWaitingNoWorker)
		paused := w.state("R2af")
		w.all("counts of one that does not wait", eq(w.why(paused.id).Serving, nil),
			eq(w.why(paused.id).Code, codes.Code(codes.DelayedFirst)))
	}},
}
