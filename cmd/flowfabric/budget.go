package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
)

func budgetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Create, change, show and remove budgets, and correct what was used of them",
		Long: `budget looks after budgets: how much executions may use, by dimension, in a period. Work that has a
budget as a gate (submit --budget, gate attach) waits while a hard limit of it is reached. Alone it does
what ls does.`,
	}
	list := budgetListCommand(a)
	cmd.AddCommand(list, budgetShowCommand(a), budgetCreateCommand(a), budgetEnsureCommand(a), budgetUpdateCommand(a),
		budgetReportCommand(a), budgetAdjustCommand(a), budgetResetCommand(a), budgetRefundCommand(a),
		budgetRemoveCommand(a))
	listsAlone(cmd, list)
	cmd.Long = strings.TrimSuffix(cmd.Long, ". Alone it does what list does.") + "."
	return cmd
}

// gateChanged is the answer of what changes a budget or a quota.
type gateChanged struct {
	Name string `json:"name"`
	Done string `json:"done"`           // the past participle: created, updated, unchanged, …
	Note string `json:"note,omitempty"` // what may not be meant
}

// limitsNothing is the note about a budget or quota that keeps nothing from running.
const limitsNothing = "it limits nothing"

// showChanged says what was done.
func (a *app) showChanged(what string, v gateChanged) error {
	return a.show(v, func(p *page) {
		p.say("%s %s %s", what, v.Name, v.Done)
		if v.Note != "" {
			p.say("note: %s", v.Note)
		}
	})
}

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

func budgetListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List budgets",
		Long: `ls lists all budgets with what is used of each dimension. QUEUES is in how many queues work waits for a
budget: each partition has one for every lane, kind and set of gates, with any number of executions in it;
gate ls counts those.`,
		Example: "  flowfabric budget ls",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				found, err := o.Budgets(ctx)
				if err != nil && len(found) == 0 {
					return err
				}
				var rows [][]any
				for _, b := range found {
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
				}
				if shown := a.show(append([]admission.BudgetRecord{}, found...), func(p *page) {
					p.table([]string{"BUDGET", "MODE", "DIMENSION", "USED", "SOFT", "HARD", "HEADROOM", "PERIOD ENDS",
						"QUEUES"}, rows)
				}); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

func budgetShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show one budget: limits, what is used, who used it, and what it keeps from running",
		Long: `show prints a budget with what is used of it in this period, the work that it keeps from running, the
executions that used of it last, and its audit log: who changed, adjusted and reset it.`,
		Example: "  flowfabric budget show acme",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				b, err := o.GetBudget(ctx, args[0])
				if err != nil {
					return err
				}
				v := budgetShown{BudgetRecord: b}
				if v.Blocked, err = blockedBy(ctx, o, flowfabric.BudgetGate(args[0])); err != nil &&
					len(v.Blocked) == 0 {
					err = fmt.Errorf("what it keeps from running is not known: %w", err)
				}
				if shown := a.show(v, v.text); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
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

// budgetFlags are the settings of a budget.
type budgetFlags struct {
	limits, soft, refund, drop  []string
	scope, mode, onHard, onSoft string
	reset                       time.Duration
	strict                      bool
}

func (f *budgetFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.limits, "limit", nil, "hard limit, `dimension=number`, at least 1; may be repeated")
	flags.StringArrayVar(&f.soft, "soft", nil, "soft limit, `dimension=number`; 0 is none; may be repeated")
	flags.StringVar(&f.mode, "mode", "strict", "strict refuses what passes a hard limit, warn only counts it")
	flags.StringVar(&f.onHard, "on-hard", "reject",
		"what becomes of an execution whose report is refused: reject (its handler decides), fail, or block (it waits)")
	flags.StringVar(&f.onSoft, "on-soft", "allow", "allow, or warn: write down when a soft limit is passed")
	flags.DurationVar(&f.reset, "reset", 0, "begin a new period this often, 1s to ten years; 0 is never")
	flags.StringSliceVar(&f.refund, "refund", nil,
		"give back what executions used that end so: failed,cancelled,expired")
	flags.BoolVar(&f.strict, "strict-dimensions", false, "refuse reports of dimensions without limits")
	flags.StringVar(&f.scope, "for", "", "what it is for, `text` for people")
}

// apply puts what was said into a budget; what was not said stays.
func (f *budgetFlags) apply(cmd *cobra.Command, b *admission.Budget) error {
	said := cmd.Flags().Changed
	hard, err := amounts("--limit", f.limits)
	if err != nil {
		return err
	}
	soft, err := amounts("--soft", f.soft)
	if err != nil {
		return err
	}
	for _, dim := range slices.Sorted(maps.Keys(hard)) {
		if hard[dim] == 0 {
			drop := ""
			if cmd.Flags().Lookup("drop") != nil {
				drop = ", or forget its limits with --drop " + dim
			}
			return usage(
				"--limit %s=0 would be no limit: want at least 1; a dimension without a hard limit is left out%s", dim,
				drop)
		}
	}
	b.Limits = maps.Clone(b.Limits)
	if b.Limits == nil {
		b.Limits = map[string]admission.Limit{}
	}
	for _, dim := range f.drop {
		delete(b.Limits, dim)
	}
	for dim, n := range hard {
		b.Limits[dim] = admission.Limit{Hard: n, Soft: b.Limits[dim].Soft}
	}
	for dim, n := range soft {
		b.Limits[dim] = admission.Limit{Hard: b.Limits[dim].Hard, Soft: n}
	}
	if said("mode") {
		if f.mode != "strict" && f.mode != "warn" {
			return usage("--mode %q, want strict or warn", f.mode)
		}
		b.Warn = f.mode == "warn"
	}
	if said("on-soft") {
		if f.onSoft != "allow" && f.onSoft != "warn" {
			return usage("--on-soft %q, want allow or warn", f.onSoft)
		}
		b.WarnSoft = f.onSoft == "warn"
	}
	if said("on-hard") {
		b.OnHard = admission.HardAction(f.onHard)
	}
	if said("reset") {
		b.Reset = flowfabric.Millis(f.reset)
	}
	if said("refund") {
		b.Refund = slices.Compact(slices.Sorted(slices.Values(f.refund)))
	}
	if said("strict-dimensions") {
		b.StrictDimensions = f.strict
	}
	if said("for") {
		b.Scope = f.scope
	}
	return nil
}

func budgetCreateCommand(a *app) *cobra.Command {
	var f budgetFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a budget",
		Long: `create makes a budget. A name is 1..64 letters, digits, _, . and -. Creating what exists with the same
settings changes nothing; with others it is refused, see update. A dimension without a hard limit is left
out, or has a soft one only: it is counted and keeps nothing from running.`,
		Example: `  flowfabric budget create acme --limit tokens=1000000 --soft tokens=800000 --reset 24h --on-hard fail --refund failed,cancelled
  flowfabric budget create watch --limit cost.cents=5000 --mode warn`,
		Args: exactly("NAME"),
	}
	f.add(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		b := admission.Budget{Name: args[0]}
		if err := f.apply(cmd, &b); err != nil {
			return err
		}
		c, err := a.client(ctx, mayBoot)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := admin.New(c).PutBudget(ctx, b, 0, a.why()); err != nil {
			return err
		}
		return a.showChanged("budget", gateChanged{Name: args[0], Done: "created", Note: budgetNote(b)})
	})
	return cmd
}

// ensured is the answer of ensure; note is about what was made.
func ensured(name, note string, made bool) gateChanged {
	if !made {
		return gateChanged{Name: name, Done: "unchanged", Note: "it was there, and stays as it is"}
	}
	return gateChanged{Name: name, Done: "created", Note: note}
}

func budgetEnsureCommand(a *app) *cobra.Command {
	var f budgetFlags
	cmd := &cobra.Command{
		Use:   "ensure NAME",
		Short: "Create a budget if there is none of its name",
		Long: `ensure makes a budget as create does. One that is there stays as it is, whatever it says. So a script may
run it at each deployment: operators own the numbers afterwards, and change them with update.`,
		Example: "  flowfabric budget ensure acme --limit tokens=1000000 --reset 24h",
		Args:    exactly("NAME"),
	}
	f.add(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		b := admission.Budget{Name: args[0]}
		if err := f.apply(cmd, &b); err != nil {
			return err
		}
		c, err := a.client(ctx, mayBoot)
		if err != nil {
			return err
		}
		defer c.Close()
		made, err := admin.New(c).EnsureBudget(ctx, b, a.why())
		if err != nil {
			return err
		}
		return a.showChanged("budget", ensured(args[0], budgetNote(b), made))
	})
	return cmd
}

func budgetUpdateCommand(a *app) *cobra.Command {
	var f budgetFlags
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Change a budget",
		Long: `update changes what is said; what is not said stays as it is. What was used stays used. Work that waits for the
budget is looked at anew. If somebody else changes it at the same time, one of the two is refused. --drop
takes the limits of a dimension away; with --soft it keeps a soft one.`,
		Example: "  flowfabric budget update acme --limit tokens=2000000",
		Args:    exactly("NAME"),
	}
	f.add(cmd)
	unsaidStays(cmd)
	cmd.Flags().StringArrayVar(&f.drop, "drop", nil, "forget the limits of a `dimension`; may be repeated")
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		return a.operate(ctx, func(o *admin.Admin) error {
			b, err := o.GetBudget(ctx, args[0])
			if err != nil {
				return err
			}
			before := b.Budget
			if err := f.apply(cmd, &b.Budget); err != nil {
				return err
			}
			v := gateChanged{Name: args[0], Done: "unchanged", Note: budgetNote(b.Budget)}
			if !sameBudget(before, b.Budget) {
				v.Done = "updated"
				if err := o.PutBudget(ctx, b.Budget, b.Revision, a.why()); err != nil {
					return err
				}
			}
			return a.showChanged("budget", v)
		})
	})
	return cmd
}

// sameBudget tells whether two descriptions say the same.
func sameBudget(a, b admission.Budget) bool {
	return a.Scope == b.Scope && a.Warn == b.Warn && a.OnHard == b.OnHard && a.WarnSoft == b.WarnSoft &&
		a.Reset == b.Reset && a.StrictDimensions == b.StrictDimensions && slices.Equal(a.Refund, b.Refund) &&
		maps.Equal(a.Limits, b.Limits)
}
