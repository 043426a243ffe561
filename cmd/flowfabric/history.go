package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/ids"
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
				out := make([]historyEvent, len(events))
				for i, e := range events {
					out[i] = newHistoryEvent(e)
				}
				return a.show(out, func(p *page) {
					for _, e := range events {
						p.say("%s", e.String())
					}
				})
			})
		}),
	}
}

// historyEvent is an admin.Event for --json.
type historyEvent struct {
	At      time.Time              `json:"at"`
	Event   string                 `json:"event"`
	Attempt uint32                 `json:"attempt,omitempty"`
	Epoch   uint64                 `json:"epoch,omitempty"`
	Worker  string                 `json:"worker,omitempty"`
	Session string                 `json:"session,omitempty"`
	By      string                 `json:"by,omitempty"`
	Source  string                 `json:"source,omitempty"`
	From    string                 `json:"from,omitempty"`
	State   flowfabric.PublicState `json:"state,omitempty"`
	Detail  string                 `json:"detail,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Until   time.Time              `json:"until,omitzero"`
}

func newHistoryEvent(e admin.Event) historyEvent {
	state, _ := flowfabric.Project(e.Code)
	return historyEvent{At: utc(e.At), Event: e.Kind, Attempt: e.Attempt, Epoch: e.Epoch, Worker: ids.Worker(e.Session),
		Session: e.Session, By: e.By, Source: e.Source, From: e.From, State: state.Public, Detail: e.Detail,
		Reason: e.Reason,
		Until:  utc(e.Until)}
}
