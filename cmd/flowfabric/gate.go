package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
)

func gateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Attach budgets and quotas to what is created, and show what they keep from running",
		Long: `gate says which budgets and quotas apply to all executions of a namespace, a lane or a tag that are
created from now on, in addition to those that they name themselves; and shows which work waits for a
budget or a quota. Alone it does what ls does.`,
	}
	list := gateListCommand(a)
	cmd.AddCommand(list, gateAttachCommand(a), gateDetachCommand(a))
	listsAlone(cmd, list)
	cmd.Long = strings.TrimSuffix(cmd.Long, ". Alone it does what list does.") + "."
	return cmd
}

// blockedBy lists what a gate keeps from running.
func blockedBy(ctx context.Context, o *admin.Admin, g flowfabric.Gate) ([]admin.ClosedRoute, error) {
	all, err := o.Gates(ctx)
	return slices.DeleteFunc(all.Closed, func(c admin.ClosedRoute) bool {
		return c.Waiting == 0 ||
			c.Reason.Gate != g
	}), err
}

// closedGroup is work of one lane and kind that waits for the same in some partitions.
type closedGroup struct {
	admin.ClosedRoute // Waiting in all of them, Until the first time, Reason with the most that was used
	partitions        map[uint16]bool
}

// grouped puts closed routes together over partitions, in the order in which they are tried again.
func grouped(closed []admin.ClosedRoute) []*closedGroup {
	type key struct {
		namespace, lane, kind string
		reason                admission.Closing
	}
	var out []*closedGroup
	seen := map[key]*closedGroup{}
	for _, c := range closed {
		k := key{c.Namespace, c.Lane, c.Kind, c.Reason}
		if k.reason.Used, k.reason.Limit = 0, 0; c.Reason.Gate != "" { // partitions asked at different times
			k.reason.Text = ""
		}
		g := seen[k]
		if g == nil {
			g = &closedGroup{ClosedRoute: c, partitions: map[uint16]bool{c.Partition: true}}
			seen[k], out = g, append(out, g)
			continue
		}
		g.partitions[c.Partition] = true
		g.Waiting += c.Waiting
		if c.Until.Before(g.Until) {
			g.Until = c.Until
		}
		if c.Reason.Used > g.Reason.Used {
			g.Reason = c.Reason
		}
	}
	return out
}

// closedTable writes what does not run, if there is any.
func closedTable(p *page, title string, closed []admin.ClosedRoute) {
	if len(closed) == 0 {
		return
	}
	p.say("\n%s", title)
	var rows [][]any
	now := time.Now()
	for _, g := range grouped(closed) {
		next := instant(g.Until)
		if !g.Until.After(now) {
			next = "due"
		}
		rows = append(rows, []any{g.Namespace + "/" + g.Lane, g.Kind, g.Waiting, len(g.partitions), next, g.Reason})
	}
	p.table([]string{"LANE", "KIND", "WAITING", "PARTITIONS", "NEXT TRY", "WHY"}, rows)
}

// removeGate removes a budget or quota, unless it is attached to scopes.
func (a *app) removeGate(ctx context.Context, g flowfabric.Gate, force bool, remove func(o *admin.Admin) error) error {
	what := "quota"
	if g.IsBudget() {
		what = "budget"
	}
	return a.operate(ctx, func(o *admin.Admin) error {
		if !force {
			if err := refuseAttached(ctx, o, what, g); err != nil {
				return err
			}
		}
		if err := remove(o); err != nil {
			return err
		}
		return a.showChanged(what, gateChanged{Name: g.Name(), Done: "removed"})
	})
}

// refuseAttached is an error that names the scopes to which a gate that exists is attached.
func refuseAttached(ctx context.Context, o *admin.Admin, what string, g flowfabric.Gate) error {
	all, err := o.Gates(ctx)
	var scopes []string
	for _, x := range all.Attached {
		if slices.Contains(x.Gates, g) {
			scopes = append(scopes, scopeText(x.Scope))
		}
	}
	if len(scopes) == 0 {
		if err != nil {
			return fmt.Errorf("remove %s %q: where it is attached is not known, see --force: %w", what, g.Name(), err)
		}
		return nil
	}
	if g.IsBudget() {
		_, err = o.GetBudget(ctx, g.Name())
	} else {
		_, err = o.GetQuota(ctx, g.Name())
	}
	if err != nil {
		return err
	}
	return fmt.Errorf(
		"remove %s %q: %w to %s, and what is created there would wait: detach it first ('flowfabric gate detach'), or say --force",
		what, g.Name(), errAttached, strings.Join(scopes, ", "))
}

func gateListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "Show what is attached, and what budgets and quotas keep from running",
		Long: `ls lists what is attached where; the work that waits for a budget or a quota, by lane, kind and reason, with
how many executions wait in how many partitions and when the first of those asks again ("due": at any moment);
and how much budgets and quotas have not been told yet. --json tells each partition apart.`,
		Example: "  flowfabric gate ls",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				all, err := o.Gates(ctx)
				if err != nil && all.Partitions == 0 {
					return err
				}
				if shown := a.show(all, func(p *page) { gatesText(p, all) }); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

func gatesText(p *page, v admin.GatesInfo) {
	if len(v.Attached) == 0 {
		p.say("nothing is attached")
	} else {
		rows := make([][]any, len(v.Attached))
		for i, x := range v.Attached {
			scope := styled(normal, scopeText(x.Scope))
			if x.Mixed {
				scope = styled(yellow, scopeText(x.Scope)+" (mixed)")
			}
			rows[i] = []any{scope, strings.Join(x.Budgets, ","), strings.Join(x.Quotas, ","), instant(x.At), x.By}
		}
		p.table([]string{"SCOPE", "BUDGETS", "QUOTAS", "SINCE", "BY"}, rows)
	}
	closedTable(p, "waits for a budget or a quota:",
		slices.DeleteFunc(slices.Clone(v.Closed), func(c admin.ClosedRoute) bool { return c.Waiting == 0 }))
	if v.Outbox > 0 {
		p.say("\n%s to budgets and quotas not delivered yet", count(v.Outbox, "message"))
	}
}

// scopeText writes a scope as attach takes it, with the namespace that --namespace would say.
func scopeText(s admission.Scope) string {
	switch {
	case s.TagKey != "":
		return "tag:" + s.TagKey + "=" + s.Tag
	case s.Lane != "":
		return "lane:" + s.Namespace + "/" + s.Lane
	case s.Namespace != "":
		return "namespace:" + s.Namespace
	}
	return "everything"
}

// parseScope reads a scope. A lane without a namespace is in that of --namespace.
func (a *app) parseScope(text string) (admission.Scope, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "everything":
		return admission.Scope{}, nil
	case kind == "namespace" && rest != "":
		return admission.Scope{Namespace: rest}, nil
	case kind == "lane" && rest != "":
		namespace, lane, ok := strings.Cut(rest, "/")
		if !ok {
			return admission.Scope{Namespace: a.namespace, Lane: rest}, nil
		}
		if namespace != "" && lane != "" { // without a lane it would be the namespace, and without both everything
			return admission.Scope{Namespace: namespace, Lane: lane}, nil
		}
	case kind == "tag":
		if key, value, ok := strings.Cut(rest, "="); ok && key != "" {
			return admission.Scope{TagKey: key, Tag: value}, nil
		}
	}
	return admission.Scope{},
		usage("SCOPE %q, want everything, namespace:NAME, lane:NAME, lane:NAMESPACE/NAME or tag:KEY=VALUE", text)
}

// gateFlags name budgets and quotas.
type gateFlags struct{ budgets, quotas []string }

func (f *gateFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.budgets, "budget", nil, "`name` of a budget; may be repeated")
	cmd.Flags().StringArrayVar(&f.quotas, "quota", nil, "`name` of a quota; may be repeated")
}

func (f *gateFlags) gates() []flowfabric.Gate {
	var out []flowfabric.Gate
	for _, name := range f.budgets {
		out = append(out, flowfabric.BudgetGate(name))
	}
	for _, name := range f.quotas {
		out = append(out, flowfabric.QuotaGate(name))
	}
	return out
}

// attachment is the answer of attach and detach.
type attachment struct {
	Scope string `json:"scope"`
	Done  string `json:"done"` // attached or detached
}

func gateAttachCommand(a *app) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "attach SCOPE",
		Short: "Apply budgets and quotas to everything created in a scope",
		Long: `attach adds budgets and quotas to a scope: everything, namespace:NAME, lane:NAME (of --namespace),
lane:NAMESPACE/NAME or tag:KEY=VALUE. They hold for executions that are created from now on; what exists
keeps the gates it has. It holds in every partition; a partition that did not answer is named, and the
command may be repeated.`,
		Example: `  flowfabric gate attach tag:app.tenant=acme --budget acme
  flowfabric gate attach lane:gpu --quota gpu --by anna`,
		Args: exactly("SCOPE"),
	}
	f.add(cmd)
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		scope, err := a.parseScope(args[0])
		if err == nil && len(f.gates()) == 0 {
			err = usage("attach: name what to attach with --budget and --quota")
		}
		if err != nil {
			return err
		}
		return a.operate(ctx, func(o *admin.Admin) error {
			if err := o.AttachGates(ctx, scope, f.gates(), a.why()); err != nil {
				return err
			}
			return a.show(attachment{scopeText(scope), "attached"},
				func(p *page) { p.say("attached to %s", scopeText(scope)) })
		})
	})
	return cmd
}

func gateDetachCommand(a *app) *cobra.Command {
	var f gateFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "detach SCOPE",
		Short: "Have budgets and quotas no longer asked for what is created in a scope",
		Long: `detach takes budgets and quotas from a scope, as attach names it, or all of them with --all. What was
created in between keeps them.`,
		Example: `  flowfabric gate detach tag:app.tenant=acme --budget acme
  flowfabric gate detach lane:gpu --all`,
		Args: exactly("SCOPE"),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all that is attached to the scope")
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		scope, err := a.parseScope(args[0])
		if err == nil && all == (len(f.gates()) > 0) {
			err = usage("detach: name what to detach with --budget and --quota, or everything with --all")
		}
		if err != nil {
			return err
		}
		return a.operate(ctx, func(o *admin.Admin) error {
			if err := o.DetachGates(ctx, scope, f.gates(), a.why()); err != nil {
				return err
			}
			return a.show(attachment{scopeText(scope), "detached"},
				func(p *page) { p.say("detached from %s", scopeText(scope)) })
		})
	})
	return cmd
}
