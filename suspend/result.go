package suspend

import (
	"time"

	"github.com/google/uuid"
)

// Result tells what ended a wait.
type Result struct {
	Name string // under which the handler waited; "" if it gave none

	// Cause is what ended it: "signal"; "message", to a mailbox that it waited for; "children", enough of those that
	// it waited for have ended; "operator"; "timeout"; or "already_satisfied", by signals or a message that came
	// before the suspension.
	Cause string

	Suspension uuid.UUID
	ResumedAt  time.Time
	TimeoutAt  time.Time      // zero: none was set
	Closer     string         // id of the signal that closed the condition; "" without one
	By         string         // the operator who resumed it
	Reason     string         // what they said
	Signals    []StoredSignal // that satisfied the condition, in the order they were accepted
}
