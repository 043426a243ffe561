package flowfabric

import "time"

// FlowRecord is the header of a flow.
type FlowRecord struct {
	Now   time.Time // the server's
	ID    FlowID
	State FlowState
	// how it may grow since it was released: seal (not at all), grow (by its members), open (until it is sealed)
	Seal       string
	Namespace  string
	Kind       string
	Creator    string
	Digest     string
	Revision   uint64
	CreatedAt  time.Time
	ChangedAt  time.Time // when members were added last
	ReleasedAt time.Time
	EndedAt    time.Time // when its last member ended; zero while one has not
	Members    int       // ever
	Edges      int
	Purged     int                 // members that are no longer retained
	Count      map[PublicState]int // members by state; rate-limited and the like count as waiting
	Failing    int                 // members that ended without success and fail the flow, see FlowState
	Backlog    int                 // pieces of unfinished work
	Policy     CancellationPolicy
	Cancelled  time.Time
	CancelBy   string
	Reason     string
	Siblings   SiblingCancels
	Tags       map[string]string
}

// MemberRecord is a member of a flow.
type MemberRecord struct {
	ID        ExecutionID
	Number    int64 // those that depend on a member have higher ones than it
	Node      string
	State     State // Code is empty when there is no such execution any more
	Kind      string
	Lane      string
	Attempt   int    // number of the last attempt, 0 before the first
	Category  string // of its failure, or why it was skipped, see the package comment
	StartedAt time.Time
	EndedAt   time.Time
	Group     *GroupRecord
	Wait      *WaitRecord
	Edges     []EdgeRecord
}

// GroupRecord is what a member waits for, or waited for.
type GroupRecord struct {
	// Policy says what the member needs to run: all (every one; the first that does not succeed skips the member),
	// any (one), quorum (K of them), ended (every one has ended, in whatever way), or failed (every one has ended,
	// and at least one did not succeed; else the member is skipped).
	Policy                            string
	K                                 int
	CancelRest                        bool
	Total, Succeeded, Failed, Skipped int
	Pending, Satisfied, Impossible    bool
	// Optional members have AnyFailed, or depend on one that is optional (but for AllEnded): one that is skipped
	// because nothing failed does not fail its flow.
	Optional bool
}

// EdgeRecord is one edge into a member.
type EdgeRecord struct {
	From    ExecutionID
	Input   string
	Outcome PublicState // how From ended; empty while it has not
	Attempt int         // the one that ended so; 0 when there is none
	Late    bool        // it succeeded after the group was decided: the input is not given
	Spared  bool        // it was to be cancelled, but others need it
}

// WaitRecord tells of the children an execution waits for.
type WaitRecord struct {
	// all, first, success (the first that succeeds, or all), or fast (all succeeded, or one did not)
	Mode             string
	Total, Succeeded int
	Others           int // ended without success
	Pending          bool
}

// SiblingCancels counts what became of those that decided groups did not need any more, by disposition.
type SiblingCancels struct {
	Cancelled, AlreadyTerminal, NotFound, Spared int
}
