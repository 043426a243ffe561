package admission

import "github.com/flowfabric/flowfabric-go/internal/engine"

// What budgets and quotas are made of, see package engine.
type (
	// Budget says how much may be used. Its fields: [engine.BudgetSpec].
	Budget = engine.BudgetSpec
	// Quota says how often work may start, and how much of it may run at once. Its fields: [engine.QuotaSpec].
	Quota = engine.QuotaSpec
	// Limit of a dimension of a budget. **0 = UNLIMITED**.
	Limit = engine.Limit
	// Usage is a report of what was used of a budget.
	Usage = engine.Usage
	// Reported answers a report.
	Reported = engine.Reported
	// Verdict of a report.
	Verdict = engine.Verdict
	// Breach is a limit that a report passes, or would.
	Breach = engine.Breach
	// HardAction is what happens to an execution whose spend a budget refuses.
	HardAction = engine.HardAction
	// Scope is where gates are attached: everything (the zero value), a namespace, a lane of one, or a tag and its value.
	Scope = engine.Scope
)

// What a budget does about a spend that would pass a hard limit (Budget.OnHard). Nothing of that spend is counted.
const (
	// HardReject leaves it to the handler, which gets the error. The default.
	HardReject = engine.HardReject
	// HardFail ends the handler's context, and fails the execution for good, category budget_exceeded.
	HardFail = engine.HardFail
	// HardBlock ends the handler's context and puts the execution back into its queue. It goes on, as the same attempt, as soon as there
	// may be room: with the budget's next period, a higher limit or a refund, else it tries again after 30 s. A single spend that is above
	// the limit fails it, as with HardFail.
	HardBlock = engine.HardBlock
)

// What a budget says to a report (Reported.Verdict).
const (
	// WithinBudget: it was counted, and no limit is passed.
	WithinBudget = engine.WithinBudget
	// SoftBreach: it was counted, and a soft limit is passed.
	SoftBreach = engine.SoftBreach
	// HardBreach: it would pass a hard limit. It was not counted, unless the budget only warns.
	HardBreach = engine.HardBreach
)
