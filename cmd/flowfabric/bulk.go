package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
)

func bulkCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bulk",
		Short: "Replay, cancel, purge, run, hold or reprioritise everything that a filter matches",
		Long: `bulk does one thing to all executions that the flags match, as ls lists them. --dry-run only counts them, and without --yes
nothing is changed. What changed meanwhile, so that the action does not apply any more, is skipped. What was created after the start is left
out. If it is stopped it prints a cursor; --cursor goes on from there. Repeating all of it is safe too.`,
		Example: `  flowfabric bulk replay --category handler_error --error 'model is overloaded' --since 2h --dry-run
  flowfabric bulk replay --category handler_error --error 'model is overloaded' --since 2h --yes --by anna
  flowfabric bulk run-now --kind ship --yes
  flowfabric bulk priority 9000 --tag team.region=eu --yes`,
	}
	var force, drop bool
	var from string
	var keep time.Duration
	replay := bulkAction(a, "replay", "Replay what failed or expired", nil, func([]string) (admin.BulkAction, error) {
		return admin.BulkReplay(admin.Replay{FromScratch: drop, FromStep: from, Force: force}), nil
	})
	replay.Flags().BoolVar(&drop, "from-scratch", false, "forget the recorded steps")
	replay.Flags().StringVar(&from, "from-step", "",
		"forget the step of this `name` and what was recorded after it; what has no such step fails")
	replay.MarkFlagsMutuallyExclusive("from-scratch", "from-step")
	replay.Flags().BoolVar(&force, "force", false, "also what completed")
	purge := bulkAction(a, "purge", "Purge what ended", nil, func([]string) (admin.BulkAction, error) {
		return admin.BulkPurge(keep), nil
	})
	purge.Flags().DurationVar(&keep, "keep", 0, "for how long ids stay taken, 24h at least (default 24h)")
	cmd.AddCommand(replay, purge,
		bulkAction(a, "cancel", "Cancel what has not ended", nil, func([]string) (admin.BulkAction, error) {
			return admin.BulkCancel(), nil
		}),
		bulkAction(a, "run-now", "Run what is delayed", nil, func([]string) (admin.BulkAction, error) {
			return admin.BulkRunNow(), nil
		}),
		bulkAction(a, "hold", "Keep what waits from being handed out", nil, func([]string) (admin.BulkAction, error) {
			return admin.BulkHold(), nil
		}),
		bulkAction(a, "unhold", "Let what is held be handed out", nil, func([]string) (admin.BulkAction, error) {
			return admin.BulkUnhold(), nil
		}),
		bulkAction(a, "priority", "Change the priority of what has not ended", []string{"PRIORITY"},
			func(args []string) (admin.BulkAction, error) {
				n, err := strconv.Atoi(args[0])
				if err != nil {
					return admin.BulkAction{}, usage("PRIORITY %q, want a number", args[0])
				}
				return admin.BulkPriority(n), nil
			}))
	return cmd
}

// bulkAction is one subcommand.
func bulkAction(a *app, name, short string, names []string,
	make func(args []string) (admin.BulkAction, error)) *cobra.Command {
	var f filterFlags
	var o admin.BulkOptions
	var yes bool
	use := name
	for _, n := range names {
		use += " " + n
	}
	cmd := &cobra.Command{Use: use, Short: short, Args: exactly(names...),
		Example: "  flowfabric bulk " + use + " --lane batch --dry-run"}
	if name == "priority" {
		cmd.Example = "  flowfabric bulk priority 9000 --lane batch --dry-run"
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.DryRun, "dry-run", false, "only count what matches")
	flags.BoolVar(&yes, "yes", false, "do it")
	flags.IntVar(&o.Limit, "limit", 0, "how many at most; `0` is all")
	flags.StringVar(&o.Cursor, "cursor", "", "go on where the run with this `cursor` ended, with the same filter")
	flags.IntVar(&o.Concurrency, "concurrency", 0, "calls at a time, 1..256 (default 32)")
	cmd.RunE = a.lasting(func(ctx context.Context, args []string) error {
		action, err := make(args)
		if err != nil {
			return err
		}
		filter, err := f.filter(cmd)
		if err != nil {
			return err
		}
		if !yes && !o.DryRun {
			return usage("nothing was changed: bulk %s needs --dry-run or --yes", name)
		}
		o.Progress = func(r admin.BulkResult) {
			if !a.json {
				fmt.Fprintf(a.err, "%d matched, %d done, %d skipped, %d failed\n", r.Matched, r.Done, r.Skipped,
					r.Failed)
			}
		}
		return a.operate(ctx, func(ad *admin.Admin) error {
			r, err := ad.Bulk(ctx, filter, action, o, a.why())
			if err != nil && r.Matched == 0 {
				return err
			}
			shown := a.show(r, func(p *page) {
				if o.DryRun {
					p.say("%s would be changed", count(r.Matched, "execution"))
				} else {
					p.say("%s changed, %d skipped, %d failed", count(r.Done, "execution"), r.Skipped, r.Failed)
				}
				for _, text := range r.Texts {
					p.say("  %s", text)
				}
				if r.Cursor != "" {
					p.say("more: --cursor %s", r.Cursor)
				}
			})
			if err == nil && r.Failed > 0 {
				err = fmt.Errorf("%s failed", count(r.Failed, "execution"))
			}
			if err != nil {
				return err
			}
			return shown
		})
	})
	return cmd
}
