package testwait

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// test is a test with a deadline of its own, which notes what it fails with.
type test struct {
	testing.TB
	end  time.Time
	said string
}

func (t *test) Deadline() (time.Time, bool) { return t.end, !t.end.IsZero() }

func (t *test) Fatalf(format string, args ...any) {
	t.said = fmt.Sprintf(format, args...)
	panic(t)
}

// failure is what a test fails with.
func (t *test) failure(f func()) (said string) {
	defer func() {
		said = t.said
		if got := recover(); got != nil && got != any(t) {
			panic(got)
		}
	}()
	f()
	return said
}

func TestContextEndsBeforeTheTest(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{time.Hour: margin, 30 * time.Second: 3 * time.Second} {
		end := time.Now().Add(left)
		ctx, cancel := Context(&test{TB: t, end: end}, t.Context())
		defer cancel()
		got, ok := ctx.Deadline()
		if kept := end.Sub(got); !ok || kept > want || kept < want-time.Second {
			t.Errorf("with %s left, %s are kept for the end (%t), want %s", left, kept, ok, want)
		}
	}
	ctx, cancel := Context(&test{TB: t, end: time.Now().Add(-time.Second)}, t.Context())
	defer cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrDeadline) {
		t.Errorf("it ended with %v", err)
	}
}

func TestContextWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, tb := range map[string]testing.TB{"bubble": t, "no deadline": &test{TB: t},
			"benchmark": struct{ testing.TB }{t}} {
			ctx, cancel := Context(tb, t.Context())
			if end, ok := ctx.Deadline(); ok {
				t.Errorf("%s: it ends at %s", what, end)
			}
			cancel()
			<-ctx.Done()
		}
	})
}

func TestEnd(t *testing.T) {
	<-End(&test{TB: t, end: time.Now()})
	var early <-chan struct{}
	t.Run("its test", func(t *testing.T) {
		early = End(&test{TB: t, end: time.Now().Add(time.Hour)})
		select {
		case <-early:
			t.Error("it is closed an hour before the deadline")
		default:
		}
	})
	<-early // nothing is left behind
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Until(t, "an hour", func() bool {
			time.Sleep(time.Minute) // a machine that stops between the looks
			return time.Since(began) > time.Hour
		})
		began = time.Now()
		never := &test{TB: t}
		if said := never.failure(func() { Until(never, "rain", func() bool { return false }) }); said !=
			"rain: not so after a minute of running time" {
			t.Errorf("it said %q", said)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it waited %s", took)
		}
	})
}

func TestProgressKeepsAWaitGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		Progress(t, "ten steps", func() (bool, any) {
			looks++
			return looks == 10*stuck, looks / stuck
		})
		if took := time.Since(began); took < 9*time.Minute {
			t.Errorf("it took %s", took)
		}
		never := &test{TB: t}
		said := never.failure(func() { Progress(never, "steps", func() (bool, any) { return false, 3 }) })
		if said != "steps: no change for a minute of running time; last seen: 3" {
			t.Errorf("it said %q", said)
		}
	})
}

func TestProgressEndsBeforeTheTest(t *testing.T) {
	late, n := &test{TB: t, end: time.Now()}, 0
	said := late.failure(func() { Progress(late, "steps", func() (bool, any) { n++; return false, n }) })
	if want := "steps: the test's deadline is near (go test -timeout); last seen: 1"; said != want {
		t.Errorf("it said %q, want %q", said, want)
	}
}

func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := Running(t)
		time.Sleep(time.Second + pause/2)
		if ran := since(); ran != time.Second {
			t.Errorf("it ran for %s", ran)
		}
	})
}
