package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

func whyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why ID",
		Short: "Explain why an execution is where it is, and what moves it next",
		Long: `why looks at everything that decides where an execution is (its state, its queue and lane, live
workers, its lease, what it waits for, who maintains the partition) and says it in words. An id that
names nothing is explained too, with exit code 0. Scripts use "reason" of --json: it does not change
between releases.`,
		Example: `  flowfabric why 3-0197f3a0-…
  flowfabric why 3-0197f3a0-… --json | jq -r .reason`,
		Args: exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				e, err := o.Why(ctx, id)
				if err != nil {
					return err
				}
				v := newExplanation(e)
				return a.show(v, func(p *page) {
					p.say("%s", v.Why)
					p.say("%s", v.Next)
				})
			})
		}),
	}
}

// explanation is an admin.Explanation for --json.
type explanation struct {
	ID      flowfabric.ExecutionID `json:"id"`
	State   flowfabric.PublicState `json:"state,omitempty"`
	Reason  string                 `json:"reason"`
	Why     string                 `json:"why"`
	Next    string                 `json:"next"`
	At      time.Time              `json:"at,omitzero"`
	Serving *int                   `json:"workers_serving,omitempty"`
	Capable *int                   `json:"workers_capable,omitempty"`
	Ahead   *int                   `json:"ahead,omitempty"`
}

func newExplanation(e admin.Explanation) explanation {
	v := explanation{ID: e.ID, State: e.State, Reason: e.Reason, Why: commandWords.Replace(e.Sentence),
		Next: commandWords.Replace(e.Next), At: utc(e.At)}
	if e.Serving >= 0 {
		v.Serving = &e.Serving
	}
	if e.Capable >= 0 {
		v.Capable = &e.Capable
	}
	if e.Ahead >= 0 {
		v.Ahead = &e.Ahead
	}
	return v
}
