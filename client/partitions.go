package client

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Partitions tells how every partition is, in order: who ticks it and whether that is overdue, whether it is frozen and why, how
// much waits for a time and since when something is due (engine.PartitionInfo.Lag). A partition that does not answer has its
// error in Err; the error names all of those.
//
// Errors: flowfabric.ErrTransport and others by partition; [ErrClosed]. Spec 50 §11, §14.
func (c *Client) Partitions(ctx context.Context) ([]engine.PartitionInfo, error) {
	if c.closed.Load() {
		return nil, fmt.Errorf("describe partitions: %w", ErrClosed)
	}
	out := make([]engine.PartitionInfo, c.store.Partitions())
	failed := c.eachPartition(func(p uint16) error {
		info, err := c.store.DescribePartition(ctx, p)
		info.Partition, info.Err = p, err
		out[p] = info
		return err
	})
	return out, failed.sum("describe partitions", len(out))
}
