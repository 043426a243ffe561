// Package maintain keeps time moving: it calls the one function that acts on due times (ff_tick) for every
// partition, in every process that wants to, and sees to it that only one of them works at a time.
//
//	          start                     Owner                       Ring ("t" bell: an earlier timer)
//	unknown ─────────▶ tick ──────────────────────▶ owner ── Next ─▶ tick …   More: again at once
//	                    │  ▲                           │             Idle: sleep until Ring
//	        not Owner   ▼  │ Ring ("tick overdue")     │ not Owner any more
//	                  bystander ◀──────────────────────┘
//
// Each partition's root stores who owns its tick and when the next call is due. A bystander makes
// no calls; it takes over when some reply of the server tells this process "tick overdue" and the process
// hands that on with [Loop.Ring]. So a process that dies or hangs is replaced once somebody hears of it, a healthy
// fleet makes one call per partition when something is due, and an idle store costs nothing.
//
// A dead owner of a partition where nothing is due would go unnoticed until its first timer is late. So the loop asks
// each partition of others once when it starts, when it took over a late one (the owner probably has more), and when
// the process has subscribed again ([Loop.Ask]): the server rings the owner. If nobody listens, the asking process
// takes over at once; an owner that listens and does not tick is overdue two seconds later.
//
// Schedules that a tick finds due are fired by the owner, beside the ticks (fire.go): it reads them, plans what to do
// with package schedule, and makes one call for each step, which does nothing if somebody else was faster.
//
// What a tick finds in the outbox (gates are to be told of it) the owner delivers, beside the ticks as
// well (deliver.go). Once a minute it ends reservations in gates whose leases are over (reckon.go).
//
// Failures: an error delays that partition alone, with exponential backoff and jitter, for as long as it takes.
// A repeated, lost or doubled tick is harmless, since ff_tick is idempotent and decides by server time.
package maintain

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

const (
	concurrency    = 2                      // ticks under way at once; more would crowd out the real work
	releases       = 16                     // releases under way at once, at the end
	minPause       = 5 * time.Millisecond   // between two ticks of a partition without More
	bystanderPause = 250 * time.Millisecond // between two refused take-overs, however often it is rung
	failedPause    = time.Second            // between two failed ticks of a partition that is rung
	sweepPause     = 5 * time.Second        // between two sweeps that follow from a take-over
	releaseTimeout = 2 * time.Second        // for handing back all partitions at the end
	firstBackoff   = 100 * time.Millisecond
	maxBackoff     = 15 * time.Second
)

// Ticker is what the loop needs of the engine.
type Ticker interface {
	// Tick works on what is due in a partition if owner owns its tick or may take it over. With release it
	// gives the ownership back instead.
	Tick(ctx context.Context, partition uint16, owner string, release bool) (engine.TickReply, error)
	// AskTick is a tick for somebody who starts or may have missed something: a live owner is rung for a tick, a dead
	// one replaced.
	AskTick(ctx context.Context, partition uint16, owner string) (engine.TickReply, error)
	// Partitions is the number of execution partitions.
	Partitions() uint16
}

// Config says whose ticks a loop makes. Engine and Owner are required.
type Config struct {
	Engine Ticker
	// Owner names this process among the owners: its worker instance, since the server rings the owner on
	// that instance's bell channels. 1..48 bytes, printable ASCII without braces.
	Owner string
	// Partitions to tend. Default (nil): all of the engine's.
	Partitions []uint16
	// Schedules fires schedules that are due, see package schedule. Default: Engine, if it is a [Firer]; nobody
	// otherwise.
	Schedules Firer
	// Outbox is told what gates are to be told, see admit.Deliver. Default: Engine, if it is an
	// [admit.Outbox]; nobody otherwise.
	Outbox admit.Outbox
	// Logger receives the first failure of a streak and the recovery from it. Default slog.Default().
	Logger *slog.Logger
	// OnTick is told every answered tick; OnLag how late a tick of an owned partition began, in real time
	// after it was due. Both are called from one goroutine and must not block. Default: nobody is told.
	OnTick func(partition uint16, reply engine.TickReply)
	OnLag  func(partition uint16, lag time.Duration)
	// OnFire is told every step of a schedule that this loop made. It is called from several goroutines and must not
	// block. Default: nobody is told.
	OnFire func(partition uint16, call engine.Firing, answer engine.Fired)
	// OnDeliver is told of every delivery of an outbox, with how many entries it was. It is called like OnFire.
	OnDeliver func(partition uint16, entries int, err error)
	// Gates ends reservations whose leases are over, see admit.Reckon. Default: Engine, if it is an [admit.Reckoner];
	// nobody otherwise.
	Gates admit.Reckoner
	// OnReckon is told how many reservations of a partition of gates were ended. It is called like OnFire.
	OnReckon func(partition uint16, ended int, err error)
}

// Loop tends the ticks of a set of partitions. Use New, then Run once; Ring may be called at any time, from
// any goroutine.
type Loop struct {
	cfg  Config
	wake chan struct{} // capacity 1: something was rung

	mu    sync.Mutex
	rung  map[uint16]bool // true: to be asked
	endBy time.Time
}

// New builds a loop; nothing happens before Run, which also checks the configuration.
func New(cfg Config) *Loop {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.OnTick == nil {
		cfg.OnTick = func(uint16, engine.TickReply) {}
	}
	if cfg.OnLag == nil {
		cfg.OnLag = func(uint16, time.Duration) {}
	}
	if cfg.OnFire == nil {
		cfg.OnFire = func(uint16, engine.Firing, engine.Fired) {}
	}
	if cfg.OnDeliver == nil {
		cfg.OnDeliver = func(uint16, int, error) {}
	}
	if cfg.OnReckon == nil {
		cfg.OnReckon = func(uint16, int, error) {}
	}
	if cfg.Gates == nil {
		cfg.Gates, _ = cfg.Engine.(admit.Reckoner)
	}
	if cfg.Schedules == nil {
		cfg.Schedules, _ = cfg.Engine.(Firer)
	}
	if cfg.Outbox == nil {
		cfg.Outbox, _ = cfg.Engine.(admit.Outbox)
	}
	return &Loop{cfg: cfg, wake: make(chan struct{}, 1), rung: map[uint16]bool{}}
}

// Ring asks for a tick of a partition soon: the process heard a "t" bell or a "tick overdue" hint. It never
// blocks; rings that arrive before the tick began count as one, and partitions of others are ignored. A
// partition in backoff after an error is tried again a second after it failed: the process that heard the hint has
// reached the server.
func (l *Loop) Ring(partition uint16) { l.note(partition, false) }

// Ask is Ring after the process may have missed bells of a partition: it has subscribed, perhaps again. If this loop
// owns the partition's tick it makes one; if another process does, that one is rung, and replaced if it does not
// listen. It waits for no backoff.
func (l *Loop) Ask(partition uint16) { l.note(partition, true) }

func (l *Loop) note(partition uint16, ask bool) {
	l.mu.Lock()
	l.rung[partition] = l.rung[partition] || ask
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Loop) takeRung() map[uint16]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rung := l.rung
	l.rung = map[uint16]bool{}
	return rung
}

// EndBy bounds the handing back at the end of Run: it is over by t, or after two seconds if that is sooner. Call it
// before the context of Run ends, from any goroutine.
func (l *Loop) EndBy(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endBy = t
}

// Run tends the ticks until ctx ends, hands the owned partitions back (see EndBy) and returns nil.
// Errors of the server never end it. It returns an error at once, wrapping [flowfabric.ErrConfig] or
// [flowfabric.ErrInvalidInput], when the configuration is not valid. Call it once.
func (l *Loop) Run(ctx context.Context) error {
	schedule, err := l.plan()
	if err != nil {
		return err
	}
	l.takeRung() // all are asked now
	r := &run{Loop: l, schedule: schedule, jobs: make(chan job, concurrency), results: make(chan result, concurrency),
		firing: newFiring(l.cfg, len(schedule.byID)), delivery: newDelivery(l.cfg, len(schedule.byID)),
		reckoning: newReckoning(l.cfg)}
	r.firing.start(ctx, schedule.byID)
	r.delivery.start(ctx, schedule.byID)
	r.reckoning.start(ctx)
	var workers conc.WaitGroup
	for range concurrency {
		workers.Go(func() { r.work(ctx) })
	}
	r.loop(ctx)
	close(r.jobs)
	workers.Wait()
	close(r.results)
	r.firing.stop()
	r.delivery.stop()
	r.reckoning.stop()
	for res := range r.results { // cut short by the end of ctx, but they may have made us owner
		r.settle(ctx, res)
	}
	r.release(ctx)
	return nil
}

// plan checks the configuration and makes one schedule per partition, all to be asked now. The order is random, so
// that processes that start together share the partitions instead of racing for the same ones.
func (l *Loop) plan() (schedule, error) {
	cfg := l.cfg
	if cfg.Engine == nil {
		return schedule{}, fmt.Errorf("%w: maintain: Engine is missing", flowfabric.ErrConfig)
	}
	if err := valid.Name("maintain owner", cfg.Owner); err != nil {
		return schedule{}, err
	}
	if len(cfg.Owner) > limits.MaxInstance {
		return schedule{}, fmt.Errorf("%w: maintain: Owner has %d bytes, want at most %d", flowfabric.ErrConfig,
			len(cfg.Owner), limits.MaxInstance)
	}
	count := cfg.Engine.Partitions()
	partitions := cfg.Partitions
	if partitions == nil {
		for p := range count {
			partitions = append(partitions, p)
		}
	}
	s := schedule{byID: make(map[uint16]*partition, len(partitions))}
	now := time.Now()
	for _, i := range rand.Perm(len(partitions)) {
		id := partitions[i]
		if id >= count {
			return schedule{}, fmt.Errorf("%w: maintain: partition %d, want below %d", flowfabric.ErrConfig, id, count)
		}
		if s.byID[id] != nil {
			continue
		}
		b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstBackoff),
			backoff.WithMaxInterval(maxBackoff), backoff.WithMaxElapsedTime(0))
		p := &partition{id: id, backoff: b, ask: true}
		s.byID[id] = p
		s.at(p, now)
	}
	return s, nil
}

// run is the state of one Run. Only its loop touches the schedule; the workers see jobs and results.
type run struct {
	*Loop
	schedule schedule
	swept    time.Time // the last sweep that followed from a take-over, or the next
	jobs     chan job
	results  chan result
	firing   *firing
	delivery *delivery
	// reservations whose leases are over
	reckoning *reckoning
}

// job is one tick to make.
type job struct {
	partition uint16
	ask       bool
}

type result struct {
	partition uint16
	reply     engine.TickReply
	err       error
}

// loop hands due partitions to idle workers, settles what they bring back, and otherwise sleeps.
func (r *run) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	reckon := time.NewTicker(reckonEvery)
	defer reckon.Stop()
	running := 0
	for {
		for now := time.Now(); running < concurrency; running++ {
			p := r.schedule.due(now)
			if p == nil {
				break
			}
			if p.owned {
				r.cfg.OnLag(p.id, now.Sub(p.when))
			}
			p.state, p.again = ticking, false
			p.asked, p.ask = p.ask && !p.owned, false
			r.jobs <- job{p.id, p.asked} // never blocks: as many places as workers
		}
		var alarm <-chan time.Time
		if next := r.schedule.next(); next != nil && running < concurrency {
			timer.Reset(time.Until(next.when))
			alarm = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case res := <-r.results:
			running--
			r.settle(ctx, res)
		case a := <-r.firing.answers:
			r.firing.settle(ctx, a)
			if a.moved {
				r.ring(r.schedule.byID[a.partition])
			}
		case a := <-r.delivery.answers:
			if r.delivery.settle(ctx, a) {
				r.ring(r.schedule.byID[a.partition])
			}
		case <-r.wake:
			for id, ask := range r.takeRung() {
				p := r.schedule.byID[id]
				if ask && p != nil {
					r.ask(p)
				}
				r.ring(p)
			}
		case <-reckon.C:
			r.reckoning.want(r.schedule.byID)
		case <-alarm:
		}
	}
}

// ring brings a partition's tick forward, as far as it may be.
func (r *run) ring(p *partition) {
	now := time.Now()
	switch {
	case p == nil:
	case p.state == failing:
		r.schedule.soonest(p, later(now, p.ended.Add(failedPause)))
	case p.state == ticking:
		p.again = true
	case p.owned:
		r.schedule.soonest(p, now)
	default:
		r.schedule.soonest(p, p.afterRefusal(now))
	}
}

// ask makes the partition's next tick one that asks, unless it is ours. The process that asks has reached the server.
func (r *run) ask(p *partition) {
	p.ask = true
	if p.state == failing {
		r.schedule.soonest(p, time.Now())
	}
}

// sweep asks all partitions that are not ours, since their owners may be as dead as that of the one that was just
// taken over. Take-overs that follow each other closely share a sweep.
func (r *run) sweep(now time.Time) {
	if r.swept.After(now) {
		return
	}
	r.swept = later(now, r.swept.Add(sweepPause))
	for _, p := range r.schedule.byID {
		if p.owned {
			continue
		}
		p.ask = true
		switch p.state {
		case waiting:
			r.schedule.soonest(p, later(r.swept, p.afterRefusal(now)))
		case ticking:
			p.again = true
		}
	}
}

// settle plans what follows a tick.
func (r *run) settle(ctx context.Context, res result) {
	p, now := r.schedule.byID[res.partition], time.Now()
	p.ended = now
	if res.err != nil {
		r.settleError(ctx, p, now, res.err)
		return
	}
	if p.failures > 0 {
		r.cfg.Logger.Info("flowfabric: the tick works again", "partition", p.id, "failures", p.failures)
		p.failures = 0
		p.backoff.Reset()
	}
	took := res.reply.Owner && !p.owned && !p.asked
	p.state, p.owned, p.unsure = waiting, res.reply.Owner, false
	if took {
		r.sweep(now)
	}
	r.cfg.OnTick(p.id, res.reply)
	if p.owned && res.reply.Schedules > 0 && ctx.Err() == nil {
		r.firing.want(p.id, now)
	}
	if p.owned && res.reply.Outbox > 0 && ctx.Err() == nil {
		r.delivery.want(p.id, res.reply.Outbox, now)
	}
	switch {
	case p.owned && (res.reply.More || p.again):
		r.schedule.at(p, now)
	case p.owned && !res.reply.Idle:
		r.schedule.at(p, now.Add(max(res.reply.Next, minPause)))
	case !p.owned && p.again:
		r.schedule.at(p, p.afterRefusal(now))
	}
}

// settleError starts or prolongs the partition's pause. Who owns it is unknown after a lost reply, so it is
// remembered as possibly ours.
func (r *run) settleError(ctx context.Context, p *partition, now time.Time, err error) {
	p.state, p.unsure = failing, true
	p.ask = p.ask || p.asked
	if p.failures++; p.failures == 1 && ctx.Err() == nil {
		r.cfg.Logger.Warn("flowfabric: the tick failed; it is retried until it succeeds", "partition", p.id, "error",
			err)
	}
	r.schedule.at(p, now.Add(p.backoff.NextBackOff()))
}

// work makes the ticks the loop asks for.
func (r *run) work(ctx context.Context) {
	for j := range r.jobs {
		tick := func() (engine.TickReply, error) { return r.cfg.Engine.Tick(ctx, j.partition, r.cfg.Owner, false) }
		if j.ask {
			tick = func() (engine.TickReply, error) { return r.cfg.Engine.AskTick(ctx, j.partition, r.cfg.Owner) }
		}
		reply, err := guarded(tick)
		r.results <- result{j.partition, reply, err} // never blocks: as many places as workers
	}
}

// guarded makes one call. A panic below counts as a failed tick: it must not stop the other partitions.
func guarded(tick func() (engine.TickReply, error)) (reply engine.TickReply, err error) {
	if caught := panics.Try(func() { reply, err = tick() }); caught != nil {
		err = caught.AsError()
	}
	return reply, err
}

// release hands back what is or may be ours, so that others need not wait for "tick overdue". What cannot be
// handed back in time is taken over that way.
func (r *run) release(ctx context.Context) {
	deadline := time.Now().Add(releaseTimeout)
	r.mu.Lock()
	if !r.endBy.IsZero() && r.endBy.Before(deadline) {
		deadline = r.endBy
	}
	r.mu.Unlock()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	var failed atomic.Int64
	calls := pool.New().WithMaxGoroutines(releases)
	for id, p := range r.schedule.byID {
		if p.owned || p.unsure {
			calls.Go(func() {
				if _, err := guarded(func() (engine.TickReply, error) {
					return r.cfg.Engine.Tick(ctx, id, r.cfg.Owner, true)
				}); err != nil {
					failed.Add(1)
				}
			})
		}
	}
	calls.Wait()
	if n := failed.Load(); n > 0 {
		r.cfg.Logger.Info("flowfabric: ticks were not released; other processes take them over once overdue",
			"partitions", n)
	}
}
