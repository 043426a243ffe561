package admit_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// between lets something happen after the refusal and before the route is closed.
type between struct {
	*engine.Engine
	before func()
}

func (b *between) ReleaseGrants(ctx context.Context, p uint16, s string, g []engine.GrantReturn,
	c []engine.RouteClosing) error {
	if b.before != nil && len(c) > 0 {
		b.before()
		b.before = nil
	}
	return b.Engine.ReleaseGrants(ctx, p, s, g, c)
}

// What waits for a window is looked at after an hour, however long the window, and not closed at all if it was woken
// since it was granted, also if its worker has no time left to ask again.
func TestNoRouteIsClosedForLong(t *testing.T) {
	servers(t, func(w *env) {
		q := admission.Gate{Name: "r", Rate: 1, Window: flowfabric.Millis(24 * time.Hour)}
		g := w.gate(q)
		w.create(0, g)
		b := &between{Engine: w.e}
		k := w.worker(b, 0)
		w.complete(k.one())
		w.create(0, g)
		k.nothing()
		same(w, "closed", len(w.why(0)), 1)
		q.Rate = 2
		_, _, lost, err := w.e.PutGate(w.ctx, q, 1) // and nobody opens the route
		w.no(err)
		same(w, "to be woken", len(lost), 1)
		w.advance(59 * time.Minute)
		w.tick(0)
		k = w.worker(b, 0)
		k.nothing()
		w.advance(time.Minute + time.Millisecond)
		w.tick(0)
		k = w.worker(b, 0)
		k.one()

		w.create(0, g)
		b.before = func() {
			q.Rate = 3
			_, _, wake, err := w.e.PutGate(w.ctx, q, 2)
			w.no(err)
			w.no(admit.Wake(w.ctx, w.e, wake))
		}
		_, err = k.try(10)
		w.no(err)
		same(w, "woken, so not closed", len(w.why(0)), 0)
		k.one()
	})
}

// A change of a gate answers who waits for it, and so does its repeat after a lost reply.
func TestAChangeAndItsRepeatWake(t *testing.T) {
	servers(t, func(w *env) {
		q := admission.Gate{Name: "r", Rate: 1, Window: flowfabric.Millis(time.Hour)}
		w.gate(q)
		hold := func(n uint64) []engine.Hold { return []engine.Hold{{Execution: w.create(0), Epoch: n}} }
		for route := range uint64(301) {
			_, err := w.e.Admit(w.ctx, "r", engine.Waiter{Partition: 0, Route: route + 1}, 10*time.Second, false,
				hold(route+1))
			w.no(err)
		}
		q.Rate = 1000
		_, already, wake, err := w.e.PutGate(w.ctx, q, 1)
		w.no(err)
		same(w, "woken", fmt.Sprint(already, len(wake)), "false 256")
		_, already, wake, err = w.e.PutGate(w.ctx, q, 1)
		w.no(err)
		same(w, "woken by the repeat", fmt.Sprint(already, len(wake)), "true 300")
	})
}

// Room in the window wakes who waits for it, and when the first has no work any more, the next.
func TestAStartThatDidNotHappenIsOfferedOn(t *testing.T) {
	servers(t, func(w *env) {
		g := w.gate(admission.Gate{Name: "r", Rate: 1, Window: flowfabric.Millis(24 * time.Hour)})
		dead := w.create(1, g)
		hold := engine.Hold{Execution: dead, Epoch: 7}
		_, err := w.e.Admit(w.ctx, "r", engine.Waiter{Partition: 1, Route: 90}, 10*time.Second, false,
			[]engine.Hold{hold})
		w.no(err)
		for route := range uint64(5) { // routes without work, which wait first
			_, err = w.e.Admit(w.ctx, "r", engine.Waiter{Partition: 1, Route: 90 + route}, 10*time.Second, true, nil)
			w.no(err)
		}
		w.advance(time.Millisecond)
		w.create(0, g)
		k := w.worker(w.e, 0)
		k.nothing()
		box := outbox{Engine: w.e,
			entries: []engine.OutboxEntry{{ID: "1-1", News: []engine.News{{Gate: "r", Execution: dead, Epoch: 7,
				What: engine.NewsNever}}}}}
		_, err = admit.Deliver(w.ctx, box, 0)
		w.no(err)
		k.one()
	})
}

// outbox has entries of its own.
type outbox struct {
	*engine.Engine
	entries []engine.OutboxEntry
}

func (o outbox) ReadOutbox(context.Context, uint16, string) ([]engine.OutboxEntry, int, error) {
	return o.entries, len(o.entries), nil
}

// Who waits for a window comes when it is his turn: with many routes of many partitions few ask in vain, and what may
// start starts.
func TestWindowIsNoHerd(t *testing.T) {
	const parts = 32
	ctx, cancel := testwait.Context(t, context.Background())
	defer cancel()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: testserver.Redis(t), Partitions: parts,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer e.Close()
	w := &env{T: t, ctx: ctx, e: e, advance: func(time.Duration) {}}
	g := w.gate(admission.Gate{Name: "q", Rate: 100, Window: flowfabric.Millis(time.Second)})
	for p := range uint16(parts) {
		for range 50 {
			w.create(p, g)
		}
	}
	began := time.Now()
	for i := range 100 { // the window is full, and becomes free bit by bit
		time.Sleep(time.Until(began.Add(time.Duration(i) * 10 * time.Millisecond)))
		_, err := w.e.Admit(w.ctx, "q", engine.Waiter{Partition: 0, Route: 1}, time.Minute, false,
			[]engine.Hold{{Execution: w.ids[i], Epoch: 7}})
		w.no(err)
	}
	var workers []*worker
	for p := range uint16(parts) {
		workers = append(workers, w.worker(w.e, p))
	}
	admitted, refused := 0, 0
	testwait.Progress(t, "two windows of starts", func() (bool, any) {
		for p, k := range workers {
			w.tick(uint16(p))
			admitted += len(k.claim(10))
		}
		return admitted >= 200, admitted
	})
	for _, k := range workers {
		refused += strings.Count(strings.Join(k.refusals, " "), "rate")
	}
	t.Logf("%d admitted, %d times in vain", admitted, refused)
	if refused > 400 {
		t.Errorf("%d admitted, %d times in vain", admitted, refused)
	}
}
