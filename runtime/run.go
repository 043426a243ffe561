package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// run is one serving of a worker: everything that lives between the connection and the end of the drain.
type run struct {
	*Worker
	store  store
	keeper *keeper.Keeper
	ticks  *maintain.Loop // nil when maintenance is disabled
	sched  *scheduler
	slots  *slots
	bell   *doorbell
	passes *passer
	offer  offer
	done   *completer
	name   *membership
	watch  *watch

	kinds map[string]*served

	ctx      context.Context // of all calls and handlers; outlives the wish to stop until the drain is over
	cancel   context.CancelCauseFunc
	stop     func(cause error) // begins the drain
	draining atomic.Bool
	leaving  atomic.Bool  // takes no more work, so all rings are passed on
	late     atomic.Int32 // partitions whose tick is overdue, as the poll heard last
	tended   tended
	samples  *sampler
	seeding  sync.Mutex     // the token keys are declared again
	seeds    atomic.Uint64  // how often that was done
	pool     goroutinePool  // jobs: handlers, each with a slot, and what is left to settle
	returns  conc.WaitGroup // hand-backs, without slots
}

func newRun(ctx context.Context, w *Worker, s store) *run {
	r := &run{Worker: w, store: s, slots: newSlots(w.cfg.Concurrency), offer: newOffer(w.cfg, w.registry.kinds()),
		kinds: map[string]*served{}}
	r.slots.pace = w.pace
	r.pool.run = r.work
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	gate := admit.New(admit.Config{Engine: s, Logger: w.log, OnAsked: w.metrics.asked, OnRefused: w.metrics.refused})
	r.keeper = keeper.New(keeper.Config{
		Engine: gated{s, gate}, Instance: w.cfg.Instance, TTL: w.cfg.LeaseTTL, Logger: w.log,
		Context:       r.ctx,
		OnTickOverdue: r.tickOverdue, OnRenew: r.renewed, OnLost: w.metrics.leaseLost,
		OnSessionLost: w.metrics.sessionLost,
	})
	if !w.cfg.DisableMaintenance {
		r.ticks = maintain.New(maintain.Config{Engine: s, Owner: w.cfg.Instance, Logger: w.log, OnTick: r.ticked, OnLag: w.metrics.lag,
			OnFire: w.metrics.fired, OnDeliver: r.delivered})
	}
	r.sched = newScheduler(s.Partitions(), r.slots)
	r.sched.visit = r.visit
	r.bell = newDoorbell(r)
	r.passes = newPasser(r)
	r.samples = newSampler(r)
	r.sched.onOwed = r.passes.poke
	r.done = newCompleter(r.completeBatch, r.completed)
	r.sched.giveBack = r.giveBack
	r.name = newMembership(r)
	r.watch = &watch{health: w.health, poke: r.name.poke, wake: make(chan struct{}, 1)}
	// A binding recovers its own panics; those of middleware must not leave an execution held for ever either.
	wrap := handler.Chain(append([]handler.Middleware{handler.Recover()}, w.cfg.Middleware...)...)
	for _, kind := range w.registry.kinds() {
		handle := handler.Handler(w.registry[kind].Run)
		if len(w.cfg.Middleware) > 0 {
			handle = wrap(handle)
		}
		r.kinds[kind] = newServed(w.metrics, kind, handle)
	}
	return r
}

// serve runs until ctx ends or something fatal happens, then drains.
func (r *run) serve(ctx context.Context) error {
	if err := r.name.enter(ctx); err != nil {
		r.cancel(err)
		return fmt.Errorf("flowfabric: start worker: %w", err)
	}
	r.name.start()
	fetch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	r.metrics.census.add(r)
	defer r.metrics.census.remove(r)
	support, stopSupport := context.WithCancel(r.ctx)

	var keeping, supporting, fetching conc.WaitGroup
	keeping.Go(func() { _ = r.keeper.Run(r.ctx) })
	supporting.Go(func() { r.bell.listen(support) })
	supporting.Go(func() { r.passes.keep(support) })
	supporting.Go(func() { r.samples.keep(support) })
	supporting.Go(func() { r.watch.keep(support) })
	r.awaitDoorbell(fetch)
	if r.ticks != nil { // not before: a timer that is set while nobody listens makes its owner late
		supporting.Go(func() {
			if err := r.ticks.Run(support); err != nil {
				r.stop(err)
			}
		})
	}
	r.health.phase.Store(phaseRunning)
	close(r.serving)
	r.log.Info("flowfabric: worker takes work", "instance", r.cfg.Instance, "namespace", r.cfg.Namespace, "namespaces", r.cfg.Namespaces, "lanes", r.cfg.Lanes,
		"kinds", r.registry.kinds(), "capabilities", r.cfg.Capabilities, "concurrency", r.cfg.Concurrency)
	fetching.Go(func() { r.sched.run(fetch) })
	fetching.Go(func() { r.poll(fetch) })

	<-fetch.Done()
	asked := ctx.Err() != nil
	r.leaving.Store(true)
	r.passes.poke()
	r.health.phase.Store(phaseDraining)
	err := r.drain(&fetching)
	stopSupport()
	supporting.Wait()
	r.cancel(flowfabric.ErrDraining)
	keeping.Wait()
	if !asked {
		err = errors.Join(context.Cause(fetch), err)
	}
	return err
}

// awaitDoorbell waits a little for the subscriptions: a waiter that nobody hears is dropped by the server.
// Without them the worker starts all the same; the polls stand in.
func (r *run) awaitDoorbell(ctx context.Context) {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-r.bell.first:
	case <-timer.C:
		r.sched.ringAll(r.sched.partitions)
	case <-ctx.Done():
	}
}

// stopIfFatal ends the worker on an error for which no retry can help, and reports whether it was one.
func (r *run) stopIfFatal(err error) bool {
	_, recounted := errors.AsType[*engine.CountsError](err)
	if recounted || errors.Is(err, flowfabric.ErrProtocol) || errors.Is(err, flowfabric.ErrAuth) {
		r.stop(err)
		return true
	}
	return false
}

// tickOverdue passes on that a partition's due times are not being tended.
func (r *run) tickOverdue(partition uint16) {
	if r.ticks != nil {
		r.ticks.Ring(partition)
	}
}

func (r *run) ticked(partition uint16, reply engine.TickReply) {
	r.metrics.ticked(reply)
	r.tended.told(partition, reply)
}

func (r *run) delivered(partition uint16, n int, err error) {
	r.metrics.delivered(n, err)
	r.tended.delivered(partition, n)
}

func (r *run) renewed(partition uint16, err error) {
	r.metrics.renewed(partition, err)
	if err == nil {
		r.health.success()
	}
}
