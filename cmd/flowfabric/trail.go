package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

func init() { trail.Program = "cli" }

func trailCommand(a *app) *cobra.Command {
	var q admin.TrailQuery
	var since, until, cursor string
	var limit int
	cmd := &cobra.Command{
		Use:   "trail",
		Short: "List who changed what, the newest first",
		Long: `trail prints one line for each change that was made with this command, over the HTTP API, or with the packages client and admin: when,
what, by whom, from where and why. Each partition keeps the newest 10,000 of them or so. What was done to one execution is in its history, too.
--namespace chooses only when it is given. With --json it prints one change per line, and the cursor of the next page as {"cursor":…} on stderr.`,
		Example: `  flowfabric trail --since 24h
  flowfabric trail --on lane --name default
  flowfabric trail --changed-by anna --limit 20`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = a.once(func(ctx context.Context, _ []string) (err error) {
		if q.Since, err = moment("--since", since); err != nil {
			return err
		}
		if q.Until, err = moment("--until", until); err != nil {
			return err
		}
		if cmd.Flags().Changed("namespace") {
			q.Namespace = a.namespace
		}
		return a.operate(ctx, func(o *admin.Admin) error {
			found, err := o.TrailPage(ctx, q, cursor, limit)
			if err != nil {
				return err
			}
			p := &page{colour: a.colour()}
			for _, c := range found.Items {
				if !a.json {
					p.say("%s", c.Text)
				} else if err := a.line(c); err != nil {
					return err
				}
			}
			switch {
			case found.Cursor == "":
			case a.json:
				return a.next(found.Cursor)
			default:
				p.say("more: --cursor %s", found.Cursor)
			}
			_, err = p.WriteTo(a.out)
			return err
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&q.By, "changed-by", "", "only changes by this `name`")
	flags.StringVar(&q.On, "on", "",
		"only changes of this `kind` of thing: execution, executions, flow, lane, schedule, budget, quota, scope, worker, partition or 'token key'")
	flags.StringVar(&q.Name, "name", "", "only changes of what has this id or `name`")
	flags.StringVar(&since, "since", "", "only from this `time` on: 2026-01-31T17:00:00Z, or 2h for two hours ago")
	flags.StringVar(&until, "until", "", "only before this `time`")
	flags.IntVar(&limit, "limit", limits.DefaultListPage, "how many at most, 1 to 1000; 0 is 100")
	flags.StringVar(&cursor, "cursor", "", "go on where the page with this `cursor` ended, with the same flags")
	return cmd
}
