package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

const (
	// compareEvery is how many renewals of a session pass between two looks at what the server holds for it,
	// when nothing asks for one sooner.
	compareEvery = 10
	// comparePause is between a look that failed and the next.
	comparePause = 2 * time.Second
	// maxReturns is how often one execution is handed back. Whatever cannot be settled any of these times is
	// revoked instead, which counts a reclaim, and reclaims have a cap.
	maxReturns = 3
	// maxRefusals is how many looks in a row may fail to hand something back for a reason that time does not repair.
	maxRefusals = 3
	// maxReturned bounds the memory of what was handed back.
	maxReturned = 1024
)

// doubt asks for a comparison, at the earliest so long after the last one; what was asked for sooner stays.
// Called with Keeper.mu held.
func (s *session) doubt(after time.Duration) {
	if !s.doubted || after < s.patience {
		s.doubted, s.patience = true, after
	}
}

// compareDue reports whether to compare now. Nothing is compared while a claim is unresolved: what it brought is
// named by its repeat.
func (s *session) compareDue(now Instant) bool {
	return s.doubted && !s.comparing && !s.pending && !s.retiring && now.Since(s.compared) >= s.patience
}

// reconcile waits for the partition's turn, so that no claim is in flight, and compares.
func (k *Keeper) reconcile(ctx context.Context, s *session) {
	defer k.done(func() { s.comparing, s.compared = false, k.cfg.Clock() })
	p := k.partition(s.partition)
	select {
	case p.turn <- struct{}{}: // behind the claims that wait already: a busy partition does not put it off for ever
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return
	}
	callCtx, cancel := context.WithTimeout(ctx, k.call)
	defer cancel()
	if err := k.compare(callCtx, s); err != nil && ctx.Err() == nil {
		k.cfg.Logger.Debug("flowfabric: the worker could not compare its executions with the server's", "partition",
			s.partition, "session", s.id, "error", err)
	}
}

// compare looks at what the server holds under a session. What this process does not run is handed back; what
// only this process believes to be held is lost once a second look confirms it. The caller has the partition's
// turn: no hold is added meanwhile, and one that ends here has been settled or given up before.
func (k *Keeper) compare(ctx context.Context, s *session) error {
	k.mu.Lock()
	if s.dead || s.pending || s.retiring {
		k.mu.Unlock()
		return nil
	}
	known := make(map[engine.Held]*Held, s.held.count)
	for h := s.held.first; h != nil; h = h.next {
		known[h.member()] = h
	}
	start := k.cfg.Clock()
	s.doubted = false // what is doubted from here on is for the next look
	k.mu.Unlock()

	members, err := k.cfg.Engine.SessionHeld(ctx, s.partition, s.id)
	if err != nil {
		return k.returned(s, fmt.Errorf("compare session %s: %w", s.id, err))
	}
	k.confirmed(s, known, members, start)
	var failed []error
	for _, m := range members {
		if known[m] != nil {
			continue
		}
		if err := k.handBack(ctx, s, m); err != nil {
			failed = append(failed, fmt.Errorf("hand back %s: %w", m.Execution, err))
		}
	}
	return k.returned(s, errors.Join(failed...))
}

// confirmed confirms the holds that the server names and doubts the others. A page of the answer may miss a member
// because an earlier one was settled meanwhile, and a hold may be missing because its own settlement is on its way:
// so it takes two looks, far enough apart for a call to be answered, and a renewal in between, whose notices know
// the cause.
func (k *Keeper) confirmed(s *session, known map[engine.Held]*Held, members []engine.Held, start Instant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	there := make(map[engine.Held]bool, len(members))
	for _, m := range members {
		there[m] = true
		s.opened, s.number = true, max(s.number, m.Claim) // a claim whose repeat had found nothing arrived after all
	}
	for m, h := range known {
		switch {
		case h.lost != nil || h.gone || k.executions[m.Execution] != h:
		case there[m]:
			h.missing = false
		case !h.missing:
			h.missing, h.missed = true, start
			s.force = true
			s.doubt(k.confirm)
		case start.Since(h.missed) < k.confirm:
			s.doubt(k.confirm)
		default:
			k.cfg.Logger.Warn("flowfabric: the worker runs an execution whose lease it no longer holds",
				"execution", m.Execution.String(), "session", s.id)
			h.lose(flowfabric.ErrLeaseLost)
		}
	}
}

// handBack returns one member that is not run here to the queue. It keeps its attempt.
func (k *Keeper) handBack(ctx context.Context, s *session, m engine.Held) error {
	k.mu.Lock()
	kept := k.handedBack[m.Execution] >= maxReturns
	k.mu.Unlock()
	if kept {
		ctx := trail.As(ctx, k.cfg.Instance, "it was handed back too often")
		_, err := k.cfg.Engine.RevokeLease(ctx, m.Execution, s.id)
		if errors.Is(err, denied.NotActive) || errors.Is(err, denied.StaleLease) || errors.Is(err, denied.NoExecution) {
			return nil // it left before
		}
		return err
	}
	x, err := k.cfg.Engine.ReadExecution(ctx, m.Execution)
	switch {
	case errors.Is(err, denied.NoExecution):
		return nil
	case err != nil:
		return err
	case x.Session != s.id || x.Code != codes.Active || x.Attempts == 0:
		return nil // it left between the two calls
	}
	fence := flowfabric.Fence{Execution: m.Execution, Session: s.id, Claim: m.Claim, Epoch: x.Epoch,
		Attempt: x.Attempts}
	if _, err := k.cfg.Engine.ReleaseExecution(ctx, fence); err != nil {
		for _, gone := range []error{denied.NotActive, denied.StaleLease, denied.LeaseRevoked, denied.NoExecution} {
			if errors.Is(err, gone) {
				return nil
			}
		}
		return err
	}
	k.cfg.Logger.Warn(
		"flowfabric: the worker held an execution that it did not run; the execution is back in the queue",
		"execution", m.Execution.String(), "session", s.id)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.handedBack) >= maxReturned {
		clear(k.handedBack)
	}
	k.handedBack[m.Execution]++
	return nil
}

// returned records how one look and its hand-backs ended. What time may repair is tried again; after the rest the
// session retires, so that it expires.
func (k *Keeper) returned(s *session, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		s.refusals = 0
		return nil
	case errors.Is(err, denied.LeaseExpired):
		k.lose(s, flowfabric.CodeOf(err))
		return err
	case flowfabric.Retryable(err) || denied.ClassOf(err) == 0:
	default:
		s.refusals++
	}
	s.doubt(comparePause)
	if s.refusals >= maxRefusals {
		k.cfg.Logger.Error(
			"flowfabric: the worker holds executions that it neither runs nor released; their session takes no more work and expires",
			"partition", s.partition, "session", s.id, "error", err)
		k.retire(s)
	}
	return err
}

// member is the hold as the server lists it.
func (h *Held) member() engine.Held {
	return engine.Held{Execution: h.claim.Fence.Execution, Claim: h.claim.Fence.Claim}
}
