package admit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// frozen is a server on which the partition of a gate takes no news.
type frozen struct {
	*engine.Engine
	gate string
}

func (f frozen) SettleGates(ctx context.Context, news []engine.News) ([]bool, []engine.Waiter, error) {
	if news[0].Gate == f.gate {
		return nil, nil, denied.New("test", "partition_frozen", "")
	}
	return f.Engine.SettleGates(ctx, news)
}

// What cannot be delivered keeps nothing else waiting, however much it is, and is delivered in the end.
func TestDeliveryReadsOnPastWhatIsStuck(t *testing.T) {
	servers(t, func(w *env) {
		a, b := w.gate(admission.Gate{Name: "a", Concurrency: 500}), w.gate(admission.Gate{Name: "b", Concurrency: 2})
		for range 110 {
			w.create(0, a)
		}
		w.create(0, a, b)
		k := w.worker(w.e, 0)
		for done := 0; done < 111; {
			for _, c := range k.claim(32) {
				w.complete(c)
				done++
			}
		}
		w.create(0, b)
		w.complete(k.one())
		n, err := admit.Deliver(w.ctx, frozen{w.e, "a"}, 0)
		if !errors.Is(err, flowfabric.ErrPartitionFrozen) {
			t.Error(err)
		}
		same(w, "of b", fmt.Sprint(n, w.held(b)), "1 0")
		n, err = admit.Deliver(w.ctx, frozen{w.e, "a"}, 0)
		same(w, "again", fmt.Sprint(n, err != nil, w.held(a)), "0 true 111")
		same(w, "all", fmt.Sprint(w.deliver(0), w.held(a)), "111 0")
	})
}

// gone is the news that what has a hold runs no more.
func gone(gate string, h engine.Hold) engine.News {
	return engine.News{Gate: gate, Execution: h.Execution, Epoch: h.Epoch, What: engine.NewsGone}
}

// A call wakes 256 at most, whatever it released; who is not woken waits still.
func TestReleaseWakesABoundedNumber(t *testing.T) {
	servers(t, func(w *env) {
		var names []string
		for i := 0; len(names) < 3; i++ {
			if n := fmt.Sprint("u", i); ids.GatePartition(n, w.e.GatePartitions()) == 0 {
				names = append(names, n)
			}
		}
		var items []engine.News
		for _, n := range names {
			w.gate(admission.Gate{Name: n, Concurrency: 100})
			var all []engine.Hold
			for i := range uint64(100) {
				all = append(all, engine.Hold{Execution: mint.ID(0), Epoch: i + 1})
				items = append(items, gone(n, all[i]))
			}
			_, err := w.e.Admit(w.ctx, n, engine.Waiter{Partition: 0, Route: 1}, 10*time.Minute, false, all)
			w.no(err)
			for route := range uint64(200) {
				_, err := w.e.Admit(w.ctx, n, engine.Waiter{Partition: 0, Route: route + 1}, 10*time.Minute, true, nil)
				w.no(err)
			}
		}
		woken, waiting := 0, 0
		for i := 0; i < len(items); i += 100 {
			_, wake, err := w.e.SettleGates(w.ctx, items[i:i+100])
			w.no(err)
			woken += len(wake)
		}
		same(w, "woken", woken, 306)
		var some []engine.News
		for _, n := range names {
			some = append(some, engine.News{Gate: n, Execution: items[0].Execution, Epoch: items[0].Epoch,
				What: engine.NewsGone})
		}
		_, wake, err := w.e.SettleGates(w.ctx, some)
		w.no(err)
		for _, n := range names {
			q, err := w.e.ReadGate(w.ctx, n, 0, 0, 0)
			w.no(err)
			waiting += q.ForSlots
		}
		same(w, "of three gates at once", fmt.Sprint(len(wake), waiting), "256 38")
	})
}

// hangs is a server on which one partition does not answer questions about holds.
type hangs struct {
	*engine.Engine
	asked *int
}

func (h hangs) CheckHolds(ctx context.Context, p uint16, holds []engine.Hold) ([]string, error) {
	if p != 1 {
		return h.Engine.CheckHolds(ctx, p, holds)
	}
	*h.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// A partition that does not answer delays a claim by 200 ms, and that once in 5 s; suspects of another one are
// settled meanwhile.
func TestSilentPartitionDelaysLittle(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "q", Concurrency: 2})
		w.create(1, q)
		w.worker(w.e, 1).one()
		// whose worker died
		w.no2(w.e.Admit(w.ctx, "q", engine.Waiter{Partition: 0, Route: 1}, 10*time.Second, false,
			[]engine.Hold{{Execution: w.create(0), Epoch: 7}}))
		w.advance(11 * time.Second)
		asked := 0
		w.create(0, q)
		ran := testwait.Running(w.T)
		k := w.worker(hangs{w.e, &asked}, 0)
		claims := k.claim(10) // the one without gates, maybe, and the gated one
		claims = append(claims, k.claim(10)...)
		same(w, "claimed", len(claims), 2)
		w.create(0, q)
		k.nothing()
		w.advance(11 * time.Second)
		w.tick(0)
		k.nothing()
		same(w, "asked", asked, 1)
		if took := ran(); took > time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A slot is not spent on routes whose lane is paused.
func TestSlotsPassBySilencedLanes(t *testing.T) {
	servers(t, func(w *env) {
		g := w.gate(admission.Gate{Name: "q", Concurrency: 1})
		create := func(lane, kind string) {
			x := engine.NewExecution{ID: mint.ID(0), Payload: []byte("{}"),
				Start: testgate.Asks(flowfabric.Start{Namespace: "default", Lane: lane, Kind: kind}, g)}
			c, err := w.e.CreateExecutions(w.ctx, 0, []engine.NewExecution{x})
			w.no(err)
			w.no(c[0].Err)
		}
		create("x", "first")
		k := w.worker(w.e, 0)
		c := k.one()
		for i := range 6 {
			create("p", fmt.Sprint("k", i))
		}
		k.nothing()
		w.advance(time.Millisecond)
		create("x", "last")
		k.nothing()
		for _, a := range w.e.SetLane(w.ctx, wire.SetLane{Namespace: "default", Lane: "p", State: "paused"}) {
			w.no(a.Err)
		}
		w.complete(c)
		w.deliver(0)
		k.one()
	})
}

// Who drew the half of the ready routes in which nothing can be taken is not sent to sleep: the other half has some.
func TestNobodySleepsBeforeTheOtherHalf(t *testing.T) {
	servers(t, func(w *env) {
		g := w.gate(admission.Gate{Name: "q", Concurrency: 1})
		create := func(deadline time.Duration, gates ...flowfabric.Gate) {
			x := engine.NewExecution{ID: mint.ID(0), Payload: []byte("{}"),
				Start: testgate.Asks(flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k",
					Deadline: flowfabric.Millis(deadline)}, gates...)}
			c, err := w.e.CreateExecutions(w.ctx, 0, []engine.NewExecution{x})
			w.no(err)
			w.no(c[0].Err)
		}
		create(time.Second, g)
		create(0)
		w.advance(2 * time.Second)
		digest, err := w.e.SetSubscription(w.ctx, 0, engine.Subscription{Classes: []uint64{1, 2}})
		w.no(err)
		for i, want := range []string{"0 false", "1 false"} {
			r, err := w.e.ClaimNext(w.ctx,
				engine.ClaimRequest{Partition: 0, Session: engine.NewSessionID("a"), Number: 1, TTL: time.Hour, Max: 5,
					Subscription: digest, Wait: true, Gates: true, Rotation: uint64(i + 1)})
			w.no(err)
			same(w, "claimed, registered", fmt.Sprint(len(r.Claims), r.Registered), want)
		}
	})
}
