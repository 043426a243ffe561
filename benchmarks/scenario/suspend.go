package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// suspended parks jobs, weighs them, and then wakes one after the other: before the signal until the handler runs
// again.
func suspended(ctx context.Context, b *Bench) error {
	suspender, ok := b.Store.(driver.Suspender)
	if !ok {
		return b.lacks("jobs cannot wait for a signal")
	}
	n := b.warm() + b.Samples
	resumed := make(chan time.Time, n)
	wake, stop, perJob, err := b.park(ctx, suspender, n, func(int) { resumed <- time.Now() })
	if err != nil {
		return err
	}
	err = b.oneByOne(ctx, measure.Figures{measure.Parked: perJob}, resumed, func(i int) error { return wake(ctx, i) })
	return errors.Join(err, stop())
}

// park lets n jobs wait for a signal, and weighs them: bytes of the server's memory per job, without payload. A few
// come first and are woken, so that routes, connections and scripts do not weigh on those that are counted.
func (b *Bench) park(ctx context.Context, suspender driver.Suspender, n int,
	resumed func(int)) (wake func(context.Context, int) error, stop func() error, perJob float64, err error) {
	first := make(chan struct{}, b.Partitions)
	wake, stop, err = suspender.Suspend(ctx, b.payloads(1)[0], b.Partitions, func(int) { first <- struct{}{} })
	if err != nil {
		return nil, nil, 0, err
	}
	for i := range b.Partitions {
		if err := wake(ctx, i); err != nil {
			return nil, nil, 0, errors.Join(err, stop())
		}
		<-first
	}
	if err := stop(); err != nil {
		return nil, nil, 0, err
	}
	empty, err := b.Server.Memory(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if wake, stop, err = suspender.Suspend(ctx, b.payloads(1)[0], n, resumed); err != nil {
		return nil, nil, 0, err
	}
	full, err := b.Server.Memory(ctx)
	if err != nil {
		return nil, nil, 0, errors.Join(err, stop())
	}
	return wake, stop, (full-empty)/float64(n) - float64(b.Payload), nil
}
