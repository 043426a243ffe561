package valid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// DefaultRetry is the policy of a definition that says nothing: 3 retries, 1 s → 60 s, with jitter.
func DefaultRetry() flowfabric.RetryPolicy {
	return flowfabric.RetryPolicy{MaxRetries: 3, Initial: time.Second, Max: time.Minute, Multiplier: 2, Jitter: true}
}

// Policy reports the first field outside its bounds; the error wraps [denied.Policy].
func Policy(p flowfabric.Policy) error {
	bad := func(field string, got any, want string) error {
		return fmt.Errorf("%w: %s is %v, want %s", denied.Policy, field, got, want)
	}
	r, timeout := p.Retry, time.Duration(p.AttemptTimeout)
	switch {
	case r.MaxRetries < 0 || r.MaxRetries > 1000:
		return bad("Retry.MaxRetries", r.MaxRetries, "0..1000")
	case r.Initial < 0 || r.Initial > limits.MaxBackoff:
		return bad("Retry.Initial", r.Initial, "0..168h")
	case r.Max < 0 || r.Max > limits.MaxBackoff:
		return bad("Retry.Max", r.Max, "0..168h")
	case r.Multiplier != 0 && !(r.Multiplier >= 1 && r.Multiplier <= 100):
		return bad("Retry.Multiplier", r.Multiplier, "1..100")
	case len(r.Categories) > limits.MaxCategories:
		return bad("Retry.Categories", len(r.Categories), "at most 16 categories")
	case timeout < 0 || timeout > limits.MaxDelay || timeout > 0 && timeout < time.Millisecond:
		return bad("Timeout", timeout, "0 or 1 ms..10 years")
	case p.MaxReclaims < 0 || p.MaxReclaims > 10000:
		return bad("MaxReclaims", p.MaxReclaims, "0..10000")
	case p.MaxReplays < -1 || p.MaxReplays > 1000:
		return bad("MaxReplays", p.MaxReplays, "-1..1000")
	case p.StreamFrames < 0 || p.StreamFrames > 1_000_000:
		return bad("StreamFrames", p.StreamFrames, "0..1000000")
	}
	if err := Retentions(p.Retention); err != nil {
		return fmt.Errorf("%w: %w", denied.Policy, err)
	}
	for _, c := range r.Categories {
		if err := Category(c); err != nil {
			return fmt.Errorf("%w: Retry.Categories: %w", denied.Policy, err)
		}
	}
	return nil
}

// PackPolicy is the form the server stores: whole numbers separated by commas, in the order max retries, backoff
// (0 exponential, 1 fixed), initial ms, max ms, multiplier × 1000, jitter, max reclaims, max replays, stream
// frames, and maybe [PackRetentions]; then, after a semicolon, the retryable categories. The zero policy packs to "".
// Lua reads it with lua/lib/policy.lua; [UnpackPolicy] is its inverse.
func PackPolicy(p flowfabric.Policy) string {
	var memory [64]byte
	return string(appendPolicy(memory[:0], p))
}

// PacksTo tells whether a policy is packed so.
func PacksTo(p flowfabric.Policy, packed string) bool {
	var memory [64]byte
	return string(appendPolicy(memory[:0], p)) == packed
}

func appendPolicy(packed []byte, p flowfabric.Policy) []byte {
	r := p.Retry
	if r.MaxRetries == 0 && len(r.Categories) == 0 && p.MaxReclaims == 0 && p.MaxReplays == 0 && p.StreamFrames == 0 &&
		p.Retention == (flowfabric.Retentions{}) {
		return packed
	}
	fixed, jitter := 0, 0
	if r.Fixed {
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
	packed = strconv.AppendInt(packed, int64(r.MaxRetries), 10)
	for _, n := range [...]int64{int64(fixed), initial.Milliseconds(), ceiling.Milliseconds(),
		int64(multiplier*1000 + 0.5), int64(jitter), int64(reclaims), int64(replays), int64(p.StreamFrames)} {
		packed = strconv.AppendInt(append(packed, ','), n, 10)
	}
	if p.Retention != (flowfabric.Retentions{}) {
		packed = append(append(packed, ','), PackRetentions(p.Retention)...)
	}
	if len(r.Categories) > 0 {
		before := byte(';')
		for _, c := range slices.Sorted(slices.Values(r.Categories)) {
			packed = append(append(packed, before), c...)
			before = ','
		}
	}
	return packed
}

// UnpackPolicy reads what [PackPolicy] wrote (the attempt timeout travels beside it). The error wraps
// [denied.Policy].
func UnpackPolicy(packed string) (flowfabric.Policy, error) {
	if packed == "" {
		return flowfabric.Policy{}, nil
	}
	numbers, categories, _ := strings.Cut(packed, ";")
	fields := strings.Split(numbers, ",")
	if len(fields) != 9 && len(fields) != 10 {
		return flowfabric.Policy{}, fmt.Errorf("%w: packed policy %.48q has %d numbers, want 9 or 10", denied.Policy,
			packed, len(fields))
	}
	var kept flowfabric.Retentions
	if len(fields) == 10 {
		var err error
		if kept, err = UnpackRetentions(fields[9]); err != nil || kept == (flowfabric.Retentions{}) {
			return flowfabric.Policy{}, fmt.Errorf("%w: packed policy retention is not within 1 s..10 years",
				denied.Policy)
		}
	}
	var n [9]int64
	for i, f := range fields[:9] {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil || v < 0 || strconv.FormatInt(v, 10) != f {
			return flowfabric.Policy{}, fmt.Errorf("%w: packed policy field %d is %.48q", denied.Policy, i, f)
		}
		n[i] = v
	}
	if n[2] > limits.MaxBackoff.Milliseconds() || n[3] > limits.MaxBackoff.Milliseconds() {
		return flowfabric.Policy{}, fmt.Errorf("%w: packed policy backoff exceeds 168h", denied.Policy)
	}
	p := flowfabric.Policy{
		Retry: flowfabric.RetryPolicy{
			MaxRetries: int(n[0]), Initial: time.Duration(n[2]) * time.Millisecond,
			Max: time.Duration(n[3]) * time.Millisecond, Multiplier: float64(n[4]) / 1000, Jitter: n[5] == 1,
		},
		MaxReclaims: int(n[6]), MaxReplays: int(n[7]), StreamFrames: int(n[8]), Retention: kept,
	}
	if n[1] == 1 {
		p.Retry.Fixed = true
	}
	if p.MaxReplays == 0 {
		p.MaxReplays = -1
	}
	if categories != "" {
		for c := range strings.SplitSeq(categories, ",") {
			p.Retry.Categories = append(p.Retry.Categories, flowfabric.Category(c))
		}
	}
	if n[1] > 1 || n[5] > 1 {
		return flowfabric.Policy{}, fmt.Errorf("%w: packed policy %.48q has a flag that is not 0 or 1", denied.Policy,
			packed)
	}
	return p, Policy(p)
}
