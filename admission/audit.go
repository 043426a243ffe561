package admission

import "time"

// AuditEntry is one entry of the audit log of a budget or quota. What is created, changed, adjusted, period, release
// or soft_limit. The Detail of a release begins with the execution whose usage was released; By of a soft_limit is
// the execution that passed it, or empty.
type AuditEntry struct {
	At     time.Time
	What   string
	By     string
	Detail string
}
