package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func asking(list ...flowfabric.Gate) func(*engine.NewExecution) {
	return func(x *engine.NewExecution) { x.Start = testgate.Asks(x.Start, list...) }
}

func (w *env) amount(name string, tokens int64) {
	w.Helper()
	b := admission.Gate{Name: name, Limits: map[string]admission.Limit{"tokens": {Hard: tokens}}}
	if _, _, _, err := w.engine.PutGate(w.ctx, b, 0); err != nil {
		w.Fatal(err)
	}
}

func (w *env) gate(q admission.Gate) {
	w.Helper()
	if _, _, _, err := w.engine.PutGate(w.ctx, q, 0); err != nil {
		w.Fatal(err)
	}
}

// free waits until a gate has no slot taken.
func (w *env) free(gate string) {
	w.Helper()
	w.eventually("all slots of "+gate+" are free", func() bool {
		q, err := w.engine.ReadGate(w.ctx, gate, 0, 0, 0)
		must.No(w, err)
		return q.Held == 0
	})
}

// crowd counts how many of its handlers run at once.
type crowd struct {
	now, most, ran atomic.Int64
}

func (c *crowd) run(context.Context, *handler.Task, string) (string, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	<-time.After(time.Millisecond) // so that they would overlap
	c.ran.Add(1)
	return "", nil
}

// Two workers and a gate of two slots: never more than two of fifty run at once, whichever worker and partition they
// are in, and all of them do run.
func TestCapHoldsOverWorkers(t *testing.T) {
	servers(t, func(w *env) {
		w.gate(admission.Gate{Name: "two", Concurrency: 2})
		c := &crowd{}
		var ids []flowfabric.ExecutionID
		for i := range 50 {
			ids = append(ids, w.submit("x", asking(flowfabric.Gate("two")), at(i)))
		}
		for i := range 2 {
			w.start(runtime.Config{Concurrency: 8, Instance: fmt.Sprintf("w%d", i)}, handler.Bind(greet, c.run))
		}
		for _, id := range ids {
			w.reach(id, codes.Completed)
		}
		if c.most.Load() > 2 || c.ran.Load() != 50 {
			t.Errorf("%d at once, %d ran", c.most.Load(), c.ran.Load())
		}
		w.free("two")
	})
}

func at(partition int) func(*engine.NewExecution) {
	return func(x *engine.NewExecution) { x.ID = mint.ID(uint16(partition % 4)) }
}

// Work whose gate is exhausted waits, ungated work passes it by, and it runs as soon as there is room.
func TestAmountClosesAndOpens(t *testing.T) {
	servers(t, func(w *env) {
		w.amount("b", 10)
		report := admission.Usage{Gate: "b", Key: "k", Amounts: map[string]int64{"tokens": 10}}
		if _, err := w.engine.ReportUsage(w.ctx, report); err != nil {
			t.Fatal(err)
		}
		w.start(runtime.Config{}, greetBinding())
		waits := w.submit("x", asking(flowfabric.Gate("b")), at(1))
		w.eventually("its route is closed", func() bool {
			for _, p := range w.engine.Gates(w.ctx) {
				if len(p.Closed) == 1 && p.Closed[0].Waiting == 1 &&
					strings.HasPrefix(p.Closed[0].Why, "gate b amount tokens 10 10") {
					return true
				}
			}
			return false
		})
		w.reach(w.submit("x", at(1)), codes.Completed)
		_, _, wake, err := w.engine.ResetUsage(w.ctx, "b", false)
		if err != nil || len(wake) != 1 {
			t.Fatal(wake, err)
		}
		if _, err := w.engine.OpenRoutes(w.ctx, wake[0].Partition, []uint64{wake[0].Route}); err != nil {
			t.Fatal(err)
		}
		w.reach(waits, codes.Completed)
	})
}

// What waits outside (a delay here) has no slot meanwhile, and asks for one when it goes on.
func TestWaitingWorkHasNoSlot(t *testing.T) {
	servers(t, func(w *env) {
		w.gate(admission.Gate{Name: "one", Concurrency: 1})
		var runs sync.Map
		first := make(chan struct{})
		w.start(runtime.Config{},
			handler.Bind(greet, func(_ context.Context, t *handler.Task, name string) (string, error) {
				if _, again := runs.LoadOrStore(name, true); !again && name == "a" {
					return "", handler.Delay(time.Second)
				}
				if name == "b" {
					close(first)
				}
				return name, nil
			}))
		a := w.submit("a", asking(flowfabric.Gate("one")))
		w.reach(a, "R2ai")
		b := w.submit("b", asking(flowfabric.Gate("one")))
		<-first // while the other is delayed
		w.reach(b, codes.Completed)
		w.reach(a, codes.Completed)
		w.free("one")
	})
}

// A worker that serves more than one namespace, or all of them, tells its handlers which one they work for.
func TestNamespaces(t *testing.T) {
	w := newEnv(t)
	space := func(name string) func(*engine.NewExecution) {
		return func(x *engine.NewExecution) { x.Namespace = name }
	}
	tells := handler.Bind(greet, func(_ context.Context, t *handler.Task, _ string) (string, error) {
		return t.Namespace(), nil
	})
	some := w.start(runtime.Config{Instance: "some", Namespace: "a", Namespaces: []string{"b"}}, tells)
	for _, name := range []string{"a", "b"} {
		id := w.submit("x", space(name))
		w.reach(id, codes.Completed)
		if got := w.result(id, 1); got != `"`+name+`"` {
			t.Errorf("ran in %s, want %s", got, name)
		}
	}
	other := w.submit("x", space("c"))
	w.reach(other, "R1f")
	_ = some.stop()
	w.start(runtime.Config{Instance: "all", Namespaces: []string{"*"}}, tells)
	w.reach(other, codes.Completed)
	w.reach(w.submit("x", space("made later")), codes.Completed)
}
