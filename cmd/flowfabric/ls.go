package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

func lsCommand(a *app) *cobra.Command {
	var x filterFlags
	var limit int
	var cursor string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List executions by state, time, failure, lane, kind, tags or holder",
		Long: `ls lists executions of all partitions: those that wait for others in their flow, those that an
operator holds, waiting ones in the order of claims, then delayed, suspended, active and ended ones. It prints --limit of them, and the
cursor of the next page when there are more; --limit 0 lists all. With --json it prints one execution per line, and the cursor as {"cursor":…} on
stderr, so that what reads the lines meets executions only.

--state failed lists all that ended because its attempts failed. That includes what ended as expired because its last attempt timed
out (category attempt_timeout); what ran into its deadline is under expired only. --category chooses by the reason.`,
		Example: `  flowfabric ls --state failed --newest
  flowfabric ls --category attempt_timeout,max_reclaims_exceeded --since 24h
  flowfabric ls --state failed --error 'connection refused' --since 2026-01-31T14:00:00Z --until 2026-01-31T15:00:00Z
  flowfabric ls --kind ship --tag team.region=eu --state waiting,delayed
  flowfabric ls --held-by w1 --all-namespaces
  flowfabric ls --state failed --limit 0 --json | jq -r .id | xargs -n1 flowfabric replay`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = a.once(func(ctx context.Context, _ []string) error {
		f, err := x.filter(cmd)
		if err != nil {
			return err
		}
		if limit < 0 {
			return usage("--limit is %d, want 0 or more", limit)
		}
		f.WithReasons = true
		return a.operate(ctx, func(o *admin.Admin) error { return a.list(ctx, o, f, cursor, limit) })
	})
	x.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&x.f.WithTags, "tags", false, "show tags")
	flags.IntVar(&limit, "limit", limits.DefaultListPage, "how many at most; `0` is all")
	flags.StringVar(&cursor, "cursor", "", "go on where the page with this `cursor` ended, with the same filter")
	return cmd
}

// list prints page after page, so that a long listing begins at once and needs no memory.
func (a *app) list(ctx context.Context, o *admin.Admin, f admin.Filter, cursor string, limit int) error {
	p := &page{colour: a.colour()}
	var rows [][]any
	for left := limit; ; {
		size := limits.MaxListPage
		if limit > 0 {
			size = min(left, size)
		}
		found, err := o.ListPage(ctx, f, cursor, size)
		if err != nil {
			return err
		}
		for _, x := range found.Items {
			if a.json {
				if err := a.line(x); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, listedRow(x))
		}
		cursor = found.Cursor
		if left -= len(found.Items); cursor == "" || limit > 0 && left <= 0 {
			break
		}
	}
	if a.json {
		if cursor == "" {
			return nil
		}
		return a.next(cursor)
	}
	header := []string{"ID", "STATE", "LANE", "KIND", "PRIO", "ATTEMPTS", "CREATED", "DETAIL"}
	p.table(header, rows)
	if cursor != "" {
		p.say("more: --cursor %s", cursor)
	}
	_, err := p.WriteTo(a.out)
	return err
}

// next tells with --json where the next page begins, apart from what the page has.
func (a *app) next(cursor string) error {
	return json.NewEncoder(a.err).Encode(struct {
		Cursor string `json:"cursor"`
	}{cursor})
}

// held tells whether an operator keeps it from being handed out.
func held(s flowfabric.State) bool {
	return s.Public == flowfabric.Waiting && s.BlockingReason == heldReason
}

// heldReason is the blocking reason of a held execution.
const heldReason = "held_by_operator"

// shownReason is how much of the message of a failure a line has; 'flowfabric show' has all of it.
const shownReason = 120

// listedRow is a line of the table; what matters of a state is in its last column.
func listedRow(v admin.Listed) []any {
	detail, failed := "", join(": ", v.Failure.Category, excerpt(v.Failure.Message, shownReason))
	switch {
	case v.Drift != "":
		detail = "damaged: " + v.Drift
	case held(v.State):
		detail = "held by an operator"
		if !v.Since.IsZero() {
			detail += " since " + instant(v.Since)
		}
	case v.Public == flowfabric.Active:
		detail = "on " + v.Worker
	case v.Public == flowfabric.Delayed:
		detail = "until " + instant(v.DelayUntil)
		if failed != "" {
			detail += ", after " + failed
		}
	case v.Public == flowfabric.Suspended:
		detail = strings.ReplaceAll(v.BlockingReason, "_", " ") + " since " + instant(v.Since)
	case !v.EndedAt.IsZero():
		detail = join(" ", failed, "at "+instant(v.EndedAt))
	case failed != "":
		detail = "after " + failed
	}
	for _, k := range slices.Sorted(maps.Keys(v.Tags)) {
		detail = join(" ", detail, k+"="+v.Tags[k])
	}
	state := styled(stateStyle(v.Public), v.Public)
	if held(v.State) {
		state = styled(yellow, "held")
	}
	return []any{v.ID.String(), state, v.Lane, v.Kind, v.Priority, v.Attempts, instant(v.CreatedAt), detail}
}
