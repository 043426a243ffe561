package suspend

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Result tells what ended a wait.
type Result struct {
	Name string `json:"name,omitempty" jsonschema:"under which the handler waited"`

	Cause Cause `json:"cause" jsonschema:"signal, message, children, operator, timeout or already_satisfied"`

	Suspension flowfabric.UUID `json:"-"`
	ResumedAt  time.Time       `json:"resumed_at,omitzero"`
	TimeoutAt  time.Time       `json:"timeout_at,omitzero"` // zero: none was set
	Closer     string          `json:"closer,omitempty" jsonschema:"the id of the signal that closed the condition"`
	By         string          `json:"by,omitempty" jsonschema:"the operator who resumed it"`
	Reason     string          `json:"reason,omitempty" jsonschema:"their reason"`
	// Signals are those that satisfied the condition, in the order they were accepted.
	Signals []StoredSignal `json:"signals,omitempty"`
}
