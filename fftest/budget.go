package fftest

import (
	"context"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
)

// Budgets is client.Budgets for budgets that need not be there: they are made in the store of the test first, unless they are there as
// described. A budget that cannot be made ends the test. What the handler spends is in [Report.Spent].
func Budgets(budgets ...admission.Budget) client.SubmitOption {
	names := make([]string, len(budgets))
	for i, b := range budgets {
		names[i] = b.Name
	}
	return withBudgets{client.Budgets(names...), budgets}
}

type withBudgets struct {
	client.SubmitOption
	budgets []admission.Budget
}

// makeBudgets makes the budgets that options bring along.
func (w *Env) makeBudgets(opts []client.SubmitOption) {
	w.t.Helper()
	for _, opt := range opts {
		with, _ := opt.(withBudgets)
		for _, b := range with.budgets {
			if err := w.admin.PutBudget(w.t.Context(), b, 0); err != nil {
				w.t.Fatalf("fftest: %v", err)
			}
		}
	}
}

// spent collects what an execution has spent of its budgets.
func (x *Execution[Out]) spent(ctx context.Context, r *Report[Out]) error {
	for _, g := range r.Snapshot.Route.Gates {
		if !g.IsBudget() {
			continue
		}
		b, err := x.env.admin.GetBudget(ctx, g.Name())
		if err != nil {
			return err
		}
		for _, s := range b.Spenders {
			if s.Execution == x.ID() {
				if r.Spent == nil {
					r.Spent = map[string]map[string]int64{}
				}
				r.Spent[b.Name] = s.Used
			}
		}
	}
	return nil
}
