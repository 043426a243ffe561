// Package coalesce turns concurrent submits into few create calls.
//
// A create call is repeated with the same ids until it is answered or Config.Timeout has passed. A caller that gives up never takes
// the other submits of its batch with it, and a refused item does not touch its neighbours.
package coalesce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

const (
	// maxBatchBytes leaves room for framing below the 1 MiB of a call; a larger single item travels alone.
	maxBatchBytes = 900 << 10
	// MaxInFlight bounds the concurrent create calls of plain submits.
	MaxInFlight = 4
	// longQueue is the number of waiting submits that is worth a further call: from about 32 items a call, the
	// server's cost per item no longer falls (performance.md §4).
	longQueue = 32
	// slowCall is the age from which a call in flight no longer holds back the queue behind it.
	slowCall = 20 * time.Millisecond
	// loneAfter is how long after the plain batch before it a submit is a lone one, which goes to the same partition: a worker is at home
	// there, while in another one it may have to open a session first. maxStay bounds how many batches in a row do, and so how unevenly
	// partitions are filled.
	loneAfter = 2 * time.Millisecond
	maxStay   = 16
	// firstPause is before the first repeat of a call; the pauses grow to 2 s.
	firstPause = 20 * time.Millisecond
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

// Submission is one input on its way to the server.
type Submission struct {
	Item  engine.NewExecution
	Keyed bool
	Key   string // its id is derived from it, if Keyed
	Size  int    // bytes it adds to a create call, roughly
}

// NewSubmission makes a submission; key counts if it is keyed.
func NewSubmission(item engine.NewExecution, keyed bool, key string) *Submission {
	s := &Submission{Item: item, Keyed: keyed, Key: key, Size: 256 + len(item.Payload)}
	for _, c := range item.Capabilities {
		s.Size += len(c) + 1
	}
	for _, g := range item.Gates {
		s.Size += len(g) + 1
	}
	for k, v := range item.Tags {
		s.Size += len(k) + len(v) + 16
	}
	return s
}

// Coalescer turns concurrent submits into few create calls (group commit without a timer).
//
//	submit ─▶ shard idle? ─yes─▶ the caller makes the call itself ─▶ queue not empty? ─▶ flusher takes over
//	              └──no──▶ queue ──▶ flusher: take ≤ 100 items, one partition, one call, answer each, repeat
//
// Plain submits share one shard whose batches rotate over the partitions, but for lone ones (maxStay); keyed submits have a shard per
// partition, which exists only while it is busy. The queues are bounded by the callers that wait in them.
type Coalescer struct {
	cfg  Config
	life context.Context // ends when the client closes, after everything accepted was answered

	mu       sync.Mutex
	closed   bool
	turn     uint16    // the next partition in rotation
	home     uint16    // partition of the last plain batch
	stayed   int       // how many batches in a row it has got
	formed   time.Time // when the last of them was made
	plain    shard
	keyed    map[uint16]*shard
	callers  sync.WaitGroup // submits that have been accepted
	flushers conc.WaitGroup
}

// shard is one queue of submits and the calls that serve it. Coalescer.mu guards it.
type shard struct {
	fixed     bool // all items are of this partition
	partition uint16
	limit     int // concurrent calls
	inFlight  int
	started   time.Time // of the last call
	queue     []*Entry
}

// Entry is one submit; everything but Sub is guarded by Coalescer.mu until it is answered. Created or Err is its answer.
type Entry struct {
	Sub     *Submission
	sent    bool // its id is final and its call may have been made
	gone    bool // the caller left before it was sent, or while it was certain that nothing had been
	try     *try // of its batch; nil before it is sent
	done    chan struct{}
	Created engine.Created
	Err     error
}

// batch is what one create call carries.
type batch struct {
	partition uint16
	items     []*Entry
	try       *try
}

// try is what is known of the tries of one batch. Coalescer.mu guards it.
type try struct {
	underWay bool // a call is being made
	maybe    bool // some call may have reached the server
}

// New makes a coalescer. Cancel life after [Coalescer.Close].
func New(life context.Context, cfg Config) *Coalescer {
	cfg.Partitions = max(cfg.Partitions, 1)
	return &Coalescer{
		cfg: cfg, life: life,
		turn:  uint16(rand.N(int(cfg.Partitions))), // short-lived producers must not all begin at partition 0
		plain: shard{limit: MaxInFlight},
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
		b := c.form(l, []*Entry{p})
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

// identify derives the id of a keyed Submission and mints the UUID of a plain one, outside any lock.
func (c *Coalescer) identify(sub *Submission) {
	x := &sub.Item
	if sub.Keyed {
		x.ID = flowfabric.MakeExecutionID(ids.Keyed(c.cfg.Partitions, x.Namespace, x.Kind, sub.Key))
	} else {
		x.ID = flowfabric.MakeExecutionID(0, uuid.Must(uuid.NewV7()))
	}
}

// shard finds the queue of a Submission. The caller holds mu.
func (c *Coalescer) shard(sub *Submission) *shard {
	if !sub.Keyed {
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
		b.partition = c.place(len(items), l.started)
	}
	for _, p := range items {
		p.sent, p.try = true, b.try
		p.Sub.Item.ID = flowfabric.MakeExecutionID(b.partition, p.Sub.Item.ID.UUID())
	}
	return b
}

// place returns the partition of a plain batch. The caller holds mu.
func (c *Coalescer) place(items int, now time.Time) uint16 {
	if lone := items == 1 && now.Sub(c.formed) >= loneAfter; !lone || c.stayed == 0 || c.stayed == maxStay {
		c.home, c.stayed = c.rotate(), 0
	}
	c.stayed++
	c.formed = now
	return c.home
}

// rotate returns the next partition. The caller holds mu.
func (c *Coalescer) rotate() uint16 {
	partition := c.turn
	c.turn = (c.turn + 1) % c.cfg.Partitions
	return partition
}

// Partition returns the partition of the next thing that is submitted without a key and on its own.
func (c *Coalescer) Partition() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rotate()
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

// SubmitMany sends the items in batches of their own; every item ends with created or err set. They do not go
// through the shards: they are batches already, and nobody else's items can be hurt by ctx.
func (c *Coalescer) SubmitMany(ctx context.Context, items []*Entry) error {
	if err := c.Begin(); err != nil {
		return err
	}
	defer c.End()
	var order []*shard
	plain, keyed := &shard{}, map[uint16]*shard{}
	for _, p := range items {
		c.identify(p.Sub)
		l := plain
		if p.Sub.Keyed {
			partition := p.Sub.Item.ID.Partition()
			if l = keyed[partition]; l == nil {
				l = &shard{fixed: true, partition: partition}
				keyed[partition] = l
			}
		}
		if len(l.queue) == 0 {
			order = append(order, l)
		}
		l.queue = append(l.queue, p)
	}
	calls := pool.New().WithMaxGoroutines(MaxInFlight)
	defer calls.Wait()
	for _, l := range order {
		for {
			taken := l.take()
			if len(taken) == 0 {
				break
			}
			calls.Go(func() {
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
			})
		}
	}
	return nil
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

// send makes the create call of a batch, again while that may help, and fills in every item's answer.
func (c *Coalescer) send(ctx context.Context, b batch) {
	sent, created, err := c.once(ctx, b)
	if err != nil {
		sent, created, err = c.persist(ctx, b, sent, err)
	}
	if err == nil && len(created) != len(sent) {
		err = fmt.Errorf("%w: %d answers to %d items", flowfabric.ErrReply, len(created), len(sent))
	}
	c.mu.Lock()
	maybe := b.try.maybe
	c.mu.Unlock()
	at := 0
	for _, p := range b.items {
		switch {
		case at == len(sent) || sent[at] != p: // its caller has left, and was told so
			continue
		case err != nil:
			p.Err = c.callError(p.Sub.Item.ID, err, maybe)
		default:
			p.Created, p.Err = created[at], itemError(p.Sub, created[at])
		}
		at++
	}
}

// persist repeats a batch's call with the same ids while its outcome is unknown or the partition is frozen; the answers match the items
// that were sent at last. err is that of the first try. No other layer repeats it.
func (c *Coalescer) persist(ctx context.Context, b batch, sent []*Entry, err error) (_ []*Entry, created []engine.Created, _ error) {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(c.cfg.Timeout))
	for pause := pauses.NextBackOff(); err != nil && link.Repeatable(err) && pause != backoff.Stop && rest(ctx, pause); pause = pauses.NextBackOff() {
		sent, created, err = c.once(ctx, b)
	}
	if err != nil && ctx.Err() != nil && (link.Repeatable(err) || errors.Is(err, ctx.Err())) {
		err = link.Ended(ctx)
	}
	return sent, created, err
}

// rest lets time pass; false if ctx ended before.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// once makes the call for those of a batch whose callers are still there, and notes whether it may have reached the server.
func (c *Coalescer) once(ctx context.Context, b batch) ([]*Entry, []engine.Created, error) {
	c.mu.Lock()
	b.try.underWay = true
	sent := make([]*Entry, 0, len(b.items))
	items := make([]engine.NewExecution, 0, len(b.items))
	for _, p := range b.items {
		if !p.gone {
			sent, items = append(sent, p), append(items, p.Sub.Item)
		}
	}
	c.mu.Unlock()
	var created []engine.Created
	var err error
	if len(items) > 0 {
		created, err = c.cfg.Store.CreateExecutions(ctx, b.partition, items)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.try.underWay = false
	b.try.maybe = b.try.maybe || !certainlyNot(err)
	return sent, created, err
}

// certainlyNot tells errors of calls that created nothing: there was no connection, or the server refused before it did anything.
func certainlyNot(err error) bool {
	return engine.NotSent(err) || errors.Is(err, flowfabric.ErrPartitionFrozen) || refusedUnread(err)
}

// refusedUnread tells refusals of a command that the server did not look into, for want of memory or of rights.
func refusedUnread(err error) bool {
	return errors.Is(err, flowfabric.ErrOutOfMemory) || errors.Is(err, flowfabric.ErrAuth)
}

// callError is the error of one item of a call that failed as a whole; maybe says whether one of its tries may have reached the server.
func (c *Coalescer) callError(id flowfabric.ExecutionID, err error, maybe bool) error {
	lost := errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case lost && !maybe:
		return fmt.Errorf("submit: %w (nothing was sent)", err)
	case lost:
		return c.cfg.Unknown(id, err)
	case maybe && refusedUnread(err): // what became of an earlier try is still unknown
		return c.cfg.Unknown(id, fmt.Errorf("%w: an earlier try was not answered, then: %w", flowfabric.ErrTransport, err))
	}
	return fmt.Errorf("submit %s: %w", id, err)
}

// itemError is the error of one refused item.
func itemError(sub *Submission, created engine.Created) error {
	err := created.Err
	if err == nil {
		return nil
	}
	if sub.Keyed && errors.Is(err, flowfabric.ErrIdempotencyConflict) {
		err = link.InWords(fmt.Sprintf("idempotency_conflict: key %q names an execution with another payload", sub.Key), err)
	}
	return fmt.Errorf("submit %s: %w", created.ID, err)
}
