package runtime

import (
	goruntime "runtime"
	"slices"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

// maxCompleteBytes keeps a batch of results below the call's limit, with room for its fences.
const maxCompleteBytes = 900 << 10

// completer batches completions per partition without a timer: while one call is in flight, later completions
// of that partition wait and go together with the next. A lone completion is sent at once.
type completer struct {
	send func(partition uint16, items []engine.Completion) ([]engine.Settled, error)

	mu     sync.Mutex
	queues map[uint16]*completions
}

type completions struct {
	busy    bool // somebody is sending
	waiting []*completion
}

// completion is one waiting caller. lead tells it to send the next batch; else its answer is there.
type completion struct {
	item    engine.Completion
	turn    chan bool // capacity 1; true: lead
	settled engine.Settled
}

func newCompleter(send func(uint16, []engine.Completion) ([]engine.Settled, error)) *completer {
	return &completer{send: send, queues: map[uint16]*completions{}}
}

// complete settles one execution and returns when that is answered. The caller whose turn it is sends for all
// who wait, so no goroutine serves others for longer than one call.
func (c *completer) complete(item engine.Completion) (already bool, err error) {
	partition := item.Fence.Execution.Partition()
	own := &completion{item: item, turn: make(chan bool, 1)}
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
	if lead {
		goruntime.Gosched() // handlers that ended at the same moment join this batch
	} else {
		lead = <-own.turn
	}
	if lead {
		c.lead(partition, q)
	}
	return own.settled.Already, own.settled.Err
}

// lead sends the batch at the head of the queue, whose first item is the caller's own, tells its callers, and
// passes the lead on.
func (c *completer) lead(partition uint16, q *completions) {
	c.mu.Lock()
	batch := q.take()
	c.mu.Unlock()
	items := make([]engine.Completion, len(batch))
	for i, e := range batch {
		items[i] = e.item
	}
	settled, err := c.send(partition, items)
	c.mu.Lock()
	if len(q.waiting) > 0 {
		q.waiting[0].turn <- true
	} else {
		q.busy = false
	}
	c.mu.Unlock()
	for i, e := range batch {
		switch {
		case err != nil:
			e.settled.Err = err
		case i < len(settled):
			e.settled = settled[i]
		default:
			e.settled.Err = flowfabric.NewError("ff_complete_execution", "parse", "an item has no answer")
		}
		if i > 0 {
			e.turn <- false
		}
	}
}

// take removes the next batch from the queue: at least one item, at most a call's worth, and no execution twice. An
// execution that was lost and claimed again here may have two handlers that end at once, under different fences; the
// server refuses a call that names both, so the later one begins the next batch.
func (q *completions) take() []*completion {
	n, bytes := 0, 0
	for _, e := range q.waiting {
		bytes += len(e.item.Result)
		if n == flowfabric.MaxBatch || n > 0 && bytes > maxCompleteBytes || q.names(e.item.Fence.Execution, n) {
			break
		}
		n++
	}
	batch := q.waiting[:n:n]
	q.waiting = append([]*completion(nil), q.waiting[n:]...)
	return batch
}

// names tells whether one of the first n that wait is of this execution.
func (q *completions) names(id flowfabric.ExecutionID, n int) bool {
	return slices.ContainsFunc(q.waiting[:n], func(e *completion) bool { return e.item.Fence.Execution == id })
}
