// Package middleware has middleware that is ready to use: a rate limit and a circuit breaker, each of one process.
// What they do not let run is put aside and comes again, as with handler.Delay: no retry is used up, recorded steps
// are kept, and no slot is held meanwhile.
//
//	run ─▶ CircuitBreaker ─▶ RateLimit ─▶ handler ─▶ outcome, which the breaker counts
//	          │ open             │ no room
//	          ▼                  ▼
//	       delay until the breaker lets a run try, or until there is room
//
// Put the breaker outside, as here: a rate limit outside of it also counts the runs that the breaker puts aside.
//
// The Key of both says what a run counts under: runs with the same key count together, and those with the key "" are
// let through. It must be fast and safe for concurrent use. What is remembered of a key that nobody uses is dropped
// when there are many.
//
// A worker does not know what other processes do. For a limit over all workers use a gate or a key limit: the server
// counts those, and work that has no room is not claimed at all
// (https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/limits.md).
package middleware

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
)

// byKind counts each kind for itself.
func byKind(t *handler.Task) string { return t.Kind() }

// Kinds is a Key that counts the named kinds together, and lets others through: they call the same service.
func Kinds(names ...string) func(t *handler.Task) string {
	of := map[string]bool{}
	for _, name := range names {
		of[name] = true
	}
	return func(t *handler.Task) string {
		if of[t.Kind()] {
			return "kinds"
		}
		return ""
	}
}

// aside is the outcome of a run that comes again after d, and up to a tenth later: what was put aside together should
// not come together.
func aside(ctx context.Context, t *handler.Task, d time.Duration, why string,
	told func(*handler.Task, time.Duration)) handler.Outcome {
	d = max(d, time.Millisecond)
	d += rand.N(d/10 + time.Millisecond)
	t.Logger().DebugContext(ctx, "flowfabric: put aside", "why", why, "for", d)
	if told != nil {
		told(t, d)
	}
	return handler.Classify(ctx, t, handler.Delay(d))
}

// forgetAt is how many keys are remembered before those that nobody uses are dropped.
const forgetAt = 1024

// keyed keeps one T for each key. The caller guards it.
type keyed[T any] struct {
	of     map[string]T
	forget int // at how many keys idle ones are dropped next
}

// get returns what is kept of a key, and makes it if there is none.
func (k *keyed[T]) get(key string, fresh func() T, idle func(T) bool) T {
	if v, ok := k.of[key]; ok {
		return v
	}
	if k.of == nil {
		k.of, k.forget = map[string]T{}, forgetAt
	}
	if len(k.of) >= k.forget {
		for name, v := range k.of {
			if idle(v) {
				delete(k.of, name)
			}
		}
		k.forget = max(forgetAt, 2*len(k.of))
	}
	v := fresh()
	k.of[key] = v
	return v
}
