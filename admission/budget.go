package admission

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Budget says how much may be used. Unless it only warns, it enforces its hard limits: it refuses a report that would
// pass one, and work that asks it waits while one is reached. Dimensions without a limit are counted and never
// refused, unless StrictDimensions is set.
type Budget struct {
	Name  string `json:"name,omitempty"` // 1..64 letters, digits, "_", "." and "-", a letter or digit first
	Scope string `json:"scope,omitempty" jsonschema:"what it is for, for people; at most 128 bytes"`
	// it only warns: counts what passes a hard limit instead of refusing it, and blocks nothing
	Warn bool `json:"warn,omitempty" jsonschema:"it only warns: counts what passes a hard limit, and blocks nothing"`
	// OnHard is what happens to an execution whose spend is refused. "" is HardReject.
	OnHard HardAction `json:"on_hard,omitempty" jsonschema:"what happens to an execution whose spend is refused: reject (default), fail or block"`
	// WarnSoft writes the crossing of a soft limit into the budget's audit log, once per period and dimension.
	WarnSoft bool `json:"warn_soft,omitempty" jsonschema:"note the crossing of a soft limit, once per period and dimension"`
	// a period, whole ms from 1 s to 10 years; 0 never resets
	Reset flowfabric.Millis `json:"reset_ms,omitzero" jsonschema:"a period, 1000..ten years; 0 never resets"`
	// StrictDimensions refuses reports of dimensions that have no limits here, with ErrInvalidInput. Else they are
	// counted only.
	StrictDimensions bool `json:"strict,omitempty" jsonschema:"refuse dimensions that have no limits here; else they are counted only"`
	// failed, cancelled, expired: what such executions reported in this period is given back
	Refund []string `json:"refund,omitempty" jsonschema:"failed, cancelled, expired: what such executions used in this period is given back"`
	// by dimension, at most 64: a lower-case letter, then letters, digits, "_" and "."
	Limits map[string]Limit `json:"limits,omitempty" jsonschema:"by dimension, at most 64"`
}

// Limit bounds a dimension. Both values are 0..2^53-1, Soft is not above Hard. **0 = UNLIMITED**: it does not forbid
// all use.
type Limit struct {
	// a report that would pass it is refused; work waits while it is reached
	Hard int64 `json:"hard,omitempty" jsonschema:"work waits when it is reached; 0: none"`
	// a report that passes it is counted, and told of: in the report's answer, and with WarnSoft in the audit log
	Soft int64 `json:"soft,omitempty" jsonschema:"only warns; 0: none"`
}

// HardAction decides what happens to an execution whose report would pass a hard limit.
type HardAction string

// What a budget does about a spend that would pass a hard limit ([Budget].OnHard). The refused spend is not counted,
// whatever follows.
const (
	HardReject HardAction = "reject" // the handler gets the error and decides; the default
	// the handler's context ends, and the execution fails for good, category budget_exceeded
	HardFail HardAction = "fail"
	// HardBlock ends the handler's context and puts the execution back into its queue. It goes on, as the same
	// attempt, when the budget has room for all of the refused spend, begins its next period, or has other limits.
	// Work behind it in its queue waits with it. A single spend that is above the limit fails it, as with HardFail.
	HardBlock HardAction = "block"
)

// BudgetRecord is the state of a budget, as it was read.
type BudgetRecord struct {
	Budget
	Revision     uint64           `json:"revision"`
	CreatedAt    time.Time        `json:"created_at,omitzero"`
	ChangedBy    string           `json:"updated_by,omitempty"`
	Period       uint64           `json:"period" jsonschema:"how often it was reset"`
	PeriodBegan  time.Time        `json:"period_began_at,omitzero"`
	NextReset    time.Time        `json:"next_reset_at,omitzero"` // zero = never
	LastReset    time.Time        `json:"last_reset_at,omitzero"`
	Missed       uint64           `json:"periods_missed,omitempty" jsonschema:"that passed without a reset before the last one"`
	HardBreaches uint64           `json:"hard_breaches"`
	SoftBreaches uint64           `json:"soft_breaches"`
	LastBreach   time.Time        `json:"last_breach_at,omitzero" jsonschema:"of a hard limit, in this period"`
	BreachedDim  string           `json:"last_breach_dimension,omitempty"`
	Used         map[string]int64 `json:"used,omitempty"`
	// in this period, by dimension with a limit: what was to be counted, and did not fit; it may have been paid for
	Refused map[string]int64 `json:"refused,omitempty" jsonschema:"in this period, by dimension with a limit: what was to be counted, and did not fit"`
	// Headroom is how much is left until the hard limit, 0 or more, by dimension that has one.
	Headroom map[string]int64 `json:"headroom,omitempty" jsonschema:"until the hard limit, by dimension that has one"`
	// Exhausted are the dimensions whose hard limit is reached, sorted: work that has the budget as a gate waits while
	// there are any, unless the budget only warns.
	Exhausted []string     `json:"exhausted,omitempty" jsonschema:"dimensions without room"`
	Waiting   int          `json:"waiting" jsonschema:"queues that wait for it: routes of partitions"`
	Audit     []AuditEntry `json:"events,omitempty" jsonschema:"what happened to it, the newest first; not in lists"`
	Spenders  []Spender    `json:"spenders,omitempty" jsonschema:"who used of it, the newest first; not in lists"`
}

// Spender is an execution that reported usage. Its numbers are of the period in which it reported last.
type Spender struct {
	Execution flowfabric.ExecutionID `json:"execution"`
	At        time.Time              `json:"at"`
	Period    uint64                 `json:"period"`
	Late      uint64                 `json:"late,omitempty" jsonschema:"reports under a lease that was not the newest of the execution"`
	Used      map[string]int64       `json:"used"`
}
