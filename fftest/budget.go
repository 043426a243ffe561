package fftest

import (
	"context"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
)

// Budgets is flowfabric.Budgets for budgets that need not be there: they are made in the store of the test first,
// unless they are there as described. A budget that cannot be made ends the test. What the handler spends is in
// [Report.Spent].
func Budgets(budgets ...admission.Budget) client.SubmitOption { return withBudgets(budgets) }

type withBudgets []admission.Budget

func (withBudgets) SubmitOption() {}

// makeBudgets makes the budgets that options bring along, and returns options that only name them.
func (w *Env) makeBudgets(opts []client.SubmitOption) []client.SubmitOption {
	w.t.Helper()
	named := slices.Clone(opts)
	for i, opt := range opts {
		budgets, ok := opt.(withBudgets)
		if !ok {
			continue
		}
		var names []string
		for _, b := range budgets {
			if err := w.admin.PutBudget(w.t.Context(), b, flowfabric.IfNew()); err != nil {
				w.t.Fatalf("fftest: %v", err)
			}
			names = append(names, b.Name)
		}
		named[i] = flowfabric.Budgets(names...)
	}
	return named
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
