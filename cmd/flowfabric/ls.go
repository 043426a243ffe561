package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/ids"
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

// listed is an admin.Listed for --json.
type listed struct {
	ID              flowfabric.ExecutionID `json:"id"`
	State           flowfabric.PublicState `json:"state"`
	Reason          string                 `json:"blocking_reason,omitempty"`
	Namespace       string                 `json:"namespace"`
	Lane            string                 `json:"lane"`
	Kind            string                 `json:"kind"`
	Capabilities    []string               `json:"capabilities,omitempty"`
	Priority        int                    `json:"priority"`
	Attempts        uint32                 `json:"attempts"`
	Retries         int                    `json:"retries"`
	Worker          string                 `json:"worker,omitempty"`
	CreatedAt       time.Time              `json:"created_at,omitzero"`
	StartedAt       time.Time              `json:"started_at,omitzero"`
	ClaimedAt       time.Time              `json:"claimed_at,omitzero"`
	CompletedAt     time.Time              `json:"completed_at,omitzero"`
	DelayUntil      time.Time              `json:"delay_until,omitzero"`
	DeadlineAt      time.Time              `json:"deadline_at,omitzero"`
	SuspendedAt     time.Time              `json:"suspended_at,omitzero"`
	HeldAt          time.Time              `json:"held_at,omitzero"`
	PurgeAt         time.Time              `json:"purge_at,omitzero"`
	FailureCategory string                 `json:"failure_category,omitempty"`
	FailureReason   string                 `json:"failure_reason,omitempty"`
	Tags            map[string]string      `json:"tags,omitempty"`
	// what is wrong with the entry; 'flowfabric audit' tells more
	Drift string `json:"drift,omitempty"`
}

func newListed(x admin.Listed) listed {
	v := listed{ID: x.ID, State: x.State.Public, Namespace: x.Route.Namespace, Lane: x.Route.Lane, Kind: x.Route.Kind,
		Capabilities: x.Route.Capabilities, Priority: x.Priority, Attempts: x.Attempts, Retries: x.Retries,
		CreatedAt: utc(x.CreatedAt), StartedAt: utc(x.StartedAt), ClaimedAt: utc(x.ClaimedAt),
		CompletedAt: utc(x.EndedAt), DelayUntil: utc(x.DelayUntil), DeadlineAt: utc(x.DeadlineAt),
		SuspendedAt: utc(x.Since), PurgeAt: utc(x.PurgeAt),
		FailureCategory: x.Failure.Category, FailureReason: x.Failure.Message, Tags: x.Tags, Drift: x.Drift}
	v.Reason = x.State.BlockingReason
	if v.held() {
		v.HeldAt, v.SuspendedAt = v.SuspendedAt, time.Time{}
	}
	if x.State.Public == flowfabric.Active {
		v.Worker = ids.Worker(x.Session)
	}
	return v
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
			v := newListed(x)
			if a.json {
				if err := a.line(v); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, v.row())
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
func (v listed) held() bool { return v.State == flowfabric.Waiting && v.Reason == heldReason }

// heldReason is the blocking reason of a held execution.
const heldReason = "held_by_operator"

// shownReason is how much of the message of a failure a line has; 'flowfabric show' has all of it.
const shownReason = 120

// row is a line of the table; what matters of a state is in its last column.
func (v listed) row() []any {
	detail, failed := "", join(": ", v.FailureCategory, excerpt(v.FailureReason, shownReason))
	switch {
	case v.Drift != "":
		detail = "damaged: " + v.Drift
	case v.held():
		detail = "held by an operator"
		if !v.HeldAt.IsZero() {
			detail += " since " + instant(v.HeldAt)
		}
	case v.State == flowfabric.Active:
		detail = "on " + v.Worker
	case v.State == flowfabric.Delayed:
		detail = "until " + instant(v.DelayUntil)
		if failed != "" {
			detail += ", after " + failed
		}
	case v.State == flowfabric.Suspended:
		detail = strings.ReplaceAll(v.Reason, "_", " ") + " since " + instant(v.SuspendedAt)
	case !v.CompletedAt.IsZero():
		detail = join(" ", failed, "at "+instant(v.CompletedAt))
	case failed != "":
		detail = "after " + failed
	}
	for _, k := range slices.Sorted(maps.Keys(v.Tags)) {
		detail = join(" ", detail, k+"="+v.Tags[k])
	}
	state := styled(stateStyle(v.State), v.State)
	if v.held() {
		state = styled(yellow, "held")
	}
	return []any{v.ID.String(), state, v.Lane, v.Kind, v.Priority, v.Attempts, instant(v.CreatedAt), detail}
}
