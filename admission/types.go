package admission

import "github.com/flowfabric/flowfabric-go/engine"

// What budgets and quotas are made of, see package engine.
type (
	// Budget says how much may be used.
	Budget = engine.BudgetSpec
	// Quota says how often, and how much at once, may start.
	Quota = engine.QuotaSpec
	// Limit of a dimension of a budget; 0 is none.
	Limit = engine.Limit
	// Usage is a report of what was used of a budget.
	Usage = engine.Usage
	// Reported answers a report.
	Reported = engine.Reported
	// Breach is a limit that a report passes, or would.
	Breach = engine.Breach
	// Scope is where gates are attached: everything (the zero value), a namespace, a lane of one, or a tag and its value.
	Scope = engine.Scope
)
