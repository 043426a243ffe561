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

// SetLane changes a lane in every partition (lua/operate/ff_set_lane.lua); what is empty stays as it is. Claims see it
// at once; what runs goes on. The answers are in the order of partitions, each with its own error; the call may be
// repeated.
func (e *Engine) SetLane(ctx context.Context, q wire.SetLane) []InPartition[wire.SetLaneReply] {
	return inEach(e, func(partition uint16) (wire.SetLaneReply, bool, error) {
		return ask[wire.SetLaneReply](ctx, e, partition, q)
	})
}

// inEach asks all partitions, some at the same time. The answers are in their order.
func inEach[R any](e *Engine, ask func(partition uint16) (_ R, already bool, _ error)) []InPartition[R] {
	return forEach(e, func(partition uint16) InPartition[R] {
		r, already, err := ask(partition)
		return InPartition[R]{partition, already, r, err}
	})
}

// forEach is inEach for answers of any kind.
func forEach[T any](e *Engine, ask func(partition uint16) T) []T {
	out := make([]T, e.partitions)
	p := pool.New().WithMaxGoroutines(laneCalls)
	for i := range e.partitions {
		p.Go(func() { out[i] = ask(i) })
	}
	p.Wait()
	return out
}

// Lanes lists the lanes of every partition, by namespace and name (lua/operate/ff_list_lanes.lua).
func (e *Engine) Lanes(ctx context.Context) []InPartition[[]Lane] {
	return inEach(e, func(partition uint16) (out []Lane, _ bool, _ error) {
		at := map[[2]string]int{}
		for cursor, more := "", true; more; more = cursor != "" {
			r, _, err := ask[wire.ListLanesReply](ctx, e, partition, wire.ListLanes{Cursor: cursor})
			if err != nil {
				return out, false, err
			}
			cursor = r.Cursor
			for _, x := range r.Lanes {
				l := Lane{ListLanesLane: x}
				if l.Retention, err = valid.UnpackRetentions(x.Retention); err != nil {
					return out, false, err
				}
				name := [2]string{l.Namespace, l.Lane}
				if i, known := at[name]; known {
					out[i].Routes += l.Routes
					out[i].Waiting += l.Waiting
					continue
				}
				at[name] = len(out)
				out = append(out, l)
			}
		}
		slices.SortFunc(out, func(a, b Lane) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Lane, b.Lane))
		})
		return out, false, nil
	})
}
