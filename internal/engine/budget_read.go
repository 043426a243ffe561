package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
)

// ReadBudget reads a budget with at most so many of its last spenders (≤ 100) and newest audit entries (≤ 256)
// (lua/admission/ff_read_budget.lua). denied.NoBudget.
func (e *Engine) ReadBudget(ctx context.Context, name string, spenders, entries int) (admission.BudgetRecord, error) {
	r, err := e.onBudget(ctx, fnReadBudget, name, name, strconv.Itoa(spenders), strconv.Itoa(entries))
	if err != nil {
		return admission.BudgetRecord{}, err
	}
	r.Instant()
	b := admission.BudgetRecord{Waiting: r.Int()}
	b.Name = name
	budgetFields(&b, r)
	b.Used = r.amounts()
	b.Audit = auditLog(r)
	for i := range b.Audit {
		spelledIDs(&b.Audit[i])
	}
	for range r.Count(1) {
		b.Spenders = append(b.Spenders, spender(r))
	}
	return b, r.fail()
}

// FindGate tells whether a budget or quota exists (lua/admission/ff_read_budget.lua, ff_read_quota.lua): nil,
// denied.NoBudget or denied.NoQuota. It makes one try; to repeat it is up to the caller.
func (e *Engine) FindGate(ctx context.Context, gate flowfabric.Gate) error {
	on, f := e.onQuota, fnReadQuota
	if gate.IsBudget() {
		on, f = e.onBudget, fnReadBudget
	}
	f.once = true
	_, err := on(ctx, f, gate.Name(), gate.Name(), "0", "0")
	return err
}

func budgetFields(b *admission.BudgetRecord, r *reader) {
	v := r.Pairs()
	number := func(field string) uint64 { n, _ := strconv.ParseUint(v[field], 10, 64); return n }
	at := func(field string) time.Time {
		if v[field] == "" {
			return time.Time{}
		}
		return time.UnixMilli(int64(number(field)))
	}
	b.Scope, b.Warn, b.OnHard, b.WarnSoft = v["sc"], v["md"] == "warn", admission.HardAction(v["hd"]), v["sf"] == "warn"
	b.Reset, b.StrictDimensions = time.Duration(number("iv"))*time.Millisecond, v["st"] == "1"
	if v["rf"] != "" {
		b.Refund = strings.Split(v["rf"], ",")
	}
	b.Limits, b.Refused = map[string]admission.Limit{}, map[string]int64{}
	for field, text := range v {
		if dim, ok := strings.CutPrefix(field, "z:"); ok {
			b.Refused[dim] = int64(number(field))
		}
		if dim, ok := strings.CutPrefix(field, "h:"); ok {
			hard, _ := strconv.ParseInt(text, 10, 64)
			b.Limits[dim] = admission.Limit{Hard: hard, Soft: int64(number("s:" + dim))}
		}
	}
	b.Revision, b.CreatedAt, b.ChangedBy = number("up"), at("ct"), v["by"]
	b.Period, b.PeriodBegan, b.NextReset, b.LastReset, b.Missed = number("rc"), at("ps"), at("nx"), at("lr"),
		number("ms")
	b.HardBreaches, b.SoftBreaches, b.LastBreach, b.BreachedDim = number("bc"), number("bs"), at("ba"), v["bd"]
}

func auditLog(r *reader) []admission.AuditEntry {
	var out []admission.AuditEntry
	for range r.Count(1) {
		parts := strings.SplitN(r.Text(), "\x1f", 4)
		if len(parts) != 4 {
			r.Stop("audit entry of %d parts", len(parts))
			return out
		}
		ms, err := strconv.ParseInt(parts[0], 10, 64)
		if err != nil {
			r.Stop("audit entry: %w", err)
		}
		out = append(out, admission.AuditEntry{At: time.UnixMilli(ms), What: parts[1], By: parts[2], Detail: parts[3]})
	}
	return out
}

// spelledIDs has the executions that a budget's audit log names written as everywhere else.
func spelledIDs(e *admission.AuditEntry) {
	at := map[string]*string{"release": &e.Detail, "soft_limit": &e.By}[e.What]
	if at == nil {
		return
	}
	who, rest, more := strings.Cut(*at, " ")
	if id, err := parseSpender(who); err == nil {
		*at = id.String()
		if more {
			*at += " " + rest
		}
	}
}

func spender(r *reader) admission.Spender {
	h := header{rest: r.Text()}
	id, err := parseSpender(h.next())
	s := admission.Spender{Execution: id, At: time.UnixMilli(int64(h.unsigned())), Period: h.unsigned(),
		Late: h.unsigned(), Used: map[string]int64{}}
	if err = errors.Join(err, h.err); err != nil {
		r.Stop("spender: %w", err)
	}
	for part := range strings.SplitSeq(h.rest, ",") {
		if dim, text, ok := strings.Cut(part, "="); ok {
			s.Used[dim], _ = strconv.ParseInt(text, 10, 64)
		}
	}
	return s
}

// BudgetNames lists all budgets by name (lua/admission/ff_list_budgets.lua).
func (e *Engine) BudgetNames(ctx context.Context) ([]string, error) {
	return e.names(ctx, fnListBudgets, e.budgets)
}

// names reads the names in all partitions of a kind.
func (e *Engine) names(ctx context.Context, f function, roots []string) ([]string, error) {
	var out []string
	commands := make(rueidis.Commands, len(roots))
	for i, root := range roots {
		commands[i] = e.client.B().Exists().Key(root).Build()
	}
	for i, resp := range e.client.DoMulti(ctx, commands...) {
		n, err := resp.AsInt64()
		if err != nil {
			return nil, callError(f.name, err)
		}
		after := ""
		for more := n > 0; more; {
			r, err := e.run(ctx, e.client, f, roots[i:i+1], []string{protocol, after, "500"})
			if err != nil {
				return nil, err
			}
			more = r.Flag()
			for range r.Count(1) {
				after = r.Text()
				out = append(out, after)
			}
			if err := r.fail(); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
