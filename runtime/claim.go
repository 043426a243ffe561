package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/session"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

// claimer makes the claims of a run, and hands what they bring to jobs.
type claimer struct {
	ctx     context.Context // of claims: one that was sent must be answered
	store   claimStore
	session *session.Session
	sched   *scheduler
	slots   *slots
	jobs    *jobs
	log     *slog.Logger
	metrics *metrics
	health  *health
	fatal   func(error) bool // ends the worker if no retry can help, and tells so

	draining atomic.Bool // nothing is claimed any more; what a claim in flight brings goes back
}

// claimStore is what a claimer asks of the server beside the claims themselves, which its session makes.
type claimStore interface {
	CompleteExecutions(ctx context.Context, partition uint16, items []engine.Completion,
		next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error)
}

// round makes one claim round: it asks one partition for as many executions as it was given slots, starts them, and
// leaves the partition registered, hot, or in backoff. It uses the worker's own context: a claim that was sent must
// be answered.
func (c *claimer) round(p *source.Partition, slots int) {
	defer func() { c.slots.put(slots) }()
	err := c.session.Round(p, slots, func(held []*keeper.Held, took time.Duration) (more int) {
		if len(held) > 0 && !p.Gated() {
			c.slots.claimed(took)
		}
		if slots -= c.start(p, held, slots); c.draining.Load() {
			return 0
		}
		return slots
	})
	if err != nil {
		c.roundFailed(p, err)
	}
}

// claimed records how a claim ended.
func (c *claimer) claimed(brought int, forWork bool, took time.Duration, err error) {
	if err != nil {
		c.metrics.claimFailed()
		return
	}
	c.health.success()
	c.metrics.claimed(brought, forWork, took)
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
	p := c.session.Source.Partition(partition)
	more, registered, joined := c.sched.join(p, kept, len(items))
	if !joined {
		return nil, false, nil
	}
	slots += more
	defer c.session.Source.Left(p)
	held, made, err := c.session.ClaimWith(p, slots, registered,
		func(ctx context.Context, req engine.ClaimRequest) (next engine.ClaimReply, err error) {
			var answer *engine.ClaimReply
			if settled, answer, err = c.store.CompleteExecutions(ctx, partition, items, &req); answer != nil {
				next = *answer
			}
			return next, err
		})
	if settled != nil { // the error is of the claim: a claim round makes it again, and deals with what is wrong
		err = nil
	}
	slots -= c.start(p, held, slots)
	return settled, made, err
}

// start hands claims to jobs, which run or wait for a slot, and returns how many of the given slots that took. What
// exceeds all slots (a repeated claim may return more than it asks for) or comes after the drain began goes back at
// once.
func (c *claimer) start(p *source.Partition, claims []*keeper.Held, slots int) (used int) {
	now := time.Now()
	for _, held := range claims {
		route, foreign := c.session.Source.Foreign(p, held.Claim())
		switch {
		case foreign, c.draining.Load():
			c.session.HandBack(held)
			continue
		case used < slots:
			used++
		case c.slots.take(1) == 0:
			c.session.HandBack(held)
			continue
		}
		j := newJob(c.jobs, held, route)
		j.deep = p.More()
		switch run, waits := c.slots.enter(j, now); {
		case run:
			c.jobs.pool.do(j)
		case !waits: // the drain began
			c.slots.put(1)
			c.session.HandBack(held)
		}
	}
	return used
}

// roundFailed puts the partition in backoff, or ends the worker when no retry can help.
func (c *claimer) roundFailed(p *source.Partition, err error) {
	first := c.session.Source.Failed(p, time.Now()) == 1
	if first && !c.fatal(err) && c.ctx.Err() == nil && !errors.Is(err, flowfabric.ErrDraining) {
		c.log.Warn("flowfabric: the claim failed; the worker retries until it succeeds", "partition", p.ID(),
			"error", err)
	}
}
