package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
)

// pool is everybody who offers the same.
type pool struct {
	g        *Gateway
	offer    offer.Offer
	admitter *admit.Admitter
	parts    []*part

	// Guarded by Gateway.mu.
	asks []*ask // that wait, in order
	used time.Time
	next int // partition to begin with
}

// part is what a pool knows of a partition.
type part struct {
	id uint16

	// Guarded by Gateway.mu.
	hot        bool      // there may be work
	registered time.Time // since when the partition rings when there is; zero: it does not
	notBefore  time.Time // it did not answer
	failures   int
	urgent     int // priority of work that should come next; 0 if there is none
	served     int // likewise, for which it was looked at last

	turn         chan struct{} // has room for whoever looks; what follows is theirs
	table        offer.Table
	subscription []uint64
	digest       string // "" until the subscription is stored
	rotation     uint64
}

func newPool(g *Gateway, o offer.Offer) *pool {
	p := &pool{g: g, offer: o, admitter: admit.New(admit.Config{Engine: g.engine, Logger: g.log})}
	for i := range g.engine.Partitions() {
		p.parts = append(p.parts, &part{id: i, hot: true, rotation: uint64(i), turn: make(chan struct{}, 1)})
	}
	return p
}

// anyHot tells whether there is a partition to look at. Gateway.mu is held.
func (p *pool) anyHot(now time.Time) bool {
	return slices.ContainsFunc(p.parts, func(x *part) bool { return x.hot && !now.Before(x.notBefore) })
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

// take picks a partition to look at, which is not hot then, so that a ring meanwhile is not lost: the one with the
// most urgent work, or the next.
func (p *pool) take() *part {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	now := time.Now()
	var found *part
	for i := range p.parts {
		x := p.parts[(p.next+i)%len(p.parts)]
		if x.hot && !now.Before(x.notBefore) && (found == nil || x.urgent > found.urgent) {
			found = x
		}
	}
	if found == nil {
		return nil
	}
	if found.urgent == 0 {
		p.next = int(found.id) + 1
	}
	found.hot, found.served, found.urgent = false, found.urgent, 0
	return found
}

// look asks the partitions that may have work. The error is that of a partition when none answered.
func (p *pool) look(ctx context.Context, q Request) (got []Claim, failed error) {
	answered := false
	for len(got) < q.Max && ctx.Err() == nil {
		x := p.take()
		if x == nil {
			break
		}
		select {
		case x.turn <- struct{}{}:
		case <-ctx.Done():
			p.heat(x)
			return got, nil
		}
		n := len(got)
		more, err := p.claim(x, q, q.Max-n)
		<-x.turn
		got = append(got, more...)
		if p.answered(x, err) {
			answered = true
		} else {
			failed = err
		}
	}
	if answered || len(got) > 0 {
		failed = nil
	}
	return got, failed
}

func (p *pool) heat(x *part) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	x.hot = true
}

// again has a partition looked at again, of which there may be more: before others, if its last execution is as
// urgent as was said.
func (p *pool) again(x *part, last engine.Claim) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	x.hot = true
	if last.Priority >= x.served {
		x.urgent = max(x.urgent, x.served)
	}
}

// answered notes how a look ended.
func (p *pool) answered(x *part, err error) bool {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if err == nil {
		x.failures = 0
		return true
	}
	x.hot = true
	x.notBefore = time.Now().Add(min(backoffMax, backoffMin<<min(x.failures, 8)))
	x.failures++
	return false
}

// claim takes up to n executions from one partition, each under a session of its own. The caller has the partition's
// turn.
func (p *pool) claim(x *part, q Request, n int) (got []Claim, err error) {
	session := p.session(q.Worker)
	for range 2*n + 4 { // as many, and a few that store the subscription or find nothing
		if len(got) >= n {
			p.again(x, got[len(got)-1].Claim) // nothing is registered
			return got, nil
		}
		reply, err := p.next1(x, session, q.TTL)
		if errors.Is(err, denied.UnknownSubscription) {
			x.digest = ""
		} else if err != nil {
			return got, err
		}
		changed := false
		if err == nil {
			changed = p.learn(x, reply)
			for _, c := range reply.Claims {
				got = p.keep(x, got, c)
				session = p.session(q.Worker)
			}
		}
		switch {
		case x.digest == "":
			if err := p.declare(x); err != nil {
				return got, err
			}
		case changed, len(reply.Claims) > 0, reply.Granted, reply.More:
		default:
			p.idle(x, reply.Registered)
			return got, nil
		}
	}
	p.heat(x)
	return got, nil
}

func (p *pool) session(worker string) string { return p.g.name + "~" + worker + "~" + randomHex() }

// next1 makes one claim of one execution, again if it is not known what became of it: the number is the same, so the
// answer is, too.
func (p *pool) next1(x *part, session string, ttl time.Duration) (reply engine.ClaimReply, err error) {
	pause := 50 * time.Millisecond
	for try := range 4 {
		// one that was sent must be answered
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.g.life), callTimeout)
		reply, err = p.admitter.ClaimNext(ctx,
			engine.ClaimRequest{Partition: x.id, Session: session, Number: 1, TTL: ttl, Max: 1,
				Subscription: x.digest, Table: x.table.Version, Wait: true, Rotation: x.rotation})
		cancel()
		if err == nil || !unknownOutcome(err) {
			break
		}
		if try < 3 {
			sleep(p.g.life, pause)
			pause *= 2
		}
	}
	x.rotation++
	if err != nil && unknownOutcome(err) {
		p.g.log.Warn(
			"flowfabric: gateway: a claim was not answered; if it took something, that comes back when its lease ends",
			"partition", x.id,
			"session", session, "error", err)
	}
	return reply, err
}

// learn takes in what a claim says of routes, and tells whether the subscription is another now.
func (p *pool) learn(x *part, reply engine.ClaimReply) bool {
	if x.table.Learn(reply) {
		x.digest = ""
	}
	subscription := p.offer.Subscription(&x.table)
	if x.digest != "" && slices.Equal(subscription, x.subscription) {
		return false
	}
	x.subscription, x.digest = subscription, ""
	return true
}

// declare stores the subscription.
func (p *pool) declare(x *part) error {
	ctx, cancel := context.WithTimeout(p.g.life, callTimeout)
	defer cancel()
	digest, err := p.g.engine.SetSubscription(ctx, x.id, p.offer.Subscribe(x.subscription))
	if err == nil {
		x.digest = digest
	}
	return err
}

// keep adds a claim to those that the worker gets. One that is not for it goes back: a failover gave the id of its
// route to another one.
func (p *pool) keep(x *part, got []Claim, c engine.Claim) []Claim {
	route, known := x.table.Route(c.Route)
	if known && p.offer.Serves(route) {
		return append(got, Claim{c, route})
	}
	p.g.log.Warn("flowfabric: gateway: claimed an execution of another's route, handing it back", "execution",
		c.Fence.Execution.String(), "known", known)
	x.table, x.digest = offer.Table{}, ""
	p.g.Return([]Claim{{Claim: c}})
	return got
}

// idle notes that a partition had nothing more, and whether it rings when it has.
func (p *pool) idle(x *part, rings bool) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if rings {
		x.registered = time.Now()
	} else {
		x.hot, x.notBefore = true, time.Now().Add(backoffMin)
	}
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
