package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"
)

const (
	// forwardPatience is how long a ring may wait for slots that claim rounds under way may give back unused.
	forwardPatience = 50 * time.Millisecond
	forwardTimeout  = time.Second
	maxForwards     = 4
)

// forwarder forwards rings that this instance cannot follow: it was rung for work, which removed its registration, and
// has no slot free, or drains. The next waiter is rung instead of it, so that work does not wait
// for a poll while somebody else is idle. A worker that gets a forwarded ring is no longer registered either, so a
// ring that finds everybody full ends with the last waiter; all who were rung keep the partition hot and look when a
// slot is freed.
//
//	"w" ─▶ scheduler.ring: owed ──pick──▶ a claim round answers it
//	                         └── no slot free ──▶ forwarder ──▶ ff_pass_ring
//
// A forward that fails is not repeated: a server that does not answer is found again by the poll.
type forwarder struct {
	store   forwardStore
	sched   *scheduler
	log     *slog.Logger
	metrics *metrics
	wake    chan struct{} // capacity 1
	leaving atomic.Bool   // the worker takes no more work: all rings are forwarded
}

// forwardStore is what a forwarder asks of the server.
type forwardStore interface {
	ForwardRing(ctx context.Context, partition uint16, subscription string) (heard int, err error)
}

func newForwarder(r *run) *forwarder {
	return &forwarder{store: r.store, sched: r.sched, log: r.log, metrics: r.metrics, wake: make(chan struct{}, 1)}
}

// leave has all rings passed on from now on.
func (p *forwarder) leave() {
	p.leaving.Store(true)
	p.poke()
}

func (p *forwarder) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// forward is one ring to forward, with the partition's subscription as it was then: the partition may be claimed from
// meanwhile.
type forward struct {
	partition    *partition
	subscription string
}

// keep forwards rings until ctx ends, which is after the drain. At most one call per partition is under way; rings
// that come meanwhile are one more.
func (p *forwarder) keep(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		forwards, again := p.sched.owed(time.Now(), p.leaving.Load())
		if len(forwards) > 0 {
			p.send(ctx, forwards)
			continue
		}
		timer.Reset(again)
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
	}
}

func (p *forwarder) send(ctx context.Context, forwards []forward) {
	calls := pool.New().WithMaxGoroutines(maxForwards)
	for _, x := range forwards {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
			defer cancel()
			heard, err := p.store.ForwardRing(ctx, x.partition.id, x.subscription)
			if err != nil {
				p.log.Debug("flowfabric: a ring was not forwarded", "partition", x.partition.id, "error", err)
				return
			}
			p.metrics.wakeUps.WithLabelValues("forwarded").Add(float64(heard))
		})
	}
	calls.Wait()
}

// ringWork is ring for a message that says there is work: until a claim round begins, the ring may be owed to another
// waiter. Priority is above 0 for work that is urgent.
func (s *scheduler) ringWork(p *partition, now time.Time, priority int) {
	s.mu.Lock()
	s.put(p, mark{priority: priority})
	if p.owed.IsZero() {
		p.owed = now
	}
	s.owing = true
	s.mu.Unlock()
	s.ring(p)
	s.onOwed()
}

// owed takes the rings that are to be forwarded now, or says when to ask again. That is when no slot is free and no
// claim will give one back soon, or when this instance leaves.
func (s *scheduler) owed(now time.Time, leaving bool) (forwards []forward, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owing || !leaving && s.slots.free() > 0 {
		return nil, time.Hour
	}
	patient := !leaving && s.slots.coming()
	s.owing, again = false, time.Hour
	for _, p := range s.partitions {
		wait := forwardPatience - now.Sub(p.owed)
		switch {
		case p.owed.IsZero():
		case p.claiming: // its digest belongs to the claim round; its end asks again
			s.owing = true
		case patient && wait > 0:
			s.owing, again = true, min(again, wait)
		default:
			p.owed = time.Time{}
			if p.digest != "" { // else it has never been registered
				forwards = append(forwards, forward{p, p.digest})
			}
		}
	}
	return forwards, again
}
