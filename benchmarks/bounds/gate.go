package bounds

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

var gateCases = []boundCase{
	{"gate of 64 dimensions", dimensions},
	{"gate of 64 dimensions: 100 that it refused before", rooms},
	{"gate of 64 dimensions: 100 that stand in its line", line},
	{"gate with 1,000,000 starts in its window", window},
	{"100 executions with 16 gates and 8 limits of keys", gates},
	{"1,024 attachments", attachments},
	{"1,024 ready routes of 64 namespaces", shares},
}

// alike returns n names that are kept together in the first partition of count.
func alike(prefix string, n int, count uint16) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := prefix + strconv.Itoa(i); ids.GatePartition(name, count) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// gates makes n gates of 64 dimensions and 1,000 slots in one partition.
func (b *bench) gates(n int, reset time.Duration) []string {
	names := alike("g", n, limits.DefaultGatePartitions)
	for _, name := range names {
		limits := map[string]admission.Limit{}
		for i := range 64 {
			limits[fmt.Sprint("dimension.", i)] = admission.Limit{Soft: 10, Hard: 1 << 40}
		}
		_, _, _, err := b.e.PutGate(b.ctx, admission.Gate{Name: name, Limits: limits, OnHard: admission.HardBlock,
			Reset: flowfabric.Millis(reset), Concurrency: 1000}, 0)
		b.no(err)
	}
	return names
}

func amounts() map[string]int64 {
	all := map[string]int64{}
	for i := range 64 {
		all[fmt.Sprint("dimension.", i)] = 7
	}
	return all
}

func dimensions(b *bench) {
	name := b.gates(1, time.Hour)[0]
	ids := make([]flowfabric.ExecutionID, 100)
	for i := range ids {
		ids[i] = mint.ID(0)
	}
	b.watch("", func() {
		for i, id := range ids {
			_, err := b.e.ReportUsage(b.ctx,
				admission.Usage{Gate: name, Execution: id, Key: strconv.Itoa(i), Amounts: amounts()})
			b.no(err)
		}
		_, _, err := b.e.AdjustUsage(b.ctx, name, amounts())
		b.no(err)
		_, err = b.e.ReadGate(b.ctx, name, 100, 1000, 256)
		b.no(err)
		news := make([]engine.News, len(ids))
		for i, id := range ids {
			news[i] = engine.News{Gate: name, Execution: id, What: engine.NewsAsked}
		}
		_, _, err = b.e.SettleGates(b.ctx, news)
		b.no(err)
		_, _, _, err = b.e.ResetUsage(b.ctx, name, false)
		b.no(err)
	})
}

func rooms(b *bench) {
	name, refused, over := b.gates(1, 0)[0], b.holds(100), amounts()
	_, err := b.e.ReportUsage(b.ctx, admission.Usage{Gate: name, Key: "first", Amounts: amounts()})
	b.no(err)
	for dim := range over {
		over[dim] = 1 << 40
	}
	for _, h := range refused {
		r, err := b.e.ReportUsage(b.ctx, admission.Usage{Gate: name, Execution: h.Execution, Epoch: h.Epoch,
			Sequence: 1,
			Amounts:  over})
		b.no(err)
		if r.Applied {
			b.no(errors.New("there was room"))
		}
	}
	back := amounts()
	for dim, n := range back {
		back[dim] = -n
	}
	_, _, err = b.e.AdjustUsage(b.ctx, name, back) // now there is room for each of them
	b.no(err)
	b.watch("", func() {
		for range 20 {
			r, err := b.e.Admit(b.ctx, name, engine.Waiter{Partition: 0, Route: 1}, 10*time.Second, true, refused)
			b.no(err)
			if r.Why != "" {
				b.no(errors.New("there is no room: " + r.Why))
			}
		}
	})
}

// line: those who stand in line are asked for, of whom each waits for other amounts, and all fit beside the first.
func line(b *bench) {
	name, refused := b.gates(1, 0)[0], b.holds(100)
	holder := engine.Reservation{Gate: name, Execution: mint.ID(0), Epoch: 1, Number: 1, Amounts: map[string]int64{}}
	for dim := range amounts() {
		holder.Amounts[dim] = 1 << 40
	}
	_, _, err := b.e.Reserve(b.ctx, holder)
	b.no(err)
	for i, h := range refused {
		over := amounts()
		for dim := range over {
			over[dim] += int64(1_000_000 + i)
		}
		r, _, err := b.e.Reserve(b.ctx, engine.Reservation{Gate: name, Execution: h.Execution, Epoch: h.Epoch,
			Number: 1, Since: time.UnixMilli(int64(i + 1)), Amounts: over})
		b.no(err)
		if r.Applied {
			b.no(errors.New("there was room"))
		}
	}
	b.watch("", func() {
		_, _, err := b.e.Unreserve(b.ctx, holder)
		b.no(err)
		for range 20 {
			r, err := b.e.Admit(b.ctx, name, engine.Waiter{Partition: 0, Route: 1}, 10*time.Second, true, refused)
			b.no(err)
			if r.Why != "" {
				b.no(errors.New("there is no room: " + r.Why))
			}
		}
	})
}

// filled puts 50,000 holds into the window, or the slots, of a gate.
const filled = `for from = 1, 50000, 1000 do
  local list = {}
  for i = from, from + 999 do
    list[#list + 1] = ARGV[1]
    list[#list + 1] = 'hold:' .. ARGV[2] .. ':' .. i
  end
  redis.call('ZADD', KEYS[1], unpack(list))
end
return 1`

func (b *bench) holds(n int) []engine.Hold {
	out := make([]engine.Hold, n)
	for i := range out {
		out[i] = engine.Hold{Execution: mint.ID(0), Epoch: uint64(i + 1)}
	}
	return out
}

func window(b *bench) {
	name := alike("q", 1, limits.DefaultGatePartitions)[0]
	_, _, _, err := b.e.PutGate(b.ctx, admission.Gate{Name: name, Rate: 1_000_000,
		Window: flowfabric.Millis(30 * 24 * time.Hour), Concurrency: 1_000_000}, 0)
	b.no(err)
	root := keys.Partition(keys.GateRoot(0))
	began := time.Now().Add(-30*24*time.Hour - time.Second) // half of them have left the window
	for i := range 20 {
		at := strconv.FormatInt(began.Add(time.Duration(i/10)*time.Hour).UnixMilli(), 10)
		for _, key := range []string{root.Window(name), root.Slots(name)} {
			b.no(b.s.Do(b.ctx, "EVAL", filled, "1", key, at, strconv.Itoa(i)).Error())
		}
	}
	all := make([]engine.Hold, 0, 1000)
	b.watch("", func() {
		for range 10 {
			list := b.holds(100)
			all = append(all, list...)
			_, err := b.e.Admit(b.ctx, name, engine.Waiter{Partition: 0, Route: 1}, 10*time.Second, false, list)
			b.no(err)
		}
		_, err := b.e.ReadGate(b.ctx, name, 100, 1000, 256)
		b.no(err)
		for first := 0; first < len(all); first += 100 {
			news := make([]engine.News, 100)
			for i, h := range all[first : first+100] {
				news[i] = engine.News{Gate: name, Execution: h.Execution, Epoch: h.Epoch, What: engine.NewsGone}
			}
			_, _, err := b.e.SettleGates(b.ctx, news)
			b.no(err)
		}
	})
}

// gates: what the calls about grants cost at their most, and those that end executions with gates.
func gates(b *bench) {
	start := flowfabric.Start{Names: b.gates(16, 0)}
	var measured []string
	for _, name := range start.Names {
		measured = append(measured, name+"=ah")
	}
	for _, key := range alike("k", 8, limits.DefaultGatePartitions) {
		start.Limits = append(start.Limits, flowfabric.KeyLimit{Key: key, Concurrency: 1000})
	}
	items := make([]engine.NewExecution, 100)
	b.watch("created", func() {
		for range 3 {
			for i := range items {
				items[i] = b.item(mint.ID(0))
				items[i].Names, items[i].Limits = start.Names, start.Limits
			}
			_, err := b.e.CreateExecutions(b.ctx, 0, items)
			b.no(err)
		}
	})
	b.subscription()
	b.claim.Max, b.claim.Gates = 100, true
	var held []engine.Grant
	by := map[flowfabric.ExecutionID]uint64{} // the number of the claim that granted it
	b.watch("granted", func() {
		for range 6 {
			r, err := b.e.ClaimNext(b.ctx, b.claim)
			b.no(err)
			for _, x := range r.Grants {
				by[x.Execution] = b.claim.Number
			}
			b.claim.Number++
			held = append(held, r.Grants...)
		}
	})
	if len(held) < 190 {
		b.no(fmt.Errorf("%d are granted", len(held)))
	}
	var claims []engine.Claim
	b.watch("claimed and returned", func() {
		answers, got, err := b.e.ClaimGranted(b.ctx, 0, b.claim.Session, 0, held[:100],
			[]wire.ClaimGrantedRoute{{Route: int(held[0].Route), Meters: strings.Join(measured, ",")}})
		b.no(err)
		for _, a := range answers {
			b.no(a.Err)
		}
		claims = got
		back := make([]engine.GrantReturn, 0, 100)
		for _, x := range held[100:] {
			back = append(back, engine.GrantReturn{Grant: x, Reserved: true})
		}
		b.no(b.e.ReleaseGrants(b.ctx, 0, b.claim.Session, back[:min(100, len(back))], nil))
	})
	done := make([]engine.Completion, len(claims))
	for i, c := range claims {
		done[i] = engine.Completion{Fence: c.Fence}
		done[i].Fence.Claim = by[c.Fence.Execution]
	}
	b.watch("completed, and told of", func() {
		settled, _, err := b.e.CompleteExecutions(b.ctx, 0, done, nil)
		b.no(err)
		for _, x := range settled {
			b.no(x.Err)
		}
		for {
			entries, _, err := b.e.ReadOutbox(b.ctx, 0, "")
			b.no(err)
			if len(entries) == 0 {
				return
			}
			for _, x := range entries {
				_, _, err := b.e.SettleGates(b.ctx, x.News)
				b.no(err)
				_, err = b.e.TrimOutbox(b.ctx, 0, []string{x.ID})
				b.no(err)
			}
		}
	})
}

// attachments: as many labels as a call may have, on few items and on many, no two alike, where 1,024 scopes have
// something attached.
func attachments(b *bench) {
	key := keys.Root(0) + ":attached"
	for i := range 1023 {
		b.no(b.s.Do(b.ctx, "HSET", key, fmt.Sprint("t\x1fapp.k", i%64, "\x1fv", i/64), "gate 1 bounds").Error())
	}
	_ = b.e.ChangeAttached(b.ctx, admission.Scope{TagKey: "app.last", Tag: "v"}, engine.AttachSet,
		[]flowfabric.Gate{flowfabric.Gate("gate")})
	for _, n := range []int{31, limits.MaxBatch} {
		items := make([]engine.NewExecution, n)
		labels := min(limits.MaxTags, limits.MaxCallTags/n)
		for i := range items {
			items[i] = b.item(mint.ID(0))
			items[i].Tags = b.labels(labels, i)
		}
		b.watch(fmt.Sprintf("%d are created with %d labels each", n, labels), func() {
			_, err := b.e.CreateExecutions(b.ctx, 0, items)
			b.no(err)
		})
	}
	g := b.flow()
	ups := g.many("a", b.n, nil)
	g.create()
	g.stage(g.nodes)
	g.node("one", ups, named)
	g.nodes[b.n].Tags = b.labels(limits.MaxTags, 0)
	b.watch("1,000 edges into one with 64 labels", func() { g.stage(g.nodes[b.n:]) })
	first := len(g.nodes)
	g.many("labelled", 14, ups[:1])
	for i := range g.nodes[first:] {
		g.nodes[first+i].Tags = b.labels(limits.MaxTags, i)
	}
	b.watch("14 members with 64 labels each", func() {
		_, err := b.e.StageFlow(b.ctx, g.id, nil, g.nodes[first:])
		b.no(err)
	})
}

// labels are n tags, other ones for other i.
func (b *bench) labels(n, i int) map[string]string {
	all := map[string]string{}
	for k := range n {
		all[fmt.Sprint("app.k", k)] = fmt.Sprint("v", (i+k)%20)
	}
	return all
}

// shares: as many routes as there may be, of as many namespaces as a claim looks at.
func shares(b *bench) {
	for first := range 10 {
		items := make([]engine.NewExecution, 0, 100)
		for i := range 100 {
			x := b.item(mint.ID(0))
			x.Namespace, x.Kind = fmt.Sprint("namespace", i%64), fmt.Sprint("kind", first*100+i)
			items = append(items, x)
		}
		for range 3 {
			for i := range items {
				items[i].ID = mint.ID(0)
			}
			_, err := b.e.CreateExecutions(b.ctx, 0, items)
			b.no(err)
		}
	}
	b.subscription()
	b.watch("100 are claimed", func() {
		for b.claim.Rotation = range uint64(12) {
			b.take(100)
		}
	})
}
