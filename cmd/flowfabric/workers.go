package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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

// workerView is a admin.Worker for --json.
type workerView struct {
	Instance     string            `json:"instance"`
	State        string            `json:"state"` // alive, lost, or dead: given up by an operator
	Pool         string            `json:"pool,omitempty"`
	Namespace    string            `json:"namespace,omitempty"`
	Lanes        []string          `json:"lanes,omitempty"`
	Kinds        []string          `json:"kinds,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Concurrency  int               `json:"concurrency,omitempty"`
	InFlight     int               `json:"in_flight"`
	Stuck        int               `json:"stuck,omitempty"` // slots of handlers that ignore the end of their context
	Sessions     int               `json:"sessions"`
	Host         string            `json:"host,omitempty"`
	PID          int               `json:"pid,omitempty"`
	Version      string            `json:"version,omitempty"`
	Revision     int               `json:"library_revision,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Registered   bool              `json:"registered"` // false: its registration was forgotten
	StartedAt    time.Time         `json:"started_at,omitzero"`
	SeenAt       time.Time         `json:"seen_at,omitzero"`
	ExpiresAt    time.Time         `json:"expires_at,omitzero"`
	Reason       string            `json:"reason,omitempty"` // why it was given up
}

func newWorkerView(w admin.Worker) workerView {
	i := w.Info
	v := workerView{Instance: w.Instance, State: "lost", Pool: i.Pool, Namespace: i.Namespace, Lanes: i.Lanes,
		Kinds: i.Kinds, Capabilities: i.Capabilities, Concurrency: i.Concurrency, InFlight: w.InFlight, Stuck: w.Stuck,
		Sessions: len(w.Sessions), Host: i.Host, PID: i.PID, Version: i.Version, Revision: i.Revision, Labels: i.Labels,
		Registered: w.Registered,
		StartedAt:  utc(i.StartedAt),
		SeenAt:     utc(w.LastSeen), ExpiresAt: utc(w.ExpiresAt), Reason: w.Reason}
	switch {
	case w.Dead:
		v.State = "dead"
	case w.Alive:
		v.State = "alive"
	}
	return v
}

func (v workerView) state() cell {
	return cell{v.State, map[string]style{"alive": green, "lost": red, "dead": yellow}[v.State]}
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
				out := make([]workerView, len(found))
				rows := make([][]any, len(found))
				for i, w := range found {
					v := newWorkerView(w)
					out[i] = v
					slots := fmt.Sprint(v.InFlight)
					if v.Concurrency > 0 {
						slots = fmt.Sprintf("%d/%d", v.InFlight, v.Concurrency)
					}
					if v.Stuck > 0 { // which it may not hold any more
						slots = fmt.Sprintf("%d/%d, %d stuck", max(v.InFlight, w.Reported), v.Concurrency, v.Stuck)
					}
					rows[i] = []any{v.Instance, v.state(), v.Pool, join(",", v.Lanes...), join(",", v.Kinds...),
						join(",", v.Capabilities...), slots, v.Host, v.Version, instant(v.SeenAt), v.Reason}
				}
				if shown := a.show(out, func(p *page) {
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
