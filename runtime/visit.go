package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
)

const (
	// visitTimeout bounds one claim: it keeps slots reserved while it waits. What it cuts off is repeated.
	visitTimeout = 3 * time.Second
	// visitRounds bounds the claims of one visit: table, interest, claim, and again if the table moves meanwhile.
	visitRounds = 6
	// unregisteredPause keeps a server that neither hands out nor registers from being asked in a tight loop.
	unregisteredPause = 100 * time.Millisecond
)

// visit asks one partition for as many executions as it was given slots, starts them, and leaves the partition
// registered, hot, or in backoff. It uses the worker's own context: a claim that was sent must be answered.
func (r *run) visit(p *partition, slots int) {
	defer func() { r.slots.put(slots) }()
	for range visitRounds {
		claims, again, err := r.claim(p, max(slots, 1))
		slots -= r.start(p, claims, slots)
		if err == nil && again {
			err = r.declare(p)
		}
		if err != nil {
			r.visitFailed(p, err)
			return
		}
		if !again || slots == 0 || r.draining.Load() {
			return
		}
	}
}

// claim makes one claim and books what it says about the partition. again asks for another, once the interest
// is stored.
func (r *run) claim(p *partition, n int) (claims []*keeper.Held, again bool, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, visitTimeout)
	defer cancel()
	began := time.Now()
	reply, err := r.keeper.Claim(ctx, engine.ClaimRequest{
		Partition: p.id, Max: n, Interest: p.digest, Table: p.version, Wait: !p.ahead, Rotation: p.rotation,
	})
	if err != nil {
		r.metrics.claimFailed()
		if errors.Is(err, flowfabric.ErrUnknownInterest) {
			p.digest = ""
			return nil, true, nil
		}
		return nil, false, err
	}
	r.health.success()
	took := time.Since(began)
	r.metrics.claimed(len(reply.Held), p.digest != "", took)
	if len(reply.Held) > 0 && !p.gated {
		r.slots.claimed(took)
	}
	if failures := r.sched.answered(p); failures > 0 {
		r.log.Info("flowfabric: partition answers again", "partition", p.id, "failures", failures)
	}
	if r.learned(p, reply) {
		return reply.Held, true, nil
	}
	found := len(reply.Held) > 0 || reply.More || reply.Duplicate
	if found {
		r.sched.open(p)
	}
	switch {
	case reply.Registered: // there was less than this worker has slots for
		r.sched.registered(p, time.Now())
	case p.ahead && len(reply.Held) < n && !reply.More:
		r.sched.dried(p)
	case !found:
		r.sched.pause(p, time.Now().Add(unregisteredPause))
	}
	return reply.Held, false, nil
}

// learned takes in what a claim says of routes, and tells whether the interest is another now: then it has to be stored.
func (r *run) learned(p *partition, reply keeper.Reply) bool {
	p.rotation++
	p.learn(reply.ClaimReply)
	interest := r.offer.interest(p.table)
	gated := slices.ContainsFunc(interest, func(id uint64) bool { return len(p.table[id].Gates) > 0 })
	if gated != p.gated {
		r.sched.gates(p, gated)
	}
	if p.digest != "" && slices.Equal(interest, p.interest) {
		return false
	}
	p.interest, p.digest = interest, ""
	r.sched.open(p)
	return true
}

// completeAndClaim settles members of flows and asks their partition, in the same call, for what their ends make claimable: so
// the next member of a chain needs no ring and no call of its own. kept are the slots that the members had. made is false if nothing was
// sent, because the partition is being visited, is in trouble or not known yet, or because there is no slot.
func (r *run) completeAndClaim(partition uint16, items []engine.Completion, kept int) (settled []engine.Settled, made bool, err error) {
	slots := kept
	defer func() { r.slots.put(slots) }()
	if r.draining.Load() {
		return nil, false, nil
	}
	p := r.sched.partitions[partition]
	more, registered, joined := r.sched.join(p, kept, len(items))
	if !joined {
		return nil, false, nil
	}
	slots += more
	defer r.sched.left(p)
	ctx, cancel := context.WithTimeout(r.ctx, visitTimeout)
	defer cancel()
	began := time.Now()
	reply, made, err := r.keeper.ClaimWith(ctx, engine.ClaimRequest{
		Partition: p.id, Max: slots, Interest: p.digest, Table: p.version, Wait: !registered, Rotation: p.rotation,
	}, func(ctx context.Context, req engine.ClaimRequest) (next engine.ClaimReply, err error) {
		var answer *engine.ClaimReply
		if settled, answer, err = r.store.CompleteExecutions(ctx, partition, items, &req); answer != nil {
			next = *answer
		}
		return next, err
	})
	switch {
	case !made:
		r.sched.open(p) // what made it hot before may have been meant for this visit
		return nil, false, nil
	case err != nil: // of the claim, if there are answers: a visit makes it again, and deals with what is wrong
		r.metrics.claimFailed()
		r.sched.open(p)
		if errors.Is(err, flowfabric.ErrUnknownInterest) {
			p.digest = ""
		}
		if settled != nil {
			err = nil
		}
		return settled, true, err
	}
	r.health.success()
	r.metrics.claimed(len(reply.Held), true, time.Since(began))
	switch {
	case r.learned(p, reply), reply.More, reply.Duplicate:
		r.sched.open(p)
	case reply.Registered:
		r.sched.registered(p, time.Now())
	case !registered:
		r.sched.open(p)
	}
	slots -= r.start(p, reply.Held, slots)
	if p.gated { // who asks the gates has not heard of these routes: the next visit reads the whole table
		p.version = 0
	}
	return settled, true, nil
}

// declare stores the partition's interest and remembers its digest.
func (r *run) declare(p *partition) error {
	ctx, cancel := context.WithTimeout(r.ctx, visitTimeout)
	defer cancel()
	digest, err := r.store.SetInterest(ctx, p.id, p.interest)
	if err == nil {
		p.digest = digest
	}
	return err
}

// start hands claims to jobs, which run or wait for a slot, and returns how many of the given slots that took. What exceeds all slots (a
// repeated claim may return more than it asks for) or comes after the drain began goes back at once.
func (r *run) start(p *partition, claims []*keeper.Held, slots int) (used int) {
	now := time.Now()
	for _, held := range claims {
		route, known := p.table[held.Claim().Route]
		switch {
		case !known: // never seen: read the table anew
			r.log.Error("flowfabric: claimed an execution of an unknown route", "execution", held.Fence().Execution.String(), "route", held.Claim().Route)
			p.version, p.digest = 0, ""
			r.handBack(held)
			continue
		case !r.offer.serves(route): // a failover gave the id of a route of ours to another one
			r.log.Warn("flowfabric: claimed an execution of another's route, handing it back", "execution", held.Fence().Execution.String(), "kind", route.Kind)
			p.digest = ""
			r.handBack(held)
			continue
		case r.draining.Load():
			r.handBack(held)
			continue
		case used < slots:
			used++
		case r.slots.take(1) == 0:
			r.handBack(held)
			continue
		}
		j := newJob(r, held, route)
		switch run, waits := r.slots.enter(j, now); {
		case run:
			r.pool.do(j)
		case !waits: // the drain began
			r.slots.put(1)
			r.handBack(held)
		}
	}
	return used
}

// visitFailed puts the partition in backoff, or ends the worker when no retry can help.
func (r *run) visitFailed(p *partition, err error) {
	first := r.sched.failed(p, time.Now()) == 1
	if first && !r.stopIfFatal(err) && r.ctx.Err() == nil && !errors.Is(err, flowfabric.ErrDraining) {
		r.log.Warn("flowfabric: claim failed, trying again until it works", "partition", p.id, "error", err)
	}
}
