package admit

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

const (
	maxItems   = limits.MaxBatch // news of one call
	maxWaiters = 256             // that a call returns, or is given
	// maxRounds bounds how often a freed slot is offered on, when nothing waits any more where it was offered.
	maxRounds = 8
	// maxPages bounds how far behind what cannot be delivered is looked.
	maxPages = 64
)

// Waker opens routes that gates had closed.
type Waker interface {
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
}

// Outbox is what delivering needs of the server; *engine.Engine is one.
type Outbox interface {
	Waker
	ReadOutbox(ctx context.Context, partition uint16, after string) (entries []engine.OutboxEntry, total int, err error)
	TrimOutbox(ctx context.Context, partition uint16, ids []string) (left int, err error)
	SettleGates(ctx context.Context, news []engine.News) (done []bool, wake []engine.Waiter, err error)
	NoteWaiters(ctx context.Context, partition uint16, items []engine.Awaiting, look bool) ([]engine.Awaited, error)
	TellWaiters(ctx context.Context, partition uint16, items []engine.AwaitedEnd) (told int, err error)
	CreateExecutions(ctx context.Context, partition uint16, items []engine.NewExecution) ([]engine.Created, error)
	RefuseStart(ctx context.Context, s engine.Subject, trigger, code, event string) error
	BringEvent(ctx context.Context, x *engine.Published, to engine.EventResume) error
	ForgetExpected(ctx context.Context, partition uint16, items []engine.Expected) (forgotten int, err error)
	Partitions() uint16
	GatePartitions() uint16
}

// recipient is a partition of executions, or of gates.
type recipient struct {
	executions bool
	partition  uint16
}

// delivery is one go; stuck are those that did not answer: they are told nothing more, so that each hears everything
// in order.
type delivery struct {
	box   Outbox
	stuck map[recipient]bool
}

// Deliver tells gates and executions what a partition's outbox has for them, about 100 entries of it, starts what
// published events start, brings them to the waits that they match, opens the routes that wait for what became free,
// and forgets what was delivered. It returns how many entries that were; 0 when there is nothing. The process that
// owns the partition's tick calls it; that two do, or one again after an error or a crash, is harmless. With an error
// of a recipient's partition the entries for it stay, and those behind them are looked at, too, up to 6,400.
func Deliver(ctx context.Context, box Outbox, partition uint16) (delivered int, err error) {
	d := delivery{box: box, stuck: map[recipient]bool{}}
	after := ""
	for range maxPages {
		entries, _, e := box.ReadOutbox(ctx, partition, after)
		if e != nil || len(entries) == 0 {
			return delivered, errors.Join(err, e)
		}
		err = errors.Join(err, d.tell(ctx, entries))
		n, e := d.trim(ctx, partition, entries)
		delivered += n
		if err = errors.Join(err, e); e != nil || len(d.stuck) == 0 || ctx.Err() != nil {
			break
		}
		after = entries[len(entries)-1].ID
	}
	return delivered, err
}

func (d *delivery) tell(ctx context.Context, entries []engine.OutboxEntry) error {
	var news []engine.News
	for _, x := range entries {
		news = append(news, x.News...)
	}
	return errors.Join(d.settleGates(ctx, news), d.await(ctx, entries), d.start(ctx, entries), d.bring(ctx, entries),
		d.forget(ctx, entries))
}

// trim forgets the entries of which everybody was told.
func (d *delivery) trim(ctx context.Context, partition uint16, entries []engine.OutboxEntry) (n int, err error) {
	var ids []string
	for _, x := range entries {
		if !slices.ContainsFunc(x.News, func(n engine.News) bool { return d.stuck[d.gate(n)] }) &&
			!slices.ContainsFunc(x.Awaiting, func(w engine.Awaiting) bool { return d.stuck[executions(w.Awaited)] }) &&
			!slices.ContainsFunc(x.Ends, func(w engine.AwaitedEnd) bool { return d.stuck[executions(w.Waiter)] }) &&
			!slices.ContainsFunc(x.Forget, func(w engine.Expected) bool { return d.stuck[d.subject(w)] }) &&
			!d.late(x.Event) {
			ids = append(ids, x.ID)
		}
	}
	for batch := range slices.Chunk(ids, maxItems) {
		if _, err := d.box.TrimOutbox(ctx, partition, batch); err != nil {
			return n, err
		}
		n += len(batch)
	}
	return n, nil
}

func (d *delivery) gate(x engine.News) recipient {
	return recipient{partition: ids.GatePartition(x.Gate, d.box.GatePartitions())}
}

// settleGates tells each partition of gates what concerns it, in order. One that does not answer keeps no other
// waiting.
func (d *delivery) settleGates(ctx context.Context, news []engine.News) (failed error) {
	for _, batch := range batches(news, d.gate) {
		if d.stuck[d.gate(batch[0])] {
			continue
		}
		// Where nothing waits any more nobody takes the slot: the same call again offers it to others, and a call
		// wakes only so many.
		for again, round := true, 0; again && round < maxRounds; round++ {
			_, waiters, err := d.box.SettleGates(ctx, batch)
			if err != nil {
				failed = errors.Join(failed, err)
				d.stuck[d.gate(batch[0])] = true
			}
			idle, _ := wake(ctx, d.box, waiters) // what is not woken opens by itself
			again = idle > 0 || len(waiters) >= maxWaiters
		}
	}
	return failed
}

// batches groups items by recipient, in order, at most a call's worth in each.
func batches[T any](items []T, whose func(T) recipient) (out [][]T) {
	by := map[recipient][]T{}
	var order []recipient
	for _, x := range items {
		p := whose(x)
		if by[p] == nil {
			order = append(order, p)
		}
		by[p] = append(by[p], x)
	}
	for _, p := range order {
		out = slices.AppendSeq(out, slices.Chunk(by[p], maxItems))
	}
	return out
}

// wake opens routes and returns in how many of them nothing waits. All partitions are tried.
func wake(ctx context.Context, w Waker, waiters []engine.Waiter) (idle int, err error) {
	by := map[uint16][]uint64{}
	for _, x := range waiters {
		by[x.Partition] = append(by[x.Partition], x.Route)
	}
	for partition, routes := range by {
		for batch := range slices.Chunk(routes, maxWaiters) {
			waiting, e := w.OpenRoutes(ctx, partition, batch)
			err = errors.Join(err, e)
			for _, some := range waiting {
				if !some {
					idle++
				}
			}
		}
	}
	return idle, err
}

// Wake opens the routes that a change of a gate returned: there may be room for what waits there. An error leaves some
// closed; they open by themselves, after 30 s, or up to an hour where a window is full, or for amounts that were refused
// again and again.
func Wake(ctx context.Context, w Waker, waiters []engine.Waiter) error {
	_, err := wake(ctx, w, waiters)
	return err
}
