package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Subscribe delivers the messages of channels to fn until ctx ends or the connection is lost, and returns why. The
// caller resubscribes and catches up by reading: messages are hints, never the only copy. ready is called once all
// channels are confirmed. fn gets one message at a time, in order unless other subscribers share some of the channels,
// and none after the return; neither it nor ready may block or subscribe. In a cluster all channels must belong to the
// given partition; elsewhere they may be mixed. All subscriptions of an engine share one connection per server.
func (e *Engine) Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
	fn func(channel, message string)) error {
	channels = slices.Compact(slices.Sorted(slices.Values(channels)))
	if len(channels) == 0 || partition >= e.partitions {
		return fmt.Errorf("subscribe: %w: %d channels of partition %d", flowfabric.ErrInvalidInput, len(channels),
			partition)
	}
	client, err := e.subs(ctx)
	if err != nil {
		return err
	}
	if e.server.cluster {
		if err := e.primary(ctx, client, partition); err != nil {
			return err
		}
	}
	l := &listener{left: len(channels), ready: ready, fn: fn, lost: make(chan error, 1)}
	carry := func(inner context.Context, g *group) { e.carry(inner, client, g) }
	if err := e.channels.join(ctx, l, channels, carry); err != nil {
		return err
	}
	defer e.channels.part(l, channels)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-l.lost:
		return err
	}
}

// primary makes sure that a subscription goes to the partition's primary. A replica would take it, too, and hand on
// what it hears over the cluster's bus, but then the primary counts no receiver, and takes the waiter behind a
// doorbell for dead. So while the driver's map of the cluster is out of date there is no subscribing.
func (e *Engine) primary(ctx context.Context, client rueidis.Client, partition uint16) error {
	root := e.roots[partition]
	// goes where the map says, is not redirected
	role, err := client.Do(ctx, client.B().Role().Build().SetSlot(root)).ToArray()
	if err != nil {
		return CallError("subscribe", err)
	}
	if name, _ := role[0].ToString(); name == "master" {
		return nil
	}
	client.Do(ctx, client.B().Exists().Key(root).Build()) // is redirected, which makes the driver draw a new map
	return fmt.Errorf("subscribe: %w: partition %d has a new primary", flowfabric.ErrTransport, partition)
}
