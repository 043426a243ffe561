package suspend

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Waitpoint is a waitpoint as anybody may see it: never its token, nor what would do in its stead.
type Waitpoint struct {
	ID          flowfabric.UUID `json:"id"`
	Key         string          `json:"key"`
	Subject     string          `json:"subject,omitempty" jsonschema:"of the event that it takes"`
	State       string          `json:"state" jsonschema:"pending (opened before its wait), active, closed or expired"`
	Kid         string          `json:"kid,omitempty" see:"operator" jsonschema:"id of the key that signs its token"`
	Fingerprint string          `json:"token_fingerprint,omitempty" see:"operator" jsonschema:"16 hex digits"`
	CreatedAt   time.Time       `json:"created_at,omitzero"`
	ActivatedAt time.Time       `json:"activated_at,omitzero" jsonschema:"when an execution began to wait for it"`
	ExpiresAt   time.Time       `json:"expires_at,omitzero" jsonschema:"pending: by itself; active: the end of the wait"`
	Suspension  flowfabric.UUID `json:"suspension,omitzero" see:"operator" jsonschema:"the wait on it, now or earlier"`
	// of an open one, where several are asked at once (handler.Task.AskAll); [Record] has the question of a whole wait
	Question     *Question `json:"question,omitempty" see:"viewer" jsonschema:"of several, the one that it takes answers to"`
	Signals      int       `json:"signals" jsonschema:"number of its signals"`
	Matched      int       `json:"matched" jsonschema:"number of signals that count for the wait"`
	LastSignalAt time.Time `json:"last_signal_at,omitzero"`
	ClosedAt     time.Time `json:"closed_at,omitzero"`
	CloseReason  string    `json:"close_reason,omitempty"`
	// the second in which a token was last refused for it; zero: not lately. A partition remembers its last 256
	RefusedAt time.Time `json:"refused_at,omitzero" see:"operator" jsonschema:"when a token was last refused for it"`
}

// Open reports whether the waitpoint takes signals.
func (w Waitpoint) Open() bool { return w.State == "pending" || w.State == "active" }

// Record is the current suspension of an execution, or its last one.
type Record struct {
	State flowfabric.PublicState `json:"state" jsonschema:"the execution's state now"`
	Flow  flowfabric.FlowID      `json:"flow,omitzero" jsonschema:"flow that the execution is a node or a child of"`
	// Root and Path are of an execution that a handler made: the first one above it that no handler made, and the names
	// of the children from there on, the last of which is its own. Of more than 32 levels it is the last 32.
	Root         flowfabric.ExecutionID `json:"root,omitzero" jsonschema:"the execution above it that no handler made"`
	Path         []string               `json:"path,omitempty" jsonschema:"names of the children from the root to it"`
	ID           flowfabric.UUID        `json:"id,omitzero" see:"operator" jsonschema:"none: it was never suspended"`
	Name         string                 `json:"name" jsonschema:"under which the handler waits"`
	Reason       string                 `json:"reason,omitempty"`
	Question     *Question              `json:"question,omitempty" see:"viewer" jsonschema:"of several the first open one"`
	Behaviour    string                 `json:"on_timeout,omitempty"`
	CreatedAt    time.Time              `json:"created_at,omitzero"`
	TimeoutAt    time.Time              `json:"timeout_at,omitzero"`
	ResumeDelay  flowfabric.Millis      `json:"resume_after_ms,omitempty"`
	Condition    string                 `json:"-"` // as it is stored
	Signals      int                    `json:"signals" jsonschema:"number of its signals"`
	Matched      int                    `json:"matched" jsonschema:"number of signals that count"`
	LastSignalAt time.Time              `json:"last_signal_at,omitzero"`
	ClosedAt     time.Time              `json:"closed_at,omitzero" jsonschema:"none: it is open"`
	CloseReason  string                 `json:"close_reason,omitempty"`
	Cause        Cause                  `json:"cause,omitempty"`
	Trigger      string                 `json:"trigger,omitempty" jsonschema:"signal, operator, auto_resume, timeout, cancelled, deadline or rewound"`
	// who ended it, as they say: an operator, or the source of the signal; "" if nobody did
	By         string      `json:"by,omitempty" jsonschema:"person or token that ended it"`
	Result     *Result     `json:"-"`
	Waitpoints []Waitpoint `json:"waitpoints" jsonschema:"every one that is still known, also of earlier suspensions"`
}
