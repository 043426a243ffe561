// Package option is what the execution options of the root package are underneath. The packages that take options,
// handler, client and flow, read from [Values] what the caller said; no user sees a type of this package.
package option

import (
	"time"

	"github.com/google/uuid"
)

// Field is one thing that options say, as a bit.
type Field uint32

// The fields of [Values].
const (
	Priority Field = 1 << iota
	Lane
	Timeout
	Deadline // and DeadlineAt
	Delay    // and DelayUntil
	Retries
	Retention
	Capabilities
	Tags
	Budgets
	Quotas
	Limits
	Namespace
	Creator
	IdempotencyKey
	Unique
	KeyWindow
	Debounce
	DebounceMax
)

// Values is what the options of one call say. Said tells which fields count: a zero value may have been said on
// purpose.
type Values struct {
	Said           Field
	Priority       int
	Lane           string
	Timeout        time.Duration
	Deadline       time.Duration
	DeadlineAt     time.Time
	Delay          time.Duration
	DelayUntil     time.Time
	Retries        int
	Retention      map[string]time.Duration // by outcome, a public state
	Capabilities   []string
	Tags           map[string]string
	Budgets        []string
	Quotas         []string
	Limits         []string // names of limits of keys, see flowfabric.Gate
	Namespace      string
	Creator        string
	IdempotencyKey string
	Unique         string
	KeyWindow      time.Duration
	DebounceKey    string
	Debounce       time.Duration
	DebounceMax    time.Duration
	ID             uuid.UUID // of the execution, if a test chooses it
}

// Has tells whether any of the fields was said.
func (v *Values) Has(f Field) bool { return v.Said&f != 0 }

// setter is what each option of the root package has besides its markers.
type setter interface{ Set(v *Values) }

// Apply lets v say what an option says, instead of what v said about it. It is false for nil and for anything that
// the root package did not make.
func Apply(v *Values, option any) bool {
	s, ok := option.(setter)
	if ok {
		s.Set(v)
	}
	return ok
}
