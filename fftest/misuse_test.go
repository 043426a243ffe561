package fftest_test

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func (c *complaints) Fatal(args ...any) {
	c.Error(args...)
	goruntime.Goexit()
}
func (c *complaints) Fatalf(format string, args ...any) { c.Fatal(fmt.Sprintf(format, args...)) }

// ends runs f as a test that is expected to end early, and returns its complaints.
func ends(t *testing.T, f func(c *complaints)) *complaints {
	t.Helper()
	c := &complaints{TB: t}
	survived := false
	var wg sync.WaitGroup
	wg.Go(func() {
		f(c)
		survived = true
	})
	wg.Wait()
	if survived {
		t.Error("the test was not ended")
	}
	return c
}

func echo(_ context.Context, _ *handler.Task, in string) (string, error) { return in, nil }

func TestMisuse(t *testing.T) {
	ends(t, func(c *complaints) { fftest.New(c, runtime.Config{}, handler.Bind(greet, echo)) }).
		mention(t, "must be called in a bubble")
	ends(t, func(c *complaints) { fftest.Run(c, greet, echo, "") }).
		mention(t, "call this within synctest.Test")

	for name, use := range map[string]struct {
		f    func(c *complaints)
		want string
	}{
		"url": {func(c *complaints) {
			fftest.New(c, runtime.Config{URL: "redis://localhost"}, handler.Bind(greet, echo))
		}, "the store is the environment's own"},
		"config": {func(c *complaints) {
			fftest.New(c, runtime.Config{LeaseTTL: time.Millisecond}, handler.Bind(greet, echo))
		}, "Config.LeaseTTL is 1ms"},
		"two of a kind": {func(c *complaints) {
			fftest.New(c, runtime.Config{}, handler.Bind(greet, echo), handler.Bind(greet, echo))
		}, "greet"},
		"no function": {func(c *complaints) {
			fftest.Run[string, string](c, greet, nil, "")
		}, "function for kind greet is nil"},
		"submit": {func(c *complaints) {
			fftest.Run(c, greet, echo, "", flowfabric.Priority(-1))
		}, "Priority is -1"},
		"no such kind": {func(c *complaints) {
			w := fftest.New(c, runtime.Config{}, handler.Bind(greet, echo))
			w.Patience = time.Minute
			fftest.Submit(w, sell, order{}).Wait()
		}, "has not ended after 1m0s of virtual time: it is waiting"},
		"worker": {func(c *complaints) {
			w := fftest.New(c, runtime.Config{Username: "nobody", Password: "none"}, handler.Bind(greet, echo))
			fftest.Submit(w, greet, "").Wait()
		}, "the worker could not go on: flowfabric: start worker: "},
		"at once again, for ever": {func(c *complaints) {
			fftest.Run(c, greet, func(context.Context, *handler.Task, string) (string, error) {
				return "", handler.Delay(0)
			}, "")
		}, "does it return handler.Delay for ever?"},
		"later again, for ever": {func(c *complaints) {
			fftest.Run(c, greet, func(context.Context, *handler.Task, string) (string, error) {
				return "", handler.Delay(time.Hour)
			}, "")
		}, "does it return handler.Delay for ever?"},
		"cancel too late": {func(c *complaints) {
			w := fftest.New(c, runtime.Config{}, handler.Bind(greet, echo))
			x := fftest.Submit(w, greet, "")
			x.Wait()
			x.Cancel(flowfabric.Reason("too late"))
		}, "it is completed"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "later again, for ever" && os.Getenv("FLOWFABRIC_SOAK") == "" {
				t.Skip(
					"a thousand hours take a minute, and are counted as those at once are; FLOWFABRIC_SOAK runs them")
			}
			synctest.Test(t, func(t *testing.T) { ends(t, use.f).mention(t, use.want) })
		})
	}
}

// A handler that ignores its context fails the drain.
func TestDrainNamesTheStubborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &complaints{TB: t}
		stubborn := func(_ context.Context, task *handler.Task, in string) (string, error) {
			if task.Attempt() == 1 {
				time.Sleep(time.Minute)
			}
			return in, nil
		}
		w := fftest.New(c, runtime.Config{DrainTimeout: -1}, handler.Bind(greet, stubborn))
		x := fftest.Submit(w, greet, "x")
		time.Sleep(time.Second)
		w.Drain()
		c.mention(t, "1 handlers did not return")
		x.Wait().WantResult("x")
	})
}
