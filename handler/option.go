package handler

import (
	"fmt"
	"math"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/joblog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// DefineOption is one default of a [Definition]: [Retry], [RetryPolicy], [MaxReclaims], [MaxReplays], [StreamFrames],
// [WithCodec], [KeepLogs] and [NoSchema]; of package flowfabric Priority, Lane, Timeout, Deadline, Retries, Retention,
// Capabilities, Tags, Gates and LimitKey. A later option wins over an earlier one of the same name.
type DefineOption interface{ DefineOption() }

// definer is an option of this package.
type definer func(*settings)

func (definer) DefineOption() {}

// settings collects options; errors are kept, so that a definition can be a package variable.
type settings struct {
	start flowfabric.Start
	codec Codec
	mute  bool
	logs  string
	errs  []error
}

func (s *settings) refuse(err error) { s.errs = append(s.errs, err) }

// apply takes one option.
func (s *settings) apply(index int, o DefineOption) {
	if own, ok := o.(definer); ok {
		own(s)
		return
	}
	var said flowfabric.Start
	said.Policy.Retention = valid.RetainAll(math.MaxInt64)
	if option.Apply(&said, index, o) == nil {
		for _, outcome := range []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed,
			flowfabric.Cancelled, flowfabric.Expired} {
			if d := valid.RetentionOf(said.Policy.Retention, outcome); d <= 0 { // 0 would silently mean the default
				s.refuse(fmt.Errorf("%w: retention of what is %s is %s, want whole seconds of 1s..10 years",
					flowfabric.ErrInvalidInput, outcome, d))
			}
		}
	}
	if err := option.Apply(&s.start, index, o); err != nil {
		s.refuse(err)
	}
}

// check refuses what is out of bounds, and puts names in order. Options of this package that can tell more have
// refused already.
func (s *settings) check() {
	for _, err := range []error{valid.Name("lane", s.start.Lane), valid.Terms(&s.start)} {
		if err != nil {
			s.refuse(err)
		}
	}
}

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
// Default: Retry(3, time.Second, time.Minute). To make the first failure the last, say flowfabric.Retries(0).
func Retry(n int, initial, limit time.Duration) DefineOption {
	return definer(func(s *settings) {
		s.bound("Retry initial", initial, limits.MaxBackoff)
		s.bound("Retry limit", limit, limits.MaxBackoff)
		if limit != 0 && limit < initial {
			s.refuse(fmt.Errorf("%w: Retry limit %v is below initial %v", flowfabric.ErrInvalidInput, limit, initial))
		}
		s.start.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: n, Initial: initial, Max: limit, Multiplier: 2,
			Jitter: true}
	})
}

// RetryPolicy sets every detail of the retry policy; its zero fields have the defaults stated there, which means
// no retries unless MaxRetries is set. Its bounds are those of its fields.
func RetryPolicy(p flowfabric.RetryPolicy) DefineOption {
	p.Categories = slices.Clone(p.Categories)
	return definer(func(s *settings) { s.start.Policy.Retry = p })
}

// WithCodec sets how inputs, results and step values are encoded. Producers and workers must agree. Default [JSON].
func WithCodec(c Codec) DefineOption {
	return definer(func(s *settings) {
		if c == nil {
			s.refuse(fmt.Errorf("%w: WithCodec is nil, want a codec", flowfabric.ErrInvalidInput))
			return
		}
		s.codec = c
	})
}

// NoSchema keeps workers from publishing the types of the kind, so inputs are not checked when they are submitted, and
// flowfabric types knows nothing of them. Default: see [Binding.Schemas].
func NoSchema() DefineOption { return definer(func(s *settings) { s.mute = true }) }

// KeepLogs sets from which level on workers keep what [Task.Logger] is told with the execution: debug, info, warn or
// error; off keeps nothing. Default what runtime.Config.KeepLogs says.
func KeepLogs(level string) DefineOption {
	return definer(func(s *settings) {
		if !joblog.Valid(level) {
			s.refuse(fmt.Errorf("%w: KeepLogs is %.40q, want debug, info, warn, error or off",
				flowfabric.ErrInvalidInput, level))
			return
		}
		s.logs = level
	})
}

// StreamFrames sets how many frames of an attempt are kept, approximately: 1..1,000,000. Default 10,000.
func StreamFrames(n int) DefineOption {
	return definer(func(s *settings) {
		if n < 1 { // 0 would silently mean the default
			s.refuse(fmt.Errorf("%w: StreamFrames is %d, want 1..1000000", flowfabric.ErrInvalidInput, n))
			return
		}
		s.start.Policy.StreamFrames = n
	})
}

// MaxReclaims sets how often an execution may be requeued because its worker died or lost the lease: 1..10,000.
// After that it ends failed, since its handler may be what ends its workers. Default 10. Reclaims consume no retries.
// The first one comes at once; later ones pause 1, 2, 4 … 60 s, unless an operator revoked the lease.
func MaxReclaims(n int) DefineOption {
	return definer(func(s *settings) {
		if n < 1 { // 0 would silently mean the default
			s.refuse(fmt.Errorf("%w: MaxReclaims is %d, want 1..10000", flowfabric.ErrInvalidInput, n))
			return
		}
		s.start.Policy.MaxReclaims = n
	})
}

// MaxReplays sets how often an execution that has ended may be replayed: 0..1000, where 0 and -1 mean never. Default
// 10. A replay above it answers [flowfabric.ErrLimit].
func MaxReplays(n int) DefineOption {
	return definer(func(s *settings) {
		if n == 0 { // in a policy it would mean the default
			n = -1
		}
		s.start.Policy.MaxReplays = n
	})
}
