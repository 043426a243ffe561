package engine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// Queue is what waits for one route in one partition.
type Queue struct {
	Partition uint16
	Route     Route
	Lane      LaneState // of the route's lane; only active and draining lanes hand out
	Depth     int       // how many wait
	Oldest    time.Time // creation of the oldest that waits; zero when nothing does
	Priority  int       // of what is claimed next
	Retained  int       // executions of the route in any state, ended ones too, until they are purged
	Drift     string    // what is wrong with the row; "" for a sound one
}

// Queues reads the queues of a partition by route (lua/operate/ff_read_queues.lua), in calls of at most 256 routes, empty ones
// too. Oldest is exact as long as at most 16 priorities wait in a queue; beyond that it is the oldest of the 15 highest and of
// priority 0. In a lane with ageing it is the oldest of the 16 that are next. Retained leaves out executions that were created before the partition was first booted with lanes.
func (e *Engine) Queues(ctx context.Context, partition uint16) ([]Queue, error) {
	var out []Queue
	for after, more := uint64(0), true; more; {
		r, err := e.call(ctx, fnReadQueues, partition, protocol, strconv.FormatUint(after, 10))
		if err != nil {
			return nil, err
		}
		r.instant()
		more = r.flag()
		last := after
		for range r.count(7) {
			q := Queue{Partition: partition}
			own := &reader{}
			last = r.unsigned()
			q.Route = route(last, r.text(), own)
			q.Route.ID = last
			q.Lane, q.Depth, q.Oldest = LaneState(r.text()), int(r.number()), r.instant()
			q.Priority, q.Retained = int(r.number()), int(r.number())
			if own.err != nil {
				q.Drift = own.err.Error()
			}
			out = append(out, q)
		}
		if err := r.fail(); err != nil {
			return nil, err
		}
		if more && last <= after {
			return nil, fmt.Errorf("%s: %w: more is promised behind nothing", fnReadQueues.name, denied.Reply)
		}
		after = last
	}
	return out, nil
}
