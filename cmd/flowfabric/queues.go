package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// scope adds the flag that looks at all namespaces, and makes the options from it.
func (a *app) scope(cmd *cobra.Command) func() []client.ScopeOption {
	var all bool
	cmd.Flags().BoolVar(&all, "all-namespaces", false, "of all namespaces")
	return func() []client.ScopeOption {
		if all {
			return []client.ScopeOption{client.AllNamespaces()}
		}
		return nil
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
		return a.with(ctx, func(c *client.Client) error {
			found, err := c.Queues(ctx, scope()...)
			if err != nil && len(found) == 0 {
				return err
			}
			out := make([]queue, len(found))
			rows := make([][]any, len(found))
			for i, q := range found {
				out[i] = newQueue(q)
				rows[i] = []any{q.Namespace, q.Lane, q.Kind, join(",", q.Capabilities...), laneCell(q.State, q.Mixed), q.Depth, instant(q.Oldest), q.Retained, q.Drift}
			}
			if shown := a.show(out, func(p *page) {
				p.table([]string{"NAMESPACE", "LANE", "KIND", "REQUIRES", "LANE STATE", "WAITING", "OLDEST", "STORED", "DAMAGE"}, rows)
			}); shown != nil {
				return shown
			}
			return err
		})
	})
	return cmd
}

// queue is a client.Queue for --json.
type queue struct {
	Namespace    string           `json:"namespace"`
	Lane         string           `json:"lane"`
	Kind         string           `json:"kind"`
	Capabilities []string         `json:"capabilities,omitempty"`
	State        engine.LaneState `json:"lane_state"`
	Mixed        bool             `json:"mixed,omitempty"` // partitions differ in the lane's state
	Waiting      int              `json:"waiting"`
	Oldest       time.Time        `json:"oldest_at,omitzero"`
	Priority     int              `json:"highest_priority"`
	Stored       int              `json:"stored"`
	Drift        string           `json:"drift,omitempty"`
}

func newQueue(q client.Queue) queue {
	return queue{Namespace: q.Namespace, Lane: q.Lane, Kind: q.Kind, Capabilities: q.Capabilities, State: q.State, Mixed: q.Mixed,
		Waiting: q.Depth, Oldest: utc(q.Oldest), Priority: q.Priority, Stored: q.Retained, Drift: q.Drift}
}

// laneCell colours lanes that do not do everything.
func laneCell(s engine.LaneState, mixed bool) cell {
	text := string(s)
	if mixed {
		text += " (mixed)"
	}
	switch {
	case s == engine.LaneDisabled:
		return cell{text, red}
	case mixed, s != engine.LaneActive:
		return cell{text, yellow}
	}
	return cell{text, normal}
}
