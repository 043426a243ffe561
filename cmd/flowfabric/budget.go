package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// budgetFlags are the settings of a budget.
var budgetFlags = []member{
	texts("", "limit", "hard limit, `dimension=number`, at least 1; may be repeated"),
	texts("", "soft", "soft limit, `dimension=number`; 0 is none; may be repeated"),
	text("", "mode", "strict refuses usage above a hard limit, warn only counts it").or("strict"),
	text("on_hard", "on-hard",
		"action for an execution with a refused report: reject (its handler decides), fail, or block (it waits)",
	).or("reject"),
	text("", "on-soft", "allow, or warn: write down when a soft limit is passed").or("allow"),
	millis("reset_ms", "reset", "begin a new period this often, 1s to ten years; 0 is never"),
	list("refund", "refund", "refund the usage of executions with these outcomes: failed,cancelled,expired"),
	yes("strict", "strict-dimensions", "refuse reports of dimensions without limits"),
	text("scope", "for", "purpose, `text` for people"),
}

var budgetVerbs = []verb{
	{
		use: "ls", short: "List budgets",
		long: `ls lists all budgets and the usage of each dimension. QUEUES counts the queues with work that
waits for a budget: each partition has one queue for every lane, kind and set of gates, with any number of
executions in it. gate ls counts those executions.`,
		example: "  flowfabric budget ls",
		route:   "GET /v1/budgets",
		run: manyRows([]string{"BUDGET", "MODE", "DIMENSION", "USED", "SOFT", "HARD", "HEADROOM", "PERIOD ENDS",
			"QUEUES"},
			func(b admission.BudgetRecord) (rows [][]any) {
				dims := dimensionRows(b)
				if len(dims) == 0 {
					dims = [][]any{{"", "", "", "", ""}}
				}
				for n, row := range dims {
					name, mode, waiting, until := "", "", "", ""
					if n == 0 {
						name, mode, waiting, until = b.Name, budgetMode(b.Budget), strconv.Itoa(b.Waiting),
							instant(b.NextReset)
					}
					rows = append(rows, slices.Concat([]any{styled(bold, name), mode}, row, []any{until, waiting}))
				}
				return rows
			}),
	},
	{
		use: "show NAME", short: "Show one budget: limits, usage, users, and the work that it holds back",
		long: `show prints a budget with its usage in this period, the work that it blocks, the executions that
spent from it last, and its audit log: the author of each change, adjustment and reset.`,
		example: "  flowfabric budget show acme",
		route:   "GET /v1/budgets/{NAME}",
		run: func(ctx context.Context, q *request) error {
			var v budgetShown
			if err := q.do(ctx, &v.BudgetRecord); err != nil {
				return err
			}
			var err error
			v.Blocked, err = blockedBy(ctx, q, func(c admission.Closing) bool { return c.Budget == v.Name })
			if shown := q.app.show(v, v.text); shown != nil {
				return shown
			}
			return err
		},
	},
	{
		use: "create NAME", short: "Create a budget",
		long: `create makes a budget. A name is 1..64 letters, digits, _, . and -. If the budget exists with the
same settings, nothing changes; with other settings the command fails, see update. A dimension without a
hard limit is left out, or has a soft limit only: its usage is counted and blocks no work.`,
		example: `  flowfabric budget create acme --limit tokens=1000000 --soft tokens=800000 --reset 24h \
      --on-hard fail --refund failed,cancelled
  flowfabric budget create watch --limit cost.cents=5000 --mode warn`,
		route: "PUT /v1/budgets/{NAME}", flags: budgetFlags, first: mayBoot,
		run: func(ctx context.Context, q *request) error { return putBudget(ctx, q, noted("created", budgetNote)) },
	},
	{
		use: "ensure NAME", short: "Create a budget if there is none of its name",
		long: `ensure makes a budget as create does. An existing budget stays as it is, even if its settings
differ. So a script may run it at each deployment, and operators change the numbers afterwards with
update.`,
		example: "  flowfabric budget ensure acme --limit tokens=1000000 --reset 24h",
		route:   "POST /v1/budgets/{NAME}:ensure", flags: budgetFlags, first: mayBoot,
		run: func(ctx context.Context, q *request) error { return putBudget(ctx, q, ensured(budgetNote)) },
	},
	{
		use: "update NAME", short: "Change a budget",
		long: `update changes the given settings and keeps the others. Recorded usage stays. Work that waits for
the budget is checked again. If somebody else changes the budget at the same time, one of the two commands
fails. --drop removes the limits of a dimension; with --soft it keeps a soft limit.`,
		example: "  flowfabric budget update acme --limit tokens=2000000",
		route:   "PUT /v1/budgets/{NAME}",
		flags: append(unsaid(budgetFlags),
			texts("", "drop", "forget the limits of a `dimension`; may be repeated")),
		run: func(ctx context.Context, q *request) error {
			var was admission.BudgetRecord
			if err := q.get(ctx, &was, "/v1/budgets/*", q.args[0]); err != nil {
				return err
			}
			if err := q.limits(was.Limits); err != nil {
				return err
			}
			return update(ctx, q, was.Budget, was.Revision, budgetNote)
		},
	},
	{
		use: "report NAME DIMENSION=AMOUNT...", short: "Report usage of a budget",
		long: `report adds usage to a budget, all dimensions or none. --key names the report: the same key within
a day counts once, and the answer says so. If the report would exceed a hard limit, nothing is counted and
the exit code is 4; a budget that only warns counts it. --execution records the report in the ledger of
that execution.`,
		example: "  flowfabric budget report acme tokens=1500 cost.cents=3 --key invoice-17",
		route:   "POST /v1/budgets/{NAME}:report", mute: true,
		args: map[string]member{"DIMENSION=AMOUNT": amountArgs},
		flags: []member{text("key", "key", "`name` of the report, required: at most 128 bytes without spaces"),
			text("execution", "execution", "the `id` of the execution that used it")},
		needed: [][]string{{"key"}},
		run:    reportUsage,
	},
	{
		use: "adjust NAME DIMENSION=AMOUNT...", short: "Correct the usage of a budget, up or down",
		long: `adjust adds to the usage of this period; a negative amount subtracts. Usage never falls below
zero, and limits are not checked. The budget's audit log records who adjusted it and why. Running it again
adds again.`,
		example: "  flowfabric budget adjust acme tokens=-500 --reason 'counted twice'",
		route:   "POST /v1/budgets/{NAME}:adjust",
		args:    map[string]member{"DIMENSION=AMOUNT": amountArgs},
		run: func(ctx context.Context, q *request) error {
			v := struct {
				changed
				apiv1.Used
			}{changed: changed{Name: q.args[0], Done: "adjusted"}}
			if err := q.do(ctx, &v.Used); err != nil {
				return err
			}
			return q.app.show(v, func(p *page) {
				p.say("budget %s adjusted, used now: %s", v.Name,
					amountsText(v.Used.Used))
			})
		},
	},
	{
		use: "reset NAME", short: "Begin a new period of a budget now",
		long: `reset sets the usage of a budget to zero and begins a new period. The next period begins at its
usual time, unless --move.`,
		example: "  flowfabric budget reset acme",
		route:   "POST /v1/budgets/{NAME}:reset",
		flags:   []member{yes("move", "move", "the next period begins a whole interval from now")},
		run: func(ctx context.Context, q *request) error {
			v := struct {
				changed
				apiv1.Period
			}{changed: changed{Name: q.args[0], Done: "reset"}}
			if err := q.do(ctx, &v.Period); err != nil {
				return err
			}
			until := "it does not end by itself"
			if v.Left > 0 {
				until = "it ends at " + instant(time.Now().Add(time.Duration(v.Left)))
			}
			return q.app.show(v, func(p *page) {
				p.say("budget %s reset: period %d began, %s", v.Name,
					v.Period.Period, until)
			})
		},
	},
	{
		use: "refund NAME ID", short: "Refund the usage of an execution to a budget",
		long: `refund gives back the usage that an execution reported to a budget in this period. Reports of
earlier periods ended with them. A second refund gives back nothing.`,
		example: "  flowfabric budget refund acme 3-0197f3a0-…",
		route:   "POST /v1/budgets/{NAME}:refund", args: map[string]member{"ID": text("execution", "", "")},
		run: func(ctx context.Context, q *request) error {
			var got apiv1.Returned
			if err := q.do(ctx, &got); err != nil {
				return err
			}
			done := "refunded"
			if !got.Returned {
				done = "nothing to refund"
			}
			return q.app.show(changed{Name: q.args[0], Done: done}, func(p *page) {
				p.say("budget %s: %s", q.args[0],
					done)
			})
		},
	},
	{
		use: "rm NAME", short: "Remove a budget",
		long: `rm deletes a budget, its usage and its audit log. Executions that have it as a gate wait; they go
on within 30 s after somebody makes a budget of that name again. The command refuses a budget that is
attached to scopes (gate ls): detach it first, or work created in those scopes waits too.`,
		example: "  flowfabric budget rm acme",
		route:   "DELETE /v1/budgets/{NAME}",
		flags:   []member{yes("", "force", "also one that is attached to scopes")},
		run: func(ctx context.Context, q *request) error {
			return removeGate(ctx, q, "budget", func(a admin.AttachedGates) []string { return a.Budgets })
		},
	},
}

// amountArgs are arguments dimension=number.
var amountArgs = member{to: "amounts", kind: kind{textsKind.add,
	func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		values := said(flags, name)
		return amounts(name, values)
	}}}

func putBudget(ctx context.Context, q *request, show func(*request, json.RawMessage) error) error {
	if err := q.limits(nil); err != nil {
		return err
	}
	var answer json.RawMessage
	if err := q.do(ctx, &answer); err != nil {
		return err
	}
	return show(q, answer)
}

// limits puts what the flags of a budget say of limits and modes into a request; before is how the limits are.
func (q *request) limits(before map[string]admission.Limit) error {
	flags := q.cmd.Flags()
	read := func(name string) (map[string]int64, error) {
		values := said(flags, name)
		return amounts("--"+name, values)
	}
	hard, err := read("limit")
	if err != nil {
		return err
	}
	soft, err := read("soft")
	if err != nil {
		return err
	}
	for _, dim := range slices.Sorted(maps.Keys(hard)) {
		if hard[dim] == 0 {
			drop := ""
			if flags.Lookup("drop") != nil {
				drop = ", or forget its limits with --drop " + dim
			}
			return usage(
				"--limit %s=0 would be no limit: want at least 1; a dimension without a hard limit is left out%s", dim,
				drop)
		}
	}
	limits := maps.Clone(before)
	if limits == nil {
		limits = map[string]admission.Limit{}
	}
	if flags.Lookup("drop") != nil {
		drop := said(flags, "drop")
		for _, dim := range drop {
			delete(limits, dim)
		}
	}
	for dim, n := range hard {
		limits[dim] = admission.Limit{Hard: n, Soft: limits[dim].Soft}
	}
	for dim, n := range soft {
		limits[dim] = admission.Limit{Hard: limits[dim].Hard, Soft: n}
	}
	if len(limits) > 0 || len(before) > 0 { // none, and none before, is no change
		q.body["limits"] = limits
	}
	if refund, said := q.body["refund"].([]string); said {
		q.body["refund"] = slices.Compact(slices.Sorted(slices.Values(refund)))
	}
	for flag, x := range map[string]struct{ member, not string }{"mode": {"warn", "strict"}, "on-soft": {"warn_soft",
		"allow"}} {
		if said := q.text(flag); flags.Changed(flag) {
			if said != "warn" && said != x.not {
				return usage("--%s %q, want %s or warn", flag, said, x.not)
			}
			q.body[x.member] = said == "warn"
		}
	}
	return nil
}

func reportUsage(ctx context.Context, q *request) error {
	var r admission.Reported
	if err := q.do(ctx, &r); err != nil {
		return err
	}
	var said []string
	for _, b := range r.Breaches {
		said = append(said, breachText(b))
	}
	if shown := q.app.show(r, func(p *page) {
		counted := "counted"
		if r.Replayed {
			counted = "counted before"
		}
		if r.Applied {
			p.say("%s in budget %s: %s", counted, q.args[0],
				strings.Join(append([]string{amountsText(q.body["amounts"].(map[string]int64))}, said...), "; "))
		}
	}); shown != nil {
		return shown
	}
	if !r.Applied {
		return fmt.Errorf("report to budget %q: %w: %s", q.args[0], flowfabric.ErrOverBudget, strings.Join(said, "; "))
	}
	return nil
}

func breachText(b admission.Breach) string {
	kind := "soft"
	if b.Hard {
		kind = "hard"
	}
	return fmt.Sprintf("%s is at %d, its %s limit is %d", b.Dimension, b.Used, kind, b.Limit)
}

// limitsNothing is the note about a budget or quota that keeps nothing from running.
const limitsNothing = "it limits nothing"

// budgetNote is what may not be meant with a budget.
func budgetNote(b admission.Budget) string {
	for _, l := range b.Limits {
		if l.Hard > 0 {
			return ""
		}
	}
	return limitsNothing + ": no dimension has a hard limit (--limit)"
}

// budgetShown is a budget with what it keeps from running.
type budgetShown struct {
	admission.BudgetRecord
	Blocked []admin.ClosedRoute `json:"blocked,omitempty"`
}

// budgetMode and onSoft are words for people.
func budgetMode(b admission.Budget) string {
	if b.Warn {
		return "warn"
	}
	return "strict"
}

func onSoft(b admission.Budget) string {
	if b.WarnSoft {
		return "warn"
	}
	return "allow"
}

// dimensionRows are the dimensions, one a row.
func dimensionRows(b admission.BudgetRecord) [][]any {
	var rows [][]any
	dims := append(slices.Collect(maps.Keys(b.Limits)), slices.Collect(maps.Keys(b.Used))...)
	slices.Sort(dims)
	for _, dim := range slices.Compact(dims) {
		l, used, text := b.Limits[dim], styled(normal, b.Used[dim]), ""
		left, limited := b.Headroom[dim]
		if limited {
			text = strconv.FormatInt(left, 10)
		}
		switch {
		case limited && left == 0:
			used.style = red
		case l.Soft > 0 && b.Used[dim] > l.Soft:
			used.style = yellow
		}
		rows = append(rows, []any{dim, used, limitCell(l.Soft, ""), limitCell(l.Hard, unlimited), text})
	}
	return rows
}

// unlimited is what a dimension without a hard limit is.
const unlimited = "unlimited"

// limitCell is a limit, or what there is to say when it is 0, which is none.
func limitCell(n int64, none string) string {
	if n == 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

func (v budgetShown) text(p *page) {
	period := fmt.Sprintf("%d, since %s", v.Period, instant(v.PeriodBegan))
	if v.Missed > 0 {
		period += fmt.Sprintf(" (%s before it went by unused)", count(int(v.Missed), "period"))
	}
	breaches := fmt.Sprintf("%d hard, %d soft", v.HardBreaches, v.SoftBreaches)
	strict := ""
	if v.StrictDimensions {
		strict = "only those with limits"
	}
	refused := maps.Clone(v.Refused)
	maps.DeleteFunc(refused, func(dim string, n int64) bool { _, limited := v.Limits[dim]; return n <= 0 || !limited })
	p.facts("name", v.Name, "for", v.Scope, "mode", budgetMode(v.Budget), "on hard limit", v.OnHard, "on soft limit",
		onSoft(v.Budget), "dimensions", strict, "refunds", strings.Join(v.Refund, ","), "resets every",
		span(time.Duration(v.Reset)), "period", period, "period ends", instant(v.NextReset), "breaches", breaches,
		"refused in it", amountsText(refused), "last breach", join(", ", instant(v.LastBreach), v.BreachedDim),
		"waiting", count(v.Waiting, "queue"), "revision", v.Revision, "created", instant(v.CreatedAt), "changed by",
		v.ChangedBy)
	p.WriteByte('\n')
	if rows := dimensionRows(v.BudgetRecord); len(rows) == 0 {
		p.say("no limits: %s", limitsNothing)
	} else {
		p.table([]string{"DIMENSION", "USED", "SOFT", "HARD", "HEADROOM"}, rows)
	}
	closedTable(p, "keeps from running:", v.Blocked)
	if len(v.Spenders) > 0 {
		p.say("\nlast spenders:")
		rows := make([][]any, len(v.Spenders))
		for i, s := range v.Spenders {
			late := ""
			if s.Late > 0 {
				late = count(int(s.Late), "report")
			}
			rows[i] = []any{s.Execution, instant(s.At), s.Period, amountsText(s.Used), late}
		}
		p.table([]string{"EXECUTION", "LAST REPORT", "PERIOD", "USED IN IT", "LATE"}, rows)
	}
	auditTable(p, v.Audit)
}

func amountsText(by map[string]int64) string {
	var parts []string
	for _, dim := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s=%d", dim, by[dim]))
	}
	return strings.Join(parts, " ")
}

// amounts reads dimension=number arguments or flags.
func amounts(name string, values []string) (map[string]int64, error) {
	out := make(map[string]int64, len(values))
	for _, value := range values {
		dim, text, ok := strings.Cut(value, "=")
		if !ok || dim == "" {
			return nil, usage("%s %q, want dimension=number", name, value)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, usage("%s %s, want a whole number", name, value)
		}
		if before, twice := out[dim]; twice {
			return nil, usage("%s names %s twice, %d and %d", name, dim, before, n)
		}
		out[dim] = n
	}
	return out, nil
}
