package runtime

import (
	"context"
	"sync"
	"time"
)

const (
	// stuckAfter is how long a handler may run on after its context has ended before it counts as stuck.
	stuckAfter = 5 * time.Second
	// stuckLook is how often the handlers at work are looked at.
	stuckLook = time.Second
	// stuckWarnings is how many handlers one look warns of; the others follow with the next looks.
	stuckWarnings = 10
	// A warning is repeated after these pauses, which double from the first to the last.
	stuckRepeat, stuckSeldom = time.Minute, time.Hour
)

// watch knows the handlers at work, and finds those that ignore the end of their context. A timeout, a cancellation
// or a lost lease frees the execution but not the slot, since Go cannot end a goroutine from outside.
//
//	enter ──▶ at work ──leave──▶ gone
//	             │ its context ended stuckAfter ago
//	             ▼
//	           stuck: a warning, stuck_handlers, the worker's registration; and not Ready once all slots are
type watch struct {
	health *health
	poke   func()        // tells that the number of stuck handlers has changed; must not block
	wake   chan struct{} // capacity 1: a handler is at work

	mu      sync.Mutex
	asleep  bool // nobody looks, as no handler is at work
	first   *atWork
	working int
	stuck   int
	told    int // how many were stuck when poke was called last
}

// atWork is a handler at work. It is a part of its job, so that watching it allocates nothing.
type atWork struct {
	prev, next *atWork
	job        *job
	ctx        context.Context
	began      time.Time
	ended      time.Time     // when its context was first seen to have ended; zero: it has not
	warn       time.Time     // when the next warning is due
	pause      time.Duration // after that one
	stuck      bool
}

// enter is told that a handler begins.
func (w *watch) enter(ctx context.Context, j *job, now time.Time) {
	x := &j.atWork
	*x = atWork{job: j, ctx: ctx, began: now}
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.next = w.first; x.next != nil {
		x.next.prev = x
	}
	w.first = x
	w.working++
	if w.asleep {
		w.asleep = false
		w.wake <- struct{}{} // never blocks: it is asleep until it takes this
	}
}

// leave is told that it has returned.
func (w *watch) leave(j *job) {
	x := &j.atWork
	w.mu.Lock()
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		w.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	w.working--
	if x.stuck {
		w.stuck--
		w.health.stuck.Store(int64(w.stuck))
	}
	w.mu.Unlock()
	if x.stuck {
		j.logger().Info("flowfabric: a stuck handler returned; its slot is free", "running",
			rounded(time.Since(x.began)))
	}
}

// keep looks at the handlers until ctx ends, for as long as there are any: a worker without work need not wake up.
func (w *watch) keep(ctx context.Context) {
	timer := time.NewTimer(stuckLook)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			timer.Reset(stuckLook)
		case now := <-timer.C:
			if w.look(now) {
				timer.Reset(stuckLook)
			}
		}
	}
}

// look finds those that are stuck, and warns of some. It tells whether to look again; if not, the next handler that
// begins says so.
func (w *watch) look(now time.Time) (again bool) {
	var due []atWork
	w.mu.Lock()
	for x := w.first; x != nil; x = x.next {
		switch {
		case x.ctx.Err() == nil:
			continue
		case x.ended.IsZero():
			x.ended, x.warn, x.pause = now, now.Add(stuckAfter), stuckRepeat
		}
		if !x.stuck && now.Sub(x.ended) >= stuckAfter {
			x.stuck = true
			w.stuck++
		}
		if x.stuck && !now.Before(x.warn) && len(due) < stuckWarnings {
			x.warn, x.pause = now.Add(x.pause), min(2*x.pause, stuckSeldom)
			due = append(due, *x)
		}
	}
	w.health.stuck.Store(int64(w.stuck))
	changed, stuck, working := w.stuck != w.told, w.stuck, w.working
	w.told, w.asleep = w.stuck, w.working == 0
	w.mu.Unlock()
	for _, x := range due {
		x.job.logger().Warn(
			"flowfabric: a handler ignores the end of its context and keeps its slot until it returns; "+
				"let it watch its context, or restart the process",
			"cause", context.Cause(x.ctx), "running", rounded(now.Sub(x.began)), "ended", rounded(now.Sub(x.ended)),
			"stuck", stuck, "working", working)
	}
	if changed {
		w.poke()
	}
	return working > 0
}

// counts tells how many handlers are at work and how many of them are stuck.
func (w *watch) counts() (working, stuck int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.working, w.stuck
}

// kinds adds the stuck handlers to a count by kind.
func (w *watch) kinds(count map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := w.first; x != nil; x = x.next {
		if x.stuck {
			count[x.job.route.Kind]++
		}
	}
}

func rounded(d time.Duration) string { return d.Round(time.Second).String() }
