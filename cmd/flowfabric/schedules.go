package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

var scheduleVerbs = []verb{
	{
		use: "list", short: "List schedules", example: "  flowfabric schedules list",
		route: "GET /v1/schedules",
		run: rows([]string{"NAME", "STATE", "WHEN", "KIND", "LANE", "NEXT", "FIRED", "MISSED"},
			func(s admin.ScheduleInfo) []any {
				return []any{s.Name, scheduleState(s), s.When, submits(s), s.Lane, instant(s.Next), firings(s),
					s.Missed}
			}),
	},
	{
		use: "show NAME", aliases: []string{"next"}, short: "Show one schedule and when it is due next",
		long: `show prints a schedule with its counts, and its next instants. For a paused schedule these are the
instants that would come if it were resumed now.`,
		example: "  flowfabric schedules next nightly --next 10",
		route:   "GET /v1/schedules/{NAME}",
		flags:   []member{whole("?next", "next", "how many of the next instants, `0..1000`").or("5")},
		show:    told(func(p *page, _ *request, s admin.ScheduleInfo) { scheduleText(p, s) }),
	},
	{
		use: "put NAME", short: "Create or change a schedule",
		long: `put makes or replaces a schedule, which submits an execution at every instant of a cron expression
or of a fixed rate. The command declares the whole schedule: a flag that is left out gets its default,
whatever the schedule had before. Putting the same schedule again changes nothing.`,
		example: `  flowfabric schedules put nightly --kind report --cron '0 3 * * *' --zone Europe/Berlin \
      --input '{"full":true}'
  flowfabric schedules put poll --kind poll --every 30s --overlap skip --jitter 5s
  flowfabric schedules put trial --kind remind --every 24h --max-runs 14 --first-run-now`,
		route: "PUT /v1/schedules/{NAME}", namespace: "namespace", first: mayBoot,
		flags: slices.Concat([]member{text("kind", "kind", "`kind` of work, required")}, timesFlags, []member{
			yes("first_run_now", "first-run-now", "if it is new, fire once at once as well"),
			yes("if_new", "if-new", "refuse to change a schedule that exists"),
		}, inputFlags("input: `JSON`, @file, or - for stdin"), startFlags),
		exclusive: [][]string{{"cron", "every"}}, needed: [][]string{{"cron", "every"}, {"kind"}},
		run: func(ctx context.Context, q *request) error {
			if err := q.input(); err != nil {
				return err
			}
			return setSchedule(ctx, q, "put")
		},
	},
	{
		use: "edit NAME", short: "Change when a schedule runs, and keep what it submits",
		long: `edit gives a schedule other times. What it submits stays as it is: kind, lane, gates and so on, and its
input unless one is given. A pause and the counts stay, too. The command says all times: a flag that is
left out gets its default, whatever the schedule had before. A schedule of a flow is changed where it is
declared. The owner of a schedule puts back what is changed here when it declares it again.`,
		example: `  flowfabric schedules edit nightly --cron '30 4 * * *' --zone Europe/Berlin --reason 'after the backup'
  flowfabric schedules edit poll --every 5m --overlap skip`,
		route: "POST /v1/schedules/{NAME}:edit",
		flags: slices.Concat(timesFlags,
			inputFlags("another input: `JSON`, @file, or - for stdin (default: the one that it has)")),
		exclusive: [][]string{{"cron", "every"}}, needed: [][]string{{"cron", "every"}},
		run: func(ctx context.Context, q *request) error {
			if q.cmd.Flags().Changed("input") {
				if err := q.input(); err != nil {
					return err
				}
			}
			return setSchedule(ctx, q, "edited")
		},
	},
	{
		use: "pause NAME", short: "Keep a schedule from firing",
		long:    `pause keeps a schedule from firing until it is resumed. Work that it submitted goes on.`,
		example: "  flowfabric schedules pause nightly",
		route:   "POST /v1/schedules/{NAME}:pause", done: "paused",
	},
	{
		use: "resume NAME", short: "End a pause",
		long:    `resume ends a pause. Instants that passed during the pause are not fired; they count as missed.`,
		example: "  flowfabric schedules resume nightly",
		route:   "POST /v1/schedules/{NAME}:resume", done: "resumed",
	},
	{
		use: "run NAME", short: "Submit the work of a schedule now",
		long: `run submits once what the schedule submits, now. The schedule stays as it is: its counts, its next
instant, and a pause. Every call submits another execution, or flow.`,
		example: "  flowfabric schedules run nightly --reason 'the disk was full at night'",
		route:   "POST /v1/schedules/{NAME}:run",
		show: told(func(p *page, q *request, r apiv1.ScheduleRun) {
			p.say("%s: submitted %s", q.args[0], ranAs(r))
		}),
	},
	{
		use: "backfill NAME", short: "Submit the work of a schedule for instants that have passed",
		long: `backfill submits what the schedule submits for each of its instants in a range, both ends included: at
most 1,000, and for flows 10,000 nodes in all. They start at once and not in turn. Each instant has an id of its
own: one that was submitted before, by the schedule or by a backfill, is left alone, so the command may be
repeated. A flow is another one once its schedule was changed.`,
		example: `  flowfabric schedules backfill nightly --from 24h
  flowfabric schedules backfill hourly --from 2026-05-01T00:00:00Z --to 2026-05-01T12:00:00Z`,
		route: "POST /v1/schedules/{NAME}:backfill",
		flags: []member{
			since("from", "from", "a `time`, required: 2026-01-31T17:00:00Z, or 2h for two hours ago"),
			since("to", "to", "a `time` that is not in the future").or("now")},
		needed: [][]string{{"from"}},
		show:   told(func(p *page, q *request, b apiv1.Backfilled) { backfillText(p, q.args[0], b) }),
	},
	{
		use: "remove NAME", short: "Forget a schedule",
		long:    `remove deletes a schedule with its counts. Work that it submitted stays and goes on.`,
		example: "  flowfabric schedules remove nightly",
		route:   "DELETE /v1/schedules/{NAME}", done: "removed",
	},
}

// timesFlags say when a schedule runs.
var timesFlags = []member{
	text("cron", "cron", "cron `expression` of five fields, or six with seconds first; @hourly, @daily …"),
	text("zone", "zone", "time `zone` of --cron (default UTC)"),
	millis("every_ms", "every", "fixed rate, 1s to ten years"),
	timed("anchor", "anchor", "a `time` (RFC 3339) that --every counts from (default 1970-01-01T00:00:00Z)"),
	timed("until", "until", "a `time` (RFC 3339) after which no instant fires (default without end)"),
	whole("max_runs", "max-runs",
		"end it after so many executions, counted since its creation (default without end)"),
	millis("jitter_ms", "jitter",
		"start each execution up to so much later, 0..24h, at most halfway to the next instant"),
	text("catch_up", "catch-up", "policy for missed instants: last (default), skip or all"),
	text("overlap", "overlap", "policy while the previous execution has not ended: allow (default) or skip"),
}

// setSchedule changes a schedule and tells its revision and when it is due.
func setSchedule(ctx context.Context, q *request, done string) error {
	var set client.ScheduleSet
	if err := q.do(ctx, &set); err != nil {
		return err
	}
	return q.app.show(set, func(p *page) {
		p.say("schedule %s, revision %d (%s); next %s", q.args[0], set.Revision, outcome(done, set.Already, nil),
			cmp.Or(instant(set.Next), "never, it is over"))
	})
}

// state is a word for people.
func scheduleState(v admin.ScheduleInfo) cell {
	switch {
	case v.Error != "":
		return styled(red, "unreadable")
	case v.Paused:
		return styled(yellow, "paused")
	case v.Next.IsZero():
		return styled(faint, "over ("+v.Ended+")")
	}
	return styled(normal, "active")
}

// submits is the kind of what an instant submits.
func submits(v admin.ScheduleInfo) string {
	if v.Nodes == 0 {
		return v.Kind
	}
	return fmt.Sprintf("%s (flow of %d)", v.Kind, v.Nodes)
}

// fired is how often it has fired, of how often it may.
func firings(v admin.ScheduleInfo) string {
	if v.Runs == 0 {
		return fmt.Sprint(v.Fired)
	}
	return fmt.Sprintf("%d of %d", v.Fired, v.Runs)
}

func scheduleText(p *page, v admin.ScheduleInfo) {
	last := ""
	if !v.LastID.IsZero() {
		last = instant(v.LastDue) + " " + v.LastID.String()
	}
	if !v.LastFlow.IsZero() {
		last = instant(v.LastDue) + " flow " + v.LastFlow.String()
	}
	jitter := ""
	if v.Jitter > 0 {
		jitter = "up to " + v.Jitter.String()
	}
	paused := ""
	if v.Paused {
		paused = join(", by ", instant(v.PausedAt), v.PausedBy)
	}
	missed := fmt.Sprint(v.Missed)
	for _, reason := range slices.Sorted(maps.Keys(v.Reasons)) {
		missed += fmt.Sprintf(" %s:%d", reason, v.Reasons[reason])
	}
	p.facts("name", v.Name, "state", scheduleState(v), "paused", paused, "when", v.When, "until", instant(v.Until),
		"jitter", jitter, "kind", submits(v), "lane", v.Lane, "namespace", v.Namespace, "priority", v.Priority,
		"gates", join(",", valid.GateNames(v.Gates())...), "catch-up", v.CatchUp, "overlap",
		v.Overlap, "owner", v.Owner, "revision", v.Revision, "fired", firings(v), "missed", missed, "last", last,
		"next", instant(v.Next), "updated", join(", by ", instant(v.UpdatedAt), v.By), "error", v.Error)
	for i, t := range v.Upcoming {
		if i == 0 {
			p.say("\nupcoming:")
		}
		p.say("  %s", instant(t))
	}
}

// ranAs is what was submitted of a schedule.
func ranAs(r apiv1.ScheduleRun) string {
	if r.Flow.IsZero() {
		return r.Execution.String()
	}
	return "flow " + r.Flow.String()
}

func backfillText(p *page, name string, b apiv1.Backfilled) {
	p.say("%s: %s submitted, %d before, %d refused", name, count(b.Created, "instant"), b.Existed, b.Refused)
	for _, r := range b.Items {
		switch {
		case r.Error != "":
			p.say("  %s  refused: %s", instant(r.Due), r.Error)
		case r.Existed:
			p.say("  %s  existed: %s", instant(r.Due), ranAs(r))
		default:
			p.say("  %s  %s", instant(r.Due), ranAs(r))
		}
	}
}
