package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/prose"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

const (
	// holds of a quota that are looked at, those first of which nobody has heard for longest
	auditHolds = 1000
)

var gateAreas = map[string][]string{
	"b": {"", "trail", "budgets", "bd", "bu", "bx", "bl", "br", "bh", "bw"},
	"q": {"", "trail", "quotas", "qd", "qw", "qs", "qh", "qc", "qr"},
}

// place is a name and the partition in which something has it.
type place struct {
	partition uint16
	name      string
}

// gates is the audit of one kind of partitions.
type gates struct {
	*audit
	out     *flowfabric.CheckReport
	kind    string
	names   map[place]bool
	present map[uint16]bool
}

// gates audits the partitions of budgets and quotas, and adds what it finds.
func (a *audit) gates(ctx context.Context, out *flowfabric.CheckReport) {
	primaries, err := a.cfg.Engine.Primaries(ctx)
	for _, kind := range []string{"b", "q"} {
		g := &gates{audit: a, out: out, kind: kind, names: map[place]bool{}, present: map[uint16]bool{}}
		g.failed(err)
		for _, p := range primaries {
			g.scan(ctx, p)
		}
		g.indexes(ctx)
		for _, at := range g.sorted() {
			g.one(ctx, at)
			a.pause(ctx)
		}
	}
}

func (g *gates) failed(err error) {
	if err != nil && g.out.GatesErr == nil {
		g.out.GatesErr, g.out.GatesError = err, prose.Message(err)
	}
}

func (g *gates) found(list []flowfabric.Finding, err error) {
	g.tell(list, g.out.Kinds, &g.out.Repaired, &g.out.Repairable, &g.out.Lost, &g.out.Findings)
	g.failed(err)
}

// scan lists the keys once: whose definition is gone has others that name it.
func (g *gates) scan(ctx context.Context, server engine.Primary) {
	for cursor := uint64(0); ; {
		list, next, err := server.ScanGates(ctx, g.kind == "b", cursor)
		if err != nil {
			g.failed(err)
			return
		}
		for _, k := range list {
			g.present[k.Partition] = true
			name, _, _ := strings.Cut(k.Of, ":")
			switch {
			case !slices.Contains(gateAreas[g.kind], k.Area):
				g.found([]flowfabric.Finding{{Partition: k.Partition, Kind: engine.FindingUnknown, Index: k.Area,
					Member: k.Of, Detail: "a key of no known kind"}}, nil)
			case valid.GateName("name", name) == nil && k.Area != "bl" && k.Area != "br": // those go by themselves
				g.names[place{k.Partition, name}] = true
			case k.Area == "qs" && strings.HasPrefix(k.Of, "@"): // slots of a key, which any limit of it reads
				g.quota(ctx, "@0.0.0"+k.Of, k.Partition)
			}
		}
		if cursor = next; cursor == 0 {
			return
		}
		g.pause(ctx)
	}
}

func (g *gates) indexes(ctx context.Context) {
	index := map[string]string{"b": "budgets", "q": "quotas"}[g.kind]
	for partition := range g.present {
		for cursor := ""; g.out.GatesErr == nil; {
			next, _, list, err := g.cfg.Engine.AuditGates(ctx, g.kind == "b", partition, g.cfg.Repair,
				engine.IndexPage{Index: index, Cursor: cursor, Limit: auditBatch})
			if errors.Is(err, denied.PartitionMissing) {
				break // each name in it is told
			}
			g.found(list, err)
			if next == "" || next == cursor {
				break
			}
			cursor = next
		}
	}
}

func (g *gates) sorted() []place {
	return slices.SortedFunc(maps.Keys(g.names), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.name, b.name))
	})
}

// one compares one budget or quota, where it belongs and where else its name occurs.
func (g *gates) one(ctx context.Context, at place) {
	budgets, quotas := g.cfg.Engine.BudgetPartitions(), g.cfg.Engine.QuotaPartitions()
	partitions, area := quotas, "qd:"
	if g.kind == "b" {
		partitions, area = budgets, "bd:"
	}
	_, _, list, err := g.cfg.Engine.AuditGates(ctx, g.kind == "b", at.partition, g.cfg.Repair,
		engine.IndexPage{Index: area + at.name, Limit: auditBatch})
	if errors.Is(err, denied.PartitionMissing) {
		g.found([]flowfabric.Finding{{Partition: at.partition, Kind: engine.FindingRecord, Index: area[:2],
			Member: at.name, Detail: "its partition has lost its root"}}, nil)
		return
	}
	g.found(list, err)
	switch {
	case err != nil || at.partition != ids.GatePartition(at.name, partitions):
	case g.kind == "b":
		g.budget(ctx, at.name, at.partition)
	default:
		g.quota(ctx, at.name, at.partition)
	}
}

// budget compares what the last spenders reported in this period with what was used. It may be more after a
// correction only. That is reported, and never changed: what was used is what somebody counted.
func (g *gates) budget(ctx context.Context, name string, partition uint16) {
	b, err := g.cfg.Engine.ReadBudget(ctx, name, 100, 256)
	if errors.Is(err, denied.NoBudget) {
		return
	}
	if err != nil {
		g.failed(err)
		return
	}
	g.out.Budgets++
	for _, e := range b.Audit {
		if e.What == "adjusted" && !e.At.Before(b.PeriodBegan) {
			return
		}
	}
	sums := map[string]int64{}
	for _, s := range b.Spenders {
		if s.Period == b.Period && !s.At.Before(b.PeriodBegan) {
			for dim, n := range s.Used {
				sums[dim] += n
			}
		}
	}
	for dim, sum := range sums {
		if sum > b.Used[dim] {
			g.found([]flowfabric.Finding{{Partition: partition, Kind: engine.FindingRecord, Index: "bu:" + name,
				Member: dim,
				Detail: fmt.Sprintf("%d used, executions reported %d", b.Used[dim], sum)}}, nil)
		}
	}
}

// quota asks the partitions of executions about holds that nobody has heard of for a while, at most 100 a call, and
// tells the quota. A hold that is in order, and one that cannot be asked about, stays. No count is set: a slot is
// free because its hold is gone.
func (g *gates) quota(ctx context.Context, name string, partition uint16) {
	q, err := g.cfg.Engine.ReadQuota(ctx, name, auditHolds, 0)
	if errors.Is(err, denied.NoQuota) {
		return
	}
	if err != nil {
		g.failed(err)
		return
	}
	if !strings.HasPrefix(name, "@") { // what limits of keys hold is looked at, and only those that exist are counted
		g.out.Quotas++
	}
	by := map[uint16][]engine.Hold{}
	var broken []string
	for i, text := range q.Holds {
		h, err := engine.ParseHold(text)
		switch {
		case err != nil || h.Execution.Partition() >= g.cfg.Engine.Partitions():
			broken = append(broken, text)
		case i < q.Suspect:
			by[h.Execution.Partition()] = append(by[h.Execution.Partition()], h)
		}
	}
	for list := range slices.Chunk(broken, auditBatch) {
		g.settle(ctx, name, partition, list, slices.Repeat([]engine.HoldState{engine.HoldGone}, len(list)),
			"it is no hold")
	}
	if !g.cfg.Repair { // asking takes back grants that are over
		return
	}
	for p, holds := range by {
		for list := range slices.Chunk(holds, auditBatch) {
			g.out.Holds += len(list)
			states, err := g.cfg.Engine.CheckHolds(ctx, p, list)
			if err != nil {
				g.failed(err)
				return
			}
			texts := make([]string, len(list))
			for i, h := range list {
				texts[i] = h.String()
			}
			g.settle(ctx, name, partition, texts, states, "its execution holds it no more")
		}
	}
}

// settle tells a quota what became of holds; those that are gone are findings.
func (g *gates) settle(ctx context.Context, name string, partition uint16, holds []string, states []engine.HoldState,
	why string) {
	var list []flowfabric.Finding
	for i, text := range holds {
		if states[i] != engine.HoldHeld {
			list = append(list, flowfabric.Finding{Partition: partition, Kind: engine.FindingPhantom,
				Index: "qs:" + name, Member: text, Detail: why,
				Repaired: g.cfg.Repair, Repairable: true})
		}
	}
	g.found(list, nil)
	if !g.cfg.Repair {
		return
	}
	_, wake, err := g.cfg.Engine.SettleHolds(ctx, name, holds, states)
	g.failed(err)
	for _, w := range wake {
		_, err := g.cfg.Engine.OpenRoutes(ctx, w.Partition, []uint64{w.Route})
		g.failed(err)
	}
}
