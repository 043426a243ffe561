package flowfabric

import (
	"encoding/json"
	"time"
)

// RetryPolicy decides what follows a failed attempt. The pause before retry k (k = 0 for the first) is
// min(Initial × Multiplier^k, Max) or, with Fixed, Initial; with Jitter it is multiplied by a factor in [0.8, 1.2]
// that depends only on the execution and k, so a repeated call gives the same instant.
type RetryPolicy struct {
	MaxRetries int           // retries after the first attempt, 0..1000
	Fixed      bool          // the pause does not grow
	Initial    time.Duration // default 1 s; 0..7 days, whole milliseconds
	Max        time.Duration // default 60 s; 0..7 days
	Multiplier float64       // default 2; 1..100, kept to three decimals
	Jitter     bool
	// Categories, when not empty, are the only failure categories that are retried (≤ 16 of ≤ 64 bytes), see
	// the package comment.
	Categories []string
}

// Policy is what is stored with an execution at create and never changes. The zero value means: no retries,
// no timeout, 10 reclaims, 10 replays, and the default stream retention.
type Policy struct {
	Retry          RetryPolicy
	AttemptTimeout time.Duration // bounds one attempt, suspended time excluded; 0 = none
	MaxReclaims    int           // how often a lost lease may be requeued; 0 = 10, at most 10,000
	MaxReplays     int           // 0 = 10, at most 1,000; -1 = never
	StreamFrames   int           // frames kept per attempt, approximate; 0 = 10,000
	// Retention is how long the execution is kept after its end; what is 0 is decided by its lane.
	Retention Retentions
}

// Retentions is for how long executions are kept after their end, by how they ended: whole seconds, 1 s..10 years. 0
// says nothing: then the lane decides, and where nobody said anything of the lane, what completed is kept for 24 h
// and anything else for 14 days.
type Retentions struct {
	Completed time.Duration
	Failed    time.Duration
	Cancelled time.Duration // also members of flows that were skipped
	Expired   time.Duration
}

// MarshalJSON writes the outcomes that it says something of, in whole seconds: {"completed":3600}.
func (r Retentions) MarshalJSON() ([]byte, error) {
	said := map[PublicState]int64{}
	for outcome, d := range map[PublicState]time.Duration{Completed: r.Completed, Failed: r.Failed,
		Cancelled: r.Cancelled, Expired: r.Expired} {
		if d != 0 {
			said[outcome] = int64(d / time.Second)
		}
	}
	return json.Marshal(said)
}
