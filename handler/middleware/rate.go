package middleware

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/flowfabric/flowfabric-go/handler"
)

// Rate is how often runs may start. Only Starts is required.
type Rate struct {
	// Starts are how many runs may start Per, at least 1. A retry and a run that goes on after a wait are starts, too.
	Starts int
	// Per, default 1 s.
	Per time.Duration
	// Burst is how many may start at once after a pause; so at most Starts + Burst start in any Per. Default what
	// comes in a second, at least 1.
	Burst int
	// Longest is for how long a run is put aside at most. A smaller value makes work notice sooner that the limit has
	// room, for example because another worker took over, and costs a claim each time. Default 5 min.
	Longest time.Duration
	// Key says what has a limit of its own. Default: each kind for itself.
	Key func(t *handler.Task) string
	// OnAside is told of each run that is put aside, for metrics. Default nobody; flowfabric_settled_total counts the
	// outcome delay.
	OnAside func(t *handler.Task, d time.Duration)
}

// RateLimit lets runs start as often as r says, in this process. A run that finds no room is put aside until there is
// some: each one that is turned away is told a later instant, so that they do not all come again at once. It panics
// if r is not valid.
func RateLimit(r Rate) handler.Middleware {
	r.Per, r.Longest = cmp.Or(r.Per, time.Second), cmp.Or(r.Longest, 5*time.Minute)
	if r.Starts < 1 || r.Per < 0 || r.Burst < 0 || r.Longest < time.Second {
		panic(fmt.Sprintf(
			"middleware.RateLimit: Starts %d, Per %s, Burst %d, Longest %s: want at least 1, no negative values, at least 1 s",
			r.Starts, r.Per, r.Burst, r.Longest))
	}
	l := &limits{rate: r, every: float64(r.Starts) / r.Per.Seconds()}
	if l.rate.Burst == 0 {
		l.rate.Burst = max(1, int(math.Ceil(l.every)))
	}
	if l.rate.Key == nil {
		l.rate.Key = byKind
	}
	return func(next handler.Handler) handler.Handler {
		return func(ctx context.Context, t *handler.Task) handler.Outcome {
			if key := l.rate.Key(t); key != "" {
				if d := l.start(key, time.Now()); d > 0 {
					return aside(ctx, t, d, "rate limit", l.rate.OnAside)
				}
			}
			return next(ctx, t)
		}
	}
}

// limits are the limits of all keys.
type limits struct {
	rate  Rate
	every float64 // starts a second

	mu   sync.Mutex
	keys keyed[*limit]
}

type limit struct {
	tokens *rate.Limiter
	next   time.Time // the instant that was told last to who found no room
}

// start takes a start of a key, or says for how long to put the run aside.
func (l *limits) start(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys.get(key, func() *limit { return &limit{tokens: rate.NewLimiter(rate.Limit(l.every), l.rate.Burst)} },
		func(k *limit) bool { return k.tokens.TokensAt(now) >= float64(l.rate.Burst) && !now.Before(k.next) })
	taken := k.tokens.ReserveN(now, 1)
	d := taken.DelayFrom(now)
	if d <= 0 {
		return 0
	}
	taken.CancelAt(now) // it comes again, here or in another process
	at := now.Add(d)
	if later := k.next.Add(time.Duration(float64(time.Second) / l.every)); later.After(at) {
		at = later
	}
	if at.Sub(now) > l.rate.Longest {
		return l.rate.Longest // and the line grows no longer
	}
	k.next = at
	return at.Sub(now)
}
