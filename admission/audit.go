package admission

import "time"

// AuditEntry is one entry of the audit log of a gate. What is created, changed, adjusted, raised, allowed (raised for
// one execution alone), period, release or soft_limit. Which of the other fields say what the detail says depends on
// it; they are empty when the detail is not as expected.
type AuditEntry struct {
	At   time.Time `json:"at"`
	What string    `json:"what" jsonschema:"created, changed, adjusted, raised, allowed (raised for one execution alone), period, release or soft_limit"`
	// By is who; of a soft_limit the execution that passed it, or empty.
	By string `json:"by,omitempty" jsonschema:"who, or the execution that passed a soft limit"`
	// Detail is what was stored; that of a release, or of what was allowed, begins with the execution.
	Detail string `json:"detail,omitempty"`

	Gate      *Gate            `json:"gate,omitempty" jsonschema:"what it was created with, or changed to"`
	Amounts   map[string]int64 `json:"amounts,omitempty" jsonschema:"what an adjustment or a raise added, a release gave back, or was used in a period that ended"`
	Reason    string           `json:"reason,omitempty" jsonschema:"of an adjustment or a raise"`
	Period    *uint64          `json:"period,omitempty" jsonschema:"the one that ended"`
	Began     time.Time        `json:"period_began_at,omitzero"`
	Missed    uint64           `json:"periods_missed,omitempty" jsonschema:"after the one that ended"`
	Execution string           `json:"execution,omitempty" jsonschema:"of a release, who was allowed more, or who passed a soft limit"`
	Outcome   string           `json:"outcome,omitempty" jsonschema:"of a release: how the execution ended, or asked"`
	Breach    *Breach          `json:"breach,omitempty" jsonschema:"of a soft limit"`
}
