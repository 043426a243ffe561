package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"
)

const (
	// passPatience is how long a ring may wait for slots that claim rounds under way may give back unused.
	passPatience = 50 * time.Millisecond
	passTimeout  = time.Second
	maxPasses    = 4
)

// passer passes rings on that this instance cannot follow: it was rung for work, which removed its registration, and
// has no slot free, or drains. The next waiter is rung instead of it, so that work does not wait
// for a poll while somebody else is idle. Whoever is passed a ring is no longer registered either, so a ring that finds
// everybody full ends with the last waiter; all who were rung keep the partition hot and look when a slot is freed.
//
//	"w" ─▶ scheduler.ring: owed ──pick──▶ a claim round answers it
//	                         └── no slot free ──▶ passer ──▶ ff_pass_ring
//
// A pass that fails is not repeated: a server that does not answer is found again by the poll.
type passer struct {
	store   passStore
	sched   *scheduler
	log     *slog.Logger
	metrics *metrics
	wake    chan struct{} // capacity 1
	leaving atomic.Bool   // the worker takes no more work: all rings are passed on
}

// passStore is what a passer asks of the server.
type passStore interface {
	PassRing(ctx context.Context, partition uint16, interest string) (heard int, err error)
}

func newPasser(r *run) *passer {
	return &passer{store: r.store, sched: r.sched, log: r.log, metrics: r.metrics, wake: make(chan struct{}, 1)}
}

// leave has all rings passed on from now on.
func (p *passer) leave() {
	p.leaving.Store(true)
	p.poke()
}

func (p *passer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pass is one ring to pass on, with the partition's interest as it was then: the partition may be claimed from meanwhile.
type pass struct {
	partition *partition
	interest  string
}

// keep passes rings on until ctx ends, which is after the drain. At most one call per partition is under way; rings
// that come meanwhile are one more.
func (p *passer) keep(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		passes, again := p.sched.owed(time.Now(), p.leaving.Load())
		if len(passes) > 0 {
			p.send(ctx, passes)
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

func (p *passer) send(ctx context.Context, passes []pass) {
	calls := pool.New().WithMaxGoroutines(maxPasses)
	for _, x := range passes {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, passTimeout)
			defer cancel()
			heard, err := p.store.PassRing(ctx, x.partition.id, x.interest)
			if err != nil {
				p.log.Debug("flowfabric: a ring was not passed on", "partition", x.partition.id, "error", err)
				return
			}
			p.metrics.wakeUps.WithLabelValues("passed").Add(float64(heard))
		})
	}
	calls.Wait()
}

// ringWork is ring for a message that says there is work: until a claim round begins, the ring may be owed to another waiter.
func (s *scheduler) ringWork(p *partition, now time.Time) {
	s.mu.Lock()
	p.owed = true
	if !s.owing {
		s.owing, s.owedSince = true, now
	}
	s.mu.Unlock()
	s.ring(p)
	s.onOwed()
}

// owed takes the rings that are to be passed on now, or says when to ask again. That is when no slot is free and no
// claim round will give one back soon, or when this instance leaves.
func (s *scheduler) owed(now time.Time, leaving bool) (passes []pass, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owing || !leaving && s.slots.free() > 0 {
		return nil, time.Hour
	}
	if wait := passPatience - now.Sub(s.owedSince); !leaving && s.rounds > 0 && wait > 0 {
		return nil, wait
	}
	s.owing = false
	for _, p := range s.partitions {
		switch {
		case !p.owed:
		case p.claiming: // its digest belongs to the claim round; whoever ends it asks again
			s.owing = true
		default:
			p.owed = false
			if p.digest != "" { // else it has never been registered
				passes = append(passes, pass{p, p.digest})
			}
		}
	}
	return passes, time.Hour
}
