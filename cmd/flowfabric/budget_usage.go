package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

func breachText(b admission.Breach) string {
	kind := "soft"
	if b.Hard {
		kind = "hard"
	}
	return fmt.Sprintf("%s is at %d, its %s limit is %d", b.Dimension, b.Used, kind, b.Limit)
}

func budgetReportCommand(a *app) *cobra.Command {
	var key, execution string
	cmd := &cobra.Command{
		Use:   "report NAME DIMENSION=AMOUNT…",
		Short: "Report what was used of a budget",
		Long: `report adds to what was used of a budget, all dimensions or none. --key names the report: repeated with
the same key within a day it is counted once, and says that it was counted before. When it would pass a hard limit nothing is counted, and the
exit code is 4; a budget that only warns counts it. With --execution it is in the ledger of that one.`,
		Example: "  flowfabric budget report acme tokens=1500 cost.cents=3 --key invoice-17",
		Args:    atLeast("NAME", "DIMENSION=AMOUNT"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			u := admission.Usage{Budget: args[0], Key: key}
			var err error
			if u.Amounts, err = amounts("report", args[1:]); err != nil {
				return err
			}
			if execution != "" {
				if u.Execution, err = executionID(execution); err != nil {
					return err
				}
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				r, err := o.ReportUsage(ctx, u)
				if err != nil {
					return err
				}
				var said []string
				for _, b := range r.Breaches {
					said = append(said, breachText(b))
				}
				if shown := a.show(r, func(p *page) {
					counted := "counted"
					if r.Replayed {
						counted = "counted before"
					}
					if r.Applied {
						p.say("%s in budget %s: %s", counted, args[0],
							strings.Join(append([]string{amountsText(u.Amounts)}, said...), "; "))
					}
				}); shown != nil {
					return shown
				}
				if !r.Applied {
					return fmt.Errorf("report to budget %q: %w: %s", args[0], flowfabric.ErrOverBudget,
						strings.Join(said, "; "))
				}
				return nil
			})
		}),
	}
	cmd.Flags().StringVar(&key, "key", "", "`name` of the report, required: at most 128 bytes without spaces")
	cmd.Flags().StringVar(&execution, "execution", "", "the `id` of the execution that used it")
	_ = cmd.MarkFlagRequired("key")
	return cmd
}

// atLeast wants all of the named arguments, of which the last may be repeated.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage("%s: %s is missing; usage: %s", cmd.Name(), names[len(args)], cmd.UseLine())
		}
		return nil
	}
}

func budgetAdjustCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adjust NAME DIMENSION=AMOUNT…",
		Short: "Correct what was used of a budget, up or down",
		Long: `adjust adds to what was used in this period, or takes from it with a negative amount; nothing gets below
zero, and no limit is asked. Who and why is in the budget's audit log. Repeated it adds again.`,
		Example: "  flowfabric budget adjust acme tokens=-500 --reason 'counted twice'",
		Args:    atLeast("NAME", "DIMENSION=AMOUNT"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			by, err := amounts("adjust", args[1:])
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				used, err := o.AdjustBudget(ctx, args[0], by, a.why())
				if err != nil {
					return err
				}
				return a.show(struct {
					Name string           `json:"name"`
					Done string           `json:"done"`
					Used map[string]int64 `json:"used"`
				}{args[0], "adjusted", used},
					func(p *page) { p.say("budget %s adjusted, used now: %s", args[0], amountsText(used)) })
			})
		}),
	}
	return cmd
}

func budgetResetCommand(a *app) *cobra.Command {
	var move bool
	cmd := &cobra.Command{
		Use:     "reset NAME",
		Short:   "Begin a new period of a budget now",
		Long:    "reset begins a new period: nothing is used of the budget. The next one begins when it would have, unless --move.",
		Example: "  flowfabric budget reset acme",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				period, left, err := o.ResetBudget(ctx, args[0], move, a.why())
				if err != nil {
					return err
				}
				var ends time.Time
				until := "it does not end by itself"
				if left > 0 {
					ends = utc(time.Now().Add(left))
					until = "it ends at " + instant(ends)
				}
				return a.show(struct {
					Name   string    `json:"name"`
					Done   string    `json:"done"`
					Period uint64    `json:"period"`
					Ends   time.Time `json:"period_ends_at,omitzero"`
				}{args[0], "reset", period, ends},
					func(p *page) { p.say("budget %s reset: period %d began, %s", args[0], period, until) })
			})
		}),
	}
	cmd.Flags().BoolVar(&move, "move", false, "the next period begins a whole interval from now")
	return cmd
}

func budgetRefundCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "refund NAME ID",
		Short: "Give back what an execution used of a budget",
		Long: `refund gives back what an execution reported to a budget in this period. What it reported in earlier
periods is gone with them. Refunding twice gives nothing back the second time.`,
		Example: "  flowfabric budget refund acme 3-0197f3a0-…",
		Args:    exactly("NAME", "ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[1])
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				returned, err := o.RefundBudget(ctx, args[0], id, a.why())
				if err != nil {
					return err
				}
				done := "refunded"
				if !returned {
					done = "nothing to refund"
				}
				return a.show(gateChanged{Name: args[0], Done: done},
					func(p *page) { p.say("budget %s: %s", args[0], done) })
			})
		}),
	}
}

func budgetRemoveCommand(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Forget a budget",
		Long: `rm forgets a budget, what was used of it and its audit log. Executions that have it as a gate wait; they go on
within 30 s after one of that name is made again. One that is attached to scopes (gate ls) is refused:
detach it first, or what is created there waits too.`,
		Example: "  flowfabric budget rm acme",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.removeGate(ctx, flowfabric.BudgetGate(args[0]), force, func(o *admin.Admin) error {
				removed, err := o.RemoveBudget(ctx, args[0], a.why())
				if err == nil && !removed {
					err = fmt.Errorf("remove budget %q: %w", args[0], denied.NoBudget)
				}
				return err
			})
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also one that is attached to scopes")
	return cmd
}
