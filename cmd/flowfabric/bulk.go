package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
)

func bulkCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bulk",
		Short: "Replay, cancel, purge, run, hold or reprioritise everything that a filter matches",
		Long: `bulk applies one action to all executions that the flags match, as ls lists them. --dry-run only
counts them, and without --yes nothing is changed. Executions that changed meanwhile, so that the action
no longer applies, are skipped. Executions that were created after the start are left out. An interrupted
run prints a cursor; --cursor goes on from there. Repeating the whole run is safe too.`,
		Example: `  flowfabric bulk replay --category handler_error --error 'model is overloaded' --since 2h --dry-run
  flowfabric bulk replay --category handler_error --error 'model is overloaded' --since 2h --yes --by anna
  flowfabric bulk replay --shape 5d2f0a9c17be4e83 --yes --by anna       # a group of flowfabric failures
  flowfabric bulk run-now --kind ship --yes
  flowfabric bulk priority 9000 --tag team.region=eu --yes`,
	}
	cmd.AddCommand(a.commands(bulkVerbs)...)
	return cmd
}

var bulkVerbs = []verb{
	bulk("replay", "Replay failed and expired executions", "replay",
		yes("from_scratch", "from-scratch", "forget the recorded steps"),
		text("from_step", "from-step",
			"forget the step of this `name` and everything recorded after it; an execution without the step fails"),
		yes("force", "force", "also completed executions")),
	bulk("purge", "Purge ended executions", "purge",
		millis("keep_ms", "keep", "for how long ids stay taken, 24h at least (default 24h)")),
	bulk("cancel", "Cancel executions that have not ended", "cancel"),
	bulk("run-now", "Run delayed executions now", "run_now"),
	bulk("hold", "Hold waiting executions", "hold"),
	bulk("unhold", "Unhold held executions", "unhold"),
	bulk("priority PRIORITY", "Change the priority of executions that have not ended", "priority"),
}

// bulk is the verb of an action.
func bulk(use, short, action string, flags ...member) verb {
	v := verb{use: use, short: short, lasting: true, route: "POST /v1/executions:bulk", namespace: "?namespace",
		all:     true,
		example: "  flowfabric bulk " + use + " --lane batch --dry-run",
		args:    map[string]member{"PRIORITY": decimal("priority", "a number")},
		flags: slices.Concat(flags, filterFlags, []member{yes("dry_run", "dry-run", "only count the matches"),
			yes("", "yes", "do it"), whole("", "limit", "how many at most; `0` is all"),
			text("cursor", "cursor", "go on where the run with this `cursor` ended, with the same filter"),
			whole("concurrency", "concurrency", "calls at a time, 1..256 (default 32)")}),
		run: func(ctx context.Context, q *request) error {
			q.body["action"] = action
			return q.bulk(ctx)
		}}
	switch action {
	case "replay":
		v.exclusive = [][]string{{"from-scratch", "from-step"}}
	case "priority":
		v.example = "  flowfabric bulk priority 9000 --lane batch --dry-run"
	}
	return v
}

// bulkPage is how many executions one request is about at most, firstPage the first one. A request takes about a
// second: what is stopped ends it, for bulkGrace at most, so that it can say what was done and where to go on.
const (
	bulkPage, firstPage = 1000, 100
	bulkGrace           = 2 * time.Second
)

// ending is a context that goes on for a while when another one ends.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(bulkGrace, cancel) })
	return later, func() { stop(); cancel() }
}

// bulk makes request after request until there is no more to do.
func (q *request) bulk(ctx context.Context) error {
	a, dry := q.app, q.said("dry-run")
	if !q.said("yes") && !dry {
		return usage("nothing was changed: bulk %s needs --dry-run or --yes", q.cmd.Name())
	}
	left := q.number("limit")
	if left < 0 {
		return usage("--limit is %d, want 0 or more", left)
	}
	all, err := admin.BulkResult{}, error(nil)
	doing, cancel := ending(ctx)
	defer cancel()
	for limited, page := left > 0, firstPage; ; {
		q.body["limit"] = page
		if limited {
			q.body["limit"] = min(left, page)
		}
		var r admin.BulkResult
		began := time.Now()
		if err = q.do(doing, &r); err != nil {
			if ended := ctx.Err(); ended != nil {
				err = fmt.Errorf("bulk %s: %w", q.cmd.Name(), ended)
			}
			break
		}
		if time.Since(began) < time.Second/2 {
			page = min(2*page, bulkPage)
		}
		all.Matched, all.Done, all.Skipped, all.Failed = all.Matched+r.Matched, all.Done+r.Done, all.Skipped+r.Skipped,
			all.Failed+r.Failed
		all.Texts = append(all.Texts, r.Texts[:min(len(r.Texts), 10-len(all.Texts))]...)
		all.Cursor, all.DryRun = r.Cursor, r.DryRun
		if !a.json && r.Matched > 0 {
			fmt.Fprintf(a.err, "%d matched, %d done, %d skipped, %d failed\n", all.Matched, all.Done, all.Skipped,
				all.Failed)
		}
		if left -= r.Matched; r.Cursor == "" || limited && left <= 0 {
			break
		}
		q.body["cursor"] = r.Cursor
		if ended := ctx.Err(); ended != nil {
			err = fmt.Errorf("bulk %s: %w", q.cmd.Name(), ended)
			break
		}
	}
	if err != nil && all.Matched == 0 {
		return err
	}
	shown := a.show(all, func(p *page) {
		if dry {
			p.say("%s would be changed", count(all.Matched, "execution"))
		} else {
			p.say("%s changed, %d skipped, %d failed", count(all.Done, "execution"), all.Skipped, all.Failed)
		}
		for _, text := range all.Texts {
			p.say("  %s", text)
		}
		if all.Cursor != "" {
			p.say("more: --cursor %s", all.Cursor)
		}
	})
	if err == nil && all.Failed > 0 {
		err = fmt.Errorf("%s failed", count(all.Failed, "execution"))
	}
	return cmp.Or(err, shown)
}
