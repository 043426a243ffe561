package admin

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// Partitions tells how every partition is, in order: which process ticks it and whether that is overdue, whether it
// is frozen and why, how much waits for a time and since when something is due. A partition that does not answer has
// its error in Err; the error names all of those.
//
// Errors: a [*PartitionsError]; client.ErrClosed.
func (a *Admin) Partitions(ctx context.Context) ([]flowfabric.Partition, error) {
	if a.closed() {
		return nil, fmt.Errorf("describe partitions: %w", client.ErrClosed)
	}
	out := make([]flowfabric.Partition, a.store.Partitions())
	failed := a.eachPartition(func(p uint16) error {
		info, err := a.store.DescribePartition(ctx, p)
		if err != nil {
			info = flowfabric.Partition{Partition: p, Err: err, Error: prose.Message(err)}
		}
		out[p] = info
		return err
	})
	return out, failed.sum("describe partitions", len(out))
}

// Freeze makes a partition refuse every call (flowfabric.ErrPartitionFrozen) until [Admin.Thaw], so that its slot can
// be moved key by key. Workers, submits and waits repeat what is refused; leases go on running out. The partition
// keeps why. Freezing twice is no error.
//
// Errors: flowfabric.ErrInvalidInput for a partition that the store does not have; ErrTransport; client.ErrClosed.
func (a *Admin) Freeze(ctx context.Context, partition uint16, opts ...flowfabric.ActOption) error {
	act, err := a.act(opts)
	if err = cmp.Or(a.conn.Closed(), err); err == nil {
		err = a.store.FreezePartition(act.Noted(ctx, "freeze", "partition", strconv.Itoa(int(partition))), partition)
	}
	if err != nil {
		return fmt.Errorf("freeze partition %d: %w", partition, err)
	}
	return nil
}

// Thaw ends a freeze. Thawing a partition that is not frozen is no error. Errors: those of [Admin.Freeze].
func (a *Admin) Thaw(ctx context.Context, partition uint16, opts ...flowfabric.ActOption) error {
	act, err := a.act(opts)
	if err = cmp.Or(a.conn.Closed(), err); err == nil {
		err = a.store.ThawPartition(act.Noted(ctx, "thaw", "partition", strconv.Itoa(int(partition))), partition)
	}
	if err != nil {
		return fmt.Errorf("thaw partition %d: %w", partition, err)
	}
	return nil
}
