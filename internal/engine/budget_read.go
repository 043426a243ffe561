package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// ReadBudget reads a budget with at most so many of its last spenders (≤ 100) and newest audit entries (≤ 256)
// (lua/admission/ff_read_budget.lua). denied.NoBudget.
func (e *Engine) ReadBudget(ctx context.Context, name string, spenders, entries int) (admission.BudgetRecord, error) {
	r, _, err := read[wire.ReadBudgetReply](e.onGate(ctx, flowfabric.BudgetGate(name), false,
		wire.ReadBudget{Name: name, Spenders: spenders, Entries: entries}))
	if err != nil {
		return admission.BudgetRecord{}, err
	}
	b := admission.BudgetRecord{Waiting: r.Waiting, Used: usage(r.Used)}
	b.Name = name
	budgetFields(&b, r.Fields)
	b.Audit, err = gatetext.Audit(name, r.Entries)
	for _, text := range r.Spenders {
		s, wrong := spender(text)
		b.Spenders, err = append(b.Spenders, s), cmp.Or(err, wrong)
	}
	return b, unread("ff_read_budget", err)
}

// FindGate tells whether a budget or quota exists (lua/admission/ff_read_budget.lua, ff_read_quota.lua): nil,
// denied.NoBudget or denied.NoQuota. It makes one try; to repeat it is up to the caller.
func (e *Engine) FindGate(ctx context.Context, gate flowfabric.Gate) error {
	q := oneTry{wire.ReadQuota{Name: gate.Name()}}
	if gate.IsBudget() {
		q.Call = wire.ReadBudget{Name: gate.Name()}
	}
	_, err := e.onGate(ctx, gate, false, q)
	return err
}

// budgetFields reads the record of a budget; what is no number in it counts as 0.
func budgetFields(b *admission.BudgetRecord, v map[string]string) {
	f := wire.Fields{M: v, R: &reader{}}
	b.Scope, b.Warn, b.OnHard, b.WarnSoft = v["sc"], v["md"] == "warn", admission.HardAction(v["hd"]), v["sf"] == "warn"
	b.Reset, b.StrictDimensions = millis(f.Number("iv")), v["st"] == "1"
	if v["rf"] != "" {
		b.Refund = strings.Split(v["rf"], ",")
	}
	b.Limits, b.Refused = map[string]admission.Limit{}, map[string]int64{}
	for field := range v {
		if dim, ok := strings.CutPrefix(field, "z:"); ok {
			b.Refused[dim] = f.Number(field)
		}
		if dim, ok := strings.CutPrefix(field, "h:"); ok {
			b.Limits[dim] = admission.Limit{Hard: f.Number(field), Soft: f.Number("s:" + dim)}
		}
	}
	b.Revision, b.CreatedAt, b.ChangedBy = uint64(f.Number("up")), f.Instant("ct"), v["by"]
	b.Period, b.PeriodBegan, b.NextReset = uint64(f.Number("rc")), f.Instant("ps"), f.Instant("nx")
	b.LastReset, b.Missed = f.Instant("lr"), uint64(f.Number("ms"))
	b.HardBreaches, b.SoftBreaches = uint64(f.Number("bc")), uint64(f.Number("bs"))
	b.LastBreach, b.BreachedDim = f.Instant("ba"), v["bd"]
	b.Headroom = map[string]int64{}
	for _, dim := range slices.Sorted(maps.Keys(b.Limits)) {
		if hard := b.Limits[dim].Hard; hard > 0 {
			if b.Headroom[dim] = max(0, hard-b.Used[dim]); b.Headroom[dim] == 0 {
				b.Exhausted = append(b.Exhausted, dim)
			}
		}
	}
}

func spender(text string) (admission.Spender, error) {
	h := header{rest: text}
	id, err := gatetext.ParseSpender(h.next())
	s := admission.Spender{Execution: id, At: time.UnixMilli(int64(h.unsigned())).UTC(), Period: h.unsigned(),
		Late: h.unsigned(), Used: map[string]int64{}}
	if err = errors.Join(err, h.err); err != nil {
		return s, fmt.Errorf("spender: %w", err)
	}
	for part := range strings.SplitSeq(h.rest, ",") {
		if dim, text, ok := strings.Cut(part, "="); ok {
			s.Used[dim], _ = strconv.ParseInt(text, 10, 64)
		}
	}
	return s, nil
}

// BudgetNames lists all budgets by name.
func (e *Engine) BudgetNames(ctx context.Context) ([]string, error) {
	return e.names(ctx, e.budgets, "budgets")
}

// names reads the names in all partitions of budgets or quotas (lua/admission/ff_list_gates.lua).
func (e *Engine) names(ctx context.Context, roots []string, of string) ([]string, error) {
	var out []string
	commands := make(rueidis.Commands, len(roots))
	for i, root := range roots {
		commands[i] = e.client.B().Exists().Key(root).Build()
	}
	for i, resp := range e.client.DoMulti(ctx, commands...) {
		n, err := resp.AsInt64()
		if err != nil {
			return nil, CallError("ff_list_gates", err)
		}
		q := wire.ListGates{Of: of, Limit: 500}
		for more := n > 0; more; {
			r, _, err := read[wire.ListGatesReply](e.sendTo(ctx, roots[i], q))
			if err != nil {
				return nil, err
			}
			if more = r.More; len(r.Names) > 0 {
				q.After = r.Names[len(r.Names)-1]
			}
			out = append(out, r.Names...)
		}
	}
	slices.Sort(out)
	return out, nil
}
