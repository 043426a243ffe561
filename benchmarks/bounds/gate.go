package bounds

import (
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

var gateCases = []boundCase{
	{"budget of 64 dimensions", dimensions},
	{"16 budgets of 64 dimensions", rooms},
	{"quota with 1,000,000 starts in its window", window},
	{"100 executions with 8 quotas and 16 budgets", gates},
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

// budgets makes n budgets of 64 dimensions in one partition.
func (b *bench) budgets(n int, reset time.Duration) []string {
	names := alike("b", n, limits.DefaultBudgetPartitions)
	for _, name := range names {
		limits := map[string]admission.Limit{}
		for i := range 64 {
			limits[fmt.Sprint("dimension.", i)] = admission.Limit{Soft: 10, Hard: 1 << 40}
		}
		_, _, _, err := b.e.PutBudget(b.ctx, admission.Budget{Name: name, Limits: limits,
			Reset: flowfabric.Millis(reset)}, 0)
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
	name := b.budgets(1, time.Hour)[0]
	ids := make([]flowfabric.ExecutionID, 100)
	for i := range ids {
		ids[i] = mint.ID(0)
	}
	b.watch("", func() {
		for i, id := range ids {
			_, err := b.e.ReportUsage(b.ctx,
				admission.Usage{Budget: name, Execution: id, Key: strconv.Itoa(i), Amounts: amounts()})
			b.no(err)
		}
		_, _, err := b.e.AdjustBudget(b.ctx, name, amounts())
		b.no(err)
		_, err = b.e.ReadBudget(b.ctx, name, 100, 256)
		b.no(err)
		items := make([]engine.Refund, len(ids))
		for i, id := range ids {
			items[i] = engine.Refund{Budget: name, Execution: id, Outcome: "asked"}
		}
		_, _, err = b.e.ReleaseUsage(b.ctx, items)
		b.no(err)
		_, _, _, err = b.e.ResetBudget(b.ctx, name, false)
		b.no(err)
	})
}

func rooms(b *bench) {
	names := b.budgets(16, 0)
	for i, name := range names {
		_, err := b.e.ReportUsage(b.ctx, admission.Usage{Budget: name, Key: strconv.Itoa(i), Amounts: amounts()})
		b.no(err)
	}
	b.watch("", func() {
		for range 20 {
			_, err := b.e.CheckBudgets(b.ctx, 0, 1, names)
			b.no(err)
		}
	})
}

// filled puts 50,000 holds into the window, or the slots, of a quota.
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
	name := alike("q", 1, limits.DefaultQuotaPartitions)[0]
	_, _, _, err := b.e.PutQuota(b.ctx, admission.Quota{Name: name, Rate: 1_000_000,
		Window: flowfabric.Millis(30 * 24 * time.Hour),
		Cap:    1_000_000}, 0)
	b.no(err)
	began := time.Now().Add(-30*24*time.Hour - time.Second) // half of them have left the window
	for i := range 20 {
		at := strconv.FormatInt(began.Add(time.Duration(i/10)*time.Hour).UnixMilli(), 10)
		for _, key := range []string{keys.QuotaRoot(0) + ":qw:" + name, keys.QuotaRoot(0) + ":qs:" + name} {
			b.no(b.s.Do(b.ctx, "EVAL", filled, "1", key, at, strconv.Itoa(i)).Error())
		}
	}
	all := make([]engine.Hold, 0, 1000)
	b.watch("", func() {
		for range 10 {
			list := b.holds(100)
			all = append(all, list...)
			_, err := b.e.Admit(b.ctx, name, 0, 1, 10*time.Second, list)
			b.no(err)
		}
		_, err := b.e.ReadQuota(b.ctx, name, 1000, 256)
		b.no(err)
		for first := 0; first < len(all); first += 100 {
			items := make([]engine.Released, 100)
			for i, h := range all[first : first+100] {
				items[i] = engine.Released{Quota: name, Hold: h}
			}
			_, _, err := b.e.ReleaseHolds(b.ctx, items)
			b.no(err)
		}
	})
}

// gates: what the calls about grants cost at their most, and those that end executions with gates.
func gates(b *bench) {
	budgets, quotas := b.budgets(16, 0), []string(nil)
	for _, name := range alike("q", 8, limits.DefaultQuotaPartitions) {
		_, _, _, err := b.e.PutQuota(b.ctx, admission.Quota{Name: name, Cap: 1000}, 0)
		b.no(err)
		quotas = append(quotas, name)
	}
	items := make([]engine.NewExecution, 100)
	b.watch("created", func() {
		for range 3 {
			for i := range items {
				items[i] = b.item(mint.ID(0))
				items[i].Budgets, items[i].Quotas = budgets, quotas
			}
			_, err := b.e.CreateExecutions(b.ctx, 0, items)
			b.no(err)
		}
	})
	b.subscription()
	b.claim.Max, b.claim.Gates = 100, true
	var held []engine.Grant
	b.watch("granted", func() {
		for range 6 {
			r, err := b.e.ClaimNext(b.ctx, b.claim)
			b.no(err)
			b.claim.Number++
			held = append(held, r.Grants...)
		}
	})
	if len(held) < 190 {
		b.no(fmt.Errorf("%d are granted", len(held)))
	}
	var claims []engine.Claim
	b.watch("claimed and returned", func() {
		answers, got, err := b.e.ClaimGranted(b.ctx, 0, b.claim.Session, 0, held[:100])
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
	}
	b.watch("completed, and told of", func() {
		_, _, err := b.e.CompleteExecutions(b.ctx, 0, done, nil)
		b.no(err)
		for {
			entries, _, err := b.e.ReadOutbox(b.ctx, 0, "")
			b.no(err)
			if len(entries) == 0 {
				return
			}
			for _, x := range entries {
				for first := 0; first < len(x.Released); first += 100 {
					_, _, err := b.e.ReleaseHolds(b.ctx, x.Released[first:min(first+100, len(x.Released))])
					b.no(err)
				}
				_, err := b.e.TrimOutbox(b.ctx, 0, []string{x.ID})
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
		b.no(b.s.Do(b.ctx, "HSET", key, fmt.Sprint("t\x1fapp.k", i%64, "\x1fv", i/64), "q:quota 1 bounds").Error())
	}
	_ = b.e.ChangeAttached(b.ctx, admission.Scope{TagKey: "app.last", Tag: "v"}, engine.AttachSet,
		[]flowfabric.Gate{flowfabric.QuotaGate("quota")})
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
