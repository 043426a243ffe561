package runtime

import (
	"sync"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Limits of an execution that a worker warns of when four fifths are used, by their names in logs and metrics.
const (
	limitSteps     = "steps"
	limitStepBytes = "step_bytes"
	limitHistory   = "history"
)

// fullness counts what an execution has recorded, and says once a run which of its limits are near. The zero value
// has counted nothing yet.
type fullness struct {
	mu     sync.Mutex
	begun  bool
	steps  int
	bytes  int
	warned map[string]bool
}

// recorded counts a step that was recorded now. The first one begins with what the claim brought.
func (j *job) recorded(name string, size int) {
	f := &j.full
	f.mu.Lock()
	if !f.begun {
		f.begun = true
		for name, value := range j.held.Claim().Steps {
			f.steps, f.bytes = f.steps+1, f.bytes+len(name)+len(value)
		}
	}
	f.steps, f.bytes = f.steps+1, f.bytes+len(name)+size
	many, bytes := f.steps, f.bytes
	f.mu.Unlock()
	j.near(limitSteps, many, limits.MaxSteps)
	j.near(limitStepBytes, bytes, limits.MaxStepTotal)
}

// near warns once a run when four fifths of a limit are used.
func (j *job) near(limit string, used, most int) {
	if !limits.Near(used, most) {
		return
	}
	f := &j.full
	f.mu.Lock()
	before := f.warned[limit]
	if f.warned == nil {
		f.warned = map[string]bool{}
	}
	f.warned[limit] = true
	f.mu.Unlock()
	if before {
		return
	}
	j.jobs.metrics.nearly(j.route.Kind, limit)
	j.logger().Warn("flowfabric: the execution has used most of a limit", "limit", limit, "used", used, "most", most)
}
