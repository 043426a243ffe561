package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
)

func historyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "history ID",
		Aliases: []string{"events"},
		Short:   "Tell what happened to an execution, oldest first",
		Long: `history prints one line for each event: the creation, every attempt, the end, and what was out of
the ordinary (delays, hand-backs, waits, revocations, changed priorities, replays).`,
		Example: "  flowfabric history 3-0197f3a0-…",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				events, err := o.History(ctx, id)
				if err != nil {
					return err
				}
				return a.show(events, func(p *page) {
					for _, e := range events {
						p.say("%s", e.Text)
					}
				})
			})
		}),
	}
}
