package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// NewExecution is one item of a create batch. ID, Namespace, Lane and Kind are required; everything else is
// optional. DelayUntil wins over Delay, DeadlineAt over Deadline. All items of a batch live in one partition.
type NewExecution struct {
	flowfabric.Start // Key means nothing without KeyID
	ID               flowfabric.ExecutionID
	Payload          []byte
	// AsStored: Payload was read from the store, and is sealed already if it is to be
	AsStored bool
	// of the payload before any encryption hook, ≤ 64 bytes; compared on a duplicate id or key
	Digest string
	// KeyID is what the server knows Key by, nil for none; the partition of the execution follows from it, see
	// ids.Keyed. Only CreateExecutions takes one. A key that debounces puts its execution off by Delay.
	KeyID uuid.UUID
	// Type is the schema of the Go type that Payload was encoded from, which fits itself; nil: it is not known.
	Type json.RawMessage
}

// Created answers one item. Err is set when this item was refused; the others are unaffected.
type Created struct {
	ID        flowfabric.ExecutionID // another than the item's if its key leads to that
	Duplicate bool                   // the id existed, or the key was taken, with the same digest; nothing was written
	// the key debounces: what execution ID was submitted with is this item now, or was until a later one
	Replaced bool
	State    flowfabric.PublicState
	Err      error
}

// ClaimRequest asks one partition for up to Max executions.
type ClaimRequest struct {
	Partition    uint16
	Session      string // "<instance>~<random>"
	Number       uint64 // the session's next claim number, or its last one after a lost reply
	TTL          time.Duration
	Max          int    // 1..100
	Subscription string // digest stored with SetSubscription; "" asks for the route table only
	Table        uint64 // version of the route table this worker knows
	Wait         bool   // register as a waiter when nothing is found
	Rotation     uint64 // start among ready routes when there are more than one call looks at
	Gates        bool   // work with gates as well: their work is granted, see ClaimReply.Grants
	MaxGrants    int    // 1..32 of it; default 32
}

// ClaimReply is the answer. Number was used up on the server only if there are Claims, or there were Grants.
type ClaimReply struct {
	Claims      []Claim
	Duplicate   bool // Claims are those still held under the repeated Number
	Registered  bool // this instance will be rung when matching work arrives
	More        bool // ready work that this subscription serves is left
	TickOverdue bool
	Gated       bool // there is work with gates for this subscription, though this claim may have brought other work
	TableFull   bool // Routes is the whole table, not a delta
	Table       uint64
	Routes      []Route // of the table: a class each, by its own route
	Others      []Route // the other routes of Claims and Grants
	Grants      []Grant // work with gates: ask them, then ClaimGranted or ReleaseGrants
	Granted     bool    // filled in by the admitter: there were some
}

// Grant is work that the session holds while its gates are asked. It goes back to its queue after 5 s, or with the
// session.
type Grant struct {
	Execution flowfabric.ExecutionID
	Epoch     uint64 // with the execution the hold by which gates know it
	Route     uint64
	Wakes     uint64 // see RouteClosing
}

// Claim is one execution together with everything its handler needs.
type Claim struct {
	Fence        flowfabric.Fence
	Type         flowfabric.AttemptType
	Continues    int    // how often the execution has continued with another input
	Takes        int    // how often it was replayed or rewound
	Stop         string // the request of a stop that the run is to heed; "" for none
	Route        uint64
	Wakes        uint64 // see RouteClosing; filled in by the admitter
	Priority     int
	CreatedAt    time.Time
	ClaimedAt    time.Time     // server time of the claim call
	Retries      int           // retries so far
	Reclaims     int           // lost leases so far
	TimeLeft     time.Duration // of the attempt timeout; 0 = none
	DeadlineIn   time.Duration // 0 = none
	LastSequence uint64        // producer sequence of the last frame of this attempt
	Input        []byte
	InputLost    bool // an input was stored, and its key is gone: somebody else deleted it
	Tags         map[string]string
	Steps        map[string][]byte // by name; those of the library begin with StepAwait or StepWaitpoint
	Flow         flowfabric.FlowID // zero for an execution that is in no flow
	Node         string            // its name there
	Inputs       map[string][]byte // what its upstreams left it, by the names it gave them
	Resume       *suspend.Result   // what ended the last suspension, as long as there was no other
}

// Completion settles one held execution with a result.
type Completion struct {
	Fence  flowfabric.Fence
	Result []byte
}

// Step is what is recorded of a step.
type Step struct {
	Name  string
	Value []byte
	Took  time.Duration // whole ms
	Turn  string        // what it is to a run that talks: TurnOver, TurnStopped, TurnBegins or nothing
}

// What a step may be to a run that talks.
const (
	TurnOver    = "over"    // it ends the turn, which is refused while a stop waits
	TurnStopped = "stopped" // it heeds that stop, and ends the turn
	TurnBegins  = "begin"
)

// Recorded answers the record of a step.
type Recorded struct {
	Already bool
	Stop    string // the request of the stop that waits, or that was heeded; "" for none
}

// Stop answers the call that asks for one.
type Stop struct {
	Request string // of the stop that waits, or was made before
	By      string
	Steps   []string // of the turn that are recorded, in their order
	Already bool     // it waits, or was made, already
	Other   bool     // by another request
}

// Settled answers one completion. Already: an earlier, identical call had settled it.
type Settled = Answer

// Failure ends an attempt.
type Failure struct {
	Category   flowfabric.Category // 1..64 bytes
	Reason     string              // cut to 1 KiB
	Permanent  bool                // no retry whatever the policy says
	RetryAfter *time.Duration      // replaces the policy's pause, not its count
	Step       string              // the durable step whose function returned the error; "" if it was none
	StepTook   time.Duration       // how long that function ran
}

// FailOutcome says what followed.
type FailOutcome struct {
	Retry   bool          // a retry is scheduled (or waiting at once)
	RetryIn time.Duration // from the server's now; 0 = at once
	Already bool
}

// Cancellation ends an execution from outside or by its holder.
type Cancellation struct {
	Source string            // CancelOperator, CancelOwner or CancelFlow
	Fence  *flowfabric.Fence // required with CancelOwner
}

// Sources of a cancellation that is asked for; see timeline.CancelTimeout.
const (
	CancelOwner    = "owner"
	CancelOperator = "operator_override"
	CancelFlow     = "flow_cascade"
)

// Lost is one notice of an execution taken from a session by somebody else.
type Lost struct {
	Execution flowfabric.ExecutionID
	Epoch     uint64
	Cause     string // cancelled, expired, attempt_timeout, revoked, over_budget, rewound; stop: or message: and which
}

// Told reports a notice that takes nothing away: somebody has stopped what the run says, of which Cause has the
// request, or a message came to it, of which it has the number.
func (l Lost) Told() bool { return strings.Contains(l.Cause, ":") }

// errRevoked is the cause after an operator took the lease: it matches both what happened and how it came about.
var errRevoked = fmt.Errorf("%w (%w)", flowfabric.ErrLeaseLost, denied.LeaseRevoked)

// Err is the cause of a handler's context after the notice.
func (l Lost) Err() error {
	switch l.Cause {
	case "cancelled":
		return flowfabric.ErrCancelled
	case "expired":
		return flowfabric.ErrDeadline
	case "attempt_timeout":
		return flowfabric.ErrAttemptTimeout
	case "over_budget":
		return flowfabric.ErrOverBudget
	case "revoked":
		return errRevoked
	case "rewound":
		return denied.Rewound
	}
	return flowfabric.ErrLeaseLost
}

// Renewal is the answer to RenewSession.
type Renewal struct {
	Lost        []Lost
	Generation  uint64 // of the newest notice in Lost; send it back once processed
	MoreLost    bool
	TickOverdue bool
}

// Held is one member of a session.
type Held struct {
	Execution flowfabric.ExecutionID
	Claim     uint64
}

// PollState is what the fallback poll learns of one partition.
type PollState struct {
	Partition   uint16
	Ready       int // non-empty open routes
	TickOverdue bool
}

// FramePlace names a frame of an attempt. The zero value stands before the first one.
type FramePlace struct {
	Sequence uint64
	ID       stream.Cursor
}

// Appended answers AppendFrames.
type Appended struct {
	LastID       stream.Cursor
	Count        uint64 // durable frames ever appended to the attempt
	LastSequence uint64
	Summary      uint64 // version of the summary document, 0 = none
	Duplicate    bool   // everything in the batch was already there
}

// StreamMeta describes an attempt's stream.
type StreamMeta struct {
	Exists       bool   // at least one frame was appended
	Count        uint64 // durable frames ever appended
	Bytes        uint64 // payload of all frames
	LastSequence uint64
	LastID       stream.Cursor
	Trimmed      uint64        // durable frames no longer retained
	TrimmedID    stream.Cursor // of the last frame that was trimmed
	Closed       bool          // the attempt has ended, with or without a stream
	ClosedAt     time.Time
	ClosedReason string
	Attempts     uint32 // attempts of the execution so far
	Code         codes.Code
	Summary      uint64 // version of the summary document, 0 = none
	Live         uint64 // best-effort frames ever appended
	Runs         uint32 // runs that appended frames; each after the first has a Resumption
	// Recorded is the last frame that a recorded step covers. Another attempt repeats the frames after it.
	Recorded FramePlace

	// Of the attempt: what it is and when it was claimed for the first time; when and why it ended without success. Of
	// one that has not begun: why the one before it ended so.
	Type             flowfabric.AttemptType
	BeganAt, EndedAt time.Time
	Category         flowfabric.Category
	Message          string
	By               string // who rewound it

	Due   time.Time // until when the execution is delayed
	Epoch uint64    // of the last claim of the execution
	End   StreamEnd // how the execution ended
	Kept  uint32    // the first attempt that is stored, 1 unless it continued: that drops old ones
	Now   time.Time // of the server, to the millisecond

	// Owner has the frames, up to LastID and no further, if the attempt is one that a fork has taken over; zero: they
	// are its own.
	Owner flowfabric.ExecutionID
}

// StreamEnd is how an execution ended; the zero value: it has not.
type StreamEnd struct {
	At         time.Time
	Category   flowfabric.Category
	Message    string
	By, Source string // who cancelled it, see flowfabric.Snapshot
}

// Mixed tells whether the attempt has frames that are not durable; their logs exist only then.
func (m StreamMeta) Mixed() bool { return m.Summary > 0 || m.Live > 0 }

// Replay asks for an ended execution to run again.
type Replay struct {
	Request   flowfabric.UUID // makes a repeat harmless; nil mints one
	DropSteps bool            // forget recorded steps; otherwise only what is missing runs
	FromStep  string          // forget this step of the handler's, and those that were recorded after it; "" for none
	Force     bool            // required for a success
}

// steps says it as the functions read it.
func (q Replay) steps() string {
	switch {
	case q.DropSteps:
		return "drop"
	case q.FromStep != "":
		return "from " + q.FromStep
	}
	return "keep"
}

// Rewind asks for an execution to go on again from a recorded step on.
type Rewind struct {
	Request  flowfabric.UUID // makes a repeat harmless; nil mints one
	Step     string          // of the handler's, 1..128 bytes; 120 with a message
	Attempt  uint32          // that the caller saw: another one is refused; 0 for any
	Encoding string          // of Message: json, utf8 or bytes; "" for none
	Message  []byte          // ≤ 64 KiB: what is said in the place of what was said before the step
}

// Rewound answers that.
type Rewound struct {
	Attempt uint32   // that begins next
	Dropped []string // the handler's steps that are forgotten, in the order in which they were recorded
	Already bool     // the request was applied before; Dropped is empty
}

// EditName is the name of the receipt of the message that Rewind recorded for a step.
func EditName(step string) string { return "edit " + step }

// TickReply answers Tick. Next, until the next call is due, means nothing unless Owner; More says that due work is
// left: call again at once. Idle: there is nothing to wait for, and the owner is rung when that changes.
type TickReply = wire.TickReply

// NewSessionID mints a session id for an instance: "<instance>~<12 hex>". See [ids.Session] for one of a version.
func NewSessionID(instance string) string { return ids.Session(instance, "") }
