package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/child"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// processes is drain by workers in operating-system processes of their own.
func processes(ctx context.Context, b *Bench) error {
	for _, n := range []int{1, 2, 4} {
		if err := b.open(ctx); err != nil {
			return err
		}
		if err := b.fill(ctx, b.Items); err != nil {
			return err
		}
		if err := b.drainBy(ctx, n); err != nil {
			return fmt.Errorf("%d processes: %w", n, err)
		}
	}
	return nil
}

// drainBy measures n processes, which are ready before any of them begins.
func (b *Bench) drainBy(ctx context.Context, n int) error {
	c := newCounter(b.Items)
	each := make([]atomic.Int64, n)
	workers := make([]driver.Spawned, 0, n)
	stop := func() (err error) {
		for _, w := range workers {
			err = errors.Join(err, w.Stop())
		}
		workers = nil
		return err
	}
	for i := range n {
		w, err := b.spawn(ctx, func(jobs int) {
			each[i].Add(int64(jobs))
			c.add(jobs)
		})
		if err != nil {
			return errors.Join(fmt.Errorf("start process %d: %w", i+1, err), stop())
		}
		workers = append(workers, w)
	}
	pids := make([]int, n)
	begin := pool.New().WithErrors() // all at once
	for i, w := range workers {
		pids[i] = w.PID
		begin.Go(func() error { return w.Begin(ctx) })
	}
	if err := begin.Wait(); err != nil {
		return errors.Join(fmt.Errorf("let processes begin: %w", err), stop())
	}
	variant := fmt.Sprintf("%d processes", n)
	if n == 1 {
		variant = "1 process"
	}
	f, commands, err := b.measureWork(ctx, c, variant, pids...)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if handled := c.handled.Load(); handled != c.all {
		return fmt.Errorf("%d jobs were handled, want %d", handled, c.all)
	}
	shares := make([]float64, n)
	for i := range each {
		shares[i] = float64(each[i].Load()) / float64(c.all)
	}
	f[measure.LeastShare], f[measure.MostShare] = slices.Min(shares), slices.Max(shares)
	delete(f, measure.AllocItem) // what the workers allocate is not known
	if err := b.retained(ctx, f); err != nil {
		return err
	}
	b.done(variant, f, commands)
	return nil
}

// spawn starts a worker in a process of its own, which is this program's unless the system has its own way.
func (b *Bench) spawn(ctx context.Context, handled func(n int)) (driver.Spawned, error) {
	if spawner, ok := b.Store.(driver.Spawner); ok {
		return spawner.Spawn(ctx, b.Concurrency, handled)
	}
	return child.Start(ctx, child.Task{System: b.System.Name(), URL: b.Server.URL(), Partitions: b.Partitions,
		Concurrency: b.Concurrency,
		Typed:       b.typed()}, handled)
}
