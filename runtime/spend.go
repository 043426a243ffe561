package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// spender is what reports usage, and wakes who waited for what is given back.
type spender interface {
	ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error)
	UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error)
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
	AwaitBudget(ctx context.Context, partition uint16, route uint64, name string) error
	ReleaseGrants(ctx context.Context, partition uint16, session string, grants []engine.GrantReturn, closings []engine.RouteClosing) error
	ReadBudget(ctx context.Context, name string, spenders, entries int) (admission.BudgetRecord, error)
}

// block puts an execution back into its queue and closes that until its budget has more room, or for as long as the outcome says.
func (j *job) block(ctx context.Context, o handler.Outcome) error {
	fence := j.held.Fence()
	if over, ok := errors.AsType[*handler.OverBudgetError](o.Err); ok && len(over.Breaches) > 0 {
		if err := j.shut(ctx, fence, over, o.Delay); err != nil {
			return err
		}
	}
	_, err := j.jobs.store.ReleaseExecution(ctx, fence)
	return err
}

// shut closes the route, asks to be woken, and looks whether there is room meanwhile: a wake before it was asked for goes unheard.
func (j *job) shut(ctx context.Context, fence flowfabric.Fence, over *handler.OverBudgetError, most time.Duration) error {
	partition, b := fence.Execution.Partition(), over.Breaches[0]
	err := j.jobs.store.ReleaseGrants(ctx, partition, fence.Session, nil, []engine.RouteClosing{{Route: j.route.ID, For: most,
		Why: fmt.Sprintf("budget %s %s %d %d", over.Budget, b.Dimension, b.Used, b.Limit)}})
	if err != nil {
		return err
	}
	if err = j.jobs.store.AwaitBudget(ctx, partition, j.route.ID, over.Budget); err == nil {
		var now admission.BudgetRecord
		if now, err = j.jobs.store.ReadBudget(ctx, over.Budget, 0, 0); err == nil && fits(over, now) {
			_, err = j.jobs.store.OpenRoutes(ctx, partition, []uint64{j.route.ID})
		}
	}
	if errors.Is(err, denied.NoBudget) {
		return nil // the gate finds out
	}
	return err
}

// fits tells whether a budget has room now for what it refused.
func fits(over *handler.OverBudgetError, b admission.BudgetRecord) bool {
	for dim, n := range over.Amounts {
		if hard := b.Limits[dim].Hard; hard > 0 && b.Used[dim] > hard-n {
			return false
		}
	}
	return true
}

// ReportUsage implements [taskhook.Spender]. Unlike other writes of a job it does not ask for the hold: what was spent is spent.
func (j *job) ReportUsage(ctx context.Context, u admission.Usage) (admission.Reported, error) {
	r, err := j.jobs.store.ReportUsage(ctx, u)
	if err == nil {
		j.jobs.metrics.spent(r)
	}
	return r, err
}

// UndoUsage implements [taskhook.Spender].
func (j *job) UndoUsage(ctx context.Context, u admission.Usage) (undone bool, wake []engine.Waiter, err error) {
	undone, wake, err = j.jobs.store.UndoUsage(ctx, u)
	for _, w := range wake {
		if _, err := j.jobs.store.OpenRoutes(ctx, w.Partition, []uint64{w.Route}); err != nil {
			j.logger().Debug("flowfabric: a route that a budget has room for again opens by itself in a while", "partition", w.Partition, "error", err)
		}
	}
	return undone, nil, err
}
