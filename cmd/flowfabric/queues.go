package main

import (
	"context"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// scope adds the flag that looks at all namespaces, and tells which namespace to look at.
func (a *app) scope(cmd *cobra.Command) func() string {
	var all bool
	cmd.Flags().BoolVar(&all, "all-namespaces", false, "of all namespaces")
	return func() string {
		if all {
			return admin.AllNamespaces
		}
		return a.namespace
	}
}

func queuesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "Show what waits, by lane, kind and capabilities",
		Long: `queues shows every queue: how many executions wait in it, since when the oldest does, and how many
executions of its kind are stored in any state.`,
		Example: "  flowfabric queues --all-namespaces",
		Args:    cobra.NoArgs,
	}
	scope := a.scope(cmd)
	cmd.RunE = a.once(func(ctx context.Context, _ []string) error {
		return a.operate(ctx, func(o *admin.Admin) error {
			found, err := o.Queues(ctx, scope())
			if err != nil && len(found) == 0 {
				return err
			}
			rows := make([][]any, len(found))
			for i, q := range found {
				rows[i] = []any{q.Namespace, q.Lane, q.Kind, join(",", q.Capabilities...), laneCell(q.State, q.Mixed),
					q.Waiting, instant(q.OldestAt), q.Stored, q.Drift}
			}
			if shown := a.show(found, func(p *page) {
				p.table([]string{"NAMESPACE", "LANE", "KIND", "REQUIRES", "LANE STATE", "WAITING", "OLDEST", "STORED",
					"DAMAGE"}, rows)
			}); shown != nil {
				return shown
			}
			return err
		})
	})
	return cmd
}

// laneCell colours lanes that do not do everything.
func laneCell(s flowfabric.LaneState, mixed bool) cell {
	text := string(s)
	if mixed {
		text += " (mixed)"
	}
	switch {
	case s == flowfabric.LaneDisabled:
		return cell{text, red}
	case mixed, s != flowfabric.LaneActive:
		return cell{text, yellow}
	}
	return cell{text, normal}
}
