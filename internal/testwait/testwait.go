// timed: what bounds the waits of all others

// Package testwait bounds what a test waits for. No bound is a fixed time, which a slow machine exceeds: a context,
// and what a channel announces, until shortly before the test's own deadline (go test -timeout); a condition until
// nothing has changed for a minute of the test's running time.
package testwait

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	pause = 5 * time.Millisecond
	// stuck is how many looks without a change end a wait: a minute of pauses. A look counts as one pause however
	// late it comes, so that time in which the process is stopped or gets no processor does not count.
	stuck = int(time.Minute / pause)
	// margin is the most that is left to a test for its cleanup.
	margin = 10 * time.Second
)

// ErrDeadline is the cause of a context that ended because the test's deadline is near.
var ErrDeadline = errors.New("the test's deadline is near (go test -timeout)")

// Context returns a copy of parent that ends shortly before the test's deadline, or with parent if the test has none.
// In a bubble of testing/synctest the copy ends with parent alone: a bubble that waits for ever is a deadlock, which
// ends the test.
func Context(t testing.TB, parent context.Context) (context.Context, context.CancelFunc) {
	if end, ok := deadline(t); ok {
		return context.WithDeadlineCause(parent, end, ErrDeadline)
	}
	return context.WithCancel(parent)
}

// deadline says when waits end: a tenth of the time that is left, and at most margin, before the test's deadline.
func deadline(t testing.TB) (end time.Time, ok bool) {
	timed, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{}, false
	}
	defer func() {
		if recover() != nil { // inside a bubble of testing/synctest
			ok = false
		}
	}()
	if end, ok = timed.Deadline(); ok {
		end = end.Add(-min(margin, time.Until(end)/10))
	}
	return end, ok
}

// End is closed shortly before the test's deadline: the arm of a select that fails the test.
func End(t testing.TB) <-chan struct{} {
	ctx, cancel := Context(t, context.Background())
	t.Cleanup(cancel)
	return ctx.Done()
}

// Running starts to measure the test's running time, in which a pause that came late counts as one that did not.
func Running(t testing.TB) (since func() time.Duration) {
	var pauses atomic.Int64
	ended := make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		again := time.NewTicker(pause)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				pauses.Add(1)
			case <-ended:
				return
			}
		}
	})
	t.Cleanup(func() { close(ended); counting.Wait() })
	return func() time.Duration { return time.Duration(pauses.Load()) * pause }
}

// Until returns when a condition holds. It fails the test after a minute of running time.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Progress(t, what, func() (bool, any) { return holds(), nil })
}

// Progress returns when look says that all is done. It fails the test when what look has seen
// has not changed for a minute of running time, or shortly before the test's deadline.
func Progress(t testing.TB, what string, look func() (done bool, seen any)) {
	t.Helper()
	end, bounded := deadline(t)
	var last any
	for idle := 0; ; idle++ {
		done, seen := look()
		switch {
		case done:
			return
		case bounded && time.Now().After(end):
			t.Fatalf("%s: %v; last seen: %v", what, ErrDeadline, seen)
		case !reflect.DeepEqual(seen, last):
			last, idle = seen, 0
		case idle >= stuck && seen == nil:
			t.Fatalf("%s: not so after a minute of running time", what)
		case idle >= stuck:
			t.Fatalf("%s: no change for a minute of running time; last seen: %v", what, seen)
		}
		time.Sleep(pause)
	}
}
