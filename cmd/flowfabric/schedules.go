package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/schedule"
)

func schedulesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "List, put, pause, resume and remove schedules, and tell when they are due",
	}
	list := schedulesListCommand(a)
	cmd.AddCommand(list, schedulesShowCommand(a), schedulesPutCommand(a),
		schedulesPauseCommand(a, "pause", "paused", "Keep a schedule from firing",
			`pause keeps a schedule from firing until it is resumed. What it submitted goes on.`,
			(*admin.Admin).PauseSchedule),
		schedulesPauseCommand(a, "resume", "resumed", "End a pause",
			`resume ends a pause. Instants that fell into it are not fired; they count as missed.`,
			(*admin.Admin).ResumeSchedule),
		schedulesRemoveCommand(a))
	listsAlone(cmd, list)
	return cmd
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

func schedulesListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List schedules",
		Example: "  flowfabric schedules list",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				found, err := o.Schedules(ctx)
				if err != nil && len(found) == 0 {
					return err
				}
				rows := make([][]any, len(found))
				for i, s := range found {
					rows[i] = []any{s.Name, scheduleState(s), s.When, submits(s), s.Lane, instant(s.Next), firings(s),
						s.Missed}
				}
				if shown := a.show(append([]admin.ScheduleInfo{}, found...), func(p *page) {
					p.table([]string{"NAME", "STATE", "WHEN", "KIND", "LANE", "NEXT", "FIRED", "MISSED"}, rows)
				}); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

func schedulesShowCommand(a *app) *cobra.Command {
	var upcoming int
	cmd := &cobra.Command{
		Use:     "show NAME",
		Aliases: []string{"next"},
		Short:   "Show one schedule and when it is due next",
		Long:    "show prints a schedule with its counts, and its next instants. Of a paused one those that would come if it were resumed now.",
		Example: "  flowfabric schedules next nightly --next 10",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			if upcoming < 0 || upcoming > 1000 {
				return usage("--next is %d, want 0..1000", upcoming)
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				s, err := o.GetSchedule(ctx, args[0])
				if err != nil {
					return err
				}
				s.Upcoming = s.NextRuns(upcoming)
				return a.show(s, func(p *page) { scheduleText(p, s) })
			})
		}),
	}
	cmd.Flags().IntVar(&upcoming, "next", 5, "how many of the next instants, `0..1000`")
	return cmd
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
	budgets, quotas := admin.GateNames(v.Gates())
	missed := fmt.Sprint(v.Missed)
	for _, reason := range slices.Sorted(maps.Keys(v.Reasons)) {
		missed += fmt.Sprintf(" %s:%d", reason, v.Reasons[reason])
	}
	p.facts("name", v.Name, "state", scheduleState(v), "paused", paused, "when", v.When, "until", instant(v.Until),
		"jitter", jitter, "kind", submits(v), "lane", v.Lane, "namespace", v.Namespace, "priority", v.Priority,
		"budgets", join(",", budgets...), "quotas", join(",", quotas...), "catch-up", v.CatchUp, "overlap",
		v.Overlap, "owner", v.Owner, "revision", v.Revision, "fired", firings(v), "missed", missed, "last", last,
		"next", instant(v.Next), "updated", join(", by ", instant(v.UpdatedAt), v.By), "error", v.Error)
	for i, t := range v.Upcoming {
		if i == 0 {
			p.say("\nupcoming:")
		}
		p.say("  %s", instant(t))
	}
}

// putFlags are the flags of schedules put.
type putFlags struct {
	startFlags
	cron, zone, anchor string
	every, jitter      time.Duration
	end                string
	maxRuns            uint64
	now, raw, fresh    bool
	kind, input        string
	catchUp, overlap   string
}

func schedulesPutCommand(a *app) *cobra.Command {
	var f putFlags
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Create or change a schedule",
		Long: `put makes a schedule submit an execution at every instant of a cron expression or of a fixed rate, or
changes the one of that name. It says all of a schedule: a flag that is left out gets its default, whatever the
schedule had before. Putting what is there changes nothing.`,
		Example: `  flowfabric schedules put nightly --kind report --cron '0 3 * * *' --zone Europe/Berlin --input '{"full":true}'
  flowfabric schedules put poll --kind poll --every 30s --overlap skip --jitter 5s
  flowfabric schedules put trial --kind remind --every 24h --max-runs 14 --first-run-now`,
		Args: exactly("NAME"),
	}
	cmd.RunE = a.once(func(ctx context.Context, args []string) error { return a.putSchedule(ctx, cmd, args[0], f) })
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "`kind` of work, required")
	flags.StringVar(&f.cron, "cron", "",
		"cron `expression` of five fields, or six with seconds first; @hourly, @daily …")
	flags.StringVar(&f.zone, "zone", "", "time `zone` of --cron (default UTC)")
	flags.DurationVar(&f.every, "every", 0, "fixed rate, 1s to ten years")
	flags.StringVar(&f.anchor, "anchor", "",
		"a `time` (RFC 3339) that --every counts from (default 1970-01-01T00:00:00Z)")
	flags.StringVar(&f.end, "until", "", "a `time` (RFC 3339) after which no instant fires (default without end)")
	flags.Uint64Var(&f.maxRuns, "max-runs", 0,
		"end it after so many executions, counted since its creation (default without end)")
	flags.DurationVar(&f.jitter, "jitter", 0,
		"start each execution up to so much later, 0..24h, at most halfway to the next instant")
	flags.BoolVar(&f.now, "first-run-now", false, "if it is new, fire once at once as well")
	flags.StringVarP(&f.input, "input", "i", "null", "input: `JSON`, @file, or - for stdin")
	flags.BoolVar(&f.raw, "raw", false, "the input is bytes, not JSON")
	f.add(cmd)
	flags.StringVar(&f.catchUp, "catch-up", "",
		"what happens to instants that nobody fired in time: last (default), skip or all")
	flags.StringVar(&f.overlap, "overlap", "",
		"what happens while the execution before has not ended: allow (default) or skip")
	flags.BoolVar(&f.fresh, "if-new", false, "refuse to change a schedule that exists")
	cmd.MarkFlagsMutuallyExclusive("cron", "every")
	cmd.MarkFlagsOneRequired("cron", "every")
	_ = cmd.MarkFlagRequired("kind")
	return cmd
}

func (a *app) putSchedule(ctx context.Context, cmd *cobra.Command, name string, f putFlags) error {
	spec, opts, err := f.times()
	if err != nil {
		return err
	}
	start, err := f.start(cmd)
	if err != nil {
		return err
	}
	start.Namespace, start.Creator = a.namespace,
		"flowfabric-cli" // the same for everybody: who puts what is there changes nothing
	input, err := a.read("--input", f.input)
	if err == nil && !f.raw {
		input, err = compact("--input", input)
	}
	if err != nil {
		return err
	}
	c, err := a.client(ctx, mayBoot)
	if err != nil {
		return err
	}
	defer c.Close()
	set, err := client.DeclareSchedule(name, spec, handler.Define[[]byte, []byte](f.kind), input,
		append(opts, flowfabric.StartWith(start))...).Put(ctx, c, a.why())
	if err != nil {
		return err
	}
	return a.show(set, func(p *page) {
		p.say("schedule %s, revision %d (%s); next %s", name, set.Revision, outcome("put", set.Already, nil),
			cmp.Or(instant(set.Next), "never, it is over"))
	})
}

// times are when the flags have it fire.
func (f putFlags) times() (spec schedule.Spec, opts []client.ScheduleOption, err error) {
	opts = []client.ScheduleOption{client.MaxRuns(f.maxRuns), client.Jitter(f.jitter)}
	if f.catchUp != "" {
		opts = append(opts, client.CatchUp(schedule.CatchUp(f.catchUp)))
	}
	if f.overlap != "" {
		opts = append(opts, client.Overlap(schedule.Overlap(f.overlap)))
	}
	if f.now {
		opts = append(opts, client.FirstRunNow())
	}
	if f.fresh {
		opts = append(opts, client.IfNew())
	}
	if f.end != "" {
		until, err := time.Parse(time.RFC3339, f.end)
		if err != nil {
			return spec, nil, usage("--until %q is not a time like 2026-12-31T17:00:00Z", f.end)
		}
		opts = append(opts, client.Until(until))
	}
	if f.cron != "" {
		if f.anchor != "" {
			return spec, nil, usage("--anchor goes with --every")
		}
		return schedule.Cron(f.cron, f.zone), opts, nil
	}
	var anchor time.Time
	if f.anchor != "" {
		if anchor, err = time.Parse(time.RFC3339, f.anchor); err != nil {
			return spec, nil, usage("--anchor %q is not a time like 2026-01-31T17:00:00Z", f.anchor)
		}
	}
	if f.zone != "" {
		return spec, nil, usage("--zone goes with --cron")
	}
	return schedule.Every(f.every, anchor), opts, nil
}

// scheduleChanged is the answer of pause, resume and remove.
type scheduleChanged struct {
	Name string `json:"name"`
	Done string `json:"done"`
}

func schedulesPauseCommand(a *app, verb, done, short, long string,
	call func(*admin.Admin, context.Context, string, *uint64, ...flowfabric.ActOption) error) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    long,
		Example: "  flowfabric schedules " + verb + " nightly",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				if err := call(o, ctx, args[0], nil, a.why()); err != nil {
					return err
				}
				return a.show(scheduleChanged{args[0], done}, func(p *page) { p.say("%s %s", done, args[0]) })
			})
		}),
	}
}

func schedulesRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Forget a schedule",
		Long:    "remove forgets a schedule with its counts. What it submitted stays and goes on.",
		Example: "  flowfabric schedules remove nightly",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				removed, err := o.RemoveSchedule(ctx, args[0], nil, a.why())
				if err == nil && !removed {
					err = fmt.Errorf("remove schedule %q: %w", args[0], denied.NoSchedule)
				}
				if err != nil {
					return err
				}
				return a.show(scheduleChanged{args[0], "removed"}, func(p *page) { p.say("removed %s", args[0]) })
			})
		}),
	}
}
