package coalesce

import (
	"context"
	"fmt"
	"runtime"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// maxBatchBytes leaves room for framing below the 1 MiB of a call; a larger single item travels alone.
const maxBatchBytes = 900 << 10

// shard is one queue of submits and the calls that serve it. Coalescer.mu guards it.
type shard struct {
	fixed     bool // all items are of this partition
	partition uint16
	repeats   bool // two items have the same key: batches follow each other
	limit     int  // concurrent calls
	inFlight  int
	started   time.Time // of the last call
	queue     []*Entry
}

// shard finds the queue of a Submission. The caller holds mu.
func (c *Coalescer) shard(sub *Submission) *shard {
	if sub.Item.Key == nil {
		return &c.plain
	}
	partition := sub.Item.ID.Partition()
	l := c.keyed[partition]
	if l == nil {
		l = &shard{fixed: true, partition: partition, limit: 1}
		c.keyed[partition] = l
	}
	return l
}

// form makes items the shard's next batch; from here on their ids are final. The caller holds mu.
func (c *Coalescer) form(l *shard, items []*Entry) batch {
	b := batch{partition: l.partition, items: items, try: &try{underWay: true}}
	l.started = time.Now()
	if !l.fixed {
		b.partition = c.places.place(len(items), l.started)
	}
	for _, p := range items {
		p.sent, p.try = true, b.try
		p.Sub.Item.ID = mint.Join(b.partition, ids.UUID(p.Sub.Item.ID))
	}
	return b
}

// handOver ends a call that a caller made itself; what queued up meanwhile gets a flusher in its place.
func (c *Coalescer) handOver(l *shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fork(l)
}

// fork starts a flusher with the next batch, or gives the place of a call back. The caller holds mu.
func (c *Coalescer) fork(l *shard) {
	if b := c.next(l); len(b.items) > 0 {
		c.flushers.Go(func() { c.flush(l, b) })
	}
}

// next forms the batch that follows a call of the shard; without one the call's place is given back. The caller
// holds mu.
func (c *Coalescer) next(l *shard) batch {
	if items := l.take(); len(items) > 0 {
		return c.form(l, items)
	}
	if l.inFlight--; l.inFlight == 0 && l.fixed {
		delete(c.keyed, l.partition)
	}
	return batch{}
}

// flush sends one batch after the other until the queue is empty.
func (c *Coalescer) flush(l *shard, b batch) {
	for len(b.items) > 0 {
		ctx, cancel := context.WithTimeoutCause(c.life, c.cfg.Timeout,
			fmt.Errorf("%w: no answer within %s", flowfabric.ErrTransport, c.cfg.Timeout))
		c.send(ctx, b)
		cancel()
		for _, p := range b.items {
			close(p.done)
		}
		runtime.Gosched() // who was answered may have more
		c.mu.Lock()
		b = c.next(l)
		c.mu.Unlock()
	}
}

// take removes the next batch from the front of the queue. The caller holds Coalescer.mu.
func (l *shard) take() []*Entry {
	var items []*Entry
	bytes, tags, n := 0, 0, 0
	for _, p := range l.queue {
		if !p.gone {
			if len(items) == limits.MaxBatch || len(items) > 0 &&
				(bytes+p.Sub.Size > maxBatchBytes || tags+len(p.Sub.Item.Tags) > limits.MaxCallTags) {
				break
			}
			if items == nil {
				items = make([]*Entry, 0, min(len(l.queue), limits.MaxBatch))
			}
			items = append(items, p)
			bytes += p.Sub.Size
			tags += len(p.Sub.Item.Tags)
		}
		n++
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return items
}
