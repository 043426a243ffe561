package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
)

func gateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "gate",
		Aliases: []string{"gates"},
		Short:   "Attach budgets and quotas to what is created, and show what they keep from running",
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

// attached is a client.AttachedGates for --json.
type attached struct {
	Scope   string    `json:"scope"` // as attach takes it
	Budgets []string  `json:"budgets,omitempty"`
	Quotas  []string  `json:"quotas,omitempty"`
	At      time.Time `json:"at,omitzero"`
	By      string    `json:"by,omitempty"`
	Mixed   bool      `json:"mixed,omitempty"` // partitions differ: repeat the change
}

// closedRoute is a client.ClosedRoute for --json.
type closedRoute struct {
	Partition uint16    `json:"partition"`
	Namespace string    `json:"namespace"`
	Lane      string    `json:"lane"`
	Kind      string    `json:"kind"`
	Waiting   int       `json:"waiting"`
	Until     time.Time `json:"until"` // it is tried again at the latest
	Reason    string    `json:"reason"`
}

// gatesView is a client.GatesInfo for --json.
type gatesView struct {
	Attached []attached    `json:"attached"`
	Blocked  []closedRoute `json:"blocked"`
	Outbox   int           `json:"undelivered"` // messages to budgets and quotas
}

// byKind are the names of budgets and of quotas among gates.
func byKind(gates []flowfabric.Gate) (budgets, quotas []string) {
	for _, g := range gates {
		if g.IsBudget() {
			budgets = append(budgets, g.Name())
		} else {
			quotas = append(quotas, g.Name())
		}
	}
	return budgets, quotas
}

func newClosed(c client.ClosedRoute) closedRoute {
	return closedRoute{Partition: c.Partition, Namespace: c.Route.Namespace, Lane: c.Route.Lane, Kind: c.Route.Kind, Waiting: c.Waiting,
		Until: utc(c.Until), Reason: c.Why}
}

// blockedBy lists what a gate keeps from running.
func blockedBy(ctx context.Context, c *client.Client, g flowfabric.Gate) ([]closedRoute, error) {
	all, err := c.Gates(ctx)
	var out []closedRoute
	for _, x := range all.Closed {
		if closer(x.Why) == g {
			out = append(out, newClosed(x))
		}
	}
	return out, err
}

// closer is the gate that a reason is about: "budget <name> …", "quota <name> …" or "<code> <name>".
func closer(why string) flowfabric.Gate {
	words := strings.Fields(why)
	if len(words) < 2 {
		return ""
	}
	switch words[0] {
	case "budget", flowfabric.CodeOf(flowfabric.ErrBudgetNotFound):
		return flowfabric.Budget(words[1])
	case "quota", flowfabric.CodeOf(flowfabric.ErrQuotaNotFound):
		return flowfabric.Quota(words[1])
	}
	return ""
}

// inWords is a reason for people.
func inWords(why string) string {
	w := strings.Fields(why)
	switch {
	case len(w) == 5 && w[0] == "budget":
		return fmt.Sprintf("budget %s: %s used of %s %s", w[1], w[3], w[4], w[2])
	case len(w) == 3 && w[0] == "quota" && w[2] == "rate":
		return fmt.Sprintf("quota %s: too many starts in its window", w[1])
	case len(w) == 3 && w[0] == "quota" && w[2] == "cap":
		return fmt.Sprintf("quota %s: all slots are taken", w[1])
	case len(w) == 2 && closer(why) != "":
		return fmt.Sprintf("there is no %s", closer(why))
	}
	return why
}

// closedTable writes what does not run, if there is any.
func closedTable(p *page, title string, closed []closedRoute) {
	if len(closed) == 0 {
		return
	}
	p.say("\n%s", title)
	rows := make([][]any, len(closed))
	for i, c := range closed {
		rows[i] = []any{c.Partition, c.Namespace + "/" + c.Lane, c.Kind, c.Waiting, instant(c.Until), inWords(c.Reason)}
	}
	p.table([]string{"PARTITION", "LANE", "KIND", "WAITING", "TRIED AGAIN BY", "WHY"}, rows)
}

func gateListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "Show what is attached, and what budgets and quotas keep from running",
		Long: `ls lists what is attached where, the work that waits for a budget or a quota, by partition, lane and kind,
and how much budgets and quotas have not been told yet.`,
		Example: "  flowfabric gate ls",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.with(ctx, func(c *client.Client) error {
				all, err := c.Gates(ctx)
				if err != nil && len(all.Partitions) == 0 {
					return err
				}
				v := gatesView{Attached: []attached{}, Blocked: []closedRoute{}, Outbox: all.Outbox}
				for _, x := range all.Attached {
					budgets, quotas := byKind(x.Gates)
					v.Attached = append(v.Attached, attached{scopeText(x.Scope), budgets, quotas, utc(x.At), x.By, x.Mixed})
				}
				for _, x := range all.Closed {
					v.Blocked = append(v.Blocked, newClosed(x))
				}
				if shown := a.show(v, v.text); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

func (v gatesView) text(p *page) {
	if len(v.Attached) == 0 {
		p.say("nothing is attached")
	} else {
		rows := make([][]any, len(v.Attached))
		for i, x := range v.Attached {
			scope := styled(normal, x.Scope)
			if x.Mixed {
				scope = styled(yellow, x.Scope+" (mixed)")
			}
			rows[i] = []any{scope, strings.Join(x.Budgets, ","), strings.Join(x.Quotas, ","), instant(x.At), x.By}
		}
		p.table([]string{"SCOPE", "BUDGETS", "QUOTAS", "SINCE", "BY"}, rows)
	}
	closedTable(p, "waits for a budget or a quota:", v.Blocked)
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
		if namespace, lane, ok := strings.Cut(rest, "/"); ok {
			return admission.Scope{Namespace: namespace, Lane: lane}, nil
		}
		return admission.Scope{Namespace: a.namespace, Lane: rest}, nil
	case kind == "tag":
		if key, value, ok := strings.Cut(rest, "="); ok && key != "" {
			return admission.Scope{TagKey: key, Tag: value}, nil
		}
	}
	return admission.Scope{}, usage("SCOPE %q, want everything, namespace:NAME, lane:NAME, lane:NAMESPACE/NAME or tag:KEY=VALUE", text)
}

// gateFlags name budgets and quotas.
type gateFlags struct{ budgets, quotas []string }

func (f *gateFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.budgets, "budget", nil, "`name` of a budget; may be repeated")
	cmd.Flags().StringArrayVar(&f.quotas, "quota", nil, "`name` of a quota; may be repeated")
}

func (f *gateFlags) gates() []flowfabric.Gate {
	return flowfabric.WithQuotas(flowfabric.WithBudgets(nil, f.budgets...), f.quotas...)
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
		Short: "Have budgets and quotas asked for all that is created in a scope",
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
		return a.with(ctx, func(c *client.Client) error {
			if err := c.AttachGates(ctx, scope, f.gates()); err != nil {
				return err
			}
			return a.show(attachment{scopeText(scope), "attached"}, func(p *page) { p.say("attached to %s", scopeText(scope)) })
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
		return a.with(ctx, func(c *client.Client) error {
			if err := c.DetachGates(ctx, scope, f.gates()); err != nil {
				return err
			}
			return a.show(attachment{scopeText(scope), "detached"}, func(p *page) { p.say("detached from %s", scopeText(scope)) })
		})
	})
	return cmd
}
