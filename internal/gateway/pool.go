package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
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

// atOnce is how many claims of one partition are under way together, when the one before found work.
const atOnce = 16

// claim takes up to n executions from one partition, each under a session of its own.
func (p *pool) claim(x *source.Partition, q Request, n int) (got []Claim, err error) {
	k := 1
	for made := 0; len(got) < n && made < 2*n+4; { // as many, and a few that store the subscription or find nothing
		again, dry := false, false
		made += k
		for _, a := range p.some(x, q, k) {
			claims := make([]*engine.Claim, len(a.reply.Claims))
			for i := range a.reply.Claims {
				claims[i] = &a.reply.Claims[i]
			}
			anew, failed := p.source.Answered(x, 1, a.reply, claims, a.err)
			if err == nil {
				err = failed
			}
			again, dry = again || anew, dry || len(claims) == 0 && !a.reply.More
			for _, c := range claims {
				if route, foreign := p.source.Foreign(x, c); foreign {
					p.g.Return([]Claim{{Claim: *c}})
				} else {
					got = append(got, Claim{*c, route})
				}
			}
		}
		switch {
		case err != nil:
			return got, err
		case again:
			if err := p.source.Declare(p.g.life, x); err != nil {
				return got, err
			}
			k = 1
		case dry:
			return got, nil
		case !x.Gated(): // gates are asked for one at a time
			k = min(atOnce, n-len(got))
		}
	}
	return got, nil
}

// answered is what a claim brought.
type answered struct {
	reply engine.ClaimReply
	err   error
}

// some makes k claims of one execution each, at once.
func (p *pool) some(x *source.Partition, q Request, k int) []answered {
	out := make([]answered, k)
	req := x.Request(1, true)
	if k == 1 {
		out[0].reply, out[0].err = p.next1(req, p.session(q), q.TTL)
		return out
	}
	var each conc.WaitGroup
	for i := range out {
		req := req
		req.Rotation += uint64(i) // lanes take turns as if they came one after the other
		each.Go(func() { out[i].reply, out[i].err = p.next1(req, p.session(q), q.TTL) })
	}
	each.Wait()
	return out
}

func (p *pool) session(q Request) string { return ids.Session(p.g.name+"~"+q.Worker, q.Version) }

// next1 makes one claim of one execution, again if it is not known what became of it: the number is the same, so the
// answer is, too.
func (p *pool) next1(req engine.ClaimRequest, session string, ttl time.Duration) (reply engine.ClaimReply, err error) {
	req.Session, req.Number, req.TTL = session, 1, ttl
	pause := 50 * time.Millisecond
	for try := range 4 {
		// one that was sent must be answered
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.g.life), callTimeout)
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
		"partition", req.Partition, "session", session, "error", err)
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
