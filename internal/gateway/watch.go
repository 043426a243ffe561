package gateway

import (
	"context"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Watch is told when something may have happened to leases of some partitions: an execution was taken from its worker,
// or stopped. It hears of those that this process handed out; of others a renewal tells. Make it with
// [Gateway.Watch].
type Watch struct {
	partitions map[uint16]bool
	news       chan struct{} // has room for one
}

// Watch begins to listen; end ends that. What was told before a renewal is known to the renewal: so watch first.
func (g *Gateway) Watch(partitions map[uint16]bool) (w *Watch, end func()) {
	w = &Watch{partitions, make(chan struct{}, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.begin.Do(g.start)
	}
	g.watch[w] = true
	return w, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watch, w)
	}
}

// Watched is how many watches there are.
func (g *Gateway) Watched() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.watch)
}

// told has one value for all that was told since the last one was taken; nil, of no watch, never has any.
func (w *Watch) told() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.news
}

// tell tells those who watch a partition. It does not block.
func (g *Gateway) tell(partition uint16) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := range g.watch {
		if w.partitions[partition] {
			select {
			case w.news <- struct{}{}:
			default:
			}
		}
	}
}

// idle is a claim that takes nothing.
func (g *Gateway) idle(ctx context.Context, q Request) error {
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	select {
	case <-q.Watch.told():
	case <-timer.C:
	case <-g.life.Done():
		return flowfabric.ErrDraining
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
