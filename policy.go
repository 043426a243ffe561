package flowfabric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// BackoffType names how the pause before a retry grows.
type BackoffType string

// The backoff types. Empty means exponential.
const (
	BackoffExponential BackoffType = "exponential"
	BackoffFixed       BackoffType = "fixed"
)

// RetryPolicy decides what follows a failed attempt. The pause before retry k (k = 0 for the first) is
// min(Initial × Multiplier^k, Max) or, fixed, Initial; with Jitter it is multiplied by a factor in [0.8, 1.2]
// that depends only on the execution and k, so a repeated call gives the same instant.
type RetryPolicy struct {
	MaxRetries int           // retries after the first attempt, 0..1000
	Type       BackoffType   // exponential (default) or fixed
	Initial    time.Duration // default 1 s; 0..7 days, whole milliseconds
	Max        time.Duration // default 60 s; 0..7 days
	Multiplier float64       // default 2; 1..100, kept to three decimals
	Jitter     bool
	// Categories, when not empty, are the only failure categories that are retried (≤ 16 of ≤ 64 bytes).
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
	// Retention is how long the execution is kept after its end: whole seconds, 1 s..10 years; 0 = its lane's, 24 h unless
	// an operator said otherwise.
	Retention time.Duration
}

// DefaultRetry is the policy of a definition that says nothing: 3 retries, 1 s → 60 s, with jitter.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{MaxRetries: 3, Type: BackoffExponential, Initial: time.Second, Max: time.Minute, Multiplier: 2, Jitter: true}
}

// Validate reports the first field outside its bounds; the error wraps [ErrInvalidPolicy].
func (p Policy) Validate() error {
	bad := func(field string, got any, want string) error {
		return fmt.Errorf("%w: %s is %v, want %s", ErrInvalidPolicy, field, got, want)
	}
	r := p.Retry
	switch {
	case r.MaxRetries < 0 || r.MaxRetries > 1000:
		return bad("Retry.MaxRetries", r.MaxRetries, "0..1000")
	case r.Type != "" && r.Type != BackoffExponential && r.Type != BackoffFixed:
		return bad("Retry.Type", strconv.Quote(clip(string(r.Type))), "exponential or fixed")
	case r.Initial < 0 || r.Initial > limits.MaxBackoff:
		return bad("Retry.Initial", r.Initial, "0..168h")
	case r.Max < 0 || r.Max > limits.MaxBackoff:
		return bad("Retry.Max", r.Max, "0..168h")
	case r.Multiplier != 0 && !(r.Multiplier >= 1 && r.Multiplier <= 100):
		return bad("Retry.Multiplier", r.Multiplier, "1..100")
	case len(r.Categories) > limits.MaxCategories:
		return bad("Retry.Categories", len(r.Categories), "at most 16 categories")
	case p.AttemptTimeout < 0 || p.AttemptTimeout > limits.MaxDelay:
		return bad("AttemptTimeout", p.AttemptTimeout, "0..10 years")
	case p.MaxReclaims < 0 || p.MaxReclaims > 10000:
		return bad("MaxReclaims", p.MaxReclaims, "0..10000")
	case p.MaxReplays < -1 || p.MaxReplays > 1000:
		return bad("MaxReplays", p.MaxReplays, "-1..1000")
	case p.StreamFrames < 0 || p.StreamFrames > 1_000_000:
		return bad("StreamFrames", p.StreamFrames, "0..1000000")
	case p.Retention != 0 && (p.Retention < time.Second || p.Retention > limits.MaxDelay || p.Retention%time.Second != 0):
		return bad("Retention", p.Retention, "0, or whole seconds of 1s..10 years")
	}
	for _, c := range r.Categories {
		if err := ValidateCategory(c); err != nil {
			return fmt.Errorf("%w: Retry.Categories: %w", ErrInvalidPolicy, err)
		}
	}
	return nil
}

// Pack is the form the server stores: whole numbers separated by commas, in the order max retries, backoff
// (0 exponential, 1 fixed), initial ms, max ms, multiplier × 1000, jitter, max reclaims, max replays, stream
// frames, and maybe retention in s; then, after a semicolon, the retryable categories. The zero policy packs to "". Lua reads it with
// lua/lib/policy.lua; [UnpackPolicy] is its inverse.
func (p Policy) Pack() string {
	r := p.Retry
	if r.MaxRetries == 0 && len(r.Categories) == 0 && p.MaxReclaims == 0 && p.MaxReplays == 0 && p.StreamFrames == 0 && p.Retention == 0 {
		return ""
	}
	fixed, jitter := 0, 0
	if r.Type == BackoffFixed {
		fixed = 1
	}
	if r.Jitter {
		jitter = 1
	}
	initial, ceiling, multiplier := r.Initial, r.Max, r.Multiplier
	if r.Initial == 0 && r.Max == 0 && r.Multiplier == 0 { // nothing said: the typed defaults
		initial, ceiling = time.Second, time.Minute
	}
	if multiplier == 0 {
		multiplier = 2
	}
	if ceiling == 0 {
		ceiling = max(initial, time.Minute)
	}
	reclaims, replays := p.MaxReclaims, p.MaxReplays
	if reclaims == 0 {
		reclaims = limits.DefaultMaxReclaims
	}
	switch replays {
	case 0:
		replays = 10
	case -1:
		replays = 0
	}
	packed := strconv.AppendInt(make([]byte, 0, 64), int64(r.MaxRetries), 10)
	for _, n := range [...]int64{int64(fixed), initial.Milliseconds(), ceiling.Milliseconds(), int64(multiplier*1000 + 0.5), int64(jitter),
		int64(reclaims), int64(replays), int64(p.StreamFrames)} {
		packed = strconv.AppendInt(append(packed, ','), n, 10)
	}
	if p.Retention > 0 {
		packed = strconv.AppendInt(append(packed, ','), int64(p.Retention/time.Second), 10)
	}
	if len(r.Categories) > 0 {
		packed = append(append(packed, ';'), strings.Join(slices.Sorted(slices.Values(r.Categories)), ",")...)
	}
	return string(packed)
}

// UnpackPolicy reads what [Policy.Pack] wrote (the attempt timeout travels beside it). The error wraps
// [ErrInvalidPolicy].
func UnpackPolicy(packed string) (Policy, error) {
	if packed == "" {
		return Policy{}, nil
	}
	numbers, categories, _ := strings.Cut(packed, ";")
	fields := strings.Split(numbers, ",")
	if len(fields) != 9 && len(fields) != 10 {
		return Policy{}, fmt.Errorf("%w: packed policy %q has %d numbers, want 9 or 10", ErrInvalidPolicy, clip(packed), len(fields))
	}
	var n [10]int64
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil || v < 0 || strconv.FormatInt(v, 10) != f {
			return Policy{}, fmt.Errorf("%w: packed policy field %d is %q", ErrInvalidPolicy, i, clip(f))
		}
		n[i] = v
	}
	if n[9] > int64(limits.MaxDelay/time.Second) || len(fields) == 10 && n[9] == 0 {
		return Policy{}, fmt.Errorf("%w: packed policy retention is not within 1 s..10 years", ErrInvalidPolicy)
	}
	if n[2] > limits.MaxBackoff.Milliseconds() || n[3] > limits.MaxBackoff.Milliseconds() {
		return Policy{}, fmt.Errorf("%w: packed policy backoff exceeds 168h", ErrInvalidPolicy)
	}
	p := Policy{
		Retry: RetryPolicy{
			MaxRetries: int(n[0]), Type: BackoffExponential, Initial: time.Duration(n[2]) * time.Millisecond,
			Max: time.Duration(n[3]) * time.Millisecond, Multiplier: float64(n[4]) / 1000, Jitter: n[5] == 1,
		},
		MaxReclaims: int(n[6]), MaxReplays: int(n[7]), StreamFrames: int(n[8]), Retention: time.Duration(n[9]) * time.Second,
	}
	if n[1] == 1 {
		p.Retry.Type = BackoffFixed
	}
	if p.MaxReplays == 0 {
		p.MaxReplays = -1
	}
	if categories != "" {
		p.Retry.Categories = strings.Split(categories, ",")
	}
	if n[1] > 1 || n[5] > 1 {
		return Policy{}, fmt.Errorf("%w: packed policy %q has a flag that is not 0 or 1", ErrInvalidPolicy, clip(packed))
	}
	return p, p.Validate()
}
