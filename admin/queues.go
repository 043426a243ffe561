package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// partitionCalls is how many partitions are asked at the same time.
const partitionCalls = 16

// Queue is the work that waits in one lane for workers of one kind and capabilities, over all partitions.
type Queue struct {
	Namespace    string               `json:"namespace"`
	Lane         string               `json:"lane"`
	Kind         string               `json:"kind"`
	Capabilities []string             `json:"capabilities,omitempty" jsonschema:"capabilities that a worker needs"`
	State        flowfabric.LaneState `json:"lane_state" jsonschema:"state of the lane in most partitions: active, paused, draining or disabled"`
	Mixed        bool                 `json:"mixed,omitempty" jsonschema:"partitions differ in the lane's state"`
	Waiting      int                  `json:"waiting" jsonschema:"executions"`
	OldestAt     time.Time            `json:"oldest_at,omitzero" jsonschema:"creation of the oldest that waits"`
	Priority     int                  `json:"highest_priority" jsonschema:"highest priority of the next claims, over all partitions"`
	Stored       int                  `json:"stored" jsonschema:"executions in any state, until they are purged"`
	Drift        string               `json:"drift,omitempty" jsonschema:"damage of the rows"`

	states map[flowfabric.LaneState]int // how many partitions are in each
}

// Queues tells what waits in a namespace ("" is the client's, or [AllNamespaces]), by namespace, lane, kind and
// capabilities. Queues that are empty but have executions in other states are listed, too. When partitions do not
// answer, the queues are put together from the others, beside an error that names those.
//
// Errors: flowfabric.ErrInvalidInput before any call; a [*PartitionsError]; client.ErrClosed.
func (a *Admin) Queues(ctx context.Context, namespace string) ([]Queue, error) {
	namespace, err := a.namespace(namespace)
	if err = cmp.Or(a.conn.Closed(), err); err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	byPartition := make([][]engine.Queue, a.store.Partitions())
	failed := a.eachPartition(func(p uint16) (err error) {
		byPartition[p], err = a.store.Queues(ctx, p, one(namespace), 0)
		return err
	})
	found := map[string]*Queue{}
	for _, queues := range byPartition {
		for _, q := range queues {
			r := q.Route
			if !within(namespace, r.Namespace) && q.Drift == "" {
				continue
			}
			key := strings.Join([]string{r.Namespace, r.Lane, r.Kind, strings.Join(r.Capabilities, ","), q.Drift},
				"\x1f")
			if found[key] == nil {
				found[key] = &Queue{Namespace: r.Namespace, Lane: r.Lane, Kind: r.Kind, Capabilities: r.Capabilities,
					Drift: q.Drift, states: map[flowfabric.LaneState]int{}}
			}
			found[key].add(q)
		}
	}
	out := make([]Queue, 0, len(found))
	for _, q := range found {
		out = append(out, *q)
	}
	slices.SortFunc(out, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Lane, b.Lane),
			strings.Compare(a.Kind, b.Kind), slices.Compare(a.Capabilities, b.Capabilities),
			strings.Compare(a.Drift, b.Drift))
	})
	return out, failed.sum("list queues", len(byPartition))
}

func (q *Queue) add(x engine.Queue) {
	q.Waiting += x.Depth
	q.Stored += x.Retained
	q.Priority = max(q.Priority, x.Priority)
	if !x.Oldest.IsZero() && (q.OldestAt.IsZero() || x.Oldest.Before(q.OldestAt)) {
		q.OldestAt = x.Oldest
	}
	// the first state that most partitions are in
	state := flowfabric.LaneState(x.State)
	if q.states[state]++; q.State == "" || q.states[state] > q.states[q.State] {
		q.State = state
	}
	q.Mixed = len(q.states) > 1
}

// one is the namespace that the server is asked for, "" for all.
func one(namespace string) string {
	if namespace == AllNamespaces {
		return ""
	}
	return namespace
}

// eachPartition makes a call to every partition, 16 at a time.
func (a *Admin) eachPartition(call func(partition uint16) error) partitionErrors {
	errs := make([]error, a.store.Partitions())
	p := pool.New().WithMaxGoroutines(partitionCalls)
	for i := range a.store.Partitions() {
		p.Go(func() { errs[i] = call(i) })
	}
	p.Wait()
	var failed partitionErrors
	for i, err := range errs {
		if err != nil {
			failed.add(uint16(i), err)
		}
	}
	return failed
}
