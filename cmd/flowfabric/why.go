package main

import (
	"context"

	"github.com/spf13/cobra"

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
				e.Sentence, e.Next = commandWords.Replace(e.Sentence), commandWords.Replace(e.Next)
				return a.show(e, func(p *page) {
					p.say("%s", e.Sentence)
					p.say("%s", e.Next)
				})
			})
		}),
	}
}
