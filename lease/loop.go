package lease

import (
	"context"
	"errors"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
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
			k.lose(s, "trust ended")
		case s.retiring && len(s.held) == 0 && !s.claiming:
			k.drop(s)
		case !s.opened || s.closing || k.calls >= maxCalls:
		case s.renewing:
		case s.idle() && now.since(s.emptySince) >= k.cfg.TTL && k.tryClose(ctx, s):
		case s.untilRenewal(now) <= 0:
			s.renewing, s.force, s.tried = true, false, now
			k.calls++
			k.tasks.Go(func() { k.renew(ctx, s) })
		default:
			next = min(next, s.untilRenewal(now))
		}
	}
	return max(next, time.Millisecond)
}

// renew makes one renewal, and more at once while the server has more notices.
func (k *Keeper) renew(ctx context.Context, s *session) {
	defer k.done(func() { s.renewing = false })
	for again := true; again && ctx.Err() == nil; {
		again = k.renewOnce(ctx, s)
	}
}

func (k *Keeper) renewOnce(ctx context.Context, s *session) (more bool) {
	k.mu.Lock()
	processed, dead := s.generation, s.dead
	k.mu.Unlock()
	if dead {
		return false
	}
	start := k.cfg.Clock()
	callCtx, cancel := context.WithTimeout(ctx, k.call)
	defer cancel()
	reply, err := k.cfg.Engine.RenewSession(callCtx, s.partition, s.id, k.cfg.TTL, processed)
	if err != nil && ctx.Err() != nil {
		return false // the keeper stops; this says nothing about the lease
	}
	k.cfg.OnRenew(s.partition, err)

	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		s.tried = k.cfg.Clock()
		if s.failures++; s.failures == 1 || s.failures == failureLimit {
			k.cfg.Logger.Warn("flowfabric: lease renewal failed", "partition", s.partition, "failures", s.failures, "error", err)
		}
		if sessionDied(err) {
			k.lose(s, flowfabric.CodeOf(err))
		}
		return false
	}
	s.failures = 0
	s.extend(start)
	for _, lost := range reply.Lost {
		s.notice(lost)
	}
	s.generation = max(s.generation, reply.Generation)
	if reply.TickOverdue {
		k.cfg.OnTickOverdue(s.partition)
	}
	return reply.MoreLost && len(reply.Lost) > 0
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
		_ = k.closeSession(ctx, s)
	})
	return true
}

// closeSession ends an empty session. The caller has the partition's turn, so no claim can slip in between.
func (k *Keeper) closeSession(ctx context.Context, s *session) error {
	callCtx, cancel := context.WithTimeout(ctx, k.call)
	defer cancel()
	err := k.cfg.Engine.CloseSession(callCtx, s.partition, s.id)
	if errors.Is(err, flowfabric.ErrSessionHeld) {
		k.reportOrphans(callCtx, s)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// Closed, dead, of unknown state or with orphans: in every case it takes no more claims, and letting it
	// expire returns to the queue what the server may still have under it.
	s.retiring, s.dead = true, true
	k.drop(s)
	return err
}

// reportOrphans logs what the server holds for us that we do not run.
func (k *Keeper) reportOrphans(ctx context.Context, s *session) {
	orphans, err := k.cfg.Engine.SessionHeld(ctx, s.partition, s.id)
	if err != nil {
		k.cfg.Logger.Warn("flowfabric: an idle session still holds executions", "partition", s.partition, "session", s.id, "error", err)
		return
	}
	for _, o := range orphans {
		k.cfg.Logger.Warn("flowfabric: execution is held but not run here; it returns to the queue when the session expires",
			"execution", o.Execution.String(), "session", s.id, "within", k.cfg.TTL.String())
	}
}

// done books the end of a call and lets the loop look again: there may have been more to do than maxCalls.
func (k *Keeper) done(and func()) {
	k.mu.Lock()
	k.calls--
	if and != nil {
		and()
	}
	k.mu.Unlock()
	k.nudge()
}
