package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

// pool is everybody who offers the same: workers that wait together, as one waiter.
type pool struct {
	g        *Gateway
	source   *source.Source
	admitter *admit.Admitter
	waiting  atomic.Int64 // how many wait

	// Guarded by Gateway.mu.
	asks []*ask // that wait, in order
	used time.Time
}

func newPool(g *Gateway, o offer.Offer) *pool {
	p := &pool{g: g, admitter: admit.New(admit.Config{Engine: g.engine, Logger: g.log})}
	p.source = source.New(source.Config{Partitions: g.engine.Partitions(), Offer: o, Store: g.engine, Room: p,
		Logger: g.log, OnHot: p.wake})
	g.listener.Add(p.source)
	return p
}

// Free implements [source.Room].
func (p *pool) Free() bool { return p.waiting.Load() > 0 }

// Coming implements [source.Room]: a claim under way is for somebody who waits.
func (p *pool) Coming() bool { return false }

// wake lets somebody look.
func (p *pool) wake() {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	p.wakeFirst()
}

// wakeFirst lets the ask look that has waited longest and does not look already. Gateway.mu is held.
func (p *pool) wakeFirst() {
	for _, a := range p.asks {
		if len(a.woken) == 0 {
			a.wake()
			return
		}
	}
}

// look asks the partitions that may have work; see [source.Source.Look].
func (p *pool) look(ctx context.Context, q Request) (got []Claim, pause time.Duration, err error) {
	_, pause, err = p.source.Look(ctx, q.Max, func(x *source.Partition, n int) (int, error) {
		more, err := p.claim(x, q, n)
		got = append(got, more...)
		return len(more), err
	})
	return got, pause, err
}

// claim takes up to n executions from one partition, each under a session of its own.
func (p *pool) claim(x *source.Partition, q Request, n int) (got []Claim, err error) {
	for range 2*n + 4 { // as many, and a few that store the subscription or find nothing
		if len(got) >= n {
			break
		}
		reply, err := p.next1(x, p.session(q.Worker), q.TTL)
		claims := make([]*engine.Claim, len(reply.Claims))
		for i := range reply.Claims {
			claims[i] = &reply.Claims[i]
		}
		again, err := p.source.Answered(x, 1, reply, claims, err)
		if err != nil {
			return got, err
		}
		for _, c := range claims {
			if route, foreign := p.source.Foreign(x, c); foreign {
				p.g.Return([]Claim{{Claim: *c}})
			} else {
				got = append(got, Claim{*c, route})
			}
		}
		switch {
		case again:
			if err := p.source.Declare(p.g.life, x); err != nil {
				return got, err
			}
		case len(claims) == 0 && !reply.More:
			return got, nil
		}
	}
	return got, nil
}

func (p *pool) session(worker string) string { return p.g.name + "~" + worker + "~" + randomHex() }

// next1 makes one claim of one execution, again if it is not known what became of it: the number is the same, so the
// answer is, too.
func (p *pool) next1(x *source.Partition, session string, ttl time.Duration) (reply engine.ClaimReply, err error) {
	pause := 50 * time.Millisecond
	for try := range 4 {
		// one that was sent must be answered
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.g.life), callTimeout)
		req := x.Request(1, true)
		req.Session, req.Number, req.TTL = session, 1, ttl
		reply, err = p.admitter.ClaimNext(ctx, req)
		cancel()
		if err == nil || !unknownOutcome(err) {
			return reply, err
		}
		if try < 3 {
			sleep(p.g.life, pause)
			pause *= 2
		}
	}
	p.g.log.Warn(
		"flowfabric: gateway: a claim got no answer; executions that it took are requeued when their leases end",
		"partition", x.ID(), "session", session, "error", err)
	return reply, err
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

var _ Engine = (*engine.Engine)(nil)
