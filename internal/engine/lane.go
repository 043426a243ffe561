package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// laneCalls is how many partitions are asked at the same time.
const laneCalls = 16

// LaneChange is what an operator wants of a lane. Zero fields leave things as they are.
type LaneChange struct {
	State flowfabric.LaneState
	// Retention is for how long executions are kept that end so in the lane from now on, unless their policy says
	// otherwise: whole seconds, at most ten years; 0 is the default. Outcomes that are not in it stay as they are.
	Retention map[flowfabric.PublicState]time.Duration
	// Ageing is how much waiting outweighs one step of priority, so that work of low priority is not passed over for
	// ever: whole milliseconds, at most 24 h; 0 is the default, no waiting does; nil leaves it. It holds for what
	// becomes claimable from now on.
	Ageing *time.Duration
	By     string // who asks, at most 64 bytes
}

// LaneSet is the answer of one partition to a [LaneChange].
type LaneSet struct {
	Partition uint16
	Already   bool // it was so before
	State     flowfabric.LaneState
	Retention flowfabric.Retentions // 0 = the default
	Routes    int                   // of the lane in this partition
	Err       error
}

// Lane is what one partition knows of a lane.
type Lane struct {
	Namespace, Name string
	State           flowfabric.LaneState
	Retention       flowfabric.Retentions // 0 = the default
	Since           time.Time             // of the state; zero when nobody said anything
	By              string
	Routes, Waiting int
	Ageing          time.Duration // what a step of priority is worth; 0 = no waiting outweighs one
	Weight          int           // of the namespace in the lane; 0 = the usual one, 1
}

// PartitionLanes are the lanes of one partition, by namespace and name.
type PartitionLanes struct {
	Partition uint16
	Lanes     []Lane
	Err       error
}

// SetLane changes a lane in every partition. Claims see it at once; what runs goes on. The answers are in the order of
// partitions, each with its own error; the call may be repeated.
func (e *Engine) SetLane(ctx context.Context, namespace, lane string, change LaneChange) []LaneSet {
	return inEach(e, func(partition uint16) LaneSet { return e.setLane(ctx, partition, namespace, lane, change) })
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

// setLane changes a lane in one partition (lua/operate/ff_set_lane.lua).
func (e *Engine) setLane(ctx context.Context, partition uint16, namespace, lane string, change LaneChange) LaneSet {
	out, keep := LaneSet{Partition: partition}, ""
	if len(change.Retention) > 0 {
		parts := make([]string, 4)
		for i, outcome := range []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed, flowfabric.Cancelled,
			flowfabric.Expired} {
			d, said := change.Retention[outcome]
			if d%time.Second != 0 {
				out.Err = fmt.Errorf("%s: %w: retention %s is not whole seconds", fnSetLane.name,
					flowfabric.ErrInvalidInput, d)
				return out
			}
			if said {
				parts[i] = strconv.FormatInt(int64(d/time.Second), 10)
			}
		}
		keep = strings.Join(parts, "/")
	}
	if change.Ageing != nil && *change.Ageing%time.Millisecond != 0 {
		out.Err = fmt.Errorf("%s: %w: ageing %s is not whole milliseconds", fnSetLane.name,
			flowfabric.ErrInvalidInput, *change.Ageing)
		return out
	}
	r, already, err := ask[wire.SetLaneReply](ctx, e, partition, wire.SetLane{Namespace: namespace, Lane: lane,
		State: string(change.State), Retention: keep, By: change.By, Ageing: change.Ageing})
	if err == nil {
		out.Retention, err = valid.UnpackRetentions(r.Retention)
	}
	out.Already, out.State, out.Routes, out.Err = already, flowfabric.LaneState(r.State), r.Routes, err
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
			l := Lane{Namespace: x.Namespace, Name: x.Lane, State: flowfabric.LaneState(x.State), Since: x.Since,
				By:     x.By,
				Routes: x.Routes, Waiting: x.Waiting, Ageing: x.Ageing, Weight: x.Weight}
			if l.Retention, out.Err = valid.UnpackRetentions(x.Retention); out.Err != nil {
				return out
			}
			name := [2]string{l.Namespace, l.Name}
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
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}
