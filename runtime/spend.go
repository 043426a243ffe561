package runtime

import (
	"context"

	"github.com/flowfabric/flowfabric-go/engine"
)

// spender is what reports usage, and wakes who waited for what is given back.
type spender interface {
	ReportUsage(ctx context.Context, u engine.Usage) (engine.Reported, error)
	UndoUsage(ctx context.Context, u engine.Usage) (undone bool, wake []engine.Waiter, err error)
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
}

// ReportUsage implements [handler.Spender]. Unlike other writes of a job it does not ask for the hold: what was spent is spent.
func (j *job) ReportUsage(ctx context.Context, u engine.Usage) (engine.Reported, error) {
	r, err := j.store.ReportUsage(ctx, u)
	if err == nil {
		j.metrics.spent(r)
	}
	return r, err
}

// UndoUsage implements [handler.Spender].
func (j *job) UndoUsage(ctx context.Context, u engine.Usage) (undone bool, wake []engine.Waiter, err error) {
	undone, wake, err = j.store.UndoUsage(ctx, u)
	for _, w := range wake {
		if _, err := j.store.OpenRoutes(ctx, w.Partition, []uint64{w.Route}); err != nil {
			j.logger().Debug("flowfabric: a route that a budget has room for again opens by itself in a while", "partition", w.Partition, "error", err)
		}
	}
	return undone, nil, err
}
