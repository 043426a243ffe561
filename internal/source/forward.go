package source

import (
	"context"
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
//	"w" ─▶ Source.ringWork: owed ──pick──▶ a claim round answers it
//	                         └── no slot free ──▶ forwarder ──▶ ff_forward_ring
//
// A forward that fails is not repeated: a server that does not answer is found again by the poll.
type forwarder struct {
	cfg     *ListenerConfig
	wake    chan struct{} // capacity 1
	leaving atomic.Bool   // the worker takes no more work: all rings are forwarded
}

func newForwarder(cfg *ListenerConfig) *forwarder {
	return &forwarder{cfg: cfg, wake: make(chan struct{}, 1)}
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
	partition    *Partition
	subscription string
}

// keep forwards rings until ctx ends, which is after the drain. At most one call per partition is under way; rings
// that come meanwhile are one more.
func (p *forwarder) keep(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		forwards, again := p.owed(time.Now())
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

// owed takes the rings of all sources that are to be forwarded now, or says when to ask again.
func (p *forwarder) owed(now time.Time) (forwards []forward, again time.Duration) {
	again = time.Hour
	for _, s := range p.cfg.Sources() {
		more, next := s.owed(now, p.leaving.Load())
		forwards, again = append(forwards, more...), min(again, next)
	}
	return forwards, again
}

func (p *forwarder) send(ctx context.Context, forwards []forward) {
	calls := pool.New().WithMaxGoroutines(maxForwards)
	for _, x := range forwards {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
			defer cancel()
			heard, err := p.cfg.Engine.ForwardRing(ctx, x.partition.id, x.subscription)
			if err != nil {
				p.cfg.Logger.Debug("flowfabric: the worker could not forward a wake", "partition", x.partition.id,
					"error", err)
				return
			}
			p.cfg.OnWake("forwarded", heard)
		})
	}
	calls.Wait()
}

// owed takes the rings that are to be forwarded now, or says when to ask again. That is when no slot is free and no
// claim will give one back soon, or when this instance leaves.
func (s *Source) owed(now time.Time, leaving bool) (forwards []forward, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owing || !leaving && s.cfg.Room.Free() {
		return nil, time.Hour
	}
	patient := !leaving && s.cfg.Room.Coming()
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
