package schedule

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// CatchUp says what happens to instants that nobody fired in time, because no process maintained the store.
type CatchUp string

// The policies of catching up.
const (
	// CatchUpLast runs the latest of the instants that are due, once, however late. Default.
	CatchUpLast CatchUp = "last"
	// CatchUpSkip runs no instant that is more than a minute late.
	CatchUpSkip CatchUp = "skip"
	// CatchUpAll runs every instant, oldest first.
	CatchUpAll CatchUp = "all"
)

// Overlap says what happens when an instant comes while the schedule's previous execution has not ended.
type Overlap string

// The policies of overlapping.
const (
	OverlapAllow Overlap = "allow" // run it too. Default.
	OverlapSkip  Overlap = "skip"  // do not run it; it counts as missed
)

// Item describes the submission of each instant, without the input, which is stored beside the definition. Namespace,
// Lane and Kind are required.
//
// With Nodes it is a flow: Kind is that of the flow, and Namespace, Tags, Gates, Limits and Creator are those
// of the flow as a whole. The rest belongs to its nodes, and is empty. The nodes are the input, as client.ScheduleFlow
// stores them.
type Item struct {
	// of the flow; 0: it is an execution
	Nodes int `json:"nodes,omitempty" for:"schedule" jsonschema:"number of nodes of the flow that each run submits; absent for an execution"`
	// at most 62 tags; a deadline counts from the submission
	flowfabric.Start `for:"schedule word"`
	// of the input: definitions with different inputs must differ; at most 64 bytes
	Digest string `json:"-"`
}

// Definition is a schedule without its name and input. Encoded, it has at most 64 KiB. Every execution of a schedule
// has two tags that a definition cannot set: schedule.name, and schedule.due, its instant (RFC 3339 in UTC, with
// milliseconds if it has any).
type Definition struct {
	Spec    Spec    `json:"-"`
	CatchUp CatchUp `json:"catch_up,omitempty" for:"schedule" jsonschema:"last (default), all or skip: which of the instants that were missed are run"`
	Overlap Overlap `json:"overlap,omitempty" for:"schedule" jsonschema:"allow (default) or skip, while the last one has not ended"`
	// no instant comes after it; zero: without end; 1970..9999, in whole milliseconds
	Until time.Time `json:"until,omitzero" for:"schedule" jsonschema:"no run after this time; default without end"`
	// it is over once so many instants were submitted since its creation; 0: without end
	Runs uint64 `json:"max_runs,omitempty" for:"schedule" jsonschema:"it ends after so many runs since its creation; 0: without end"`
	// what an instant submits starts up to so much later, and at most halfway to the next instant, so that none
	// overtakes another. The delay follows from name and instant alone. At most 24 h, in whole milliseconds
	Jitter flowfabric.Millis `json:"jitter_ms,omitzero" for:"schedule" jsonschema:"each run starts up to so much later, at most 24 h and halfway to the next run"`
	// who declares it, see client.Client.SyncSchedules; at most 64 bytes of printable ASCII without braces; empty:
	// nobody
	Owner string `json:"owner,omitempty" jsonschema:"owner that declares it"`
	Item
}

// Missed is a run of instants that are not submitted, and why. The zero value is none. The reasons are:
//   - late: nobody fired it in time, and the catch-up policy does not run it,
//   - paused: it was not fired when the schedule was paused, or came while it was,
//   - overlap: the previous execution had not ended,
//   - updated: it was due, and not fired, when the schedule got other times,
//   - the code of the refusal, such as lane_closed or too_many_routes, if the server refused to submit it.
type Missed struct {
	From   time.Time `json:"first_at"` // the first of them
	To     time.Time `json:"last_at"`  // and the last
	Count  uint64    `json:"count"`
	Reason string    `json:"reason"`
}
