package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// suspended parks jobs, weighs them, and then wakes one after the other: before the signal until the handler runs again.
func suspended(ctx context.Context, b *Bench) error {
	suspender, ok := b.Store.(driver.Suspender)
	if !ok {
		return b.lacks("jobs cannot wait for a signal")
	}
	warm := max(b.Samples/warmShare, 1)
	n := warm + b.Samples
	// A few come first, so that routes, connections and scripts do not weigh on those that are counted.
	first := make(chan struct{}, b.Partitions)
	wake, stop, err := suspender.Suspend(ctx, b.payloads(1)[0], b.Partitions, func(int) { first <- struct{}{} })
	if err != nil {
		return err
	}
	for i := range b.Partitions {
		if err := wake(ctx, i); err != nil {
			return errors.Join(err, stop())
		}
		<-first
	}
	if err := stop(); err != nil {
		return err
	}
	empty, err := b.Server.Memory(ctx)
	if err != nil {
		return err
	}
	resumed := make(chan time.Time, n)
	wake, stop, err = suspender.Suspend(ctx, b.payloads(1)[0], n, func(int) { resumed <- time.Now() })
	if err != nil {
		return err
	}
	full, err := b.Server.Memory(ctx)
	if err == nil {
		err = b.wakeAll(ctx, wake, warm, n, resumed, (full-empty)/float64(n)-float64(b.Payload))
	}
	return errors.Join(err, stop())
}

// wakeAll signals n jobs, one at a time with a rest between them, and measures those after the first warm ones.
func (b *Bench) wakeAll(ctx context.Context, wake func(context.Context, int) error, warm, n int, resumed <-chan time.Time, parked float64) error {
	const rest = 3 * time.Millisecond
	var m *measure.Meter
	took := make([]time.Duration, 0, n-warm)
	for i := range n {
		if i == warm {
			var err error
			if m, err = b.start(ctx, ""); err != nil {
				return err
			}
		}
		if err := pause(ctx, rest); err != nil {
			return err
		}
		signalled := time.Now()
		if err := wake(ctx, i); err != nil {
			return err
		}
		select {
		case at := <-resumed:
			if i >= warm {
				took = append(took, at.Sub(signalled))
			}
		case <-ctx.Done():
			return fmt.Errorf("job %d has not gone on: %w", i, context.Cause(ctx))
		}
	}
	f, commands, err := m.Stop(ctx, len(took))
	if err != nil {
		return err
	}
	delete(f, measure.Throughput) // set by the pauses
	f[measure.Parked] = parked
	f.Latencies(took)
	b.done("", f, commands)
	return nil
}
