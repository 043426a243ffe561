package scenario

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// routeCounts are the numbers of routes that growth compares.
var routeCounts = []int{1, 10, 100, 1000}

// growth measures what submitting and working a fixed number of jobs costs while many others wait, on one route; and then, with
// the least number waiting, on several routes.
func growth(ctx context.Context, b *Bench) error {
	waiting := make([]string, len(b.Growth))
	for i, n := range b.Growth {
		waiting[i] = fmt.Sprintf("%d waiting", n)
	}
	err := b.across(waiting, func(i int, file filing) error {
		if err := b.open(ctx); err != nil {
			return err
		}
		return b.beside(ctx, b.Growth[i], file)
	})
	if err != nil {
		return err
	}
	if _, ok := b.Store.(driver.Router); !ok {
		b.record("routes", Round{NotAvailable: "n/a: no routes"})
		return nil
	}
	routes := make([]string, len(routeCounts))
	for i, n := range routeCounts {
		routes[i] = fmt.Sprintf("routes: %d", n)
	}
	return b.across(routes, func(i int, file filing) error {
		if err := b.open(ctx); err != nil {
			return err
		}
		b.Store = b.Store.(driver.Router).Routes(routeCounts[i])
		return b.beside(ctx, b.Growth[0], file)
	})
}

// beside measures jobs that come and go beside others that wait: submitted one by one, in batches, and then worked.
func (b *Bench) beside(ctx context.Context, waiting int, file filing) error {
	const bulk = 100
	if err := b.pile(ctx, waiting, bulk); err != nil {
		return fmt.Errorf("fill the queue: %w", err)
	}
	n := max(min(b.Items, b.Growth[0]/2), 1) // the same beside few as beside many
	for _, v := range []struct {
		name    string
		perCall int
	}{
		{"submit", 1},
		{fmt.Sprintf("submit %d at a time", bulk), bulk},
	} {
		f, commands, err := b.measureSubmit(ctx, v.name, n, 1, v.perCall)
		if err != nil {
			return err
		}
		file(v.name, f, commands)
	}
	c := &crowd{warm: int64(max(n/warmShare, 1)), all: int64(n), warmed: make(chan struct{}), finished: make(chan struct{})}
	return b.working(ctx, driver.Worker{Handle: c.handle, Concurrency: b.Concurrency, Counts: true}, func() error {
		f, commands, err := b.measureSome(ctx, c)
		if err == nil {
			file("work", f, commands)
		}
		return err
	})
}

// crowd is a no-op handler of a queue in which more jobs wait than are counted.
type crowd struct {
	warm, all        int64
	handled          atomic.Int64
	warmed, finished chan struct{} // closed by the job of that number
}

func (c *crowd) handle(context.Context, []byte) {
	n := c.handled.Add(1)
	if n == c.warm {
		close(c.warmed)
	}
	if n == c.all {
		close(c.finished)
	}
}

// await waits for a channel of the crowd.
func (c *crowd) await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("after %d of %d jobs: %w", c.handled.Load(), c.all, context.Cause(ctx))
	}
}

// pile submits n jobs, bulk at a time, and keeps only a part of them in its own memory.
func (b *Bench) pile(ctx context.Context, n, bulk int) error {
	const producers = 4
	part := b.payloads(min(n, 100*bulk))
	for left := n; left > 0; left -= len(part) {
		part = part[:min(left, len(part))]
		if _, err := b.send(ctx, part, min(producers, (len(part)+bulk-1)/bulk), bulk); err != nil {
			return err
		}
	}
	return nil
}

// measureSome measures from the end of the warm-up until as many jobs are handled as count. Those that the worker has handled beyond them
// by the end of the measurement count as well.
func (b *Bench) measureSome(ctx context.Context, c *crowd) (measure.Figures, map[string]driver.Command, error) {
	if err := c.await(ctx, c.warmed); err != nil {
		return nil, nil, err
	}
	m, err := b.startHot(ctx, "work")
	if err != nil {
		return nil, nil, err
	}
	before := c.handled.Load()
	if err := c.await(ctx, c.finished); err != nil {
		return nil, nil, err
	}
	return m.Stop(ctx, int(c.handled.Load()-before))
}
