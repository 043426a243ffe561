package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// sleep is drain with handlers that take their time, for several times and numbers of handlers at once. So many
// handlers can do handlers / time jobs a second at most; what part of that a system reaches is what its slots are
// busy.
func sleep(ctx context.Context, b *Bench) error {
	usualItems, usualHandlers, usualWork := b.Items, b.Concurrency, b.Work
	defer func() { b.Items, b.Concurrency, b.Work = usualItems, usualHandlers, usualWork }()
	for _, b.Concurrency = range b.Handlers {
		for _, b.Work = range b.Sleeps {
			b.Items = sleepItems(usualItems, b.Concurrency, b.Work)
			if err := b.open(ctx); err != nil {
				return err
			}
			if err := b.fill(ctx, b.Items); err != nil {
				return err
			}
			variant := fmt.Sprintf("%v, %d handlers", b.Work, b.Concurrency)
			f, commands, err := b.worked(ctx, b.Items, func(*counter) error { return nil })
			if err != nil {
				return fmt.Errorf("%s: %w", variant, err)
			}
			f[measure.OfIdeal] = f[measure.Throughput] * b.Work.Seconds() / float64(b.Concurrency)
			b.done(variant, f, commands)
		}
	}
	return nil
}

// sleepItems is how many jobs are done: what takes a second at best, within bounds, in tens of whole rounds of all
// handlers, so that the last round, like the warm-up, leaves none of them idle.
func sleepItems(usual, handlers int, work time.Duration) int {
	rounds := min(int(time.Second/work), usual/handlers) / warmShare * warmShare
	return max(rounds, 2*warmShare) * handlers
}

// atOnce counts handlers that run.
type atOnce struct{ now, most atomic.Int64 }

func (a *atOnce) begin() {
	n := a.now.Add(1)
	for most := a.most.Load(); n > most && !a.most.CompareAndSwap(most, n); most = a.most.Load() {
	}
}

func (a *atOnce) end() { a.now.Add(-1) }
