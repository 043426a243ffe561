package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// Snapshot is a consistent read of one execution.
type Snapshot struct {
	ID             ExecutionID
	State          State
	Route          Route
	Priority       int
	Creator        string
	Policy         Policy
	Attempts       uint32 // attempts started so far, and so the number of the last one (handler.Task.Attempt)
	AttemptType    AttemptType
	Epoch          uint64
	Session        string // last holder: "<instance>~<random>", or "<gateway>~<worker>~<random>" over HTTP
	LeaseExpiresAt time.Time
	Retries        int // used so far; a replay starts over at 0
	Reclaims       int // likewise
	Replays        int
	// how often its handler went on with another input (handler.Continue); older attempts than those of the input
	// before are not kept
	Continues       int
	CreatedAt       time.Time
	StartedAt       time.Time
	ClaimedAt       time.Time
	CompletedAt     time.Time
	DelayUntil      time.Time
	DeadlineAt      time.Time
	FailureCategory string // of the last failure, see the package comment; "" once it has completed
	FailureReason   string // likewise
	CancelledBy     string // the person or token that asked for the cancellation; "" if none was named
	// what kind of source cancelled it: operator_override (somebody who asked for it), owner (its worker, see Worker),
	// flow_cascade (its flow, or who depends on it) or system_timeout_policy (its wait lasted too long)
	CancelSource string
	CancelReason string
	InputBytes   int
	Steps        int
	Tags         map[string]string
	AttemptLog   []AttemptRecord // ended attempts that were not the last, plus a failed last one
	Progress     Progress        // of the current or last attempt
	Flow         FlowID          // of which it is a node or a child; zero: none
	Node         string          // its name in the flow
	Wait         Wait            // what it waits for while it is suspended
	Key          KeyHold         // how it holds the key that it was submitted with
	ChangedAt    time.Time       // of the last creation, claim, suspension, or end of an attempt or of all
}

// Worker is the instance that holds the execution; empty when nobody does.
func (s *Snapshot) Worker() string { return ids.Worker(s.Session) }

// Wait is a suspension while it lasts. The zero value: there is none. client.Client.Suspension has its question.
type Wait struct {
	Name      string // as the handler called it
	Since     time.Time
	TimeoutAt time.Time // zero: it has no end of its own
}

// KeyHold is how an execution holds the key that it was submitted with: until it has ended, and maybe longer
// ([Unique], [IdempotencyKey]), or until a worker is given it ([Debounce]). The key itself is not stored.
type KeyHold struct {
	Keyed     bool      // it was submitted with a key
	Retained  bool      // it holds the key as long as it is retained
	Debounced bool      // the key is one of Debounce
	Replaced  int       // how many further submissions under its key it took in, each of which replaced the one before
	Until     time.Time // it holds the key at least until then, see [KeyWindow]; zero: there is no such time
}

// AttemptRecord is an attempt that ended.
type AttemptRecord struct {
	Index uint32 // its number, 1 for the first
	Type  AttemptType
	// ended_failure, interrupted_reclaimed, ended_cancelled, ended_success (before a replay), continued (with another
	// input)
	State     string
	ClaimedAt time.Time
	EndedAt   time.Time
	Category  string // see the package comment
	Worker    string // instance
	Session   string // with Epoch and Claim the fence it was held under
	Epoch     uint64
	Claim     uint64
	Reason    string
}

// Progress is what a handler last said of how far it got. The zero value: it said nothing.
type Progress struct {
	Percent int // 0..100; -1 when it gave none
	Message string
	At      time.Time
}

// Route is where an execution waits and what its worker must have: a row of its partition's route table.
type Route struct {
	ID           uint64   `json:"-"`
	Namespace    string   `json:"namespace"`
	Lane         string   `json:"lane"`
	Kind         string   `json:"kind"`
	Capabilities []string `json:"capabilities,omitempty" jsonschema:"that its worker must have"`
	Gates        []Gate   `json:"-"` // budgets and quotas that are asked before its work runs
}
