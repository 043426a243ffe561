package runtime

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/offer"
)

const (
	// roundTimeout bounds one claim: it keeps slots reserved while it waits. What it cuts off is repeated.
	roundTimeout = 3 * time.Second
	// roundClaims bounds the claims of one round: table, subscription, claim, and again if the table moves meanwhile.
	roundClaims = 6
	// unregisteredPause keeps a server that neither hands out nor registers from being asked in a tight loop.
	unregisteredPause = 100 * time.Millisecond
)

// claimer makes the claims of a run, and hands what they bring to jobs.
type claimer struct {
	ctx     context.Context // of claims: one that was sent must be answered
	store   claimStore
	keeper  *keeper.Keeper
	sched   *scheduler
	slots   *slots
	jobs    *jobs
	offer   offer.Offer
	log     *slog.Logger
	metrics *metrics
	health  *health
	fatal   func(error) bool // ends the worker if no retry can help, and tells so

	draining atomic.Bool // nothing is claimed any more; what a claim in flight brings goes back
}

// claimStore is what a claimer asks of the server beside the claims themselves, which its keeper makes.
type claimStore interface {
	SetSubscription(ctx context.Context, partition uint16, s engine.Subscription) (digest string, err error)
	CompleteExecutions(ctx context.Context, partition uint16, items []engine.Completion,
		next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error)
}

// round makes one claim round: it asks one partition for as many executions as it was given slots, starts them, and
// leaves the partition registered, hot, or in backoff. It uses the worker's own context: a claim that was sent must
// be answered.
func (c *claimer) round(p *partition, slots int) {
	defer func() { c.slots.put(slots) }()
	for range roundClaims {
		claims, again, err := c.claim(p, max(slots, 1))
		slots -= c.start(p, claims, slots)
		if err == nil && again {
			err = c.declare(p)
		}
		if err != nil {
			c.roundFailed(p, err)
			return
		}
		if !again || slots == 0 || c.draining.Load() {
			return
		}
	}
}

// claim makes one claim and records what it says about the partition. again asks for another, once the subscription
// is stored.
func (c *claimer) claim(p *partition, n int) (claims []*keeper.Held, again bool, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, roundTimeout)
	defer cancel()
	began := time.Now()
	reply, err := c.keeper.Claim(ctx, engine.ClaimRequest{
		Partition: p.id, Max: n, Subscription: p.digest, Table: p.table.Version, Wait: !p.ahead, Rotation: p.rotation,
	})
	if err != nil {
		c.metrics.claimFailed()
		if errors.Is(err, denied.UnknownSubscription) {
			p.digest = ""
			return nil, true, nil
		}
		return nil, false, err
	}
	c.health.success()
	took := time.Since(began)
	c.metrics.claimed(len(reply.Held), p.digest != "", took)
	if len(reply.Held) > 0 && !p.gated {
		c.slots.claimed(took)
	}
	if failures := c.sched.answered(p); failures > 0 {
		c.log.Info("flowfabric: partition answers again", "partition", p.id, "failures", failures)
	}
	if c.learned(p, reply) {
		return reply.Held, true, nil
	}
	c.sched.visited(p, brought(reply), reply.Registered)
	found := len(reply.Held) > 0 || reply.More || reply.Duplicate
	if found {
		c.sched.open(p)
	}
	switch {
	case reply.Registered: // there was less than this worker has slots for
		c.sched.registered(p, time.Now())
	case p.ahead && len(reply.Held) < n && !reply.More:
		c.sched.dried(p)
	case !found:
		c.sched.pause(p, time.Now().Add(unregisteredPause))
	}
	return reply.Held, false, nil
}

// brought is what a claim brought.
func brought(reply keeper.Reply) []*engine.Claim {
	claims := make([]*engine.Claim, len(reply.Held))
	for i, held := range reply.Held {
		claims[i] = held.Claim()
	}
	return claims
}

// learned takes in what a claim says of routes, and tells whether the subscription is another now: then it has to be
// stored.
func (c *claimer) learned(p *partition, reply keeper.Reply) bool {
	p.rotation++
	p.more = reply.More
	p.learn(reply.ClaimReply)
	subscription := c.offer.Subscription(&p.table)
	if reply.Gated && !p.gated {
		c.sched.gates(p)
	}
	if p.digest != "" && slices.Equal(subscription, p.subscription) {
		return false
	}
	p.subscription, p.digest = subscription, ""
	c.sched.open(p)
	return true
}

// completeBatch is the call of the [completer]; its context is the worker's, so no caller can end it for others.
func (c *claimer) completeBatch(partition uint16, items []engine.Completion, dependants bool,
	kept int) ([]engine.Settled, error) {
	var settled []engine.Settled
	made, err := false, error(nil)
	if dependants {
		settled, made, err = c.completeAndClaim(partition, items, kept)
	}
	if !made {
		settled, _, err = c.store.CompleteExecutions(c.ctx, partition, items, nil)
	}
	if err == nil && len(settled) != len(items) {
		err = denied.New("ff_complete_execution", "parse", "an item has no answer")
	}
	return settled, err
}

// completeAndClaim settles members of flows and asks their partition, in the same call, for what their ends make
// claimable: so the next member of a chain needs no ring and no call of its own. kept are the slots that the members
// had. made is false if nothing was sent, because the partition is being claimed from, is in trouble or not known
// yet, or because there is no slot.
func (c *claimer) completeAndClaim(partition uint16, items []engine.Completion,
	kept int) (settled []engine.Settled, made bool, err error) {
	slots := kept
	defer func() { c.slots.put(slots) }()
	if c.draining.Load() {
		return nil, false, nil
	}
	p := c.sched.partitions[partition]
	more, registered, joined := c.sched.join(p, kept, len(items))
	if !joined {
		return nil, false, nil
	}
	slots += more
	defer c.sched.left(p)
	ctx, cancel := context.WithTimeout(c.ctx, roundTimeout)
	defer cancel()
	began := time.Now()
	reply, made, err := c.keeper.ClaimWith(ctx, engine.ClaimRequest{
		Partition: p.id, Max: slots, Subscription: p.digest, Table: p.table.Version, Wait: !registered,
		Rotation: p.rotation,
	}, func(ctx context.Context, req engine.ClaimRequest) (next engine.ClaimReply, err error) {
		var answer *engine.ClaimReply
		if settled, answer, err = c.store.CompleteExecutions(ctx, partition, items, &req); answer != nil {
			next = *answer
		}
		return next, err
	})
	switch {
	case !made:
		c.sched.open(p) // what made it hot before may have been meant for this claim round
		return nil, false, nil
	case err != nil: // of the claim, if there are answers: a claim round makes it again, and deals with what is wrong
		c.metrics.claimFailed()
		c.sched.open(p)
		if errors.Is(err, denied.UnknownSubscription) {
			p.digest = ""
		}
		if settled != nil {
			err = nil
		}
		return settled, true, err
	}
	c.health.success()
	c.metrics.claimed(len(reply.Held), true, time.Since(began))
	learned := c.learned(p, reply)
	c.sched.visited(p, brought(reply), reply.Registered)
	switch {
	case learned, reply.More, reply.Duplicate:
		c.sched.open(p)
	case reply.Registered:
		c.sched.registered(p, time.Now())
	case !registered:
		c.sched.open(p)
	}
	slots -= c.start(p, reply.Held, slots)
	return settled, true, nil
}

// declare stores the partition's subscription and remembers its digest.
func (c *claimer) declare(p *partition) error {
	ctx, cancel := context.WithTimeout(c.ctx, roundTimeout)
	defer cancel()
	digest, err := c.store.SetSubscription(ctx, p.id, c.offer.Subscribe(p.subscription))
	if err == nil {
		p.digest = digest
	}
	return err
}

// start hands claims to jobs, which run or wait for a slot, and returns how many of the given slots that took. What
// exceeds all slots (a repeated claim may return more than it asks for) or comes after the drain began goes back at
// once.
func (c *claimer) start(p *partition, claims []*keeper.Held, slots int) (used int) {
	now := time.Now()
	for _, held := range claims {
		route, known := p.table.Route(held.Claim().Route)
		switch {
		case !known: // never seen: read the table anew
			c.log.Error("flowfabric: claimed an execution of an unknown route", "execution",
				held.Fence().Execution.String(), "route", held.Claim().Route)
			p.table.Version, p.digest = 0, ""
			c.jobs.handBack(held)
			continue
		case !c.offer.Serves(route): // a failover gave the id of a route of ours to another one
			c.log.Warn("flowfabric: claimed an execution of another's route, handing it back", "execution",
				held.Fence().Execution.String(), "kind", route.Kind)
			p.digest = ""
			c.jobs.handBack(held)
			continue
		case c.draining.Load():
			c.jobs.handBack(held)
			continue
		case used < slots:
			used++
		case c.slots.take(1) == 0:
			c.jobs.handBack(held)
			continue
		}
		j := newJob(c.jobs, held, route)
		j.deep = p.more
		switch run, waits := c.slots.enter(j, now); {
		case run:
			c.jobs.pool.do(j)
		case !waits: // the drain began
			c.slots.put(1)
			c.jobs.handBack(held)
		}
	}
	return used
}

// roundFailed puts the partition in backoff, or ends the worker when no retry can help.
func (c *claimer) roundFailed(p *partition, err error) {
	first := c.sched.failed(p, time.Now()) == 1
	if first && !c.fatal(err) && c.ctx.Err() == nil && !errors.Is(err, flowfabric.ErrDraining) {
		c.log.Warn("flowfabric: claim failed, trying again until it works", "partition", p.id, "error", err)
	}
}
