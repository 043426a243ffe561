package admission

import (
	"context"
	"errors"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

const (
	maxItems   = flowfabric.MaxBatch // releases or refunds of one call
	maxWaiters = 256                 // routes of one call
	// maxRounds bounds how often a freed slot is offered on, when nothing waits any more where it was offered.
	maxRounds = 8
)

// Waker opens routes that gates had closed.
type Waker interface {
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
}

// Outbox is what delivering needs of the server; *engine.Engine is one.
type Outbox interface {
	Waker
	ReadOutbox(ctx context.Context, partition uint16) (entries []engine.OutboxEntry, total int, err error)
	TrimOutbox(ctx context.Context, partition uint16, ids []string) (left int, err error)
	ReleaseHolds(ctx context.Context, items []engine.Released) (released int, wake []engine.Waiter, err error)
	ReleaseUsage(ctx context.Context, by string, items []engine.Refund) (released []bool, wake []engine.Waiter, err error)
	BudgetPartitions() uint16
	QuotaPartitions() uint16
}

// Deliver tells budgets and quotas what a partition's outbox has for them, about 100 entries of it, opens the routes that wait for what
// became free, and forgets what was delivered. It returns how many entries that were; 0 when there is nothing. Whoever owns
// the partition's tick calls it; that two do, or one again after an error or a crash, is harmless. With an error of a budget's or quota's
// partition the entries stay.
func Deliver(ctx context.Context, box Outbox, partition uint16) (delivered int, err error) {
	entries, _, err := box.ReadOutbox(ctx, partition)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	var holds []engine.Released
	var refunds []engine.Refund
	ids := make([]string, len(entries))
	for i, x := range entries {
		ids[i] = x.ID
		holds = append(holds, x.Released...)
		refunds = append(refunds, x.Refunds...)
	}
	if err := errors.Join(releaseUsage(ctx, box, refunds), releaseHolds(ctx, box, holds)); err != nil {
		return 0, err
	}
	for batch := range slices.Chunk(ids, maxItems) {
		if _, err := box.TrimOutbox(ctx, partition, batch); err != nil {
			return delivered, err
		}
		delivered += len(batch)
	}
	return delivered, nil
}

// releaseHolds tells each partition of quotas what concerns it, in order. One that does not answer keeps no other waiting.
func releaseHolds(ctx context.Context, box Outbox, items []engine.Released) (failed error) {
	for _, batch := range batches(items, box.QuotaPartitions(), func(x engine.Released) string { return x.Quota }) {
		// Where nothing waits any more nobody takes the slot: the same call again offers it to others.
		for idle, round := 1, 0; idle > 0 && round < maxRounds; round++ {
			_, waiters, err := box.ReleaseHolds(ctx, batch)
			if err != nil && !absent(err) {
				failed = errors.Join(failed, err)
			}
			idle, _ = wake(ctx, box, waiters) // what is not woken opens by itself
		}
	}
	return failed
}

// releaseUsage does so for budgets.
func releaseUsage(ctx context.Context, box Outbox, items []engine.Refund) (failed error) {
	for _, batch := range batches(items, box.BudgetPartitions(), func(x engine.Refund) string { return x.Budget }) {
		_, waiters, err := box.ReleaseUsage(ctx, "outbox", batch)
		if err != nil && !absent(err) {
			failed = errors.Join(failed, err)
		}
		_, _ = wake(ctx, box, waiters)
	}
	return failed
}

// absent tells that there is no such partition, so nothing that could be told.
func absent(err error) bool { return errors.Is(err, flowfabric.ErrPartitionMissing) }

// batches groups items by partition, in order, at most a call's worth in each.
func batches[T any](items []T, partitions uint16, name func(T) string) (out [][]T) {
	by := map[uint16][]T{}
	var order []uint16
	for _, x := range items {
		p := flowfabric.GatePartition(name(x), partitions)
		if by[p] == nil {
			order = append(order, p)
		}
		by[p] = append(by[p], x)
	}
	for _, p := range order {
		out = slices.AppendSeq(out, slices.Chunk(by[p], maxItems))
	}
	return out
}

// wake opens routes and returns in how many of them nothing waits. All partitions are tried.
func wake(ctx context.Context, w Waker, waiters []engine.Waiter) (idle int, err error) {
	by := map[uint16][]uint64{}
	for _, x := range waiters {
		by[x.Partition] = append(by[x.Partition], x.Route)
	}
	for partition, routes := range by {
		for batch := range slices.Chunk(routes, maxWaiters) {
			waiting, e := w.OpenRoutes(ctx, partition, batch)
			err = errors.Join(err, e)
			for _, some := range waiting {
				if !some {
					idle++
				}
			}
		}
	}
	return idle, err
}

// Wake opens the routes that a change of a budget or a quota returned: there may be room for what waits there. An error leaves
// some closed; they open by themselves, after 30 s at most.
func Wake(ctx context.Context, w Waker, waiters []engine.Waiter) error {
	_, err := wake(ctx, w, waiters)
	return err
}
