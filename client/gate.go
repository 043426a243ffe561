package client

import flowfabric "github.com/flowfabric/flowfabric-go"

type gates func([]flowfabric.Gate) []flowfabric.Gate

func (g gates) submit(s *submission)         { s.item.Gates = g(s.item.Gates) }
func (g gates) schedule(s *scheduling)       { g.submit(&s.submission) }
func (g gates) submitFlow(q *flowSubmission) { q.gates = g(q.gates) }

// Budgets names the budgets that must have room before the execution runs, and that its handler spends of: at most 16, instead of
// those of its definition. Those that are attached to its namespace, lane or tags come in addition ([Admin.AttachGates]). Of a flow: in
// addition to those of its nodes, for all of them. A budget that does not exist refuses the submission with flowfabric.ErrBudgetNotFound
// before anything is created; what is known to exist is believed for 10 s.
func Budgets(names ...string) CommonOption {
	return gates(func(g []flowfabric.Gate) []flowfabric.Gate { return flowfabric.WithBudgets(g, names...) })
}

// Quotas names the quotas that must admit the execution before it runs: at most 8, as [Budgets] does budgets. One that does not exist
// is flowfabric.ErrQuotaNotFound.
func Quotas(names ...string) CommonOption {
	return gates(func(g []flowfabric.Gate) []flowfabric.Gate { return flowfabric.WithQuotas(g, names...) })
}
