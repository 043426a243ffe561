package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

func auditCommand(a *app) *cobra.Command {
	var repair bool
	var pause time.Duration
	var most int
	cmd := &cobra.Command{
		Use:   "audit [PARTITION...]",
		Short: "Hold every index of the store against the records, and repair it with --repair",
		Long: `audit lists all keys of every primary once and reports every difference between what records say
and what indexes say. It may run while everything else does. With --repair what can be derived is repaired in
the call that finds it; it says what it repaired. Without it nothing is written. It has no time limit unless
--timeout is given. Exit code 1 says that something is wrong (still).`,
		Example: `  flowfabric audit
  flowfabric audit 0-7 --repair
  flowfabric audit --json | jq .kinds`,
	}
	cmd.RunE = a.lasting(func(ctx context.Context, args []string) error {
		return a.operate(ctx, func(o *admin.Admin) (err error) {
			how := admin.Audit{Repair: repair, Pause: pause, MaxFindings: most} // of all partitions
			if len(args) > 0 {
				all, _ := o.Partitions(ctx) // those that do not answer included
				if how.Partitions, err = choose(args, false, uint16(len(all))); err != nil {
					return err
				}
			}
			report, err := o.Audit(ctx, how)
			if err != nil {
				return err
			}
			if err := a.show(report, func(p *page) { auditText(p, report) }); err != nil {
				return err
			}
			if !report.Sound {
				return fmt.Errorf("%w: %s", errUnhealthy, auditSummary(report))
			}
			return nil
		})
	})
	cmd.Flags().BoolVar(&repair, "repair", false, "repair what can be repaired")
	cmd.Flags().DurationVar(&pause, "pause", 0, "rest this long between two calls, on a busy store")
	cmd.Flags().IntVar(&most, "findings", 100, "print at most this `number` of findings; the counts are complete")
	return cmd
}

// unaudited are the partitions that were not audited to their end.
func unaudited(r flowfabric.AuditReport) (list []flowfabric.AuditedPartition) {
	for _, p := range r.Partitions {
		if p.Error != "" {
			list = append(list, p)
		}
	}
	return list
}

func auditedExecutions(r flowfabric.AuditReport) string { return count(sum(r.Executions), "execution") }

func sum[K comparable](counts map[K]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// auditSummary is what an audit found, in a line.
func auditSummary(r flowfabric.AuditReport) string {
	text := fmt.Sprintf("%d repaired, %d repairable, %d lost", r.Repaired, r.Repairable, r.Lost)
	if n := len(unaudited(r)); n > 0 {
		text += fmt.Sprintf(", %s not audited", count(n, "partition"))
	}
	if r.GatesError != "" {
		text += ", budgets and quotas not audited"
	}
	return text
}

func auditText(p *page, r flowfabric.AuditReport) {
	var rows [][]any
	for _, f := range r.Findings {
		what := styled(red, "lost")
		switch {
		case f.Repaired:
			what = styled(green, "repaired")
		case f.Repairable:
			what = styled(yellow, "repairable")
		}
		rows = append(rows, []any{f.Partition, f.Kind, f.Index, f.Member, what, f.Detail})
	}
	if len(rows) > 0 {
		p.table([]string{"PARTITION", "KIND", "INDEX", "MEMBER", "", "DETAIL"}, rows)
	}
	if left := sum(r.Kinds) - len(r.Findings); left > 0 {
		p.say("… and %d more (--findings)", left)
	}
	for _, f := range unaudited(r) {
		p.say("partition %d was not audited: %s", f.Partition, f.Error)
	}
	if r.GatesError != "" {
		p.say("budgets and quotas were not audited to their end: %s", r.GatesError)
	}
	p.say("audited %s with %s: %s", count(len(r.Partitions), "partition"), auditedExecutions(r), auditSummary(r))
}
