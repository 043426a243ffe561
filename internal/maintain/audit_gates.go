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
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/prose"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// auditHolds is how many holds of a gate are looked at, those first of which nobody has heard for longest.
const auditHolds = 1000

// anyLimit before "@<key>" is a limit of that key, of whatever numbers.
const anyLimit = "@0.0.0"

var gateAreas = []string{"", "trail", "gates", "reserved", "ga", "gh", "gu", "gx", "gl", "gr", "gw", "gq", "gp", "go",
	"gt", "gs", "gc", "ge", "gv", "gk", "gy", "gf", "gz", "gi"}

// passingAreas are those whose keys go by themselves.
var passingAreas = []string{"gl", "gr", "gp", "gv", "gk", "gy", "gf", "gz", "gi"}

// place is a name and the partition in which something has it.
type place struct {
	partition uint16
	name      string
}

// gates is the audit of partitions of gates.
type gates struct {
	*audit
	out     *flowfabric.CheckReport
	names   map[place]bool
	present map[uint16]bool
}

// gates audits the partitions of gates, and adds what it finds.
func (a *audit) gates(ctx context.Context, out *flowfabric.CheckReport) {
	primaries, err := a.cfg.Engine.Primaries(ctx)
	g := &gates{audit: a, out: out, names: map[place]bool{}, present: map[uint16]bool{}}
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
		list, next, err := server.ScanGates(ctx, cursor)
		if err != nil {
			g.failed(err)
			return
		}
		for _, k := range list {
			g.present[k.Partition] = true
			name, _, _ := strings.Cut(k.Of, ":")
			switch {
			case !slices.Contains(gateAreas, k.Area):
				g.found([]flowfabric.Finding{{Partition: k.Partition, Kind: engine.FindingUnknown, Index: k.Area,
					Member: k.Of, Detail: "a key of no known kind"}}, nil)
			case valid.Service("name", name) == nil && !slices.Contains(passingAreas, k.Area):
				g.names[place{k.Partition, name}] = true
			case k.Area == "gs" && strings.HasPrefix(k.Of, "@"): // slots of a key, which any limit of it reads
				g.compare(ctx, anyLimit+k.Of, k.Partition)
			}
		}
		if cursor = next; cursor == 0 {
			return
		}
		g.pause(ctx)
	}
}

func (g *gates) indexes(ctx context.Context) {
	for partition := range g.present {
		g.pages(ctx, partition, "gates")
	}
}

// pages looks at an index of a partition of gates.
func (g *gates) pages(ctx context.Context, partition uint16, index string) {
	for cursor := ""; g.out.GatesErr == nil; {
		next, _, list, err := g.cfg.Engine.AuditGates(ctx, partition, g.cfg.Repair,
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

func (g *gates) sorted() []place {
	return slices.SortedFunc(maps.Keys(g.names), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.name, b.name))
	})
}

// one compares one gate, where it belongs and where else its name occurs.
func (g *gates) one(ctx context.Context, at place) {
	_, _, list, err := g.cfg.Engine.AuditGates(ctx, at.partition, g.cfg.Repair,
		engine.IndexPage{Index: "ga:" + at.name, Limit: auditBatch})
	if errors.Is(err, denied.PartitionMissing) {
		g.found([]flowfabric.Finding{{Partition: at.partition, Kind: engine.FindingRecord, Index: "ga",
			Member: at.name, Detail: "its partition has lost its root"}}, nil)
		return
	}
	g.found(list, err)
	if err == nil && at.partition == ids.GatePartition(at.name, g.cfg.Engine.GatePartitions()) {
		g.compare(ctx, at.name, at.partition)
	}
}

// compare looks whether what a gate says of others is so.
func (g *gates) compare(ctx context.Context, name string, partition uint16) {
	record, err := g.cfg.Engine.ReadGate(ctx, name, 100, auditHolds, 256)
	if errors.Is(err, denied.NoGate) {
		return
	}
	if err != nil {
		g.failed(err)
		return
	}
	if !strings.HasPrefix(name, "@") { // what limits of keys hold is looked at, and only those that exist are counted
		g.out.Gates++
	}
	g.used(record, partition)
	g.held(ctx, record, partition)
}

// used compares what the last spenders reported in this period with what was used. It may be more after a correction
// only. That is reported, and never changed: what was used is what somebody counted.
func (g *gates) used(b admission.GateRecord, partition uint16) {
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
			g.found([]flowfabric.Finding{{Partition: partition, Kind: engine.FindingRecord, Index: "gu:" + b.Name,
				Member: dim,
				Detail: fmt.Sprintf("%d used, executions reported %d", b.Used[dim], sum)}}, nil)
		}
	}
}

// held asks the partitions of executions about holds that nobody has heard of for a while, at most 100 a call, and
// tells the gate. A hold that is in order, and one that cannot be asked about, stays. No count is set: a slot is
// free because its hold is gone.
func (g *gates) held(ctx context.Context, b admission.GateRecord, partition uint16) {
	by := map[uint16][]engine.Hold{}
	broken, nobody := false, []engine.Hold(nil)
	for i, text := range b.Holds {
		h, err := engine.ParseHold(text)
		switch {
		case err != nil:
			broken = true
		case h.Execution.Partition() >= g.cfg.Engine.Partitions():
			nobody = append(nobody, h)
		case i < b.Suspect:
			by[h.Execution.Partition()] = append(by[h.Execution.Partition()], h)
		}
	}
	if broken {
		g.pages(ctx, partition, "gs:"+strings.TrimPrefix(b.Name, anyLimit))
	}
	for list := range slices.Chunk(nobody, auditBatch) {
		g.settle(ctx, b.Name, partition, list, slices.Repeat([]string{engine.NewsGone}, len(list)),
			"it is of no partition")
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
			g.settle(ctx, b.Name, partition, list, states, "its execution holds it no more")
		}
	}
}

// settle tells a gate what became of holds; those that are gone are findings.
func (g *gates) settle(ctx context.Context, name string, partition uint16, holds []engine.Hold, states []string,
	why string) {
	var list []flowfabric.Finding
	news := make([]engine.News, len(holds))
	for i, h := range holds {
		news[i] = engine.News{Gate: name, Execution: h.Execution, Epoch: h.Epoch, What: states[i]}
		if states[i] != engine.NewsHeld {
			list = append(list, flowfabric.Finding{Partition: partition, Kind: engine.FindingPhantom,
				Index: "gs:" + name, Member: h.String(), Detail: why,
				Repaired: g.cfg.Repair, Repairable: true})
		}
	}
	g.found(list, nil)
	if !g.cfg.Repair {
		return
	}
	_, wake, err := g.cfg.Engine.SettleGates(ctx, news)
	g.failed(err)
	for _, w := range wake {
		_, err := g.cfg.Engine.OpenRoutes(ctx, w.Partition, []uint64{w.Route})
		g.failed(err)
	}
}
