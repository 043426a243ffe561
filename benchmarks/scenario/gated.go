package scenario

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// gated measures work that asks gates, which refuse nothing, beside work that does not: a queue that is emptied, and
// one job at a time on an idle worker. The last variant is reports of use, from as many goroutines as -c says, to one
// budget.
func gated(ctx context.Context, b *Bench) error {
	g, ok := b.Store.(driver.Gater)
	if !ok {
		return b.lacks("no budgets and quotas")
	}
	for _, v := range []struct {
		name            string
		budgets, quotas []string
	}{
		{"no gates", nil, nil},
		{"a budget", []string{"b"}, nil},
		{"a quota", nil, []string{"q"}},
		{"both", []string{"b"}, []string{"q"}},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		g = b.Store.(driver.Gater)
		if err := g.Gate(ctx, v.budgets, v.quotas); err != nil {
			return err
		}
		submit := func(payloads [][]byte) error { return g.SubmitGated(ctx, v.budgets, v.quotas, payloads) }
		if err := submit(b.payloads(b.Items)); err != nil {
			return err
		}
		if err := b.drained(ctx, v.name); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if err := b.singly(ctx, v.name+", one at a time", submit); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return b.reports(ctx)
}

// drained measures one worker that handles all items that wait.
func (b *Bench) drained(ctx context.Context, variant string) error {
	c := newCounter(b.Items)
	return b.working(ctx, driver.Worker{Handle: c.handle, Concurrency: b.Concurrency}, func() error {
		f, commands, err := b.measureWork(ctx, c, variant)
		if err == nil {
			b.done(variant, f, commands)
		}
		return err
	})
}

// singly is latency of jobs that submit puts in.
func (b *Bench) singly(ctx context.Context, variant string, submit func([][]byte) error) error {
	began := make(chan time.Time, 1)
	worker := driver.Worker{Concurrency: b.Concurrency, Handle: func(context.Context, []byte) { began <- time.Now() }}
	return b.working(ctx, worker, func() error {
		all := b.payloads(b.warm() + b.Samples)
		return b.oneByOneAs(ctx, variant, nil, began, func(i int) error { return submit(all[i : i+1]) })
	})
}

// reports measures reports to one budget.
func (b *Bench) reports(ctx context.Context) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	g := b.Store.(driver.Gater)
	if err := g.Gate(ctx, []string{"b"}, nil); err != nil {
		return err
	}
	m, err := b.start(ctx, "reports")
	if err != nil {
		return err
	}
	each := max(b.Items/b.Concurrency, 1)
	took := make([][]time.Duration, b.Concurrency)
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for i := range b.Concurrency {
		p.Go(func(ctx context.Context) error {
			for n := range each {
				began := time.Now()
				if err := g.Report(ctx, "b", strconv.Itoa(i)+"-"+strconv.Itoa(n)); err != nil {
					return fmt.Errorf("report: %w", err)
				}
				took[i] = append(took[i], time.Since(began))
			}
			return nil
		})
	}
	if err := p.Wait(); err != nil {
		return err
	}
	f, commands, err := m.Stop(ctx, each*b.Concurrency)
	if err != nil {
		return err
	}
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	f.Latencies(all)
	b.done(fmt.Sprintf("reports, %d goroutines", b.Concurrency), f, commands)
	return nil
}
