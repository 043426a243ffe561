package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
	"github.com/flowfabric/flowfabric-go/internal/taskhook"
)

// run is one serving of a worker: everything that lives between the connection and the end of the drain. It makes the
// parts, starts them, and drains them. Each part is given what it needs, and knows of no run.
type run struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	health  *health
	serving chan struct{} // closed once work can arrive
	store   store

	slots    *slots
	sched    *scheduler
	claims   *claimer
	jobs     *jobs
	watch    *watch
	keeper   *keeper.Keeper
	ticks    *maintain.Loop // nil when maintenance is disabled
	bell     *doorbell
	forwards *forwarder
	polls    *poller
	name     *membership
	watched  *partmetrics.Watch // the partitions, for the metrics
	draining chan struct{}      // closed when the drain begins

	ctx    context.Context // of all calls and handlers; outlives the wish to stop until the drain is over
	cancel context.CancelCauseFunc
	stop   func(cause error) // begins the drain
}

func newRun(ctx context.Context, w *Worker, s store) *run {
	r := &run{cfg: w.cfg, log: w.log, metrics: w.metrics, health: w.health, serving: w.serving, store: s,
		slots:   newSlots(w.cfg.Concurrency),
		watched: w.metrics.partitions.Watch(s, w.log), draining: make(chan struct{}), stop: func(error) {}}
	r.slots.pace = w.pace
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.sched = newScheduler(s.Partitions(), r.slots)
	r.keeper = r.newKeeper()
	if !r.cfg.DisableMaintenance {
		r.ticks = maintain.New(maintain.Config{Engine: s, Owner: r.cfg.Instance, Logger: r.log,
			OnTick: r.watched.Ticked, OnLag: r.watched.Lag,
			OnFire: r.watched.Fired, OnDeliver: r.watched.Delivered})
	}
	seeds := &tokenSeeds{keyring: w.keyring, store: s}
	r.name = newMembership(r, w, seeds)
	r.watch = &watch{health: r.health, poke: r.name.poke, wake: make(chan struct{}, 1)}
	r.name.watch = r.watch
	r.jobs = &jobs{ctx: r.ctx, store: s, keeper: r.keeper, slots: r.slots, watch: r.watch, seeds: seeds,
		kinds: servedBy(w), instance: r.cfg.Instance, log: r.log, metrics: r.metrics, tracer: w.tracer}
	r.jobs.worker = taskhook.Worker{Draining: r.draining, Batch: r.jobs.batch}
	r.jobs.pool.run = (*job).work
	r.claims = &claimer{ctx: r.ctx, store: s, keeper: r.keeper, sched: r.sched, slots: r.slots, jobs: r.jobs,
		offer: newOffer(r.cfg, w.registry.kinds()), log: r.log, metrics: r.metrics, health: r.health, fatal: r.fatal}
	r.jobs.done = newCompleter(r.claims.completeBatch, r.jobs.completed)
	r.forwards, r.bell, r.polls = newForwarder(r), newDoorbell(r), newPoller(r)
	r.sched.round, r.sched.giveBack, r.sched.onOwed = r.claims.round, r.jobs.giveBack, r.forwards.poke
	return r
}

// newKeeper makes the keeper of the run's leases. Its claims go through the gates of what they are granted.
func (r *run) newKeeper() *keeper.Keeper {
	admitter := admit.New(admit.Config{Engine: r.store, Logger: r.log, OnAsked: r.metrics.asked,
		OnRefused: r.metrics.refused})
	return keeper.New(keeper.Config{
		Engine: r.store, Claim: admitter.ClaimNext, Instance: r.cfg.Instance, TTL: r.cfg.LeaseTTL, Logger: r.log,
		Context: r.ctx, OnTickOverdue: r.tickOverdue, OnRenew: r.renewed, OnLost: r.metrics.leaseLost,
		OnSessionLost: r.metrics.sessionLost,
	})
}

// serve runs until ctx ends or something fatal happens, then drains.
func (r *run) serve(ctx context.Context) error {
	fetch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	if err := r.name.enter(ctx); err != nil {
		r.cancel(err)
		return fmt.Errorf("flowfabric: start worker: %w", err)
	}
	r.name.start()
	r.metrics.gauges.add(r)
	defer r.metrics.gauges.remove(r)
	support, stopSupport := context.WithCancel(r.ctx)

	var keeping, supporting, fetching conc.WaitGroup
	keeping.Go(func() { _ = r.keeper.Run(r.ctx) })
	supporting.Go(func() { r.bell.listen(support) })
	supporting.Go(func() { r.forwards.keep(support) })
	supporting.Go(func() { r.watched.Run(support) })
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
	r.log.Info("flowfabric: worker takes work", "instance", r.cfg.Instance, "namespace", r.cfg.Namespace, "namespaces",
		r.cfg.Namespaces, "lanes", r.cfg.Lanes, "kinds", r.name.info.Kinds, "capabilities", r.cfg.Capabilities,
		"concurrency", r.cfg.Concurrency)
	fetching.Go(func() { r.sched.run(fetch) })
	fetching.Go(func() { r.polls.keep(fetch) })

	<-fetch.Done()
	asked := ctx.Err() != nil
	r.forwards.leave()
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

// fatal ends the worker on an error for which no retry can help, and reports whether it was one.
func (r *run) fatal(err error) bool {
	_, recounted := errors.AsType[*engine.CountsError](err)
	if recounted || errors.Is(err, denied.Protocol) || errors.Is(err, flowfabric.ErrAuth) {
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

func (r *run) renewed(partition uint16, err error) {
	r.metrics.renewed(partition, err)
	if err == nil {
		r.health.success()
	}
}
