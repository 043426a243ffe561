package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Queue is what waits for one route in one partition: State is of the route's lane, of which only active and draining
// ones hand out; Oldest is the creation of the oldest that waits, zero when nothing does; Priority is of what is
// claimed next; Retained counts executions of the route in any state, ended ones too, until they are purged.
type Queue struct {
	wire.ReadQueuesQueue
	Route Route
	Drift string // what is wrong with the row; "" for a sound one
}

// Queues reads the queues of a partition by route (lua/operate/ff_read_queues.lua), of one namespace unless it is "",
// in calls of about 100 routes, empty ones too; with most not 0 no further calls follow once there are that many.
// Oldest is exact as long as at most 16 priorities wait in a queue; beyond that it is the oldest of the 15 highest
// and of priority 0. In a lane with ageing it is the oldest of the 16 that are next.
func (e *Engine) Queues(ctx context.Context, partition uint16, namespace string, most int) ([]Queue, error) {
	found := map[uint64]Queue{}
	for cursor, more := "", true; more; more = cursor != "" && (most == 0 || len(found) < most) {
		r, _, err := ask[wire.ReadQueuesReply](ctx, e, partition, wire.ReadQueues{Cursor: cursor, Namespace: namespace})
		if err != nil {
			return nil, err
		}
		cursor = r.Cursor
		for _, x := range r.Queues {
			q, own, id := Queue{ReadQueuesQueue: x}, &reader{}, uint64(x.Route)
			q.Route = route(id, x.Row, own)
			q.Route.ID = id
			if own.Err != nil {
				q.Drift = own.Err.Error()
			}
			found[id] = q
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Queue) int { return cmp.Compare(a.Route.ID, b.Route.ID) }),
		nil
}
