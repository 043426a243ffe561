package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func waitpointsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "waitpoints ID",
		Short: "List what an execution waits for, and what it waited for",
		Long: `waitpoints lists the waitpoints of an execution, open ones first. Of a token only the key it is signed
with and a fingerprint are shown, never the token. What people are asked follows, if the wait has a question.`,
		Example: "  flowfabric waitpoints 3-0197f3a0-…",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.with(ctx, func(c *client.Client) error {
				found, err := c.Waitpoints(ctx, id)
				if err != nil {
					return err
				}
				asked, err := c.Suspension(ctx, id)
				if err != nil {
					return err
				}
				q := asked.Question
				if !asked.ClosedAt.IsZero() {
					q = nil
				}
				out := make([]waitpoint, len(found))
				rows := make([][]any, len(found))
				for i, w := range found {
					out[i].Waitpoint = w
					if w.Suspension == asked.ID && w.Open() {
						out[i].Question = q
					}
					rows[i] = []any{w.Key, w.State, w.ID, w.Signals, w.Matched, instant(w.CreatedAt),
						instant(w.ExpiresAt), instant(w.ClosedAt), w.CloseReason}
				}
				return a.show(out, func(p *page) {
					p.table([]string{"KEY", "STATE", "WAITPOINT", "SIGNALS", "MATCHED", "CREATED", "EXPIRES", "CLOSED",
						"WHY"}, rows)
					if q != nil {
						p.say("\n%s", q.Title)
						if q.Text != "" && q.Text != q.Title {
							for _, line := range textLines(q.Text) {
								p.say("  %s", line)
							}
						}
						var choices []string
						for _, c := range q.Choices {
							if c.Label == c.Name {
								c.Label = ""
							}
							choices = append(choices, join(": ", c.Name, c.Label))
						}
						p.facts("choices", strings.Join(choices, ", "), "assignee", q.Assignee)
					}
				})
			})
		}),
	}
}

// waitpoint is one with what people are asked, if it is open and its wait has a question.
type waitpoint struct {
	suspend.Waitpoint
	Question *suspend.Question `json:"question,omitempty"`
}
