package keeper

import (
	"context"
	"errors"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Unresolved repeats every claim whose reply was lost and returns what those claims had handed out, so that a
// draining worker can hand it back. Nothing new is claimed: a repeat without a subscription finds only what the
// number already holds. Claims that stay unanswered are reported in the error; their sessions expire.
func (k *Keeper) Unresolved(ctx context.Context) ([]*Held, error) {
	k.mu.Lock()
	var pending []uint16
	for s := range k.sessions {
		if s.pending && !s.retiring {
			pending = append(pending, s.partition)
		}
	}
	k.mu.Unlock()
	var held []*Held
	var errs []error
	for _, p := range pending {
		reply, err := k.Claim(ctx, engine.ClaimRequest{Partition: p, Max: 1})
		held = append(held, reply.Held...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return held, errors.Join(errs...)
}

// Close ends the keeper: later claims are refused with [flowfabric.ErrDraining] and every session that holds
// nothing is closed on the server. Sessions that still hold something, or whose last claim is unresolved, are
// left to expire. It returns the first error that is not of that kind. Run should still be running.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	var open []*session
	for s := range k.sessions {
		if s.opened && !s.closing && s.idle() {
			s.closing = true
			open = append(open, s)
		}
	}
	k.mu.Unlock()
	closing := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(16)
	for _, s := range open {
		closing.Go(func() error {
			p := k.partition(s.partition)
			select {
			case p.turn <- struct{}{}:
				defer func() { <-p.turn }()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err := k.closeSession(ctx, s); !sessionDied(err) && !errors.Is(err, denied.SessionHeld) {
				return err
			}
			return nil
		})
	}
	return closing.Wait()
}
