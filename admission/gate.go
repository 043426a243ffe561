package admission

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Gate says how much work that names it may use, how often it may start, and how much of it may run at once. It has up
// to three meters, and what is 0 does not limit:
//
//   - amounts: how much of each dimension (tokens, cents, bytes) may be used in a period (Limits and the fields with
//     it). This meter is a budget. Unless it only warns, it refuses a report that would pass a hard limit, and work
//     waits while one is reached. A gate has it if it has Limits, or neither Rate nor Concurrency.
//   - starts: how many executions may start in any window of time (Rate, Window, Jitter).
//   - at once: how many may run at the same time (Concurrency).
type Gate struct {
	// 1..64 letters, digits, "_", "." and "-", a letter or digit first; that of a service may have slashes
	Name  string `json:"name,omitempty"`
	Scope string `json:"scope,omitempty" jsonschema:"what it is for, for people; at most 128 bytes"`

	// Parent is a gate above it: what is reserved or spent here counts there, too, and all of them must let work pass.
	// At most eight are above each other.
	Parent string `json:"parent,omitempty" jsonschema:"the gate above it: what counts here counts there, too"`

	// by dimension, at most 64: a lower-case letter, then letters, digits, "_" and ".". What is not limited is counted
	// and never refused, unless StrictDimensions is set.
	Limits map[string]Limit `json:"limits,omitempty" jsonschema:"of what may be used in a period, by dimension, at most 64"`
	// a period, whole ms from 1 s to 10 years; 0 never resets
	Reset flowfabric.Millis `json:"reset_ms,omitzero" jsonschema:"a period, 1000..ten years; 0 never resets"`
	// OnHard is what happens to an execution whose spend is refused. "" is HardReject.
	OnHard HardAction `json:"on_hard,omitempty" jsonschema:"what happens to an execution whose spend is refused: reject (default), fail, block or ask"`
	// it only warns: counts what passes a hard limit instead of refusing it, and blocks nothing
	Warn bool `json:"warn,omitempty" jsonschema:"it only warns: counts what passes a hard limit, and blocks nothing"`
	// WarnSoft writes the crossing of a soft limit into the gate's audit log, once per period and dimension.
	WarnSoft bool `json:"warn_soft,omitempty" jsonschema:"note the crossing of a soft limit, once per period and dimension"`
	// StrictDimensions refuses reports of dimensions that have no limits here, with ErrInvalidInput. Else they are
	// counted only.
	StrictDimensions bool `json:"strict,omitempty" jsonschema:"refuse dimensions that have no limits here; else they are counted only"`
	// failed, cancelled, expired: what such executions reported in this period is given back
	Refund []string `json:"refund,omitempty" jsonschema:"failed, cancelled, expired: what such executions used in this period is given back"`

	// Rate is how many executions may start in any window, at most 1,000,000. A start is counted when the gate
	// admits it, on the server's clock; the handler begins milliseconds later, 5 s at most. So stay a little under
	// the hard limit of an API. Starts are not spread over the window: all of them may arrive in one burst.
	Rate int `json:"rate,omitempty" jsonschema:"starts within any window_ms, at most 1000000; 0: no bound"`
	// sliding, whole ms, at most 30 days; required with Rate
	Window flowfabric.Millis `json:"window_ms,omitzero" jsonschema:"at most 30 days; needed with rate"`
	// added at random to the time of the next try, 0..60 s; a tenth of the window, up to 1 s, is always added
	Jitter flowfabric.Millis `json:"jitter_ms,omitzero" jsonschema:"added at random to the time of the next try, at most 60000"`

	// executions that run at the same time, at most 1,000,000; a suspended one does not count
	Concurrency int `json:"concurrency,omitempty" jsonschema:"how many run at once, at most 1000000; 0: no bound"`

	// Service is for the gate of a service, which is asked for each call and has nothing of the above but Scope.
	Service *Service `json:"service,omitempty" jsonschema:"for the gate of a service, asked for each call; without other meters"`
}

// CountsAmounts reports whether the gate has a meter of amounts.
func (g Gate) CountsAmounts() bool {
	return g.Service == nil && (len(g.Limits) > 0 || g.Rate == 0 && g.Concurrency == 0)
}

// Limit bounds a dimension. Both values are 0..2^53-1, Soft is not above Hard. **0 = UNLIMITED**: it does not forbid
// all use.
type Limit struct {
	// a report that would exceed it is refused; work waits while it is reached
	Hard int64 `json:"hard,omitempty" jsonschema:"work waits when it is reached; 0: none"`
	// a report that exceeds it is counted, and noted: in the report's answer, and with WarnSoft in the audit log
	Soft int64 `json:"soft,omitempty" jsonschema:"only warns; 0: none"`
}

// HardAction decides what happens to an execution whose report would pass a hard limit.
type HardAction string

// What a gate does about a spend that would pass a hard limit ([Gate].OnHard). The refused spend is not counted,
// whatever follows.
const (
	HardReject HardAction = "reject" // the handler gets the error and decides; the default
	// the handler's context ends, and the execution fails for good, category budget_exceeded
	HardFail HardAction = "fail"
	// HardBlock ends the handler's context and puts the execution back into its queue. It goes on, as the same
	// attempt, when the gate has room for all of the refused spend, begins its next period, or has other limits.
	// Work behind it in its queue waits with it. A single spend that is above the limit fails it, as with HardFail.
	HardBlock HardAction = "block"
	// HardAsk ends the handler's context and asks a person, in the approvals of operators. The execution is suspended;
	// it keeps its steps, and uses no retry. An approval raises the limits for the period that goes on, or for this
	// execution alone, and the handler runs again; a rejection gives the handler the error, as HardReject does. Work
	// starts also while a limit is reached, since nobody would ask otherwise.
	HardAsk HardAction = "ask"
)

// GateRecord is the state of a gate, as it was read.
type GateRecord struct {
	Gate
	Revision  uint64    `json:"revision"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ChangedBy string    `json:"updated_by,omitempty"`
	Waiting   int       `json:"waiting" jsonschema:"queues that wait for it: routes of partitions"`

	// Of its amounts.
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
	// Reserved is what of Used is set aside for calls that have not settled.
	Reserved map[string]int64 `json:"reserved,omitempty" jsonschema:"what of it is set aside for calls that have not settled"`
	// in this period, by dimension with a limit: what was to be counted, and did not fit; it may have been paid for
	Refused map[string]int64 `json:"refused,omitempty" jsonschema:"in this period, by dimension with a limit: what was to be counted, and did not fit"`
	// Raised is by how much hard limits are higher in this period.
	Raised map[string]int64 `json:"raised,omitempty" jsonschema:"by how much hard limits are higher in this period"`
	// Hours is what was used in each of the last 24 hours and in this one, by dimension, whatever the period: 25
	// numbers, the oldest first. Hours begin at whole hours of UTC. What is given back counts against the hour in which
	// it is, at most to 0; what operators correct is not in it. Not in lists.
	Hours map[string][]int64 `json:"hours,omitempty" jsonschema:"used in each of the last 24 hours of UTC and in this one, by dimension: 25 numbers, the oldest first; not in lists"`
	// Headroom is how much is left until the hard limit, 0 or more, by dimension that has one.
	Headroom map[string]int64 `json:"headroom,omitempty" jsonschema:"until the hard limit, by dimension that has one"`
	// Exhausted are the dimensions whose hard limit is reached, sorted: work that names the gate waits while there are
	// any, unless it only warns, or asks (HardAsk).
	Exhausted []string `json:"exhausted,omitempty" jsonschema:"dimensions without room"`
	// EmptyAt is when the first hard limit is reached if the use of this period goes on as it was so far; zero: not
	// before the period ends.
	EmptyAt    time.Time `json:"empty_at,omitzero" jsonschema:"when the first limit is reached if it goes on like this; absent: not before the period ends"`
	ForAmounts int       `json:"waiting_for_amounts" jsonschema:"queues"`
	Line       []Spender `json:"line,omitempty" jsonschema:"who waits for amounts, the first in front; not in lists"`
	Spenders   []Spender `json:"spenders,omitempty" jsonschema:"who used of it, the newest first; not in lists"`

	// State is that of the gate of a service. Its Line is who waits for a call, and its Slots are calls under way.
	State *ServiceState `json:"state,omitempty" jsonschema:"of a service"`

	// Of its starts and slots.
	Started  int      `json:"started" jsonschema:"in the window"`
	Held     int      `json:"held" jsonschema:"slots that are taken"`
	Free     *int     `json:"free,omitempty" jsonschema:"slots that are not; absent: it does not limit how many run at once"`
	Suspect  int      `json:"suspect" jsonschema:"holds that were not confirmed for a while"`
	ForSlots int      `json:"waiting_for_slots"`
	ForRate  int      `json:"waiting_for_rate" jsonschema:"for room in the window"`
	Holds    []string `json:"-"` // "<partition>.<execution>:<epoch>", those first that become suspect first
	// Slots are the Holds, read.
	Slots []Hold `json:"holds,omitempty" jsonschema:"who has the slots, at most 1000; not in lists"`

	Audit []AuditEntry `json:"events,omitempty" jsonschema:"what happened to it, the newest first; not in lists"`
}

// Spender is an execution that reported usage, or waits in line for some. Its numbers are of the period in which it
// reported last.
type Spender struct {
	Execution flowfabric.ExecutionID `json:"execution"`
	At        time.Time              `json:"at" jsonschema:"of its last report, or when it asked last"`
	Period    uint64                 `json:"period"`
	Late      uint64                 `json:"late,omitempty" jsonschema:"reports under a lease that was not the newest of the execution"`
	Used      map[string]int64       `json:"used,omitempty"`
	Reserved  map[string]int64       `json:"reserved,omitempty" jsonschema:"for calls that have not settled"`
	Waits     map[string]int64       `json:"waits_for,omitempty" jsonschema:"what it waits for, in line"`
	Refusals  int                    `json:"refusals,omitempty" jsonschema:"how often it was refused that"`
	// Of one that waits for a call of a service: its namespace, in how long its turn comes, and whether it gave its
	// slot up meanwhile. At is when it asks again.
	Namespace string            `json:"namespace,omitempty" jsonschema:"of a service: by whose weight it waits"`
	Turn      flowfabric.Millis `json:"turn_ms,omitzero" jsonschema:"of a service: in how long its turn comes"`
	Away      bool              `json:"away,omitempty" jsonschema:"of a service: it waits without a slot"`
}

// Hold is a slot of a gate that an execution has.
type Hold struct {
	Execution string `json:"execution"`
	Epoch     uint64 `json:"epoch,omitempty" see:"operator" jsonschema:"of its lease"`
}
