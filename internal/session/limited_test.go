package session

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever is asked first, a limited context is told from context.WithTimeout by nothing.
func TestLimitedContexts(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		wait   bool // somebody waits from the start
		ends   func(cancelParent context.CancelCauseFunc, l *limited)
		err    error
		caused error
	}{
		"deadline": {false, func(context.CancelCauseFunc, *limited) { time.Sleep(time.Second) },
			context.DeadlineExceeded, context.DeadlineExceeded},
		"deadline, waited for": {true, func(context.CancelCauseFunc, *limited) { time.Sleep(time.Second) },
			context.DeadlineExceeded, context.DeadlineExceeded},
		"parent": {false, func(end context.CancelCauseFunc, _ *limited) { end(why) }, context.Canceled, why},
		"parent, waited for": {true, func(end context.CancelCauseFunc, _ *limited) { end(why) },
			context.Canceled, why},
		"cancel": {false, func(_ context.CancelCauseFunc, l *limited) { l.cancel() }, context.Canceled,
			context.Canceled},
		"cancel, waited for": {true, func(_ context.CancelCauseFunc, l *limited) { l.cancel() }, context.Canceled,
			context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			type key struct{}
			parent, end := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			defer end(nil)
			l := limit(parent, time.Second)
			defer l.cancel()
			if c.wait {
				l.Done()
			}
			if at, ok := l.Deadline(); !ok || at != time.Now().Add(time.Second) || l.Err() != nil ||
				l.Value(key{}) != "value" || context.Cause(l) != nil {
				t.Errorf("%s: at first until %v, %v, error %v, cause %v", name, at, ok, l.Err(), context.Cause(l))
			}
			c.ends(end, l)
			synctest.Wait()
			if err, cause := l.Err(), context.Cause(l); !errors.Is(err, c.err) || !errors.Is(cause, c.caused) {
				t.Errorf("%s: %v because of %v, want %v because of %v", name, err, cause, c.err, c.caused)
			}
			<-l.Done()
			if err := l.Err(); !errors.Is(err, c.err) {
				t.Errorf("%s: %v once it was waited for, want %v", name, err, c.err)
			}
		})
	}
}

func TestALimitedContextEndsNoLaterThanItsParent(t *testing.T) {
	parent, cancel := context.WithTimeout(t.Context(), time.Minute) // timed: it is only compared
	defer cancel()
	if at, _ := limit(parent, time.Hour).Deadline(); time.Until(at) > time.Minute {
		t.Errorf("it ends in %s", time.Until(at))
	}
}

// What derives from a limited context costs no goroutine.
func TestContextsUnderALimitedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit(t.Context(), time.Second)
		defer l.cancel()
		before := runtime.NumGoroutine()
		var under []context.Context
		for range 100 {
			ctx, cancel := context.WithCancel(l)
			defer cancel()
			under = append(under, ctx)
		}
		if n := runtime.NumGoroutine() - before; n > 50 {
			t.Errorf("%d goroutines more", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, ctx := range under {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Fatal(ctx.Err())
			}
		}
	})
}
