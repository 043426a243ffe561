// Package coalesce turns concurrent submits into few create calls.
//
// A create call is repeated with the same ids until it is answered or Config.Timeout has passed. A caller that gives
// up never takes the other submits of its batch with it, and a refused item does not touch its neighbours.
package coalesce

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

const (
	// MaxInFlight bounds the concurrent create calls of plain submits.
	MaxInFlight = 4
	// longQueue is the number of waiting submits that is worth a further call: from about 32 items a call, the
	// server's cost per item no longer falls.
	longQueue = 32
	// slowCall is the age from which a call in flight no longer holds back the queue behind it.
	slowCall = 20 * time.Millisecond
)

// Creator is the part of the engine that the Coalescer needs.
type Creator interface {
	CreateExecutions(ctx context.Context, partition uint16, items []engine.NewExecution) ([]engine.Created, error)
}

// Config is what a [Coalescer] needs; all of it is required.
type Config struct {
	Store      Creator
	Partitions uint16
	Timeout    time.Duration // how long a create call is repeated while it is not answered
	Closed     error         // answers submits after Close
	// Unknown makes the error of a submit whose outcome is not known.
	Unknown func(id flowfabric.ExecutionID, cause error) error
}

// Coalescer turns concurrent submits into few create calls (group commit without a timer).
//
//	submit ─▶ shard idle? ─yes─▶ the caller makes the call itself ─▶ queue not empty? ─▶ flusher takes over
//	              └──no──▶ queue ──▶ flusher: take ≤ 100 items, one partition, one call, answer each, repeat
//
// Plain submits share one shard whose batches rotate over the partitions, but for lone ones (maxStay); keyed submits
// have a shard per partition, which exists only while it is busy. The queues are bounded by the callers that wait in
// them.
type Coalescer struct {
	cfg  Config
	life context.Context // ends when the client closes, after everything accepted was answered

	mu       sync.Mutex
	closed   bool
	places   placement
	plain    shard
	keyed    map[uint16]*shard
	callers  sync.WaitGroup // submits that have been accepted
	flushers conc.WaitGroup
}

// New makes a coalescer. Cancel life after [Coalescer.Close].
func New(life context.Context, cfg Config) *Coalescer {
	cfg.Partitions = max(cfg.Partitions, 1)
	return &Coalescer{
		cfg: cfg, life: life, places: newPlacement(cfg.Partitions), plain: shard{limit: MaxInFlight},
		keyed: map[uint16]*shard{},
	}
}

// Begin admits a caller, which must call End; Close waits for it.
func (c *Coalescer) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.cfg.Closed
	}
	c.callers.Add(1)
	return nil
}

func (c *Coalescer) End() { c.callers.Done() }

// Close refuses new submits and returns when all accepted ones are answered, which takes SubmitTimeout at most
// plus one call.
func (c *Coalescer) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.callers.Wait()
	c.flushers.Wait()
}

// Partition returns the partition of the next thing that is submitted without a key and on its own.
func (c *Coalescer) Partition() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places.rotate()
}

// Submit creates one execution. A plain Submission's id gets its partition when its batch is formed.
func (c *Coalescer) Submit(ctx context.Context, sub *Submission) (engine.Created, error) {
	if err := c.Begin(); err != nil {
		return engine.Created{}, err
	}
	defer c.End()
	c.identify(sub)
	p := &Entry{Sub: sub}

	c.mu.Lock()
	l := c.shard(sub)
	alone := l.inFlight == 0
	if alone {
		l.inFlight++
		c.mu.Unlock()
		runtime.Gosched() // callers that are ready to run at the same moment join
		c.mu.Lock()
	}
	if alone && len(l.queue) == 0 { // nobody to join: no queue, no goroutine, the caller's own context
		p.self[0] = p
		b := c.form(l, p.self[:])
		c.mu.Unlock()
		defer c.handOver(l)
		c.send(ctx, b)
		return p.Created, p.Err
	}
	p.done = make(chan struct{})
	sub.Item.Tags = maps.Clone(sub.Item.Tags) // the caller may leave before they are sent
	l.queue = append(l.queue, p)
	if alone {
		c.fork(l)
	} else if l.inFlight < l.limit && (len(l.queue) >= longQueue || time.Since(l.started) > slowCall) {
		l.inFlight++
		c.fork(l)
	}
	c.mu.Unlock()

	select {
	case <-p.done:
		return p.Created, p.Err
	case <-ctx.Done():
		return c.abandon(ctx, p)
	}
}

// SubmitMany sends the items in batches of their own; every item ends with created or err set. They do not go
// through the shards: they are batches already, and nobody else's items can be hurt by ctx.
func (c *Coalescer) SubmitMany(ctx context.Context, items []*Entry) error {
	if err := c.Begin(); err != nil {
		return err
	}
	defer c.End()
	calls := pool.New().WithMaxGoroutines(MaxInFlight)
	defer calls.Wait()
	for _, l := range c.grouped(items) {
		if l.repeats { // of equal keys the first input counts, of those that debounce the last
			calls.Go(func() {
				for taken := l.take(); len(taken) > 0; taken = l.take() {
					c.sendTaken(ctx, l, taken)
				}
			})
			continue
		}
		for taken := l.take(); len(taken) > 0; taken = l.take() {
			calls.Go(func() { c.sendTaken(ctx, l, taken) })
		}
	}
	return nil
}

// sendTaken sends one batch of a queue, unless ctx has ended.
func (c *Coalescer) sendTaken(ctx context.Context, l *shard, taken []*Entry) {
	if ctx.Err() != nil {
		for _, p := range taken {
			p.Err = link.NotSent(ctx)
		}
		return
	}
	c.mu.Lock()
	b := c.form(l, taken)
	c.mu.Unlock()
	c.send(ctx, b)
}

// grouped gives the items their ids and puts them into queues of one partition each, and one for those that may go
// anywhere.
func (c *Coalescer) grouped(items []*Entry) (order []*shard) {
	plain, keyed, seen := &shard{}, map[uint16]*shard{}, map[uuid.UUID]bool{}
	for _, p := range items {
		c.identify(p.Sub)
		l := plain
		if p.Sub.Item.Key != nil {
			partition := p.Sub.Item.ID.Partition()
			if l = keyed[partition]; l == nil {
				l = &shard{fixed: true, partition: partition}
				keyed[partition] = l
			}
			l.repeats = l.repeats || seen[p.Sub.Item.KeyID]
			seen[p.Sub.Item.KeyID] = true
		}
		if len(l.queue) == 0 {
			order = append(order, l)
		}
		l.queue = append(l.queue, p)
	}
	return order
}

// abandon is the answer to a caller whose context ended: an item still in the queue is taken back.
func (c *Coalescer) abandon(ctx context.Context, p *Entry) (engine.Created, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-p.done: // answered in the same moment
		return p.Created, p.Err
	default:
	}
	if !p.sent || !p.try.underWay && !p.try.maybe { // the next try goes without it
		p.gone = true
		return engine.Created{}, link.NotSent(ctx)
	}
	return engine.Created{}, c.cfg.Unknown(p.Sub.Item.ID, link.Ended(ctx))
}
