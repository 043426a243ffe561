package admin

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// History tells what happened to an execution, oldest first: its creation, every attempt, its end, and what was out of
// the ordinary (delays, hand-backs, revocations, changed priorities and delays, replays), of which the newest 1,000
// are kept. Each event prints as one line. Errors: flowfabric.ErrNotFound; ErrResultPurged after a purge.
func (a *Admin) History(ctx context.Context, id flowfabric.ExecutionID) ([]flowfabric.Event, error) {
	if err := a.admit("history of", id); err != nil {
		return nil, err
	}
	events, err := a.store.ReadHistory(ctx, id)
	if err != nil {
		return nil, link.Operated("history of", id, err)
	}
	return events, nil
}
