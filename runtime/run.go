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
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/session"
	"github.com/flowfabric/flowfabric-go/internal/source"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/times"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
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
	session  *session.Session
	offer    offer.Offer
	ticks    *maintain.Loop // nil when maintenance is disabled
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
	if _, unlimited := w.slots.(fixed); !unlimited {
		r.slots.limited = w.slots
	}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.sched = newScheduler(r.slots)
	if !r.cfg.DisableMaintenance {
		r.ticks = maintain.New(maintain.Config{Engine: s, Owner: r.cfg.Instance, Logger: r.log,
			OnTick: r.watched.Ticked, OnLag: r.watched.Lag,
			OnFire: r.watched.Fired, OnDeliver: r.watched.Delivered, OnReckon: r.watched.Reckoned})
	}
	seeds := &tokenkeys.Seeds{Keyring: w.keyring, Store: s}
	r.name = newMembership(r, w, seeds)
	r.watch = &watch{health: r.health, poke: r.name.poke, wake: make(chan struct{}, 1)}
	r.name.watch = r.watch
	r.jobs = &jobs{ctx: r.ctx, store: s, slots: r.slots, watch: r.watch, seeds: seeds,
		kinds: servedBy(w), instance: r.cfg.Instance, log: r.log, metrics: r.metrics, tracer: w.tracer,
		times: times.New(s, w.log), box: sealed.New(w.target().Cipher),
		onReservation: r.metrics.reserved, onCall: r.metrics.serviceCalled}
	r.jobs.worker = tasks.Worker{Draining: r.draining, Batch: r.jobs.batch}
	r.jobs.pool.run = (*job).work
	r.claims = &claimer{ctx: r.ctx, store: s, sched: r.sched, slots: r.slots, jobs: r.jobs, log: r.log,
		metrics: r.metrics, health: r.health, fatal: r.fatal}
	r.offer = newOffer(r.cfg, w.registry.kinds())
	r.session = r.newSession()
	r.sched.source, r.jobs.session, r.claims.session = r.session.Source, r.session, r.session
	r.jobs.done = newCompleter(r.claims.completeBatch, r.jobs.completed)
	r.sched.round, r.sched.giveBack = r.claims.round, r.jobs.giveBack
	return r
}

// newSession makes what the run claims with, and what keeps its leases. Its claims go through the gates of what they
// are granted.
func (r *run) newSession() *session.Session {
	listener := source.ListenerConfig{Window: r.cfg.ReadyWindow, PollIdle: true, OnWake: r.metrics.woken,
		OnPoll: r.polled, OnOverdue: r.tickOverdue}
	if r.ticks != nil {
		listener.Alert, listener.OnConnect, listener.OnTimers = true, r.ticks.Ask, r.ticks.Ring
	}
	return session.New(session.Config{
		Engine: r.store, Instance: r.cfg.Instance, Offer: r.offer, Room: room{r.slots}, OnHot: r.sched.poke,
		Logger:  r.log,
		Context: r.ctx, Listener: listener, OnClaim: r.claims.claimed,
		Admit: admit.Config{OnAsked: r.metrics.asked, OnRefused: r.metrics.refused},
		Keeper: keeper.Config{TTL: r.cfg.LeaseTTL, Version: r.cfg.AppVersion, OnTickOverdue: r.tickOverdue,
			OnRenew: r.renewed,
			OnLost:  r.metrics.leaseLost, OnSessionLost: r.metrics.sessionLost},
	})
}

// newOffer is what a worker can serve.
func newOffer(cfg Config, kinds []string) offer.Offer {
	return offer.New(append([]string{cfg.Namespace}, cfg.Namespaces...), cfg.Lanes, kinds,
		cfg.Capabilities).Weighing(cfg.LaneWeights)
}

// room tells the source of a run whether slots are free.
type room struct{ *slots }

// Free implements [source.Room].
func (r room) Free() bool { return r.free() > 0 }

// Coming implements [source.Room].
func (r room) Coming() bool { return r.coming() }

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
	keeping.Go(func() { _ = r.session.Keeper.Run(r.ctx) })
	supporting.Go(func() { r.session.Listener.Listen(support) })
	supporting.Go(func() { r.session.Listener.Forward(support) })
	supporting.Go(func() { r.watched.Run(support) })
	supporting.Go(func() { r.watch.keep(support) })
	supporting.Go(func() { r.jobs.times.Run(support) })
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
	fetching.Go(func() { r.session.Listener.Poll(fetch) })

	<-fetch.Done()
	asked := ctx.Err() != nil
	r.session.Listener.Leave()
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
	case <-r.session.Listener.Heard():
	case <-timer.C:
		r.session.Source.RingAll()
	case <-ctx.Done():
	}
}

// fatal ends the worker on an error for which no retry can help, and reports whether it was one.
func (r *run) fatal(err error) bool {
	if session.Fatal(err) {
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

// polled records a poll, of which the claims and the subscription tell the same if it failed.
func (r *run) polled(answered bool, missed int, err error) {
	if err != nil {
		r.fatal(err)
	}
	if answered {
		r.health.success()
	}
	r.metrics.polled(missed, err)
}
