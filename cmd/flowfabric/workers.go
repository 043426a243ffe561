package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

func workersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List worker processes, and give one up",
	}
	list := workersListCommand(a)
	cmd.AddCommand(list, workersMarkDeadCommand(a))
	listsAlone(cmd, list)
	return cmd
}

// workerState is how a worker is, for people.
func workerState(w flowfabric.Worker) cell {
	switch {
	case w.Dead:
		return cell{"dead", yellow}
	case w.Alive:
		return cell{"alive", green}
	}
	return cell{"lost", red}
}

func workersListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List worker processes",
		Long: `list shows the worker processes that are alive, those that were lost in the last hour, and those that an
operator gave up. A process that was killed counts as alive until its lease is over.`,
		Example: "  flowfabric workers list",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				found, err := o.Workers(ctx)
				if err != nil && len(found) == 0 {
					return err
				}
				rows := make([][]any, len(found))
				for i, w := range found {
					slots := fmt.Sprint(w.InFlight)
					if w.Concurrency > 0 {
						slots = fmt.Sprintf("%d/%d", w.InFlight, w.Concurrency)
					}
					if w.Stuck > 0 { // which it may not hold any more
						slots = fmt.Sprintf("%d/%d, %d stuck", max(w.InFlight, w.Reported), w.Concurrency, w.Stuck)
					}
					rows[i] = []any{w.Instance, workerState(w), w.Pool, join(",", w.Lanes...), join(",", w.Kinds...),
						join(",", w.Capabilities...), slots, w.Host, w.Version, instant(w.SeenAt), w.Reason}
				}
				if shown := a.show(found, func(p *page) {
					p.table([]string{"INSTANCE", "STATE", "POOL", "LANES", "KINDS", "HAS", "BUSY", "HOST", "VERSION",
						"SEEN", "WHY"}, rows)
				}); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

// markedDead is the answer of mark-dead.
type markedDead struct {
	Instance string `json:"instance"`
	Requeued int    `json:"requeued"` // executions that it held
}

func workersMarkDeadCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark-dead INSTANCE",
		Short: "Declare a worker dead and requeue its work",
		Long: `mark-dead takes everything away from a worker process that is known to be gone, without waiting for its
leases: what it held is queued again by the next tick, within about a second where workers run, which costs
no retry. It says how much that is. A process that
lives loses its running work, registers again and goes on; to stop it, stop the process.`,
		Example: "  flowfabric workers mark-dead web-17 --reason 'node was terminated'",
		Args:    exactly("INSTANCE"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				held, err := o.MarkWorkerDead(ctx, args[0], a.why())
				if err != nil {
					return err
				}
				return a.show(markedDead{args[0], held}, func(p *page) {
					if held == 0 {
						p.say("gave up %s; it held nothing", args[0])
						return
					}
					p.say(
						"gave up %s; %s will be queued again by the next tick (within about a second where workers run)",
						args[0], count(held, "execution"))
				})
			})
		}),
	}
	return cmd
}
