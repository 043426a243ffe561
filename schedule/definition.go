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

// Item is what each instant submits, but for the input, which is stored beside the definition. Namespace, Lane and Kind
// are required.
type Item struct {
	Namespace    string
	Lane         string
	Kind         string
	Capabilities []string
	Gates        []flowfabric.Gate // budgets and quotas that are asked before it runs
	Priority     int               // 0..9000
	Deadline     time.Duration     // from the submission; 0 = none
	Policy       flowfabric.Policy
	Tags         map[string]string // at most 62
	Creator      string            // at most 64 bytes
	Digest       string            // of the input: definitions with different inputs must differ; at most 64 bytes
}

// Definition is a schedule without its name and input. Encoded, it has at most 64 KiB. Every execution of a schedule has two tags that a
// definition cannot set: schedule.name, and schedule.due, its instant (RFC 3339 in UTC, with milliseconds if it has any).
type Definition struct {
	Spec    Spec
	CatchUp CatchUp // default CatchUpLast
	Overlap Overlap // default OverlapAllow
	Item    Item
}

// Missed is a run of instants that are not submitted, and why. The zero value is none. The reasons are:
//   - late: nobody fired it in time, and the catch-up policy does not run it,
//   - paused: it was not fired when the schedule was paused, or came while it was,
//   - overlap: the previous execution had not ended,
//   - updated: it was due, and not fired, when the schedule got other times,
//   - the code of the refusal, such as lane_closed or too_many_routes, if the server refused to submit it.
type Missed struct {
	From, To time.Time // the first and the last of them
	Count    uint64
	Reason   string
}
