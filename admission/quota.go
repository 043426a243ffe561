package admission

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Quota says how often work may start in a window of time, and how much of it may run at once. **0 = UNLIMITED**, for
// Rate and for Cap.
type Quota struct {
	Name  string `json:"name,omitempty"` // 1..64 letters, digits, "_", "." and "-", a letter or digit first
	Scope string `json:"scope,omitempty" jsonschema:"what it is for, for people; at most 128 bytes"`
	// Rate is how many executions may start in any window, at most 1,000,000. A start is counted when the quota
	// admits it, on the server's clock; the handler begins milliseconds later, 5 s at most. So stay a little under
	// the hard limit of an API. Starts are not spread over the window: all of them may arrive in one burst.
	Rate int `json:"rate,omitempty" jsonschema:"starts within any window_ms, at most 1000000; 0: no bound"`
	// sliding, whole ms, at most 30 days; required with Rate
	Window flowfabric.Millis `json:"window_ms,omitzero" jsonschema:"at most 30 days; needed with rate"`
	Cap    int               `json:"cap,omitempty" jsonschema:"how many run at once, at most 1000000; 0: no bound"`
	// added at random to the time of the next try, 0..60 s; a tenth of the window, up to 1 s, is always added
	Jitter flowfabric.Millis `json:"jitter_ms,omitzero" jsonschema:"added at random to the time of the next try, at most 60000"`
}

// QuotaRecord is the state of a quota, as it was read.
type QuotaRecord struct {
	Quota
	Revision  uint64    `json:"revision"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ChangedBy string    `json:"updated_by,omitempty"`
	Started   int       `json:"started" jsonschema:"in the window"`
	Held      int       `json:"held" jsonschema:"slots that are taken"`
	Free      *int      `json:"free,omitempty" jsonschema:"slots that are not; absent: it has no cap"`
	Suspect   int       `json:"suspect" jsonschema:"holds that were not confirmed for a while"`
	Waiting   int       `json:"waiting" jsonschema:"queues that wait for it: routes of partitions"`
	ForSlots  int       `json:"waiting_for_slots"`
	ForRate   int       `json:"waiting_for_rate" jsonschema:"for room in the window"`
	Holds     []string  `json:"-"` // "<partition>.<execution>:<epoch>", those first that become suspect first
	// Slots are the Holds, read.
	Slots []Hold       `json:"holds,omitempty" jsonschema:"who has the slots, at most 1000; not in lists"`
	Audit []AuditEntry `json:"events,omitempty" jsonschema:"what happened to it, the newest first; not in lists"`
}

// Hold is a slot of a quota that an execution has.
type Hold struct {
	Execution string `json:"execution"`
	Epoch     uint64 `json:"epoch,omitempty" see:"operator" jsonschema:"of its lease"`
}
