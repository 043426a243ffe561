package conformance

import (
	"context"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// gates are scenarios of work that asks gates: an environment with gates of its own.
type gates struct {
	*env
	name string // in the names of its gates
	n    int
}

func newGates(w *env) *gates {
	g := &gates{env: w, name: "t" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	w.gated = true
	w.Cleanup(g.clean)
	return g
}

// clean removes what the scenario made in other partitions, whose clocks follow the server's again.
func (g *gates) clean() {
	after, cancel := testwait.Context(g.T, context.Background())
	defer cancel()
	g.ctx = after
	for root := range g.moving {
		all, err := g.below(root, ":*"+g.name+"*")
		g.no(err)
		for _, key := range all {
			g.set("DEL", key)
		}
		names, err := g.do("ZRANGE", root+":gates", "0", "-1").AsStrSlice()
		g.no(err)
		for _, name := range names {
			if len(name) > len(g.name) && name[:len(g.name)] == g.name {
				g.set("ZREM", root+":gates", name)
			}
		}
		g.set("HDEL", root, "clock_pin")
	}
}

// sound fails if the partitions of gates that the scenario uses break a rule. In a cluster they are at
// other nodes.
func (g *gates) sound() {
	g.Helper()
	if g.srv.Features.Cluster {
		return
	}
	for root := range g.moving {
		bad, err := invariant.CheckAdmission(g.ctx, g.raw, root)
		g.no(err)
		if len(bad) > 0 {
			g.Fatalf("%s:\n%s", root, strings.Join(bad, "\n"))
		}
	}
}

func (g *gates) fresh() string {
	g.n++
	return g.name + "-" + strconv.Itoa(g.n)
}

// budget makes a gate that counts amounts.
func (g *gates) budget(change func(*admission.Gate)) string {
	g.Helper()
	b := admission.Gate{Limits: map[string]admission.Limit{"tokens": {Hard: 100}}}
	if change != nil {
		change(&b)
	}
	return g.gate(b)
}

// gate makes a gate.
func (g *gates) gate(x admission.Gate) string {
	g.Helper()
	x.Name = g.fresh()
	g.follow(keys.GateRoot(ids.GatePartition(x.Name, limits.DefaultGatePartitions)))
	g.put(x, 0)
	return x.Name
}

// put makes or changes a gate, and wakes whom that frees.
func (g *gates) put(x admission.Gate, expected uint64) {
	g.Helper()
	_, _, wake, err := g.e.PutGate(g.ctx, x, expected)
	g.no(err)
	g.meters[x.Name] = ""
	if x.CountsAmounts() {
		g.meters[x.Name] = "a"
	}
	if x.Rate > 0 || x.Concurrency > 0 {
		g.meters[x.Name] += "h"
	}
	g.wake(wake)
}

// follow gives a root the clock of the scenario's partition.
func (g *gates) follow(root string) {
	g.moving[root] = true
	if pin := g.root()["clock_pin"]; pin != "" {
		g.set("HSET", root, "clock_pin", pin)
	}
}

func asking(list ...flowfabric.Gate) option {
	return func(x *engine.NewExecution) { x.Start = testgate.Asks(x.Start, list...) }
}

// deliver does what the owner of the tick does with the outbox.
func (g *gates) deliver() {
	g.Helper()
	entries, _, err := g.e.ReadOutbox(g.ctx, g.p, "")
	g.no(err)
	for _, x := range entries {
		for _, n := range x.News {
			_, wake := g.tell(n)
			g.wake(wake)
		}
		_, err := g.e.TrimOutbox(g.ctx, g.p, []string{x.ID})
		g.no(err)
	}
	g.check()
	g.sound()
}

// tell tells a gate something. It returns whether something was freed or given back, and who is to be woken.
func (g *gates) tell(n engine.News) (done bool, wake []engine.Waiter) {
	g.Helper()
	all, wake, err := g.e.SettleGates(g.ctx, []engine.News{n})
	g.no(err)
	return all[0], wake
}

// news is what a gate is told of an execution under an epoch.
func news(gate string, h engine.Hold, what string) engine.News {
	return engine.News{Gate: gate, Execution: h.Execution, Epoch: h.Epoch, What: what}
}

// refundOf is an operator's word that a gate gives back what an execution used.
func refundOf(gate string, id flowfabric.ExecutionID) engine.News {
	return engine.News{Gate: gate, Execution: id, What: engine.NewsAsked}
}

func (g *gates) wake(list []engine.Waiter) {
	g.Helper()
	for _, x := range list {
		_, err := g.e.OpenRoutes(g.ctx, x.Partition, []uint64{x.Route})
		g.no(err)
	}
}

// asker is a worker that takes work with gates.
func (g *gates) asker(instance string) *worker {
	k := g.worker(instance)
	k.gates = true
	return k
}

// grants are what a worker is granted, at most max.
func (k *worker) grants(max int) []engine.Grant {
	k.w.Helper()
	r := k.poll(max)
	if len(r.Claims) > 0 {
		k.w.Fatalf("claimed %d executions, want grants", len(r.Claims))
	}
	return r.Grants
}

// claimGranted claims what was granted with a claim, and tells what the gates of its routes measure.
func (k *worker) claimGranted(number uint64, list []engine.Grant) ([]engine.Answer, []engine.Claim, error) {
	var measured []wire.ClaimGrantedRoute
	told := map[uint64]bool{}
	for _, x := range list {
		var meters []string
		for _, gate := range k.routes[x.Route].Gates {
			if letters := k.w.meters[gate.Name()]; letters != "" {
				meters = append(meters, gate.Name()+"="+letters)
			}
		}
		if !told[x.Route] && meters != nil {
			measured = append(measured, wire.ClaimGrantedRoute{Route: int(x.Route), Meters: strings.Join(meters, ",")})
		}
		told[x.Route] = true
	}
	return k.w.e.ClaimGranted(k.w.ctx, k.w.p, k.session, number, list, measured)
}

// granted claims what was granted.
func (k *worker) granted(list ...engine.Grant) []engine.Claim {
	k.w.Helper()
	answers, claims, err := k.claimGranted(k.number, list)
	k.w.no(err)
	for _, a := range answers {
		k.w.no(a.Err)
	}
	k.w.check()
	return claims
}

// admit asks a gate for what was granted, and fails unless it admits want of it.
func (g *gates) admit(gate string, want int, list ...engine.Grant) engine.Admitted {
	g.Helper()
	holds := make([]engine.Hold, len(list))
	for i, x := range list {
		holds[i] = engine.Hold{Execution: x.Execution, Epoch: x.Epoch}
	}
	a, err := g.e.Admit(g.ctx, gate, engine.Waiter{Partition: g.p, Route: list[0].Route}, 10*time.Second, false, holds)
	g.no(err)
	same(g.env, "admitted", a.Count, want)
	return a
}

// refuse returns grants and closes their route.
func (g *gates) refuse(k *worker, reserved bool, span time.Duration, why string, list ...engine.Grant) {
	g.Helper()
	back := make([]engine.GrantReturn, len(list))
	for i, x := range list {
		back[i] = engine.GrantReturn{Grant: x, Reserved: reserved}
	}
	g.no(g.e.ReleaseGrants(g.ctx, g.p, k.session, back,
		[]engine.RouteClosing{{Route: list[0].Route, For: span, Why: why}}))
	g.check()
}

// spend reports as nobody in particular.
func (g *gates) spend(gate, key string, amounts map[string]int64) admission.Reported {
	g.Helper()
	r, err := g.e.ReportUsage(g.ctx, admission.Usage{Gate: gate, Key: key, Amounts: amounts})
	g.no(err)
	return r
}

func (g *gates) spent(gate, dimension string) int64 {
	g.Helper()
	b, err := g.e.ReadGate(g.ctx, gate, 0, 0, 0)
	g.no(err)
	return b.Used[dimension]
}

func (g *gates) held(gate string) int {
	g.Helper()
	q, err := g.e.ReadGate(g.ctx, gate, 0, 0, 0)
	g.no(err)
	return q.Held
}

// closings are the routes of the partition that gates have closed.
func (g *gates) closings() []engine.Closing {
	g.Helper()
	p := g.e.Gates(g.ctx)[g.p]
	g.no(p.Err)
	return p.Closed
}

// look asks whether a gate has room for executions of a route, and has it wait if not.
func (g *gates) look(gate string, route uint64, executions ...flowfabric.ExecutionID) engine.Admitted {
	g.Helper()
	holds := make([]engine.Hold, len(executions))
	for i, id := range executions {
		holds[i] = engine.Hold{Execution: id, Epoch: 1}
	}
	a, err := g.e.Admit(g.ctx, gate, engine.Waiter{Partition: g.p, Route: route}, 10*time.Second, true, holds)
	g.no(err)
	same(g.env, "admitted by a look", a.Count, 0)
	return a
}

// room tells whether a gate has room.
func (g *gates) room(gate string, route uint64) bool {
	g.Helper()
	return g.look(gate, route).Why == ""
}
