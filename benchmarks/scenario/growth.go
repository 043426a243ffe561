package scenario

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// routeCounts and namespaceCounts are the numbers of routes and of namespaces that growth compares.
var (
	routeCounts     = []int{1, 10, 100, 1000}
	namespaceCounts = []int{1, 1000, 100_000}
)

// growth measures what submitting and working a fixed number of jobs costs while many others wait, on one route;
// then, with the least number waiting, on several routes; and then beside as many as there are namespaces at most, of
// one namespace and of several.
func growth(ctx context.Context, b *Bench) error {
	waiting := make([]string, len(b.Growth))
	for i, n := range b.Growth {
		waiting[i] = fmt.Sprintf("%d waiting", n)
	}
	err := b.across(waiting, func(i int, file filing) error {
		if err := b.open(ctx); err != nil {
			return err
		}
		return b.beside(ctx, b.Growth[i], bulk, file)
	})
	if err != nil {
		return err
	}
	if err := b.routes(ctx); err != nil {
		return err
	}
	return b.namespaces(ctx)
}

// bulk is how many jobs are submitted in a call where many are.
const bulk = 100

func (b *Bench) routes(ctx context.Context) error {
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
		return b.beside(ctx, b.Growth[0], bulk, file)
	})
}

// namespaces lets a job of each namespace wait, where there are most of them, and as many jobs where there are fewer.
func (b *Bench) namespaces(ctx context.Context) error {
	if _, ok := b.Store.(driver.Spacer); !ok {
		b.record("namespaces", Round{NotAvailable: "n/a: no namespaces"})
		return nil
	}
	waiting := min(b.Growth[len(b.Growth)-1], namespaceCounts[len(namespaceCounts)-1])
	var counts []int
	var names []string
	for _, n := range namespaceCounts {
		if n = min(n, waiting); !slices.Contains(counts, n) {
			counts, names = append(counts, n), append(names, fmt.Sprintf("namespaces: %d", n))
		}
	}
	return b.across(names, func(i int, file filing) error {
		if err := b.open(ctx); err != nil {
			return err
		}
		b.Store = b.Store.(driver.Spacer).Namespaces(counts[i])
		return b.beside(ctx, waiting, 1, file)
	})
}

// beside measures jobs that come and go beside others that wait, which came so many in a call: submitted one by one,
// in batches, and then worked.
func (b *Bench) beside(ctx context.Context, waiting, perCall int, file filing) error {
	if err := b.pile(ctx, waiting, perCall); err != nil {
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
	c := newCounter(n) // more jobs wait than it counts
	return b.working(ctx, driver.Worker{Handle: c.handle, Concurrency: b.Concurrency, Counts: true}, func() error {
		f, commands, err := b.measureSome(ctx, c)
		if err == nil {
			file("work", f, commands)
		}
		return err
	})
}

// pile submits n jobs, perCall at a time, and keeps only a part of them in its own memory.
func (b *Bench) pile(ctx context.Context, n, perCall int) error {
	producers := 4
	if perCall == 1 {
		producers = b.Concurrency
	}
	part := b.payloads(min(n, 100*bulk))
	for left := n; left > 0; left -= len(part) {
		part = part[:min(left, len(part))]
		if _, err := b.send(ctx, part, min(producers, (len(part)+perCall-1)/perCall), perCall); err != nil {
			return err
		}
	}
	return nil
}

// measureSome measures from the end of the warm-up until as many jobs are handled as count. Those that the worker has
// handled beyond them by the end of the measurement count as well.
func (b *Bench) measureSome(ctx context.Context, c *counter) (measure.Figures, map[string]driver.Command, error) {
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
