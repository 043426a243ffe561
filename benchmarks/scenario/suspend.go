package scenario

import (
	"context"
	"errors"
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
	n := b.warm() + b.Samples
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
		parked := measure.Figures{measure.Parked: (full-empty)/float64(n) - float64(b.Payload)}
		err = b.oneByOne(ctx, parked, resumed, func(i int) error { return wake(ctx, i) })
	}
	return errors.Join(err, stop())
}
