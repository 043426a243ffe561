package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// laneCalls is how many partitions are asked at the same time.
const laneCalls = 16

// InPartition is what one partition answered to what all were asked.
type InPartition[R any] struct {
	Partition uint16
	Already   bool // it was so before
	Reply     R
	Err       error
}

// Lane is what one partition knows of a lane. Since is of the state, zero when nobody said anything.
type Lane struct {
	wire.ListLanesLane
	Retention flowfabric.Retentions // 0 = the default
}

// PartitionLanes are the lanes of one partition, by namespace and name.
type PartitionLanes struct {
	Partition uint16
	Lanes     []Lane
	Err       error
}

// SetLane changes a lane in every partition (lua/operate/ff_set_lane.lua); what is empty stays as it is. Claims see it
// at once; what runs goes on. The answers are in the order of partitions, each with its own error; the call may be
// repeated.
func (e *Engine) SetLane(ctx context.Context, q wire.SetLane) []InPartition[wire.SetLaneReply] {
	return inEach(e, func(p uint16) InPartition[wire.SetLaneReply] {
		r, already, err := ask[wire.SetLaneReply](ctx, e, p, q)
		return InPartition[wire.SetLaneReply]{p, already, r, err}
	})
}

// inEach asks all partitions, some at the same time. The answers are in their order.
func inEach[T any](e *Engine, ask func(partition uint16) T) []T {
	out := make([]T, e.partitions)
	p := pool.New().WithMaxGoroutines(laneCalls)
	for i := range e.partitions {
		p.Go(func() { out[i] = ask(i) })
	}
	p.Wait()
	return out
}

// Lanes lists the lanes of every partition; each partition has its own error.
func (e *Engine) Lanes(ctx context.Context) []PartitionLanes {
	return inEach(e, func(partition uint16) PartitionLanes { return e.listLanes(ctx, partition) })
}

// listLanes reads the lanes of one partition (lua/operate/ff_list_lanes.lua).
func (e *Engine) listLanes(ctx context.Context, partition uint16) PartitionLanes {
	out := PartitionLanes{Partition: partition}
	at := map[[2]string]int{}
	for cursor, more := "", true; more; more = cursor != "" {
		r, _, err := ask[wire.ListLanesReply](ctx, e, partition, wire.ListLanes{Cursor: cursor})
		if err != nil {
			out.Err = err
			return out
		}
		cursor = r.Cursor
		for _, x := range r.Lanes {
			l := Lane{ListLanesLane: x}
			if l.Retention, out.Err = valid.UnpackRetentions(x.Retention); out.Err != nil {
				return out
			}
			name := [2]string{l.Namespace, l.Lane}
			if i, known := at[name]; known {
				out.Lanes[i].Routes += l.Routes
				out.Lanes[i].Waiting += l.Waiting
				continue
			}
			at[name] = len(out.Lanes)
			out.Lanes = append(out.Lanes, l)
		}
	}
	slices.SortFunc(out.Lanes, func(a, b Lane) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Lane, b.Lane))
	})
	return out
}
