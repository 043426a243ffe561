package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// Breaker says when work is kept from a service that fails. The zero value is ready to use.
type Breaker struct {
	// Failures are how many runs must fail in a row, at least 1. Default 5.
	Failures int
	// Open is for how long nothing runs then, at least 10 ms. Default 30 s.
	Open time.Duration
	// Probes are how many runs try at the same time after that, and how many must succeed to close the breaker. The
	// first one that fails opens it again. Default 1.
	Probes int
	// Key says what has a breaker of its own. Default: each kind.
	Key func(t *handler.Task) string
	// Counts says whether a failed run speaks against the service. By default returned errors, panics and time-outs
	// do. A permanent failure, an input that does not decode, a child that failed and an exceeded budget speak of the
	// work instead, and count neither for the service nor against it. Runs that did not fail are not asked about: a
	// completed one counts for the service; others (cancelled, drained, put aside, waiting, lost) count for nothing.
	Counts func(out handler.Outcome) bool
	// OnState is told of each change of a breaker, for metrics and alerts: its key, and closed (everything runs),
	// open (nothing runs) or half-open (a few try). It must be fast and may not call the breaker. Default nobody.
	OnState func(key, state string)
	// OnAside is told of each run that is put aside, for metrics. Default nobody; flowfabric_settled_total counts the
	// outcome delay.
	OnAside func(t *handler.Task, d time.Duration)
	// Logger says when a breaker opens (a warning) and closes. Default slog.Default().
	Logger *slog.Logger
}

// unwell is the default of [Breaker].Counts.
func unwell(out handler.Outcome) bool {
	if out.Kind != codes.OutcomeFail || out.Failure.Permanent {
		return false
	}
	switch out.Failure.Category {
	case causes.Decode, causes.NoHandler, causes.AwaitIgnored, causes.Suspend,
		causes.Child, causes.OverBudget:
		return false
	}
	return true
}

// CircuitBreaker keeps work from a service that fails, in this process: after b.Failures failures in a row nothing
// runs for b.Open, then a run tries. A run that may not start is put aside until then. It panics if b is not valid.
func CircuitBreaker(b Breaker) handler.Middleware {
	b.Failures, b.Open, b.Probes = cmp.Or(b.Failures, 5), cmp.Or(b.Open, 30*time.Second), cmp.Or(b.Probes, 1)
	b.Logger = cmp.Or(b.Logger, slog.Default())
	if b.Failures < 1 || b.Probes < 1 || b.Open < 10*time.Millisecond {
		panic(fmt.Sprintf("middleware.CircuitBreaker: Failures %d, Open %s, Probes %d: want at least 1, 10 ms, 1",
			b.Failures, b.Open, b.Probes))
	}
	if b.Key == nil {
		b.Key = byKind
	}
	if b.Counts == nil {
		b.Counts = unwell
	}
	all := &breakers{Breaker: b}
	return func(next handler.Handler) handler.Handler {
		return func(ctx context.Context, t *handler.Task) handler.Outcome {
			key := b.Key(t)
			if key == "" {
				return next(ctx, t)
			}
			return all.of(key).run(ctx, t, next)
		}
	}
}

// breakers are the breakers of all keys.
type breakers struct {
	Breaker

	mu   sync.Mutex
	keys keyed[*breaker]
}

type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[handler.Outcome]
	all   *breakers
	until atomic.Int64 // when it lets a run try, in Unix nanoseconds
}

// What a run was, for the driver: nil counts for the service.
var (
	errUnwell = errors.New("the run failed")
	errSilent = errors.New("the run says nothing of the service")
)

func (a *breakers) of(key string) *breaker {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.keys.get(key, func() *breaker { return a.make(key) },
		func(b *breaker) bool { return b.State() == gobreaker.StateClosed && b.Counts() == gobreaker.Counts{} })
}

func (a *breakers) make(key string) *breaker {
	b := &breaker{all: a}
	b.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[handler.Outcome](gobreaker.Settings{
		Name: key, MaxRequests: uint32(a.Probes), Timeout: a.Open,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= a.Failures },
		IsExcluded:    func(err error) bool { return errors.Is(err, errSilent) },
		OnStateChange: func(key string, from, to gobreaker.State) { b.changed(key, from, to) },
	})
	return b
}

// run makes a run, or puts it aside.
func (b *breaker) run(ctx context.Context, t *handler.Task, next handler.Handler) handler.Outcome {
	done, err := b.Allow()
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		return aside(ctx, t, time.Until(time.Unix(0, b.until.Load())), "circuit breaker open", b.all.OnAside)
	case errors.Is(err, gobreaker.ErrTooManyRequests): // others try; how long that takes nobody knows
		return aside(ctx, t, max(b.all.Open/10, time.Second), "circuit breaker half-open", b.all.OnAside)
	}
	verdict := errUnwell // of a run that does not return: a panic, or runtime.Goexit
	defer func() { done(verdict) }()
	out := next(ctx, t)
	verdict = b.all.judge(out)
	return out
}

func (a *breakers) judge(out handler.Outcome) error {
	switch {
	case out.Kind == codes.OutcomeComplete:
		return nil
	case out.Kind == codes.OutcomeFail && a.Counts(out):
		return errUnwell
	}
	return errSilent
}

// changed is called while the breaker is locked.
func (b *breaker) changed(key string, from, to gobreaker.State) {
	switch to {
	case gobreaker.StateOpen:
		b.until.Store(time.Now().Add(b.all.Open).UnixNano())
		b.all.Logger.Warn("flowfabric: the circuit breaker opens and delays runs", "key", key, "for", b.all.Open, "was",
			from.String())
	case gobreaker.StateClosed:
		b.all.Logger.Info("flowfabric: circuit breaker closes", "key", key)
	}
	if b.all.OnState != nil {
		b.all.OnState(key, to.String())
	}
}
