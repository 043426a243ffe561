package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

func quotaCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Create, change, show and remove quotas",
		Long: `quota looks after quotas: how often executions may start, and how many may run at once. Work that has a
quota as a gate (submit --quota, gate attach) waits while it is full. Alone it does what ls does.`,
	}
	list := quotaListCommand(a)
	cmd.AddCommand(list, quotaShowCommand(a), quotaLimitCommand(a), quotaCreateCommand(a), quotaEnsureCommand(a),
		quotaUpdateCommand(a), quotaRemoveCommand(a))
	listsAlone(cmd, list)
	cmd.Long = strings.TrimSuffix(cmd.Long, " Alone it does what list does.")
	return cmd
}

// quotaShown is a quota with what it keeps from running.
type quotaShown struct {
	admission.QuotaRecord
	Blocked []admin.ClosedRoute `json:"blocked,omitempty"`
}

// quotaRate is how often, for people.
func quotaRate(q admission.Quota) string {
	if q.Rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %s", q.Rate, span(time.Duration(q.Window)))
}

// quotaText is what a quota allows, for people.
func quotaText(q admission.Quota) string {
	slots := ""
	if q.Cap > 0 {
		slots = strconv.Itoa(q.Cap) + " at once"
	}
	return cmp.Or(join(", ", quotaRate(q), slots), "no limit")
}

// slots is how many of the slots are taken.
func slots(q admission.QuotaRecord) cell {
	if q.Free == nil {
		return styled(normal, q.Held)
	}
	c := styled(normal, fmt.Sprintf("%d of %d", q.Held, q.Cap))
	if *q.Free == 0 {
		c.style = yellow
	}
	return c
}

func quotaListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List quotas",
		Long: `ls lists all quotas: how much started, how many slots are taken, and how many queues wait for them: each
partition has one for every lane, kind and set of gates, with any number of executions in it; gate ls counts
those.`,
		Example: "  flowfabric quota ls",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				found, err := o.Quotas(ctx)
				if err != nil && len(found) == 0 {
					return err
				}
				rows := make([][]any, len(found))
				for i, q := range found {
					started := ""
					if q.Rate > 0 {
						started = strconv.Itoa(q.Started)
					}
					rows[i] = []any{q.Name, quotaRate(q.Quota), started, slots(q), q.ForRate, q.ForSlots}
				}
				if shown := a.show(append([]admission.QuotaRecord{}, found...), func(p *page) {
					p.table([]string{"QUOTA", "RATE", "STARTED", "SLOTS", "WAIT FOR RATE", "WAIT FOR SLOTS"}, rows)
				}); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

func quotaShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one quota: limits, who holds it, and what it keeps from running",
		Long:    "show prints a quota with who holds its slots, the work that it keeps from running, and who changed it.",
		Example: "  flowfabric quota show gpu",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				q, err := o.GetQuota(ctx, args[0])
				if err != nil {
					return err
				}
				v := quotaShown{QuotaRecord: q}
				if v.Blocked, err = blockedBy(ctx, o, flowfabric.QuotaGate(args[0])); err != nil &&
					len(v.Blocked) == 0 {
					err = fmt.Errorf("what it keeps from running is not known: %w", err)
				}
				if shown := a.show(v, v.text); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

// parseLimit reads "2", "100/1m" or "2,100/1m".
func parseLimit(text string) (l flowfabric.Limit, err error) {
	for part := range strings.SplitSeq(text, ",") {
		starts, per, rate := strings.Cut(part, "/")
		n, wrong := strconv.Atoi(starts)
		if wrong == nil && rate {
			l.Rate = n
			l.Per, wrong = time.ParseDuration(per)
		} else if wrong == nil {
			l.Concurrency = n
		}
		if wrong != nil {
			return l, usage("limit %q, want like 2 (at once), 100/1m (starts in a minute) or 2,100/1m", text)
		}
	}
	return l, nil
}

func quotaLimitCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "limit KEY LIMIT",
		Short: "Show what a limit of a key counts: who holds its slots, and what it keeps from running",
		Long: `limit shows what runs and waits under a key that work was submitted with (submit --limit, flowfabric.LimitKey). LIMIT
is as it was submitted: 2 (at once), 100/1m (starts in a minute), or 2,100/1m. A key that nobody uses has nothing.`,
		Example: "  flowfabric quota limit tenant-7 2",
		Args:    exactly("KEY", "LIMIT"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			limit, err := parseLimit(args[1])
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				q, err := o.GetLimit(ctx, args[0], limit)
				if err != nil {
					return err
				}
				v := quotaShown{QuotaRecord: q}
				v.Blocked, err = blockedBy(ctx, o, flowfabric.QuotaGate(q.Name))
				v.Name = args[0]
				if err != nil && len(v.Blocked) == 0 {
					err = fmt.Errorf("what it keeps from running is not known: %w", err)
				}
				if shown := a.show(v, v.text); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

func (v quotaShown) text(p *page) {
	suspect, started, revision := "", "", ""
	if v.Revision > 0 {
		revision = strconv.FormatUint(v.Revision, 10)
	}
	if v.Suspect > 0 {
		suspect = fmt.Sprintf("%d have not been heard of for a while", v.Suspect)
	}
	if v.Rate > 0 {
		started = fmt.Sprintf("%d in the window", v.Started)
	}
	p.facts("name", v.Name, "for", v.Scope, "rate", quotaRate(v.Quota), "started", started, "slots",
		slots(v.QuotaRecord), "suspect",
		suspect, "jitter", span(time.Duration(v.Jitter)), "waiting",
		fmt.Sprintf("%s for the rate, %d for slots", count(v.ForRate, "queue"), v.ForSlots),
		"revision", revision, "created", instant(v.CreatedAt), "changed by", v.ChangedBy)
	closedTable(p, "keeps from running:", v.Blocked)
	for i, h := range v.Slots {
		if i == 0 {
			p.say("\nholds:")
		}
		p.say("  %s, epoch %d", h.Execution, h.Epoch)
	}
	auditTable(p, v.Audit)
}

// quotaFlags are the settings of a quota.
type quotaFlags struct {
	rate, most     int
	window, jitter time.Duration
	scope          string
}

func (f *quotaFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.rate, "rate", 0, "starts in any --window, at most 1000000; 0 is no limit")
	flags.DurationVar(&f.window, "window", 0, "what --rate is counted in, at most 720h")
	flags.IntVar(&f.most, "cap", 0, "how many hold it at once, at most 1000000; 0 is no limit")
	flags.DurationVar(&f.jitter, "jitter", 0, "spread the next tries over so much more, at most 60s")
	flags.StringVar(&f.scope, "for", "", "what it is for, `text` for people")
}

// apply puts what was said into a quota; what was not said stays.
func (f *quotaFlags) apply(cmd *cobra.Command, q *admission.Quota) {
	said := cmd.Flags().Changed
	if said("rate") {
		q.Rate = f.rate
	}
	if said("window") {
		q.Window = flowfabric.Millis(f.window)
	}
	if said("cap") {
		q.Cap = f.most
	}
	if said("jitter") {
		q.Jitter = flowfabric.Millis(f.jitter)
	}
	if said("for") {
		q.Scope = f.scope
	}
}

// quotaNote is what may not be meant with a quota.
func quotaNote(q admission.Quota) string {
	if q.Rate == 0 && q.Cap == 0 {
		return limitsNothing + ": it has neither a rate nor a cap"
	}
	return ""
}

func quotaCreateCommand(a *app) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a quota",
		Long: `create makes a quota. A name is 1..64 letters, digits, _, . and -. Creating what exists with the same
settings changes nothing; with others it is refused, see update.`,
		Example: `  flowfabric quota create gpu --cap 4
  flowfabric quota create mail --rate 100 --window 1m`,
		Args: exactly("NAME"),
	}
	f.add(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		q := admission.Quota{Name: args[0]}
		f.apply(cmd, &q)
		c, err := a.client(ctx, mayBoot)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := admin.New(c).PutQuota(ctx, q, 0, a.why()); err != nil {
			return err
		}
		return a.showChanged("quota", gateChanged{Name: args[0], Done: "created", Note: quotaNote(q)})
	})
	return cmd
}

func quotaEnsureCommand(a *app) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:   "ensure NAME",
		Short: "Create a quota if there is none of its name",
		Long: `ensure makes a quota as create does. One that is there stays as it is, whatever it says. So a script may
run it at each deployment: operators own the numbers afterwards, and change them with update.`,
		Example: "  flowfabric quota ensure gpu --cap 4",
		Args:    exactly("NAME"),
	}
	f.add(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		q := admission.Quota{Name: args[0]}
		f.apply(cmd, &q)
		c, err := a.client(ctx, mayBoot)
		if err != nil {
			return err
		}
		defer c.Close()
		made, err := admin.New(c).EnsureQuota(ctx, q, a.why())
		if err != nil {
			return err
		}
		return a.showChanged("quota", ensured(args[0], quotaNote(q), made))
	})
	return cmd
}

func quotaUpdateCommand(a *app) *cobra.Command {
	var f quotaFlags
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Change a quota",
		Long: `update changes what is said; what is not said stays as it is. What runs keeps its slots, also above a lower cap. Work
that waits for the quota is looked at anew. If somebody else changes it at the same time, one of the two is
refused.`,
		Example: "  flowfabric quota update gpu --cap 8",
		Args:    exactly("NAME"),
	}
	f.add(cmd)
	unsaidStays(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		return a.operate(ctx, func(o *admin.Admin) error {
			q, err := o.GetQuota(ctx, args[0])
			if err != nil {
				return err
			}
			before := q.Quota
			f.apply(cmd, &q.Quota)
			v := gateChanged{Name: args[0], Done: "unchanged", Note: quotaNote(q.Quota)}
			if q.Quota != before {
				v.Done = "updated"
				if err := o.PutQuota(ctx, q.Quota, q.Revision, a.why()); err != nil {
					return err
				}
			}
			return a.showChanged("quota", v)
		})
	})
	return cmd
}

func quotaRemoveCommand(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Forget a quota",
		Long: `rm forgets a quota and who holds it. Executions that have it as a gate wait; they go on within 30 s after
one of that name is made again. One that is attached to scopes (gate ls) is refused: detach it first, or
what is created there waits too.`,
		Example: "  flowfabric quota rm gpu",
		Args:    exactly("NAME"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.removeGate(ctx, flowfabric.QuotaGate(args[0]), force, func(o *admin.Admin) error {
				removed, err := o.RemoveQuota(ctx, args[0], a.why())
				if err == nil && !removed {
					err = fmt.Errorf("remove quota %q: %w", args[0], denied.NoQuota)
				}
				return err
			})
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also one that is attached to scopes")
	return cmd
}
