package admission

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Service makes a gate that of a service, such as a model: it is asked for each call ([Gate].Service), not for each
// execution. A handler asks it with handler.Task.Acquire and tells it what the call used.
type Service struct {
	// PerMinute is how much may pass in a minute, over all workers, by dimension: 2..1,000,000,000, at most 8 of them.
	// Of requests a call is 1, unless it says more. Nothing that is not named here is limited.
	PerMinute map[string]int64 `json:"per_minute,omitempty" jsonschema:"how much may pass in a minute, by dimension, 2..1000000000"`
	// Burst is how much of it may come at once, at most half of it; 0 is a fortieth, at least 1. The rest comes evenly:
	// a bucket of this size is refilled with PerMinute less Burst in a minute, so that no minute lets more than
	// PerMinute through. A call that is larger than the bucket goes when that is full, and leaves it in debt.
	Burst map[string]int64 `json:"burst,omitempty" jsonschema:"how much may come at once, at most half; absent: a fortieth"`
	// Calls is how many are made at the same time, at most 1,000,000; 0 is no bound.
	Calls int `json:"calls,omitempty" jsonschema:"how many are made at once, at most 1000000; 0: no bound"`
	// Patience is how long a handler waits in its slot for its turn: whole ms, at most 60 s; 0 is 2 s. Whoever would
	// wait longer gives its slot up meanwhile. While several namespaces wait it is a quarter of that, so that those
	// of one do not hold the slots in which others were to come.
	Patience flowfabric.Millis `json:"patience_ms,omitzero" jsonschema:"waited in a slot, at most 60000; absent: 2000"`
	// Weights say how namespaces share the service when more of them want it: 1..1,000, at most 256; 1 for others.
	Weights map[string]int `json:"weights,omitempty" jsonschema:"how namespaces share it, 1..1000; 1 for others"`
}

// defaultPatience is how long a handler waits in its slot for its turn at a service that does not say.
const defaultPatience = 2 * time.Second

// Waits is how long a handler waits in its slot.
func (s Service) Waits() time.Duration {
	if s.Patience == 0 {
		return defaultPatience
	}
	return time.Duration(s.Patience)
}

// ServiceState is what became of a service.
type ServiceState struct {
	// Room is what may pass at once, by dimension; below 0 when a large call passed.
	Room map[string]int64 `json:"room" jsonschema:"what may pass at once, by dimension; below 0 after a large call"`
	// Share is how much of its rates the service is asked for, per mille: less after it refused calls (status 429).
	Share       int       `json:"share" jsonschema:"of its rates, per mille: less after it refused calls"`
	UnderWay    int       `json:"under_way" jsonschema:"calls that have not ended"`
	AtOnce      int       `json:"at_once,omitempty" jsonschema:"how many may be under way now; absent: no bound"`
	Waiting     int       `json:"waiting" jsonschema:"executions in line"`
	ClosedUntil time.Time `json:"closed_until,omitzero" jsonschema:"nobody calls it before that: it refused calls"`
	Refused     uint64    `json:"refused" jsonschema:"calls that it refused, since it was idle for two hours"`
	LastRefused time.Time `json:"last_refused_at,omitzero"`
	// CallTime is how long a call takes, a moving average.
	CallTime flowfabric.Millis `json:"call_ms,omitzero" jsonschema:"how long a call takes, a moving average"`
}
