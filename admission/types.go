package admission

import "github.com/flowfabric/flowfabric-go/engine"

// What budgets and quotas are made of; the engine's own types.
type (
	Budget   = engine.BudgetSpec // how much may be used
	Quota    = engine.QuotaSpec  // how often, and how many at once, executions may start
	Limit    = engine.Limit      // of a dimension of a budget
	Usage    = engine.Usage      // a report of what was used
	Reported = engine.Reported   // the answer to one
	Breach   = engine.Breach     // a limit that a report passes
	Scope    = engine.Scope      // where gates are attached
)
