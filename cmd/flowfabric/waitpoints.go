package main

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
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
					out[i] = newWaitpoint(w)
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
							choices = append(choices, join(": ", c.Name, c.Label))
						}
						p.facts("choices", strings.Join(choices, ", "), "assignee", q.Assignee)
					}
				})
			})
		}),
	}
}

// waitpoint is an suspend.Waitpoint for --json.
type waitpoint struct {
	ID           uuid.UUID         `json:"waitpoint"`
	Key          string            `json:"key"`
	State        string            `json:"state"`
	Kid          string            `json:"kid,omitempty"`
	Fingerprint  string            `json:"token_fingerprint,omitempty"`
	CreatedAt    time.Time         `json:"created_at,omitzero"`
	ActivatedAt  time.Time         `json:"activated_at,omitzero"`
	ExpiresAt    time.Time         `json:"expires_at,omitzero"`
	Signals      int               `json:"signals"`
	Matched      int               `json:"matched"`
	LastSignalAt time.Time         `json:"last_signal_at,omitzero"`
	ClosedAt     time.Time         `json:"closed_at,omitzero"`
	CloseReason  string            `json:"close_reason,omitempty"`
	Question     *suspend.Question `json:"question,omitempty"` // of an open one, if its wait has one
}

func newWaitpoint(w suspend.Waitpoint) waitpoint {
	return waitpoint{ID: w.ID, Key: w.Key, State: w.State, Kid: w.Kid, Fingerprint: w.Fingerprint,
		CreatedAt: utc(w.CreatedAt), ActivatedAt: utc(w.ActivatedAt), ExpiresAt: utc(w.ExpiresAt), Signals: w.Signals,
		Matched:      w.Matched,
		LastSignalAt: utc(w.LastSignalAt), ClosedAt: utc(w.ClosedAt), CloseReason: w.CloseReason}
}
