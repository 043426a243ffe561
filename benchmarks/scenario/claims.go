package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// claimants is how many claim at once, as a worker does.
const claimants = 4

// claims measures how many executions are handed out, and nothing else of a worker: in calls of 1, 8, 32 and 100,
// settled afterwards or left alone.
func claims(ctx context.Context, b *Bench) error {
	if _, ok := b.Store.(driver.Claimer); !ok {
		return b.lacks("jobs cannot be claimed without running them")
	}
	for _, settle := range []bool{false, true} {
		for _, batch := range []int{1, 8, 32, 100} {
			if err := b.open(ctx); err != nil {
				return err
			}
			variant := fmt.Sprintf("%d a call", batch)
			if settle {
				variant += ", settled"
			}
			if err := b.claim(ctx, variant, batch, settle); err != nil {
				return fmt.Errorf("%s: %w", variant, err)
			}
		}
	}
	return nil
}

func (b *Bench) claim(ctx context.Context, variant string, batch int, settle bool) error {
	items := b.Items
	if batch == 1 {
		items = max(items/4, 1)
	}
	if err := b.fill(ctx, items); err != nil {
		return err
	}
	var claimed atomic.Int64
	took := make([][]time.Duration, claimants)
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	var m *measure.Meter
	start := make(chan struct{})
	for i := range claimants {
		claim, err := b.Store.(driver.Claimer).Claimant(ctx, i, claimants, settle)
		if err != nil {
			return err
		}
		p.Go(func(ctx context.Context) error {
			<-start
			for {
				began := time.Now()
				n, err := claim(ctx, batch)
				if err != nil || n == 0 {
					return err
				}
				took[i] = append(took[i], time.Since(began))
				claimed.Add(int64(n))
			}
		})
	}
	m, err := b.start(ctx, variant)
	close(start)
	if err := p.Wait(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	f, commands, err := m.Stop(ctx, int(claimed.Load()))
	if err != nil {
		return err
	}
	if n := claimed.Load(); n != int64(items) {
		return fmt.Errorf("%d jobs were claimed, want %d", n, items)
	}
	f.Latencies(slices.Concat(took...))
	b.done(variant, f, commands)
	return nil
}
