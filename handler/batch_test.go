package handler_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

type (
	item  = handler.Item[string, int]
	calls struct {
		sync.Mutex
		seen []string // the inputs of each call, in order
	}
)

var measure = handler.Define[string, int]("measure")

func (c *calls) add(items []*item) {
	var in []string
	for _, i := range items {
		in = append(in, i.In)
	}
	c.Lock()
	defer c.Unlock()
	c.seen = append(c.seen, strings.Join(in, " "))
}

// all are the calls so far.
func (c *calls) all() []string {
	c.Lock()
	defer c.Unlock()
	return slices.Clone(c.seen)
}

// party runs executions of one binding at the same time, each with a context that the test ends.
type party struct {
	binding handler.Binding
	worker  *tasks.Worker
	wait    sync.WaitGroup

	mu       sync.Mutex
	outcomes map[string]handler.Outcome
	cancel   map[string]context.CancelCauseFunc
	timeout  time.Duration // of those that join
}

func newParty(fn func(context.Context, []*item) error, size handler.Batch) *party {
	return &party{binding: handler.BindBatch(measure, fn, size), worker: &tasks.Worker{},
		outcomes: map[string]handler.Outcome{}, cancel: map[string]context.CancelCauseFunc{}}
}

// join runs one execution whose input is its name, and returns once it waits.
func (p *party) join(name string, change ...func(*tasks.Config)) {
	cfg := tasks.Config{Claim: &engine.Claim{Input: []byte(`"` + name + `"`)},
		Route: engine.Route{Namespace: "n", Lane: "l", Kind: "measure"}, Worker: p.worker}
	for _, c := range change {
		c(&cfg)
	}
	outer := context.Background()
	if p.timeout > 0 {
		var end context.CancelFunc
		outer, end = context.WithTimeoutCause(outer, p.timeout, flowfabric.ErrAttemptTimeout) // timed: in a bubble
		p.wait.Go(func() { <-outer.Done(); end() })
	}
	ctx, cancel := context.WithCancelCause(outer)
	p.mu.Lock()
	p.cancel[name] = cancel
	p.mu.Unlock()
	p.wait.Go(func() {
		out := p.binding.Run(ctx, newTask(cfg))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.outcomes[name] = out
	})
	synctest.Wait()
}

func (p *party) want(t *testing.T, name string, kind string, detail string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	out, ended := p.outcomes[name]
	got := string(out.Result)
	if out.Kind == codes.OutcomeFail {
		got = string(out.Failure.Category)
	}
	if !ended || out.Kind != kind || got != detail {
		t.Errorf("%s ended %v as %s %q (%v), want %s %q", name, ended, out.Kind, got, out.Err, kind, detail)
	}
}

// lengths completes each item with the length of its input.
func lengths(_ context.Context, items []*item) error {
	for _, i := range items {
		i.Complete(len(i.In))
	}
	return nil
}

// A call begins when it is full, or when its first item has waited long enough, with what has come by then.
func TestBatchFillsOrWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		p := newParty(func(ctx context.Context, items []*item) error { c.add(items); return lengths(ctx, items) },
			handler.Batch{Size: 3, Wait: time.Minute})
		began := time.Now()
		for _, name := range []string{"a", "bb", "ccc", "dddd"} {
			p.join(name)
		}
		p.want(t, "ccc", codes.OutcomeComplete, "3")
		if time.Since(began) != 0 {
			t.Error("a full call waited")
		}
		time.Sleep(30 * time.Second)
		p.join("eeeee")
		p.wait.Wait()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the second call began after %s, want a minute after its first item", took)
		}
		if got := fmt.Sprint(c.all()); got != "[a bb ccc dddd eeeee]" || len(c.all()) != 2 {
			t.Errorf("calls %q", c.all())
		}
		p.want(t, "a", codes.OutcomeComplete, "1")
		p.want(t, "eeeee", codes.OutcomeComplete, "5")
	})
}

// An execution whose own time ends before the wait of its batch is called all the same.
func TestBatchWaitsNotBeyondATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		p := newParty(func(ctx context.Context, items []*item) error { c.add(items); return lengths(ctx, items) },
			handler.Batch{Size: 3, Wait: time.Minute})
		p.join("a")
		p.timeout = 10 * time.Second
		p.join("bb")
		p.wait.Wait()
		p.want(t, "a", codes.OutcomeComplete, "1")
		p.want(t, "bb", codes.OutcomeComplete, "2")
	})
}

// Executions of different lanes, namespaces or workers never meet in one call.
func TestBatchDoesNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calls
		p := newParty(func(ctx context.Context, items []*item) error { c.add(items); return lengths(ctx, items) },
			handler.Batch{Size: 2, Wait: time.Second})
		p.join("lane", func(cfg *tasks.Config) { cfg.Route.Lane = "other" })
		p.join("namespace", func(cfg *tasks.Config) { cfg.Route.Namespace = "other" })
		p.join("worker", func(cfg *tasks.Config) { cfg.Worker = &tasks.Worker{Draining: make(chan struct{})} })
		p.join("one")
		if len(c.all()) != 0 {
			t.Errorf("calls %q", c.all())
		}
		p.join("two")
		if fmt.Sprint(c.all()) != "[one two]" {
			t.Errorf("calls %q", c.all())
		}
		p.wait.Wait()
		if len(c.all()) != 4 {
			t.Errorf("calls %q, want four", c.all())
		}
	})
}

// Each item ends as the function said of it; what it did not end fails with what it returned.
func TestBatchItemsEndAlone(t *testing.T) {
	boom := errors.New("boom")
	for name, x := range map[string]struct {
		err  error
		kind string
		rest string
	}{
		"nil":       {nil, codes.OutcomeFail, causes.HandlerError},
		"an error":  {boom, codes.OutcomeFail, causes.HandlerError},
		"permanent": {handler.Permanent(handler.Category("bad", boom)), codes.OutcomeFail, "bad"},
		"a delay":   {handler.Delay(time.Second), codes.OutcomeDelay, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late *item
				p := newParty(func(ctx context.Context, items []*item) error {
					items[0].Complete(7)
					items[0].Fail(boom) // the first counts
					items[1].Fail(handler.Category("worse", boom))
					items[2].Fail(handler.Cancel("not wanted"))
					items[3].Fail(nil)
					late = items[4]
					return x.err
				}, handler.Batch{Size: 6, Wait: time.Second})
				for i := range 5 {
					p.join(fmt.Sprint("i", i))
				}
				p.join("undecodable", func(cfg *tasks.Config) { cfg.Claim.Input = []byte("{") })
				p.want(t, "undecodable", codes.OutcomeFail, causes.Decode)
				p.wait.Wait()
				late.Complete(1) // after the function has returned
				p.want(t, "i0", codes.OutcomeComplete, "7")
				p.want(t, "i1", codes.OutcomeFail, "worse")
				p.want(t, "i2", codes.OutcomeCancel, "")
				p.want(t, "i3", codes.OutcomeFail, causes.HandlerError)
				p.want(t, "i4", x.kind, x.rest)
			})
		})
	}
}

// A panic, or the end of the goroutine, fails what was not ended, and nothing else.
func TestBatchPanics(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "panic with an error": func() {
		panic(errors.New("boom"))
	}, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Every end may be that of the first item.
				ends := []func(*item){func(i *item) { i.Complete(1) },
					func(i *item) { i.Fail(handler.Category("own", errors.New("x"))) },
					func(i *item) { i.Fail(handler.Cancel("not wanted")) }, func(*item) {}}
				for first := range ends {
					p := newParty(func(_ context.Context, items []*item) error {
						for i, item := range items {
							ends[(first+i)%len(ends)](item)
						}
						end()
						return nil
					}, handler.Batch{Size: 4})
					names := []string{"a", "b", "c", "d"}
					for _, name := range names {
						p.join(name)
					}
					p.wait.Wait()
					of := func(end int) string { return names[(end-first+len(ends))%len(ends)] }
					p.want(t, of(0), codes.OutcomeComplete, "1")
					p.want(t, of(1), codes.OutcomeFail, "own")
					p.want(t, of(2), codes.OutcomeCancel, "")
					p.want(t, of(3), codes.OutcomeFail, causes.Panic)
				}
			})
		})
	}
}

// A drain hands back at once what waits for a call, and from a call what is not ended when its context ends.
func TestBatchDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draining := make(chan struct{})
		p := newParty(func(ctx context.Context, items []*item) error {
			items[1].Complete(2)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), flowfabric.ErrDraining) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return nil
		}, handler.Batch{Size: 3, Wait: time.Minute})
		p.worker.Draining = draining
		for _, name := range []string{"a", "b", "c"} {
			p.join(name)
		}
		p.join("waits")
		close(draining)
		synctest.Wait()
		p.want(t, "waits", codes.OutcomeRelease, "")
		p.mu.Lock()
		ended := len(p.outcomes)
		p.mu.Unlock()
		if ended != 1 {
			t.Fatalf("%d ended at the begin of the drain, want the one that waits", ended)
		}
		for _, cancel := range p.cancel {
			cancel(flowfabric.ErrDraining)
		}
		p.wait.Wait()
		p.want(t, "a", codes.OutcomeRelease, "")
		p.want(t, "b", codes.OutcomeComplete, "2")
		p.want(t, "c", codes.OutcomeRelease, "")
	})
}

// One that is lost, cancelled or past its deadline concerns no other; the timeout of one concerns all; and when none
// is left the call ends.
func TestBatchContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going, told := make(chan struct{}), make(chan error, 1)
		p := newParty(func(ctx context.Context, items []*item) error {
			<-items[0].Context().Done()
			<-items[1].Context().Done()
			if ctx.Err() != nil || items[2].Context().Err() != nil {
				t.Errorf("the call ended with %v", context.Cause(ctx))
			}
			items[0].Complete(1) // its lease is lost, so this counts for nothing
			close(going)
			<-ctx.Done()
			told <- context.Cause(ctx)
			return ctx.Err()
		}, handler.Batch{Size: 4, Wait: time.Minute})
		for _, name := range []string{"a", "b", "c"} {
			p.join(name)
		}
		p.join("gone")
		p.cancel["a"](flowfabric.ErrLeaseLost)
		p.cancel["b"](flowfabric.ErrDeadline)
		<-going
		p.cancel["c"](flowfabric.ErrAttemptTimeout)
		if cause := <-told; !errors.Is(cause, flowfabric.ErrAttemptTimeout) {
			t.Errorf("the cause is %v", cause)
		}
		p.wait.Wait()
		p.want(t, "a", codes.OutcomeAbandon, "")
		p.want(t, "b", codes.OutcomeAbandon, "")
		p.want(t, "c", codes.OutcomeFail, causes.Timeout)
		p.want(t, "gone", codes.OutcomeFail, causes.Timeout)
	})
	synctest.Test(t, func(t *testing.T) {
		p := newParty(func(ctx context.Context, _ []*item) error { <-ctx.Done(); return ctx.Err() },
			handler.Batch{Size: 2})
		p.join("a")
		p.join("b")
		p.cancel["a"](flowfabric.ErrCancelled)
		p.cancel["b"](flowfabric.ErrLeaseLost)
		p.wait.Wait()
		p.want(t, "a", codes.OutcomeAbandon, "")
		p.want(t, "b", codes.OutcomeAbandon, "")
	})
	synctest.Test(t, func(t *testing.T) {
		var c calls
		p := newParty(func(ctx context.Context, items []*item) error { c.add(items); return lengths(ctx, items) },
			handler.Batch{Size: 3, Wait: time.Minute})
		p.join("a")
		p.cancel["a"](flowfabric.ErrCancelled)
		synctest.Wait()
		p.want(t, "a", codes.OutcomeAbandon, "")
		p.join("b")
		p.join("lost", func(cfg *tasks.Config) { cfg.Lease = fixedLease{flowfabric.ErrLeaseLost} })
		p.wait.Wait()
		if fmt.Sprint(c.all()) != "[b]" {
			t.Errorf("calls %q, want one with b", c.all())
		}
	})
}

// Steps, waits and messages are refused, and say why.
func TestBatchBarsWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(func(ctx context.Context, items []*item) error {
			_, step := handler.Step(ctx, items[0].Task, "s",
				func(context.Context) (int, error) { t.Error("the step ran"); return 0, nil })
			_, wait := handler.Await[string](ctx, items[0].Task, "w")
			for _, err := range []error{step, wait} {
				if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "batch handler") {
					t.Errorf("error %v", err)
				}
			}
			return step
		}, handler.Batch{Size: 1})
		p.join("a")
		p.wait.Wait()
		p.want(t, "a", codes.OutcomeFail, causes.HandlerError)
		if !p.outcomes["a"].Failure.Permanent {
			t.Error("a mistake of the program is tried again")
		}
	})
}

func TestBatchBounds(t *testing.T) {
	nothing := func(context.Context, []*item) error { return nil }
	for name, b := range map[string]handler.Binding{
		"no size": handler.BindBatch(measure, nothing, handler.Batch{}),
		"large":   handler.BindBatch(measure, nothing, handler.Batch{Size: 1001}),
		"short":   handler.BindBatch(measure, nothing, handler.Batch{Size: 1, Wait: time.Microsecond}),
		"long":    handler.BindBatch(measure, nothing, handler.Batch{Size: 1, Wait: time.Minute + 1}),
		"timeout": handler.BindBatch(handler.Define[string, int]("measure", flowfabric.Timeout(time.Second)), nothing,
			handler.Batch{Size: 1, Wait: time.Second}),
		"no function": handler.BindBatch[string, int](measure, nil, handler.Batch{Size: 1}),
		"nothing":     handler.BindBatch(nil, nothing, handler.Batch{Size: 1}),
		"bad":         handler.BindBatch(handler.Define[string, int]("{}"), nothing, handler.Batch{Size: 1}),
	} {
		if !errors.Is(b.Err(), flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, b.Err())
		}
	}
	b := handler.BindBatch(measure, nothing, handler.Batch{Size: 1000, Wait: time.Minute})
	if b.Err() != nil || b.Batch() != (handler.Batch{Size: 1000, Wait: time.Minute}) {
		t.Errorf("%+v, %v", b.Batch(), b.Err())
	}
}
