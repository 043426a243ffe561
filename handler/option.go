package handler

import (
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// DefineOption is one default of a [Definition]. A later option wins over an earlier one of the same name.
type DefineOption func(*settings)

// settings collects options; errors are kept, so that a definition can be a package variable.
type settings struct {
	info  Info
	codec Codec
	errs  []error
}

func (s *settings) refuse(err error) { s.errs = append(s.errs, err) }

// bound refuses a duration outside 0..limit, or one that the millisecond clock would round to nothing.
func (s *settings) bound(field string, d, limit time.Duration) {
	if d < 0 || d > limit || d > 0 && d < time.Millisecond {
		most := "10 years"
		if limit != limits.MaxDelay {
			most = fmt.Sprintf("%g h", limit.Hours())
		}
		s.refuse(fmt.Errorf("%w: %s is %v, want 0 or 1 ms..%s", flowfabric.ErrInvalidInput, field, d, most))
	}
}

// Retry sets n retries after the first attempt (0..1000), with pauses that start at initial, double each time up
// to limit, and vary by ±20 %. initial and limit are 0 or 1 ms..168 h; initial 0 retries at once, limit 0 means the
// larger of initial and 60 s.
//
// Default: [flowfabric.DefaultRetry], which is Retry(3, time.Second, time.Minute).
func Retry(n int, initial, limit time.Duration) DefineOption {
	return func(s *settings) {
		s.bound("Retry initial", initial, limits.MaxBackoff)
		s.bound("Retry limit", limit, limits.MaxBackoff)
		if limit != 0 && limit < initial {
			s.refuse(fmt.Errorf("%w: Retry limit %v is below initial %v", flowfabric.ErrInvalidInput, limit, initial))
		}
		s.info.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: n, Type: flowfabric.BackoffExponential,
			Initial: initial, Max: limit, Multiplier: 2, Jitter: true}
	}
}

// NoRetry makes the first failure the last.
func NoRetry() DefineOption {
	return func(s *settings) { s.info.Policy.Retry = flowfabric.RetryPolicy{} }
}

// RetryPolicy sets every detail of the retry policy; its zero fields have the defaults stated there, which means
// no retries unless MaxRetries is set. Its bounds are those of [flowfabric.Policy.Validate].
func RetryPolicy(p flowfabric.RetryPolicy) DefineOption {
	p.Categories = slices.Clone(p.Categories)
	return func(s *settings) { s.info.Policy.Retry = p }
}

// Timeout bounds one attempt, suspended time excluded: 1 ms..10 years, 0 = none (default). An attempt that runs
// longer fails with category attempt_timeout, and the retry policy decides what follows.
func Timeout(d time.Duration) DefineOption {
	return func(s *settings) {
		s.bound("Timeout", d, limits.MaxDelay)
		s.info.Policy.AttemptTimeout = d
	}
}

// Deadline bounds the whole execution, all attempts and pauses, from its creation: 1 ms..10 years, 0 = none
// (default). It is final: no retry follows.
func Deadline(d time.Duration) DefineOption {
	return func(s *settings) {
		s.bound("Deadline", d, limits.MaxDelay)
		s.info.Deadline = d
	}
}

// Lane names the lane that executions go to: 1..64 bytes of printable ASCII without braces. Default "default".
func Lane(name string) DefineOption {
	return func(s *settings) {
		if err := flowfabric.ValidateName("Lane", name); err != nil {
			s.refuse(err)
		}
		s.info.Lane = name
	}
}

// Priority sets the default priority: 0..9000, higher first. Default 0.
func Priority(n int) DefineOption {
	return func(s *settings) {
		if n < 0 || n > limits.MaxPriority {
			s.refuse(fmt.Errorf("%w: Priority is %d, want 0..%d", flowfabric.ErrInvalidInput, n, limits.MaxPriority))
		}
		s.info.Priority = n
	}
}

// Capabilities names what a worker must have to be given these executions: at most 256 tokens and 4,096 bytes
// joined, no commas, white space or control characters. Duplicates are dropped. Default none.
func Capabilities(tokens ...string) DefineOption {
	return func(s *settings) {
		normal, err := flowfabric.NormalizeCapabilities(tokens)
		if err != nil {
			s.refuse(fmt.Errorf("Capabilities: %w", err))
		}
		s.info.Capabilities = normal
	}
}

// Budgets names the budgets that must have room before an execution runs, and that its handler spends of: at most 16, each 1..64
// letters, digits, "_", "." and "-", a letter or digit first. Those that are attached to its namespace, lane or tags come in addition.
// Default none.
func Budgets(names ...string) DefineOption {
	return func(s *settings) { s.gates(flowfabric.WithBudgets(s.info.Gates, names...)) }
}

// Quotas names the quotas that must admit an execution before it runs: at most 8, named as [Budgets] are. Default none.
func Quotas(names ...string) DefineOption {
	return func(s *settings) { s.gates(flowfabric.WithQuotas(s.info.Gates, names...)) }
}

func (s *settings) gates(gates []flowfabric.Gate) {
	normal, err := flowfabric.NormalizeGates(gates)
	if err != nil {
		s.refuse(err)
		return
	}
	s.info.Gates = normal
}

// WithCodec sets how inputs, results and step values are encoded. Producers and workers must agree. Default [JSON].
func WithCodec(c Codec) DefineOption {
	return func(s *settings) {
		if c == nil {
			s.refuse(fmt.Errorf("%w: WithCodec is nil, want a codec", flowfabric.ErrInvalidInput))
			return
		}
		if e, ok := c.(encrypted); ok && (e.codec == nil || e.cipher == nil) {
			s.refuse(fmt.Errorf("%w: WithCodec: Encrypted has a nil codec or cipher", flowfabric.ErrInvalidInput))
		}
		s.codec = c
	}
}

// StreamFrames sets how many frames of an attempt are kept, approximately: 1..1,000,000. Default 10,000.
func StreamFrames(n int) DefineOption {
	return func(s *settings) {
		if n < 1 { // 0 would silently mean the default
			s.refuse(fmt.Errorf("%w: StreamFrames is %d, want 1..1000000", flowfabric.ErrInvalidInput, n))
			return
		}
		s.info.Policy.StreamFrames = n
	}
}

// MaxReclaims sets how often an execution may be requeued because its worker died or lost the lease: 1..10,000.
// After that it ends failed, since its handler may be what ends its workers. Default 10. Reclaims consume no retries.
// The first one comes at once; later ones pause 1, 2, 4 … 60 s, unless an operator revoked the lease.
func MaxReclaims(n int) DefineOption {
	return func(s *settings) {
		if n < 1 { // 0 would silently mean the default
			s.refuse(fmt.Errorf("%w: MaxReclaims is %d, want 1..10000", flowfabric.ErrInvalidInput, n))
			return
		}
		s.info.Policy.MaxReclaims = n
	}
}

// MaxReplays sets how often an execution that has ended may be replayed: 0..1000, where 0 and -1 mean never. Default
// 10. A replay above it answers [flowfabric.ErrReplaysExhausted].
func MaxReplays(n int) DefineOption {
	return func(s *settings) {
		if n == 0 { // in a policy it would mean the default
			n = -1
		}
		s.info.Policy.MaxReplays = n
	}
}

// Retention sets for how long an execution, its result and its frames are kept after its end: whole seconds, 1 s..10 years.
// Without it the lane decides, 24 h unless an operator said otherwise. After that it is purged; its id and idempotency key
// stay taken for another day.
func Retention(d time.Duration) DefineOption {
	return func(s *settings) {
		if d <= 0 { // 0 would silently mean the default
			s.refuse(fmt.Errorf("%w: Retention is %s, want whole seconds of 1s..10 years", flowfabric.ErrInvalidInput, d))
			return
		}
		s.info.Policy.Retention = d
	}
}
