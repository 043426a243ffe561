package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// partitionCalls is how many partitions are asked at the same time.
const partitionCalls = 16

// Queue is what waits in one lane for workers of one kind and capabilities, in all partitions together.
type Queue struct {
	Namespace, Lane, Kind string
	Capabilities          []string // required of the worker
	State                 engine.LaneState
	Mixed                 bool      // partitions differ in the lane's state, see LaneInfo.Mixed; State is that of most
	Depth                 int       // how many wait
	Oldest                time.Time // creation of the oldest that waits, see engine.Queue; zero when nothing does
	Priority              int       // the highest of what is claimed next in a partition
	Retained              int       // executions in any state, until they are purged
	Drift                 string    // of rows that are damaged, "" for sound ones
	Partitions            []engine.Queue
}

// Queues tells what waits, for the client's namespace or those that the options name, by namespace, lane, kind and
// capabilities. Queues that are empty but have executions in other states are listed, too. When partitions do not answer, the
// queues are put together from the others, beside an error that names those.
//
// Errors: flowfabric.ErrInvalidInput before any call; ErrTransport, ErrPartitionFrozen and others by partition; [ErrClosed].
// Design §5, spec 50 §11, §14.
func (c *Client) Queues(ctx context.Context, opts ...ScopeOption) ([]Queue, error) {
	s, err := c.scope(opts)
	if c.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	byPartition := make([][]engine.Queue, c.store.Partitions())
	failed := c.eachPartition(func(p uint16) (err error) {
		byPartition[p], err = c.store.Queues(ctx, p)
		return err
	})
	found := map[string]*Queue{}
	for _, queues := range byPartition {
		for _, q := range queues {
			r := q.Route
			if !s.has(r.Namespace) && q.Drift == "" {
				continue
			}
			key := strings.Join([]string{r.Namespace, r.Lane, r.Kind, strings.Join(r.Capabilities, ","), q.Drift}, "\x1f")
			if found[key] == nil {
				found[key] = &Queue{Namespace: r.Namespace, Lane: r.Lane, Kind: r.Kind, Capabilities: r.Capabilities, Drift: q.Drift}
			}
			found[key].add(q)
		}
	}
	out := make([]Queue, 0, len(found))
	for _, q := range found {
		q.settle()
		out = append(out, *q)
	}
	slices.SortFunc(out, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Lane, b.Lane), strings.Compare(a.Kind, b.Kind),
			slices.Compare(a.Capabilities, b.Capabilities), strings.Compare(a.Drift, b.Drift))
	})
	return out, failed.sum("list queues", len(byPartition))
}

func (q *Queue) add(x engine.Queue) {
	q.Depth += x.Depth
	q.Retained += x.Retained
	q.Priority = max(q.Priority, x.Priority)
	if !x.Oldest.IsZero() && (q.Oldest.IsZero() || x.Oldest.Before(q.Oldest)) {
		q.Oldest = x.Oldest
	}
	q.Partitions = append(q.Partitions, x)
}

// settle finds the state that most partitions are in.
func (q *Queue) settle() {
	votes := map[engine.LaneState]int{}
	for _, x := range q.Partitions {
		votes[x.Lane]++
		if n, most := votes[x.Lane], votes[q.State]; q.State == "" || n > most {
			q.State = x.Lane
		}
	}
	q.Mixed = len(votes) > 1
}

// eachPartition makes a call to every partition, 16 at a time.
func (c *Client) eachPartition(call func(partition uint16) error) partitionErrors {
	errs := make([]error, c.store.Partitions())
	p := pool.New().WithMaxGoroutines(partitionCalls)
	for i := range c.store.Partitions() {
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
