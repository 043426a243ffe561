package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

var lsVerb = verb{
	use: "ls", short: "List executions by state, time, failure, lane, kind, tags or holder",
	long: `ls lists executions of all partitions. It prints --limit executions, and the cursor of the next page when
there are more; --limit 0 lists all. --json prints one execution per line, and the cursor as {"cursor":…}
on stderr, so that stdout has executions only.

The order depends on the index, which 'flowfabric index set' keeps and 'flowfabric index show' tells.

With --all in the index, a list of open and ended executions together, as without --state, comes in the
order of creation: the oldest first, with --newest the newest first. --since and --until are times of the
creation there, and only what lies between them is read.

Without it, such a list comes state by state: first those that wait for others in their flow, then held
ones, waiting ones in the order of claims, delayed, suspended, active and ended ones. --newest lists each
state from its other end. --since and --until are times of the end for what ended, and of the creation
for the rest. A list of failed, cancelled, expired or skipped ones alone is in the order of their ends
with the index as without, and reads only what lies between the two times. --flow and --held-by have
lists of their own, which need no index.

With --tag, a list reads only what has the tag if its key is in the index; it is then in the order of
creation, and --since and --until are times of the creation, whatever the states. Without the key in the
index, it reads everything that the other flags leave, and a page that has looked at 10,000 executions
ends, with a cursor.

--state failed lists all executions that ended because their attempts failed. That includes expired ones
whose last attempt timed out (category attempt_timeout). Executions that missed their deadline are under
expired only. --category filters by the reason.`,
	example: `  flowfabric ls --state failed --newest
  flowfabric ls --category attempt_timeout,max_reclaims_exceeded --since 24h
  flowfabric ls --state failed --error 'connection refused' --since 2026-01-31T14:00:00Z --until 2026-01-31T15:00:00Z
  flowfabric ls --kind ship --tag team.region=eu --state waiting,delayed
  flowfabric ls --held-by w1 --all-namespaces
  flowfabric ls --state failed --limit 0 --json | jq -r .id | xargs -n1 flowfabric replay`,
	route: "GET /v1/executions", namespace: "?namespace", all: true,
	flags: slices.Concat(filterFlags, limitFlags, []member{yes("", "tags", "show tags, as --json does")}),
	run: func(ctx context.Context, q *request) error {
		header := []string{"ID", "STATE", "LANE", "KIND", "PRIO", "ATTEMPTS", "CREATED", "DETAIL"}
		if q.said("all-namespaces") {
			header = slices.Insert(header, 2, "NAMESPACE")
		}
		return long(header, func(v admin.Listed) []any {
			if !q.said("tags") && !q.cmd.Flags().Changed("tag") {
				v.Tags = nil
			}
			row := listedRow(v)
			if q.said("all-namespaces") {
				row = slices.Insert(row, 2, any(v.Namespace))
			}
			return row
		})(ctx, q)
	},
}

// next tells with --json where the next page begins, apart from what the page has.
func (a *app) next(cursor string) error {
	return json.NewEncoder(a.err).Encode(struct {
		Cursor string `json:"cursor"`
	}{cursor})
}

// held tells whether an operator keeps it from being handed out.
func held(s flowfabric.State) bool {
	return s.Public == flowfabric.Waiting && s.BlockingReason == codes.Held
}

// shownReason is how much of the message of a failure a line has; 'flowfabric show' has all of it.
const shownReason = 120

// listedRow is a line of the table; what matters of a state is in its last column.
func listedRow(v admin.Listed) []any {
	detail, failed := "", join(": ", string(v.Failure.Category), excerpt(v.Failure.Message, shownReason))
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
		detail = strings.ReplaceAll(v.BlockingReason, "_", " ")
		if !v.Since.IsZero() {
			detail += " since " + instant(v.Since)
		}
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
