package suspend

import (
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Waitpoint is a waitpoint as anybody may see it: never its token, nor what would do in its stead.
type Waitpoint struct {
	ID           uuid.UUID
	Key          string
	State        string // pending (opened before its wait), active, closed or expired
	Kid          string // of the key its token is signed with
	Fingerprint  string // of the token, 16 hex digits
	CreatedAt    time.Time
	ActivatedAt  time.Time
	ExpiresAt    time.Time // pending: when it expires; active: the suspension's timeout
	Suspension   uuid.UUID
	Signals      int
	Matched      int
	LastSignalAt time.Time
	ClosedAt     time.Time
	CloseReason  string
	// the second in which a token was last refused for it; zero: not lately. A partition remembers its last 256
	RefusedAt time.Time
}

// Open reports whether the waitpoint takes signals.
func (w Waitpoint) Open() bool { return w.State == "pending" || w.State == "active" }

// Record is the current suspension of an execution, or its last one.
type Record struct {
	Code         flowfabric.Code   // the execution's state now
	Flow         flowfabric.FlowID // of which the execution is a node or a child; zero: none
	ID           uuid.UUID         // nil: it was never suspended
	Name         string
	Reason       string
	Question     *Question // that people are asked; nil: none
	Behaviour    string
	CreatedAt    time.Time
	TimeoutAt    time.Time
	ResumeDelay  time.Duration
	Condition    string
	Signals      int
	Matched      int
	LastSignalAt time.Time
	ClosedAt     time.Time // zero: it is open
	CloseReason  string
	Cause        string
	Trigger      string // signal, operator, auto_resume, timeout, cancelled or deadline
	By           string // who ended it, as they say: an operator, or the source of the signal; "" if nobody did
	Result       *Result
	Waitpoints   []Waitpoint // every one that is still known, also of earlier suspensions
}
