package runtime

import (
	"encoding/binary"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxCompleteBytes keeps a batch of results below the call's limit, with room for its fences.
const maxCompleteBytes = 900 << 10

// completer batches completions per partition without a timer: while one call is in flight, later completions
// of that partition wait and go together with the next. A lone completion is sent at once.
type completer struct {
	send     sender
	answered func(batch []completion, answers []engine.Settled, err error) // must not block

	calls  atomic.Int32 // under way
	mu     sync.Mutex
	queues map[uint16]*completions
}

// sender makes one call, and answers as many as there are items, or with an error. dependants: the end of some may
// make others claimable. It gives back, or uses, the slots that were kept.
type sender func(partition uint16, items []engine.Completion, dependants bool, kept int) ([]engine.Settled, error)

type completions struct {
	busy    bool // somebody is sending
	waiting []completion
	spare   []completion        // the memory of a batch that was answered
	items   []engine.Completion // of the batch under way; who sends has it
}

// completion is one job that waits to be settled.
type completion struct {
	job        *job
	item       engine.Completion
	answer     chan error // capacity 1; nil when nobody waits
	dependants bool       // its end may make others claimable in its partition: it is a member of a flow
	kept       bool       // its slot is reserved for what the call claims
}

func newCompleter(send sender, answered func([]completion, []engine.Settled, error)) *completer {
	return &completer{send: send, answered: answered, queues: map[uint16]*completions{}}
}

// complete settles one execution, and tells answered of it. It returns at once, unless nobody is sending for its
// partition: then the caller sends, until nothing waits there.
func (c *completer) complete(own completion) {
	partition := own.item.Fence.Execution.Partition()
	c.mu.Lock()
	q := c.queues[partition]
	if q == nil {
		q = &completions{}
		c.queues[partition] = q
	}
	q.waiting = append(q.waiting, own)
	lead := !q.busy
	q.busy = true
	c.mu.Unlock()
	if !lead {
		return
	}
	c.gather(q)
	for batch := c.next(q, nil); batch != nil; batch = c.next(q, batch) {
		dependants, kept := false, 0
		for i := range batch {
			q.items, dependants = append(q.items, batch[i].item), dependants || batch[i].dependants
			if batch[i].kept {
				kept++
			}
		}
		c.calls.Add(1)
		answers, err := c.send(partition, q.items, dependants, kept)
		c.calls.Add(-1)
		c.answered(batch, answers, err)
		clear(q.items)
		q.items = q.items[:0]
	}
}

// gather lets handlers that end at the same moment join a batch: as long as others that are ready to run bring some.
func (c *completer) gather(q *completions) {
	for before, n := 0, 1; n > before && n < limits.MaxBatch; {
		before = n
		goruntime.Gosched()
		c.mu.Lock()
		n = len(q.waiting)
		c.mu.Unlock()
	}
}

// next takes the next batch, or nil and the lead from the caller. answered is the memory of the one before.
func (c *completer) next(q *completions, answered []completion) []completion {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(answered)
	q.spare = answered[:0]
	if len(q.waiting) == 0 {
		q.busy = false
		q.waiting, q.spare = q.spare, nil
		return nil
	}
	return q.take()
}

// take removes the next batch from the queue: at least one item, at most a call's worth, and no execution twice. An
// execution that was lost and claimed again here may have two handlers that end at once, under different fences; the
// server refuses a call that names both, so the later one begins the next batch.
func (q *completions) take() []completion {
	n, bytes := 0, 0
	var marks [limits.MaxBatch]uint64 // of the executions in it
	for i := range q.waiting {
		e := &q.waiting[i]
		id := ids.UUID(e.item.Fence.Execution)
		mark := binary.BigEndian.Uint64(id[8:])
		bytes += len(e.item.Result)
		if n == limits.MaxBatch || n > 0 && bytes > maxCompleteBytes ||
			slices.Contains(marks[:n], mark) && q.names(e.item.Fence.Execution, n) {
			break
		}
		marks[n] = mark
		n++
	}
	batch := q.waiting[:n:n]
	q.waiting, q.spare = append(q.spare, q.waiting[n:]...), nil
	return batch
}

// names tells whether one of the first n that wait is of this execution.
func (q *completions) names(id flowfabric.ExecutionID, n int) bool {
	return slices.ContainsFunc(q.waiting[:n], func(e completion) bool { return e.item.Fence.Execution == id })
}
