package flowfabric

import (
	"encoding/json"
	"fmt"
	"math"
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
	Categories []Category
}

// Policy is stored with an execution at its creation and never changes. The zero value means: no retries,
// no timeout, 10 reclaims, 10 replays, and the default stream retention.
type Policy struct {
	Retry RetryPolicy `json:"-"`
	// AttemptTimeout bounds one attempt, suspended time excluded; 0 = none.
	AttemptTimeout Millis `json:"timeout_ms,omitempty" for:"submit schedule node" jsonschema:"timeout of one attempt"`
	MaxReclaims    int    `json:"-"` // how often a lost lease may be requeued; 0 = 10, at most 10,000
	MaxReplays     int    `json:"-"` // 0 = 10, at most 1,000; -1 = never
	StreamFrames   int    `json:"-"` // frames kept per attempt, approximate; 0 = 10,000
	// Retention is how long the execution is kept after its end; what is 0 is decided by its lane.
	Retention Retentions `json:"retention_s,omitzero" for:"submit schedule node" jsonschema:"seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"`
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

// Of is the retention of an outcome, to read or to change; nil for a state that is none.
func (r *Retentions) Of(outcome PublicState) *time.Duration {
	switch outcome {
	case Completed:
		return &r.Completed
	case Failed:
		return &r.Failed
	case Cancelled, Skipped:
		return &r.Cancelled
	case Expired:
		return &r.Expired
	}
	return nil
}

// MarshalJSON writes the outcomes that it says something of, in whole seconds: {"completed":3600}.
func (r Retentions) MarshalJSON() ([]byte, error) {
	said := map[PublicState]int64{}
	for _, outcome := range []PublicState{Completed, Failed, Cancelled, Expired} {
		if d := *r.Of(outcome); d != 0 {
			said[outcome] = int64(d / time.Second)
		}
	}
	return json.Marshal(said)
}

// UnmarshalJSON reads what MarshalJSON writes. Another outcome is an error.
func (r *Retentions) UnmarshalJSON(text []byte) error {
	said := map[PublicState]int64{}
	if err := json.Unmarshal(text, &said); err != nil {
		return fmt.Errorf("want whole seconds by outcome: %w", err)
	}
	*r = Retentions{}
	for outcome, seconds := range said {
		kept := r.Of(outcome)
		if kept == nil || outcome == Skipped {
			return fmt.Errorf("%.40q is not an outcome, want completed, failed, cancelled or expired", outcome)
		}
		if *kept = time.Duration(seconds) * time.Second; seconds != int64(*kept/time.Second) {
			*kept = math.MaxInt64 // more than a duration holds: no bound allows it
		}
	}
	return nil
}
