package suspend

import (
	"time"

	"github.com/google/uuid"
)

// What ended a wait ([Result].Cause).
const (
	CauseSignal           = "signal"
	CauseOperator         = "operator"
	CauseTimeout          = "timeout"
	CauseMessage          = "message"           // to a mailbox that it waited for
	CauseChildren         = "children"          // enough of those that it waited for have ended
	CauseAlreadySatisfied = "already_satisfied" // by signals, or a message, that came before the suspension
)

// Result tells what ended a wait.
type Result struct {
	Name       string // under which the handler waited; "" if it gave none
	Cause      string // CauseSignal, CauseMessage, CauseChildren, CauseOperator, CauseTimeout or CauseAlreadySatisfied
	Suspension uuid.UUID
	ResumedAt  time.Time
	TimeoutAt  time.Time      // zero: none was set
	Closer     string         // id of the signal that closed the condition; "" without one
	By         string         // the operator who resumed it
	Reason     string         // what they said
	Signals    []StoredSignal // that satisfied the condition, in the order they were accepted
}
