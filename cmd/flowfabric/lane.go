package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

func laneCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lane",
		Short: "List, pause, resume, drain and disable lanes, and say how long they keep what ended and who comes next",
	}
	list := laneListCommand(a)
	cmd.AddCommand(list,
		laneStateCommand(a, "pause", "Accept work but dispatch none", flowfabric.LanePaused,
			`pause lets a lane accept work and dispatch none. What runs already goes on.`),
		laneStateCommand(a, "resume", "Accept and hand out work again", flowfabric.LaneActive,
			`resume makes a lane accept and hand out work again, whatever its state was.`),
		laneStateCommand(a, "drain", "Hand out what is there, accept nothing", flowfabric.LaneDraining,
			`drain lets a lane hand out what it has; a submit into it is refused.`),
		laneStateCommand(a, "disable", "Neither accept nor hand out", flowfabric.LaneDisabled,
			`disable stops a lane: submits are refused, and what waits in it stays. What runs already goes on. It says
what it did: how much waits in the lane now.`),
		laneRetentionCommand(a), laneSetCommand(a))
	listsAlone(cmd, list)
	return cmd
}

func laneListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List lanes",
		Long:    "list shows the lanes that have work, and those that somebody said something about.",
		Example: "  flowfabric lane list",
		Args:    cobra.NoArgs,
	}
	scope := a.scope(cmd)
	cmd.RunE = a.once(func(ctx context.Context, _ []string) error {
		return a.operate(ctx, func(o *admin.Admin) error {
			found, err := o.Lanes(ctx, scope())
			if err != nil && len(found) == 0 {
				return err
			}
			rows := make([][]any, len(found))
			for i, l := range found {
				rows[i] = []any{l.Namespace, l.Name, laneCell(l.State, l.Mixed), l.Waiting, keeps(l.Retention),
					span(time.Duration(l.Ageing)), limitCell(int64(l.Weight), ""), instant(l.Since), l.By}
			}
			if shown := a.show(found, func(p *page) {
				p.table([]string{"NAMESPACE", "LANE", "STATE", "WAITING", "KEEPS", "AGEING", "WEIGHT", "SINCE", "BY"},
					rows)
			}); shown != nil {
				return shown
			}
			return err
		})
	})
	return cmd
}

func laneStateCommand(a *app, verb, short string, state flowfabric.LaneState, long string) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " LANE",
		Short: short,
		Long: long +
			"\nIt holds in every partition; a partition that did not answer is named, and the command may be repeated.",
		Example: "  flowfabric lane " + verb + " batch --by anna",
		Args:    exactly("LANE"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.changeLane(ctx, args[0], admin.LaneChange{State: state})
		}),
	}
}

func laneRetentionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "retention LANE DURATION...",
		Short: "Say how long a lane keeps what ended in it",
		Long: `retention sets for how long executions are kept that end in the lane from now on, unless their own
policy says otherwise: whole seconds, up to ten years; 0 is the default, 24h of what completed and 336h of any
other. failed=336h says so for one outcome: completed, failed, cancelled or expired.`,
		Example: `  flowfabric lane retention batch 72h
  flowfabric lane retention batch completed=1h failed=720h`,
		Args: cobra.MinimumNArgs(2),
		RunE: a.once(func(ctx context.Context, args []string) error {
			kept, err := parseRetention(args[1:])
			if err != nil {
				return err
			}
			return a.changeLane(ctx, args[0], admin.LaneChange{Retention: kept})
		}),
	}
}

// changeLane makes a change and shows the lane as it then is.
func (a *app) changeLane(ctx context.Context, name string, change admin.LaneChange) error {
	return a.operate(ctx, func(o *admin.Admin) error {
		if err := changedPartly(o.SetLane(ctx, name, change, a.why())); err != nil {
			return err
		}
		return a.showLane(ctx, o, name)
	})
}

// changedPartly says of an error in how many partitions something was changed.
func changedPartly(err error) error {
	if some, ok := errors.AsType[*admin.PartitionsError](err); ok && partly(err) {
		return fmt.Errorf("changed in %d of %s, repeat it for the others: %w", some.Total-some.Failed,
			count(some.Total, "partition"), err)
	}
	return err
}

// laneSetCommand says who comes next.
func laneSetCommand(a *app) *cobra.Command {
	var weight int
	var ageing time.Duration
	cmd := &cobra.Command{
		Use:   "set LANE",
		Short: "Say how namespaces share a lane, and how much waiting counts",
		Long: `set gives the namespace (--namespace) a weight in the lane: of what the lane hands out while several
namespaces have work in it, each gets its weight's part, whatever it has waiting. --ageing is how much
waiting outweighs one step of priority, for what becomes claimable from now on; 0 is the default, no
waiting does. Of the two, what is not said stays as it is. Both hold in every partition; the command may be
repeated.`,
		Example: `  flowfabric lane set batch --weight 4 --namespace blue
  flowfabric lane set batch --ageing 10m`,
		Args: exactly("LANE"),
	}
	cmd.Flags().IntVar(&weight, "weight", 0, "`1..1000`; 0 is the usual weight, 1")
	cmd.Flags().DurationVar(&ageing, "ageing", 0, "of waiting that outweighs one step of priority, at most 24h")
	cmd.MarkFlagsOneRequired("weight", "ageing")
	cmd.RunE = a.once(func(ctx context.Context, args []string) error {
		return a.operate(ctx, func(o *admin.Admin) error {
			var change admin.LaneChange
			if cmd.Flags().Changed("weight") {
				change.Weight = &weight
			}
			if cmd.Flags().Changed("ageing") {
				change.Ageing = &ageing
			}
			if err := changedPartly(o.SetLane(ctx, args[0], change, a.why())); err != nil {
				return err
			}
			return a.showLane(ctx, o, args[0])
		})
	})
	return cmd
}

// showLane shows a lane as it is.
func (a *app) showLane(ctx context.Context, o *admin.Admin, name string) error {
	lanes, err := o.Lanes(ctx, "")
	if err != nil {
		return err
	}
	for _, l := range lanes {
		if l.Name == name {
			return a.show(l, func(p *page) {
				p.say("lane %s is %s, keeps what ended for %s%s; %d waiting", l.Name, string(l.State),
					keeps(l.Retention), order(l), l.Waiting)
			})
		}
	}
	return a.show(admin.Lane{Namespace: a.namespace, Name: name, State: flowfabric.LaneActive}, func(p *page) {
		p.say("lane %s is active, keeps what ended for %s; nothing waiting", name, keeps(flowfabric.Retentions{}))
	})
}

// order is what a lane was told of who comes next, if it was.
func order(l admin.Lane) string {
	text := ""
	if l.Ageing > 0 {
		text += fmt.Sprintf(", counts %s of waiting as a step of priority", span(time.Duration(l.Ageing)))
	}
	if l.Weight > 0 {
		text += fmt.Sprintf(", gives namespace %s the weight %d", l.Namespace, l.Weight)
	}
	return text
}
