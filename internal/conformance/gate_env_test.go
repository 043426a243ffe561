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
)

// gates are scenarios of work that asks budgets and quotas: an environment with budgets and quotas of its own.
type gates struct {
	*env
	name string // in the names of budgets and quotas
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
		for _, index := range []string{":budgets", ":quotas"} {
			names, err := g.do("ZRANGE", root+index, "0", "-1").AsStrSlice()
			g.no(err)
			for _, name := range names {
				if len(name) > len(g.name) && name[:len(g.name)] == g.name {
					g.set("ZREM", root+index, name)
				}
			}
		}
		g.set("HDEL", root, "clock_pin")
	}
}

// sound fails if the partitions of budgets and quotas that the scenario uses break a rule. In a cluster they are at
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

// budget makes a budget.
func (g *gates) budget(change func(*admission.Budget)) string {
	g.Helper()
	b := admission.Budget{Name: g.fresh(), Limits: map[string]admission.Limit{"tokens": {Hard: 100}}}
	if change != nil {
		change(&b)
	}
	g.follow(keys.BudgetRoot(ids.GatePartition(b.Name, limits.DefaultBudgetPartitions)))
	_, _, _, err := g.e.PutBudget(g.ctx, b, 0)
	g.no(err)
	return b.Name
}

// quota makes a quota.
func (g *gates) quota(q admission.Quota) string {
	g.Helper()
	q.Name = g.fresh()
	g.follow(keys.QuotaRoot(ids.GatePartition(q.Name, limits.DefaultQuotaPartitions)))
	_, _, _, err := g.e.PutQuota(g.ctx, q, 0)
	g.no(err)
	return q.Name
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
		for _, r := range x.Released {
			_, wake, err := g.e.ReleaseHolds(g.ctx, []engine.Released{r})
			g.no(err)
			g.wake(wake)
		}
		for _, r := range x.Refunds {
			_, wake, err := g.e.ReleaseUsage(g.ctx, []engine.Refund{r})
			g.no(err)
			g.wake(wake)
		}
		_, err := g.e.TrimOutbox(g.ctx, g.p, []string{x.ID})
		g.no(err)
	}
	g.check()
	g.sound()
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

// granted claims what was granted.
func (k *worker) granted(list ...engine.Grant) []engine.Claim {
	k.w.Helper()
	answers, claims, err := k.w.e.ClaimGranted(k.w.ctx, k.w.p, k.session, k.number, list)
	k.w.no(err)
	for _, a := range answers {
		k.w.no(a.Err)
	}
	k.w.check()
	return claims
}

// admit asks a quota for what was granted, and fails unless it admits want of it.
func (g *gates) admit(quota string, want int, list ...engine.Grant) engine.Admitted {
	g.Helper()
	holds := make([]engine.Hold, len(list))
	for i, x := range list {
		holds[i] = engine.Hold{Execution: x.Execution, Epoch: x.Epoch}
	}
	a, err := g.e.Admit(g.ctx, quota, g.p, list[0].Route, 10*time.Second, holds)
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
func (g *gates) spend(budget, key string, amounts map[string]int64) admission.Reported {
	g.Helper()
	r, err := g.e.ReportUsage(g.ctx, admission.Usage{Budget: budget, Key: key, Amounts: amounts})
	g.no(err)
	return r
}

func (g *gates) spent(budget, dimension string) int64 {
	g.Helper()
	b, err := g.e.ReadBudget(g.ctx, budget, 0, 0)
	g.no(err)
	return b.Used[dimension]
}

func (g *gates) held(quota string) int {
	g.Helper()
	q, err := g.e.ReadQuota(g.ctx, quota, 0, 0)
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

// rooms tells which budgets have room for what was granted, in order.
func (g *gates) rooms(x engine.Grant, budgets ...string) []bool {
	g.Helper()
	rooms, err := g.e.CheckBudgets(g.ctx, g.p, x.Route, budgets)
	g.no(err)
	open := make([]bool, len(rooms))
	for i, r := range rooms {
		g.no(r.Err)
		open[i] = r.Open
	}
	return open
}
