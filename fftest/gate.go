package fftest

import (
	"context"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
)

// Gates is flowfabric.Gates for gates that need not be there: they are made in the store of the test first,
// unless they are there as described. A gate that cannot be made ends the test. What the handler spends is in
// [Report.Spent], and what became of its reservations in [Report.Reservations]. The gate of a service
// (admission.Service) is only made: handler.Task.Acquire names it.
func Gates(gates ...admission.Gate) client.SubmitOption { return withGates(gates) }

type withGates []admission.Gate

func (withGates) SubmitOption() {}

// makeGates makes the gates that options bring along, and returns options that only name them.
func (w *Env) makeGates(opts []client.SubmitOption) []client.SubmitOption {
	w.t.Helper()
	named := slices.Clone(opts)
	for i, opt := range opts {
		gates, ok := opt.(withGates)
		if !ok {
			continue
		}
		var names []string
		for _, b := range gates {
			if err := w.admin.PutGate(w.t.Context(), b, flowfabric.IfNew()); err != nil {
				w.t.Fatalf("fftest: %v", err)
			}
			if b.Service == nil {
				names = append(names, b.Name)
			}
		}
		named[i] = flowfabric.Gates(names...)
	}
	return named
}

// spent collects what an execution has spent of its gates.
func (x *Execution[Out]) spent(ctx context.Context, r *Report[Out]) error {
	r.Reservations = x.env.journal.reservations(x.ID())
	for _, g := range r.Snapshot.Route.Gates {
		if _, _, limit := g.Limit(); limit {
			continue
		}
		b, err := x.env.admin.GetGate(ctx, g.Name())
		if err != nil {
			return err
		}
		if r.Used == nil {
			r.Used = map[string]map[string]int64{}
		}
		r.Used[b.Name] = b.Used
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
