package flowfabric

import "time"

// Snapshot is a consistent read of one execution. Its JSON is what the HTTP API answers and 'flowfabric show' prints.
type Snapshot struct {
	ID ExecutionID `json:"id"`
	ExecutionSummary
	Creator    string `json:"creator,omitempty"`
	Policy     Policy `json:"-"`
	MaxRetries int    `json:"max_retries"` // of Policy
	// Attempt is the one that it is in, for client.Rewind: Attempts, and one more while it waits for a replay.
	Attempt        uint32    `json:"attempt" jsonschema:"the attempt that it is in: attempts, and one more while it waits for a replay"`
	LeaseExpiresAt time.Time `json:"lease_expires_at,omitzero"`
	Version        string    `json:"version,omitempty" jsonschema:"of the application whose worker has it or had it last, if it is known"`
	Replays        int       `json:"replays"`
	// Continues is how often its handler went on with another input (handler.Continue); older attempts than those of
	// the input before are not kept.
	Continues    int       `json:"continues" jsonschema:"how often it went on with another input"`
	ForkOf       ForkOf    `json:"fork_of,omitzero" jsonschema:"the execution that it was made of, by a fork"`
	ChangedAt    time.Time `json:"changed_at,omitzero" jsonschema:"time of the last creation, claim, suspension, or end of an attempt or of the execution"`
	CancelReason string    `json:"cancel_reason,omitempty"`
	InputBytes   int       `json:"input_bytes"`
	Steps        int       `json:"steps" jsonschema:"recorded steps"`

	Progress Progress `json:"progress,omitzero" jsonschema:"progress of the current or last attempt"`
	Flow     FlowID   `json:"flow,omitzero" jsonschema:"flow that it is a node or a child of"`
	Node     string   `json:"node,omitempty" jsonschema:"its name in the flow"`
	Wait     Wait     `json:"wait,omitzero" jsonschema:"its wait while it is suspended"`
	// KeyHeld says how long it holds the key that it was submitted with: until it has ended, and maybe longer
	// (Window of [Key]), or until a worker is given it (Debounce); "": it was submitted without one. The key itself is
	// not stored.
	KeyHeld  string    `json:"key_held,omitempty" jsonschema:"how long it has the key that it was submitted with: until_ended, retained, until_time (see key_until) or until_claimed (a debounce key)"`
	KeyUntil time.Time `json:"key_until,omitzero"` // it holds the key at least until then, see [Key]
	Replaced int       `json:"replaced,omitempty" jsonschema:"how many further submissions under its debounce key it took in, each of which replaced the one before"`

	AttemptLog []AttemptRecord `json:"attempt_log,omitempty" jsonschema:"ended attempts that were not the last, and a failed last one"`
}

// ExecutionSummary is what a read of one execution ([Snapshot]) and a list of many (admin.Listed) say of each. In a
// list Tags and the message of Failure are there if asked for.
type ExecutionSummary struct {
	State
	Route
	Priority    int         `json:"priority"`
	Attempts    uint32      `json:"attempts" jsonschema:"attempts started so far, and so the number of the last one"`
	AttemptType AttemptType `json:"attempt_type,omitempty" jsonschema:"initial, retry, reclaim or replay"`
	Epoch       uint64      `json:"epoch,omitempty" see:"operator"`
	// Session is the last holder's: "<instance>~<random>", or "<gateway>~<worker>~<random>" over HTTP.
	Session      string            `json:"session,omitempty" see:"operator"`
	Worker       string            `json:"worker,omitempty" jsonschema:"the instance that has it, or had it last"`
	Retries      int               `json:"retries" jsonschema:"retries used so far; a replay starts over at 0"`
	Reclaims     int               `json:"reclaims" jsonschema:"reclaims used so far; a replay starts over at 0"`
	CreatedAt    time.Time         `json:"created_at,omitzero"`
	StartedAt    time.Time         `json:"started_at,omitzero"`
	ClaimedAt    time.Time         `json:"claimed_at,omitzero"`
	EndedAt      time.Time         `json:"ended_at,omitzero"`
	DelayUntil   time.Time         `json:"delay_until,omitzero"`
	DeadlineAt   time.Time         `json:"deadline_at,omitzero"`
	Failure      Failure           `json:"failure,omitzero" jsonschema:"failure of the last failed attempt; absent after completion"`
	CancelledBy  string            `json:"cancelled_by,omitempty" jsonschema:"the person or token that asked for it, if one was named"`
	CancelSource string            `json:"cancel_source,omitempty" jsonschema:"operator_override (somebody who asked for it), owner (its worker), flow_cascade (its flow, or who depends on it) or system_timeout_policy (its wait lasted too long)"`
	Tags         map[string]string `json:"tags,omitempty"`
}

// Failure is why an attempt failed. The zero value: none did.
type Failure struct {
	Category Category `json:"category" jsonschema:"the reference page of categories lists them"`
	Message  string   `json:"message,omitempty"`
}

// ForkOf tells of a fork what it was made of. The zero value: it is none.
type ForkOf struct {
	ID   ExecutionID `json:"id,omitzero"`
	Step string      `json:"step,omitempty" jsonschema:"it began with the steps recorded before this one; absent: with all"`
}

// Wait is a suspension while it lasts. The zero value: there is none. client.Execution.Suspension has its question.
type Wait struct {
	Name      string    `json:"name" jsonschema:"name in the handler"`
	Since     time.Time `json:"since,omitzero"`
	TimeoutAt time.Time `json:"timeout_at,omitzero" jsonschema:"absent: it has no end of its own"`
}

// AttemptRecord is an attempt that ended.
type AttemptRecord struct {
	Index     uint32      `json:"index" jsonschema:"number of the attempt, 1 for the first"`
	Type      AttemptType `json:"type"`
	State     string      `json:"state" jsonschema:"ended_failure, interrupted_reclaimed, ended_cancelled, ended_success (before a replay), rewound (to an earlier step) continued (with another input) or forked (the fork has no more of it)"`
	ClaimedAt time.Time   `json:"claimed_at,omitzero"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
	Category  Category    `json:"category,omitempty"`
	Message   string      `json:"message,omitempty"`
	Worker    string      `json:"worker,omitempty"`                 // instance
	Session   string      `json:"session,omitempty" see:"operator"` // with Epoch and Claim the fence it was held under
	Epoch     uint64      `json:"epoch,omitempty" see:"operator"`
	Claim     uint64      `json:"claim,omitempty" see:"operator"`
}

// Progress is the progress that a handler reported last. The zero value: it reported none.
type Progress struct {
	Percent *int      `json:"percent,omitempty"` // 0..100; nil when it gave none
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Route is where an execution waits and what its worker must have: a row of its partition's route table.
type Route struct {
	ID           uint64   `json:"-"`
	Namespace    string   `json:"namespace"`
	Lane         string   `json:"lane"`
	Kind         string   `json:"kind"`
	Capabilities []string `json:"capabilities,omitempty" jsonschema:"capabilities that its worker needs"`
	Gates        []Gate   `json:"-"` // that are asked before its work runs
	// GateNames are the names of Gates, those of limits of keys in words.
	GateNames []string `json:"gates,omitempty" jsonschema:"gates that must admit it before it runs, and limits of keys, in words"`
}
