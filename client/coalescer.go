package client

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

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

const (
	// maxBatchBytes leaves room for framing below the 1 MiB of a call; a larger single item travels alone.
	maxBatchBytes = 900 << 10
	// maxPlainInFlight bounds the concurrent create calls of plain submits.
	maxPlainInFlight = 4
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
)

// creator is the part of the engine that the coalescer needs.
type creator interface {
	CreateExecutions(ctx context.Context, partition uint16, items []engine.NewExecution) ([]engine.Created, error)
}

// coalescer turns concurrent submits into few create calls (group commit without a timer).
//
//	submit ─▶ lane idle? ─yes─▶ the caller makes the call itself ─▶ queue not empty? ─▶ flusher takes over
//	              └──no──▶ queue ──▶ flusher: take ≤ 100 items, one partition, one call, answer each, repeat
//
// Plain submits share one lane whose batches rotate over the partitions, but for lone ones (maxStay); keyed submits have a lane per
// partition, which exists only while it is busy. The queues are bounded by the callers that wait in them.
type coalescer struct {
	store      creator
	partitions uint16
	timeout    time.Duration
	life       context.Context // ends when the client closes, after everything accepted was answered

	mu       sync.Mutex
	closed   bool
	turn     uint16    // the next partition in rotation
	home     uint16    // partition of the last plain batch
	stayed   int       // how many batches in a row it has got
	formed   time.Time // when the last of them was made
	plain    lane
	keyed    map[uint16]*lane
	callers  sync.WaitGroup // submits that have been accepted
	flushers conc.WaitGroup
}

// lane is one queue of submits and the calls that serve it. coalescer.mu guards it.
type lane struct {
	fixed     bool // all items are of this partition
	partition uint16
	limit     int // concurrent calls
	inFlight  int
	started   time.Time // of the last call
	queue     []*pending
}

// pending is one submit; everything but sub is guarded by coalescer.mu until done is closed.
type pending struct {
	sub     *submission
	sent    bool // its id is final and its call may have been made
	gone    bool // the caller left before it was sent, or while it was certain that nothing had been
	try     *try // of its batch; nil before it is sent
	done    chan struct{}
	created engine.Created
	err     error
}

// batch is what one create call carries.
type batch struct {
	partition uint16
	items     []*pending
	try       *try
}

// try is what is known of the tries of one batch. coalescer.mu guards it.
type try struct {
	underWay bool // a call is being made
	maybe    bool // some call may have reached the server
}

func newCoalescer(life context.Context, store creator, partitions uint16, timeout time.Duration) *coalescer {
	partitions = max(partitions, 1)
	return &coalescer{
		store: store, partitions: partitions, timeout: timeout, life: life,
		turn:  uint16(rand.N(int(partitions))), // short-lived producers must not all begin at partition 0
		plain: lane{limit: maxPlainInFlight},
		keyed: map[uint16]*lane{},
	}
}

// begin admits a caller, who must call end; close waits for it.
func (c *coalescer) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.callers.Add(1)
	return nil
}

func (c *coalescer) end() { c.callers.Done() }

// close refuses new submits and returns when all accepted ones are answered, which takes SubmitTimeout at most
// plus one call.
func (c *coalescer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.callers.Wait()
	c.flushers.Wait()
}

// submit creates one execution. A plain submission's id gets its partition when its batch is formed.
func (c *coalescer) submit(ctx context.Context, sub *submission) (engine.Created, error) {
	if err := c.begin(); err != nil {
		return engine.Created{}, err
	}
	defer c.end()
	c.identify(sub)
	p := &pending{sub: sub}

	c.mu.Lock()
	l := c.lane(sub)
	alone := l.inFlight == 0
	if alone {
		l.inFlight++
		c.mu.Unlock()
		runtime.Gosched() // callers that are ready to run at the same moment join
		c.mu.Lock()
	}
	if alone && len(l.queue) == 0 { // nobody to join: no queue, no goroutine, the caller's own context
		b := c.form(l, []*pending{p})
		c.mu.Unlock()
		defer c.handOver(l)
		c.send(ctx, b)
		return p.created, p.err
	}
	p.done = make(chan struct{})
	sub.item.Tags = maps.Clone(sub.item.Tags) // the caller may leave before they are sent
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
		return p.created, p.err
	case <-ctx.Done():
		return c.abandon(ctx, p)
	}
}

// identify derives the id of a keyed submission and mints the UUID of a plain one, outside any lock.
func (c *coalescer) identify(sub *submission) {
	x := &sub.item
	if sub.keyed {
		x.ID = flowfabric.DeriveExecutionID(c.partitions, x.Namespace, x.Kind, sub.key)
	} else {
		x.ID = flowfabric.MakeExecutionID(0, uuid.Must(uuid.NewV7()))
	}
}

// lane finds the queue of a submission. The caller holds mu.
func (c *coalescer) lane(sub *submission) *lane {
	if !sub.keyed {
		return &c.plain
	}
	partition := sub.item.ID.Partition()
	l := c.keyed[partition]
	if l == nil {
		l = &lane{fixed: true, partition: partition, limit: 1}
		c.keyed[partition] = l
	}
	return l
}

// form makes items the lane's next batch; from here on their ids are final. The caller holds mu.
func (c *coalescer) form(l *lane, items []*pending) batch {
	b := batch{partition: l.partition, items: items, try: &try{underWay: true}}
	l.started = time.Now()
	if !l.fixed {
		b.partition = c.place(len(items), l.started)
	}
	for _, p := range items {
		p.sent, p.try = true, b.try
		p.sub.item.ID = flowfabric.MakeExecutionID(b.partition, p.sub.item.ID.UUID())
	}
	return b
}

// place returns the partition of a plain batch. The caller holds mu.
func (c *coalescer) place(items int, now time.Time) uint16 {
	if lone := items == 1 && now.Sub(c.formed) >= loneAfter; !lone || c.stayed == 0 || c.stayed == maxStay {
		c.home, c.stayed = c.rotate(), 0
	}
	c.stayed++
	c.formed = now
	return c.home
}

// rotate returns the next partition. The caller holds mu.
func (c *coalescer) rotate() uint16 {
	partition := c.turn
	c.turn = (c.turn + 1) % c.partitions
	return partition
}

// partition returns the partition of the next thing that is submitted without a key and on its own.
func (c *coalescer) partition() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rotate()
}

// handOver ends a call that a caller made itself; what queued up meanwhile gets a flusher in its place.
func (c *coalescer) handOver(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fork(l)
}

// fork starts a flusher with the next batch, or gives the place of a call back. The caller holds mu.
func (c *coalescer) fork(l *lane) {
	if b := c.next(l); len(b.items) > 0 {
		c.flushers.Go(func() { c.flush(l, b) })
	}
}

// next forms the batch that follows a call of the lane; without one the call's place is given back. The caller
// holds mu.
func (c *coalescer) next(l *lane) batch {
	if items := l.take(); len(items) > 0 {
		return c.form(l, items)
	}
	if l.inFlight--; l.inFlight == 0 && l.fixed {
		delete(c.keyed, l.partition)
	}
	return batch{}
}

// flush sends one batch after the other until the queue is empty.
func (c *coalescer) flush(l *lane, b batch) {
	for len(b.items) > 0 {
		ctx, cancel := context.WithTimeoutCause(c.life, c.timeout,
			fmt.Errorf("%w: no answer within %s", flowfabric.ErrTransport, c.timeout))
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

// take removes the next batch from the front of the queue. The caller holds coalescer.mu.
func (l *lane) take() []*pending {
	var items []*pending
	bytes, tags, n := 0, 0, 0
	for _, p := range l.queue {
		if !p.gone {
			if len(items) == flowfabric.MaxBatch || len(items) > 0 &&
				(bytes+p.sub.size > maxBatchBytes || tags+len(p.sub.item.Tags) > flowfabric.MaxCallTags) {
				break
			}
			if items == nil {
				items = make([]*pending, 0, min(len(l.queue), flowfabric.MaxBatch))
			}
			items = append(items, p)
			bytes += p.sub.size
			tags += len(p.sub.item.Tags)
		}
		n++
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return items
}

// abandon is the answer to a caller whose context ended: an item still in the queue is taken back.
func (c *coalescer) abandon(ctx context.Context, p *pending) (engine.Created, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-p.done: // answered in the same moment
		return p.created, p.err
	default:
	}
	if !p.sent || !p.try.underWay && !p.try.maybe { // the next try goes without it
		p.gone = true
		return engine.Created{}, notSent(ctx)
	}
	return engine.Created{}, &UnknownOutcomeError{ID: p.sub.item.ID, Cause: ended(ctx)}
}

// send makes the create call of a batch and fills in every item's answer.
func (c *coalescer) send(ctx context.Context, b batch) {
	sent, created, err := c.create(ctx, b)
	c.mu.Lock()
	maybe := b.try.maybe
	c.mu.Unlock()
	at := 0
	for _, p := range b.items {
		switch {
		case at == len(sent) || sent[at] != p: // its caller has left, and was told so
			continue
		case err != nil:
			p.err = callError(p.sub.item.ID, err, maybe)
		default:
			p.created, p.err = created[at], itemError(p.sub, created[at])
		}
		at++
	}
}

// create is one batch's call, repeated with the same ids while its outcome is unknown or the partition is
// frozen; the answers match the items that were sent at last.
func (c *coalescer) create(ctx context.Context, b batch) (sent []*pending, created []engine.Created, err error) {
	sent, created, err = c.once(ctx, b)
	if err != nil && repeatable(err) && ctx.Err() == nil {
		pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
			backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(c.timeout))
		err = backoff.Retry(func() error {
			if sent, created, err = c.once(ctx, b); err != nil && !repeatable(err) {
				return backoff.Permanent(err)
			}
			return err
		}, backoff.WithContext(pauses, ctx))
	}
	if err != nil && ctx.Err() != nil && (repeatable(err) || errors.Is(err, ctx.Err())) {
		err = ended(ctx)
	}
	if err == nil && len(created) != len(sent) {
		err = fmt.Errorf("%w: %d answers to %d items", flowfabric.ErrReply, len(created), len(sent))
	}
	return sent, created, err
}

// once makes the call for those of a batch whose callers are still there, and notes whether it may have reached the server.
func (c *coalescer) once(ctx context.Context, b batch) ([]*pending, []engine.Created, error) {
	c.mu.Lock()
	b.try.underWay = true
	sent := make([]*pending, 0, len(b.items))
	items := make([]engine.NewExecution, 0, len(b.items))
	for _, p := range b.items {
		if !p.gone {
			sent, items = append(sent, p), append(items, p.sub.item)
		}
	}
	c.mu.Unlock()
	var created []engine.Created
	var err error
	if len(items) > 0 {
		created, err = c.store.CreateExecutions(ctx, b.partition, items)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.try.underWay = false
	b.try.maybe = b.try.maybe || !certainlyNot(err)
	return sent, created, err
}

// certainlyNot tells errors of calls that created nothing: there was no connection, or the answer was that the partition is frozen.
func certainlyNot(err error) bool {
	return engine.NotSent(err) || errors.Is(err, flowfabric.ErrPartitionFrozen)
}

// repeatable tells errors after which the same call may be made again.
func repeatable(err error) bool {
	return errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, flowfabric.ErrPartitionFrozen)
}

// notSent is the error of a submit that its caller's context ended before anything was sent.
func notSent(ctx context.Context) error {
	return fmt.Errorf("submit: %w (nothing was sent)", ended(ctx))
}

// callError is the error of one item of a call that failed as a whole; maybe says whether one of its tries may have reached the server.
func callError(id flowfabric.ExecutionID, err error, maybe bool) error {
	if !maybe && (errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("submit: %w (nothing was sent)", err)
	}
	if errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &UnknownOutcomeError{ID: id, Cause: err}
	}
	return fmt.Errorf("submit %s: %w", id, err)
}

// itemError is the error of one refused item.
func itemError(sub *submission, created engine.Created) error {
	err := created.Err
	if err == nil {
		return nil
	}
	if sub.keyed && errors.Is(err, flowfabric.ErrIdempotencyConflict) {
		err = &refusal{fmt.Sprintf("idempotency_conflict: key %q names an execution with another payload", sub.key), err}
	}
	return fmt.Errorf("submit %s: %w", created.ID, err)
}
