package keeper

import (
	"context"
	"errors"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// Run renews and closes sessions and watches over trust until ctx ends; then it waits for its own calls and
// returns nil. Without it nothing is renewed, and every hold is lost within a ttl. Call it once.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.tasks.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-timer.C:
		}
		timer.Reset(k.look(ctx))
	}
}

// look visits every session once and returns when it wants to look again.
func (k *Keeper) look(ctx context.Context) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, next := k.cfg.Clock(), time.Hour
	for s := range k.sessions {
		next = min(next, maxTurn, margin(k.cfg.TTL))
		switch {
		case !s.trusted(now):
			k.lose(s, lostTrust)
		case s.retiring && s.held.count == 0 && !s.claiming:
			k.drop(s)
		case s.closing || k.calls >= maxCalls:
		default:
			next = min(next, k.tend(ctx, s, now))
		}
	}
	return max(next, time.Millisecond)
}

// tend starts the calls that a session needs now and returns when it needs the next. Called with mu held.
func (k *Keeper) tend(ctx context.Context, s *session, now Instant) time.Duration {
	if s.compareDue(now) {
		s.comparing = true
		k.calls++
		k.tasks.Go(func() { k.reconcile(ctx, s) })
	}
	switch {
	case !s.opened || s.renewing:
	case !s.comparing && s.idle() && now.Since(s.emptySince) >= k.cfg.TTL && k.tryClose(ctx, s):
	case s.untilRenewal(now) <= 0:
		s.renewing, s.force, s.tried = true, false, now
		k.calls++
		k.tasks.Go(func() { k.renew(ctx, s) })
	default:
		return s.untilRenewal(now)
	}
	return maxTurn
}

// renew makes one renewal, and more at once while the server has more notices.
func (k *Keeper) renew(ctx context.Context, s *session) {
	defer k.done(func() { s.renewing = false })
	for again := true; again && ctx.Err() == nil; {
		again, _ = k.renewOnce(ctx, s)
	}
}

func (k *Keeper) renewOnce(ctx context.Context, s *session) (more bool, err error) {
	k.mu.Lock()
	processed, dead := s.generation, s.dead
	k.mu.Unlock()
	if dead {
		return false, flowfabric.ErrLeaseLost
	}
	start := k.cfg.Clock()
	callCtx, cancel := context.WithTimeout(ctx, k.call)
	defer cancel()
	reply, err := k.cfg.Engine.RenewSession(callCtx, s.partition, s.id, k.cfg.TTL, processed)
	if err != nil && ctx.Err() != nil {
		return false, err // the caller stops; this says nothing about the lease
	}
	k.mu.Lock()
	closed := err != nil && s.closing // while this renewal was under way
	k.mu.Unlock()
	if closed {
		return false, err
	}
	k.cfg.OnRenew(s.partition, err)

	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		s.tried = k.cfg.Clock()
		if s.failures++; s.failures == 1 || s.failures == failureLimit {
			k.cfg.Logger.Warn("flowfabric: lease renewal failed", "partition", s.partition, "failures", s.failures,
				"error", err)
		}
		if sessionDied(err) {
			k.lose(s, flowfabric.CodeOf(err))
		}
		return false, err
	}
	if s.renewals++; s.failures > 0 || s.renewals%compareEvery == 0 {
		s.doubt(0)
	}
	s.failures = 0
	s.extend(start)
	for _, lost := range reply.Lost {
		s.notice(lost)
	}
	s.generation = reply.Generation // may have gone back: a failover lost notices
	if reply.TickOverdue {
		k.cfg.OnTickOverdue(s.partition)
	}
	return reply.MoreLost && len(reply.Lost) > 0, nil
}

// tryClose starts closing an idle session unless a claim has the partition's turn. Called with mu held.
func (k *Keeper) tryClose(ctx context.Context, s *session) bool {
	p := k.partitions[s.partition]
	select {
	case p.turn <- struct{}{}:
	default:
		return false
	}
	s.closing = true
	k.calls++
	k.tasks.Go(func() {
		defer func() { <-p.turn }()
		defer k.done(nil)
		if err := k.closeSession(ctx, s); err != nil && !sessionDied(err) && ctx.Err() == nil {
			k.cfg.Logger.Warn(
				"flowfabric: the session could not be closed; its executions are requeued when it expires",
				"partition", s.partition, "session", s.id, "within", k.cfg.TTL.String(), "error", err)
		}
	})
	return true
}

// closeSession ends an empty session. What the server turns out to hold under it is handed back first. The caller
// has the partition's turn, so no claim can slip in between.
func (k *Keeper) closeSession(ctx context.Context, s *session) error {
	callCtx, cancel := context.WithTimeout(ctx, k.call)
	defer cancel()
	err := k.cfg.Engine.CloseSession(callCtx, s.partition, s.id)
	if errors.Is(err, denied.SessionHeld) {
		if err = k.compare(callCtx, s); err == nil {
			err = k.cfg.Engine.CloseSession(callCtx, s.partition, s.id)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// Closed, dead, of unknown state or with orphans: in every case it takes no more claims, and letting it
	// expire returns to the queue what the server may still have under it.
	s.retiring, s.dead = true, true
	k.drop(s)
	return err
}

// done records the end of a call and lets the loop look again: there may have been more to do than maxCalls.
func (k *Keeper) done(and func()) {
	k.mu.Lock()
	k.calls--
	if and != nil {
		and()
	}
	k.mu.Unlock()
	k.nudge()
}
