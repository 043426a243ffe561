package flowfabric

import "time"

// FlowRecord is the header of a flow.
type FlowRecord struct {
	Now time.Time `json:"now,omitzero" jsonschema:"the server's"`
	FlowSummary
	Creator   string             `json:"creator,omitempty"`
	Digest    string             `json:"-"`
	Revision  uint64             `json:"revision,omitempty" see:"operator" jsonschema:"revision of its members"`
	ChangedAt time.Time          `json:"changed_at,omitzero" jsonschema:"when members were added last"`
	Edges     int                `json:"edges"`
	Purged    int                `json:"purged,omitempty" jsonschema:"members that are no longer retained"`
	Backlog   int                `json:"backlog,omitempty" jsonschema:"pieces of unfinished work"`
	Policy    CancellationPolicy `json:"policy,omitempty" jsonschema:"cancellation policy: cancel_all, cancel_pending or flow_only"`
	Cancelled time.Time          `json:"cancelled_at,omitzero"`
	CancelBy  string             `json:"cancelled_by,omitempty"`
	Reason    string             `json:"cancel_reason,omitempty"`
	Siblings  SiblingCancels     `json:"siblings,omitzero" jsonschema:"those that nobody needed any more once others had decided"`
	Tags      map[string]string  `json:"tags,omitempty"`
}

// MemberRecord is a member of a flow. Its State is empty when there is no such execution any more.
type MemberRecord struct {
	ID     ExecutionID `json:"id"`
	Number int64       `json:"number" jsonschema:"those that depend on a member have higher ones than it"`
	Node   string      `json:"name"`
	State
	Kind      string       `json:"kind,omitempty"`
	Lane      string       `json:"lane,omitempty"`
	Attempt   int          `json:"attempt,omitempty" jsonschema:"number of the last attempt; none before the first"`
	Category  Category     `json:"category,omitempty" jsonschema:"category of its failure, or the reason for the skip"`
	StartedAt time.Time    `json:"started_at,omitzero" jsonschema:"beginning of its last attempt"`
	EndedAt   time.Time    `json:"ended_at,omitzero"`
	Group     *GroupRecord `json:"group,omitempty" jsonschema:"condition for it to run"`
	Wait      *WaitRecord  `json:"wait,omitempty" jsonschema:"the children that it waits for"`
	Edges     []EdgeRecord `json:"edges,omitempty" jsonschema:"its dependencies"`
	// Dependants are the members with an edge from this one, in the order of the nodes; known of a whole flow only.
	Dependants []ExecutionID `json:"dependants,omitempty" jsonschema:"the ids of those that depend on it"`
}

// GroupRecord is the condition that a member waits for, or waited for.
type GroupRecord struct {
	// Policy says what the member needs to run: all (every one; the first that does not succeed skips the member),
	// any (one), quorum (K of them), ended (every one has ended, in whatever way), or failed (every one has ended,
	// and at least one did not succeed; else the member is skipped).
	Policy     string `json:"policy" jsonschema:"all, any, quorum, ended or failed"`
	K          int    `json:"k,omitempty" jsonschema:"size of a quorum"`
	CancelRest bool   `json:"cancel_rest,omitempty" jsonschema:"the others are cancelled once it is decided"`
	Total      int    `json:"total"`
	Succeeded  int    `json:"succeeded"`
	Failed     int    `json:"failed"`
	Skipped    int    `json:"skipped"`
	Pending    bool   `json:"pending,omitempty"`
	Satisfied  bool   `json:"satisfied,omitempty"`
	Impossible bool   `json:"impossible,omitempty"`
	// Optional members have AnyFailed, or depend on one that is optional (but for AllEnded): one that is skipped
	// because nothing failed does not fail its flow.
	Optional bool `json:"optional,omitempty" jsonschema:"one that is skipped because nothing failed does not fail its flow"`
}

// EdgeRecord is one edge into a member.
type EdgeRecord struct {
	From    ExecutionID `json:"from"`
	Input   string      `json:"input,omitempty"`
	Outcome PublicState `json:"outcome,omitempty" jsonschema:"how that ended; none while it has not"`
	Attempt int         `json:"attempt,omitempty" jsonschema:"the one that ended so"`
	Late    bool        `json:"late,omitempty" jsonschema:"it succeeded after the group was decided: the input is not given"`
	Spared  bool        `json:"spared,omitempty" jsonschema:"it was to be cancelled, but others need it"`
}

// WaitRecord tells of the children an execution waits for.
type WaitRecord struct {
	// all, first, success (the first that succeeds, or all), or fast (all succeeded, or one did not)
	Mode      string `json:"mode" jsonschema:"all, first, success or fast"`
	Total     int    `json:"total"`
	Succeeded int    `json:"succeeded"`
	Others    int    `json:"others" jsonschema:"upstreams that ended without success"`
	Pending   bool   `json:"pending,omitempty"`
}

// SiblingCancels counts what became of those that decided groups did not need any more, by disposition.
type SiblingCancels struct {
	Cancelled       int `json:"cancelled"`
	AlreadyTerminal int `json:"already_terminal"`
	NotFound        int `json:"not_found"`
	Spared          int `json:"spared"`
}

// FlowSummary is what a read of one flow ([FlowRecord]) and a list of many say of each.
type FlowSummary struct {
	ID FlowID `json:"id"` // zero in a list for an entry that is no id
	// State is empty in a list for an entry without a flow behind it.
	State FlowState `json:"state" jsonschema:"staging, open, completed, failed or cancelled"`
	// how it may grow since it was released: seal (not at all), grow (by its members), open (until it is sealed)
	Seal       string    `json:"seal,omitempty" jsonschema:"how it may grow: seal (not at all), grow (by its members) or open (until it is sealed)"`
	Namespace  string    `json:"namespace"`
	Kind       string    `json:"kind"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	ReleasedAt time.Time `json:"released_at,omitzero"`
	EndedAt    time.Time `json:"ended_at,omitzero" jsonschema:"when its last member ended; none while one has not"`
	Members    int       `json:"members" jsonschema:"ever"`
	Failing    int       `json:"failing" jsonschema:"members that ended without success and fail the flow: those that no other needs"`
	// Count has those that are rate-limited and the like as waiting.
	Count map[PublicState]int `json:"count,omitempty" jsonschema:"members by state"`
}
