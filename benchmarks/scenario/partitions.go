package scenario

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// partitionCounts are those that partitions compares.
var partitionCounts = []int{1, 16, 64, 256}

// partitions measures many producers, a worker that empties the queue they filled, and idle workers, on stores of few
// and of many partitions.
func partitions(ctx context.Context, b *Bench) error {
	if _, ok := b.Store.(driver.Partitioned); !ok {
		return b.lacks("no partitions")
	}
	counts := make([]string, len(partitionCounts))
	for i, n := range partitionCounts {
		counts[i] = fmt.Sprintf("%d partitions", n)
	}
	return b.across(counts, func(i int, file filing) error {
		want := partitionCounts[i]
		if err := b.openAs(ctx, driver.Settings{Partitions: want, Typed: b.typed()}); err != nil {
			return err
		}
		if got := b.Store.(driver.Partitioned).Partitions(); got != want {
			return fmt.Errorf("the store has %d partitions, want %d", got, want)
		}
		submitted, commands, err := b.measureSubmit(ctx, "submit", b.Items, b.Concurrency, 1)
		if err != nil {
			return err
		}
		file("submit", steady(submitted), commands)
		drained, commands, err := b.worked(ctx, b.Items+b.Items/warmShare, func(*counter) error { return nil })
		if err != nil {
			return err
		}
		file("drain", steady(drained), commands)
		idle, commands, err := b.idling(ctx, "idle")
		if err != nil {
			return err
		}
		file("idle", idle, commands)
		return nil
	})
}

// steady leaves out the rates, which say something of idle workers only.
func steady(f measure.Figures) measure.Figures {
	for _, rate := range []string{measure.CallsSec, measure.CmdsSec, measure.ServerCPU, measure.ClientCPU} {
		delete(f, rate)
	}
	return f
}
