package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

func checkCommand(a *app) *cobra.Command {
	return a.checking("check [PARTITION...]", "Compare every index of the store with the records",
		`check lists all keys of every primary once and reports every difference between what records say
and what indexes say. It may run while everything else does, and writes nothing. It has no time limit unless
--timeout is given. Exit code 1 says that something is wrong.`,
		`  flowfabric check
  flowfabric check 0-7
  flowfabric check --json | jq .kinds`, (*admin.Admin).Check)
}

func repairCommand(a *app) *cobra.Command {
	return a.checking("repair [PARTITION...]", "Check the store, and repair what can be repaired",
		`repair does what check does, and repairs what can be derived from the records in the call that finds
it. It says what it repaired. It may run while everything else does. It has no time limit unless --timeout is
given. Exit code 1 says that something is still wrong.`,
		`  flowfabric repair
  flowfabric repair 0-7 --pause 5ms`, (*admin.Admin).Repair)
}

// checking is a command that looks at every index.
func (a *app) checking(use, short, long, example string, look func(*admin.Admin, context.Context,
	admin.CheckOptions) (flowfabric.CheckReport, error)) *cobra.Command {
	var how admin.CheckOptions
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example}
	cmd.RunE = a.lasting(func(ctx context.Context, args []string) error {
		return a.operate(ctx, func(o *admin.Admin) (err error) {
			if len(args) > 0 { // else all partitions
				all, _ := o.Partitions(ctx) // those that do not answer included
				if how.Partitions, err = choose(args, false, uint16(len(all))); err != nil {
					return err
				}
			}
			report, err := look(o, ctx, how)
			if err != nil {
				return err
			}
			if err := a.show(report, func(p *page) { checkText(p, report) }); err != nil {
				return err
			}
			if !report.Sound {
				return fmt.Errorf("%w: %s", errUnhealthy, checkSummary(report))
			}
			return nil
		})
	})
	cmd.Flags().DurationVar(&how.Pause, "pause", 0, "rest this long between two calls, on a busy store")
	cmd.Flags().IntVar(&how.MaxFindings, "findings", 100,
		"print at most this `number` of findings; the counts are complete")
	return cmd
}

// unchecked are the partitions that were not checked to their end.
func unchecked(r flowfabric.CheckReport) (list []flowfabric.CheckedPartition) {
	for _, p := range r.Partitions {
		if p.Error != "" {
			list = append(list, p)
		}
	}
	return list
}

func checkedExecutions(r flowfabric.CheckReport) string { return count(sum(r.Executions), "execution") }

func sum[K comparable](counts map[K]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// checkSummary is what a check found, in a line.
func checkSummary(r flowfabric.CheckReport) string {
	text := fmt.Sprintf("%d repaired, %d repairable, %d lost", r.Repaired, r.Repairable, r.Lost)
	if n := len(unchecked(r)); n > 0 {
		text += fmt.Sprintf(", %s not checked", count(n, "partition"))
	}
	if r.GatesError != "" {
		text += ", gates not checked"
	}
	return text
}

func checkText(p *page, r flowfabric.CheckReport) {
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
	for _, f := range unchecked(r) {
		p.say("partition %d was not checked: %s", f.Partition, f.Error)
	}
	if r.GatesError != "" {
		p.say("gates were not checked to their end: %s", r.GatesError)
	}
	p.say("checked %s with %s: %s", count(len(r.Partitions), "partition"), checkedExecutions(r), checkSummary(r))
}
