package admission

import (
	"maps"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Budget says how much may be used. Unless it only warns, it enforces its hard limits: it refuses a report that would
// pass one, and work that asks it waits while one is reached. Dimensions without a limit are counted and never
// refused, unless StrictDimensions is set.
type Budget struct {
	Name  string // 1..64 letters, digits, "_", "." and "-", a letter or digit first
	Scope string // what it is for, for people; at most 128 bytes
	Warn  bool   // it only warns: counts what passes a hard limit instead of refusing it, and blocks nothing
	// OnHard is what happens to an execution whose spend is refused. "" is HardReject.
	OnHard HardAction
	// WarnSoft writes the crossing of a soft limit into the budget's audit log, once per period and dimension.
	WarnSoft bool
	Reset    time.Duration // a period, whole ms from 1 s to 10 years; 0 never resets
	// StrictDimensions refuses reports of dimensions that have no limits here, with ErrInvalidInput. Else they are
	// counted only.
	StrictDimensions bool
	// failed, cancelled, expired: what such executions reported in this period is given back
	Refund []string
	// by dimension, at most 64: a lower-case letter, then letters, digits, "_" and "."
	Limits map[string]Limit
}

// Limit bounds a dimension. Both values are 0..2^53-1, Soft is not above Hard. **0 = UNLIMITED**: it does not forbid
// all use.
type Limit struct {
	Hard int64 // a report that would pass it is refused; work waits while it is reached
	// a report that passes it is counted, and told of: in the report's answer, and with WarnSoft in the audit log
	Soft int64
}

// HardAction is what a worker does with an execution whose report would pass a hard limit.
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
	Revision     uint64
	CreatedAt    time.Time
	ChangedBy    string
	Period       uint64 // how often it was reset
	PeriodBegan  time.Time
	NextReset    time.Time // zero = never
	LastReset    time.Time
	Missed       uint64 // periods that passed without a reset before the last one
	HardBreaches uint64
	SoftBreaches uint64
	LastBreach   time.Time // of a hard limit, in this period
	BreachedDim  string
	Used         map[string]int64
	// in this period, by dimension with a limit: what was to be counted, and did not fit; it may have been paid for
	Refused  map[string]int64
	Waiting  int          // routes of partitions that wait for it
	Audit    []AuditEntry // newest first
	Spenders []Spender    // newest first
}

// Headroom is how much of a dimension is left until its hard limit, 0 or more; limited is false when it has none.
func (b BudgetRecord) Headroom(dimension string) (left int64, limited bool) {
	hard := b.Limits[dimension].Hard
	if hard == 0 {
		return 0, false
	}
	return max(0, hard-b.Used[dimension]), true
}

// Exhausted are the dimensions whose hard limit is reached, sorted: work that has the budget as a gate waits while
// there are any, unless the budget only warns.
func (b BudgetRecord) Exhausted() []string {
	var out []string
	for _, dim := range slices.Sorted(maps.Keys(b.Limits)) {
		if left, limited := b.Headroom(dim); limited && left == 0 {
			out = append(out, dim)
		}
	}
	return out
}

// Spender is an execution that reported usage. Its numbers are of the period in which it reported last.
type Spender struct {
	Execution flowfabric.ExecutionID
	At        time.Time
	Period    uint64
	Late      uint64 // reports under a lease that was not the execution's newest
	Used      map[string]int64
}
