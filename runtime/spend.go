package runtime

import (
	"context"
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// spender is what reports usage, and wakes who waited for what is given back.
type spender interface {
	ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error)
	UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error)
	admit.Blocker
	ledger.Store
	tasks.Services
}

// block puts an execution back into its queue and closes that until its gate has room for what was refused, or for
// as long as the outcome says.
func (j *job) block(ctx context.Context, o handler.Outcome) error {
	fence := j.held.Fence()
	release := func() error {
		_, err := j.jobs.store.ReleaseExecution(ctx, fence)
		return err
	}
	over, ok := errors.AsType[*handler.OverBudgetError](o.Err)
	if !ok || len(over.Breaches) == 0 {
		return release()
	}
	b := over.Breaches[0]
	return admit.Block(ctx, j.jobs.store, fence, engine.RouteClosing{Route: j.route.ID, Wakes: j.wakes},
		admit.Refusal{Kind: admit.RefusedAmount, Gate: flowfabric.Gate(over.Gate), Dimension: b.Dimension,
			Used: b.Used, Limit: b.Limit, Refused: over.Amounts[b.Dimension], For: o.Delay}, release)
}

// ReportUsage implements [tasks.Spender]. Unlike other writes of a job it does not ask for the hold: what was
// spent is spent.
func (j *job) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	r, err := j.jobs.store.ReportUsage(ctx, u)
	if err == nil && (r.Applied || r.Verdict != codes.WithinBudget) {
		j.jobs.metrics.spent(r)
	}
	return r, err
}

// UndoUsage implements [tasks.Spender].
func (j *job) UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error) {
	undone, wake, err = j.jobs.store.UndoUsage(ctx, u)
	for _, w := range wake {
		if _, err := j.jobs.store.OpenRoutes(ctx, w.Partition, []uint64{w.Route}); err != nil {
			j.logger().Debug("flowfabric: a route that a gate has room for again opens by itself in a while",
				"partition", w.Partition, "error", err)
		}
	}
	return undone, nil, err
}
