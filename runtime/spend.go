package runtime

import (
	"context"
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// spender is what reports usage, and wakes who waited for what is given back.
type spender interface {
	ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error)
	UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error)
	admit.Blocker
}

// block puts an execution back into its queue and closes that until its budget has room for what was refused, or for
// as long as the outcome says.
func (j *job) block(ctx context.Context, o handler.Outcome) error {
	fence := j.held.Fence()
	if over, ok := errors.AsType[*handler.OverBudgetError](o.Err); ok && len(over.Breaches) > 0 {
		b := over.Breaches[0]
		err := admit.Block(ctx, j.jobs.store, fence, j.route.ID,
			admit.Refusal{Kind: admit.RefusedBudget, Gate: flowfabric.BudgetGate(over.Budget), Dimension: b.Dimension,
				Used: b.Used, Limit: b.Limit, Refused: over.Amounts[b.Dimension], For: o.Delay})
		if err != nil {
			return err
		}
	}
	_, err := j.jobs.store.ReleaseExecution(ctx, fence)
	return err
}

// ReportUsage implements [tasks.Spender]. Unlike other writes of a job it does not ask for the hold: what was
// spent is spent.
func (j *job) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	r, err := j.jobs.store.ReportUsage(ctx, u)
	if err == nil {
		j.jobs.metrics.spent(r)
	}
	return r, err
}

// UndoUsage implements [tasks.Spender].
func (j *job) UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error) {
	undone, wake, err = j.jobs.store.UndoUsage(ctx, u)
	for _, w := range wake {
		if _, err := j.jobs.store.OpenRoutes(ctx, w.Partition, []uint64{w.Route}); err != nil {
			j.logger().Debug("flowfabric: a route that a budget has room for again opens by itself in a while",
				"partition", w.Partition, "error", err)
		}
	}
	return undone, nil, err
}
