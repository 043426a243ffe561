package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// For how long, and of how many gates, it is believed that they exist; and how many are looked up at the same time.
const (
	gateBelieved = 10 * time.Second
	gatesKnown   = 4096
	gateCalls    = 16
)

// GateFinder is the part of the engine that finds gates. It makes one try.
type GateFinder interface {
	FindGate(ctx context.Context, gate flowfabric.Gate) error
}

// Gates remembers which gates exist. It may be used concurrently.
type Gates struct {
	store   GateFinder
	persist time.Duration // how long an unanswered read is repeated
	mu      sync.Mutex
	until   map[flowfabric.Gate]time.Time
}

// NewGates returns one that knows nothing yet; persist is how long an unanswered read is repeated.
func NewGates(store GateFinder, persist time.Duration) *Gates {
	return &Gates{store: store, persist: persist, until: map[flowfabric.Gate]time.Time{}}
}

func (g *Gates) has(gate flowfabric.Gate, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return now.Before(g.until[gate])
}

func (g *Gates) add(gate flowfabric.Gate, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.until) >= gatesKnown {
		clear(g.until)
	}
	g.until[gate] = now.Add(gateBelieved)
}

// Forget no longer believes that a gate exists.
func (g *Gates) Forget(gate flowfabric.Gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.until, gate)
}

// Require refuses gates that do not exist. Nothing has been created when it fails. The reads are repeated as create
// calls are.
func (g *Gates) Require(ctx context.Context, all []flowfabric.Gate) error {
	var unsure []flowfabric.Gate
	for _, gate := range Rehearsed(ctx).lacking(all) {
		if _, _, limit := gate.Limit(); limit {
			continue // there is nothing to find: its name says it all
		}
		if !g.has(gate, time.Now()) {
			unsure = append(unsure, gate)
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return NotSent(ctx)
	}
	errs := make([]error, len(unsure))
	p := pool.New().WithMaxGoroutines(gateCalls)
	for i, gate := range unsure {
		p.Go(func() {
			err := g.Find(ctx, gate)
			if err == nil {
				g.add(gate, time.Now())
				return
			}
			errs[i] = fmt.Errorf("%s: %w", gate, err)
		})
	}
	p.Wait()
	err := errors.Join(errs...)
	if ctx.Err() != nil && err != nil && Repeatable(err) {
		return NotSent(ctx)
	}
	return err
}

// Find looks for a gate, again while that is not answered. Errors: denied.NoGate, denied.NoGate.
func (g *Gates) Find(ctx context.Context, gate flowfabric.Gate) error {
	_, err := Persist(ctx, g.persist, func() (struct{}, error) { return struct{}{}, g.store.FindGate(ctx, gate) })
	return err
}
