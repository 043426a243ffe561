package admission

import "time"

// Quota says how often work may start in a window of time, and how much of it may run at once. **0 = UNLIMITED**, for
// Rate and for Cap.
type Quota struct {
	Name  string // 1..64 letters, digits, "_", "." and "-", a letter or digit first
	Scope string // what it is for, for people; at most 128 bytes
	// Rate is how many executions may start in any window, at most 1,000,000. A start is counted when the quota
	// admits it, on the server's clock; the handler begins milliseconds later, 5 s at most. So stay a little under
	// the hard limit of an API. Starts are not spread over the window: all of them may arrive in one burst.
	Rate   int
	Window time.Duration // sliding, whole ms, at most 30 days; required with Rate
	Cap    int           // how many executions run at once, at most 1,000,000
	// added at random to the time of the next try, 0..60 s; a tenth of the window, up to 1 s, is always added
	Jitter time.Duration
}

// QuotaRecord is the state of a quota, as it was read.
type QuotaRecord struct {
	Quota
	Revision  uint64
	CreatedAt time.Time
	ChangedBy string
	Started   int // in the window
	Held      int // slots that are taken
	Suspect   int // holds that were not confirmed for a while
	ForSlots  int // routes of partitions that wait for a slot
	ForRate   int // … for the window
	Audit     []AuditEntry
	Holds     []string // "<partition>.<execution>:<epoch>", those first that become suspect first
}

// Free is how many slots are free; limited is false when the quota has no cap.
func (q QuotaRecord) Free() (slots int, limited bool) {
	return max(0, q.Cap-q.Held), q.Cap > 0
}
