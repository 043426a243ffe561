package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// follower is one loop over Events.
type follower struct {
	*Subscription
	ctx   context.Context
	owner conc.WaitGroup

	failing map[uint16]backoff.BackOff // partitions whose last read failed; of the loop alone

	mu      sync.Mutex
	fresh   map[uint16]bool // partitions to read
	waiting map[uint16]bool // partitions that will be read again after a pause
	wake    chan struct{}   // capacity 1
}

// errLeft: the consumer left the loop.
var errLeft = errors.New("left")

func newFollower(ctx context.Context, s *Subscription) *follower {
	return &follower{Subscription: s, ctx: ctx, failing: map[uint16]backoff.BackOff{}, fresh: map[uint16]bool{},
		waiting: map[uint16]bool{}, wake: make(chan struct{}, 1)}
}

// pauses grow to the interval of the safety reads.
func pauses() backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(link.Recheck), backoff.WithMaxElapsedTime(0))
}

// later reads a partition again after a pause. There is one such wait a partition at most.
func (f *follower) later(p uint16) {
	if f.failing[p] == nil {
		f.failing[p] = pauses()
	}
	pause := f.failing[p].NextBackOff()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[p] {
		return
	}
	f.waiting[p] = true
	f.owner.Go(func() {
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(pause):
		}
		f.mu.Lock()
		delete(f.waiting, p)
		f.mu.Unlock()
		f.read(p)
	})
}

// listen subscribes to the news of all partitions: in a cluster each by its own, elsewhere all at once.
func (f *follower) listen() {
	byChannel := map[string]uint16{}
	var all []string
	for p := range f.admin.store.Partitions() {
		channel := f.admin.store.NewsChannel(p)
		byChannel[channel] = p
		all = append(all, channel)
		if f.admin.store.Cluster() {
			f.owner.Go(func() {
				f.hear(p, []string{channel}, func() { f.read(p) }, func(string) { f.read(p) })
			})
		}
	}
	if !f.admin.store.Cluster() {
		f.owner.Go(func() {
			f.hear(0, all, f.readAll, func(channel string) { f.read(byChannel[channel]) })
		})
	}
}

// hear keeps one subscription; when it is restored, it reads what was missed.
func (f *follower) hear(p uint16, channels []string, ready func(), news func(channel string)) {
	pauses := pauses()
	for f.ctx.Err() == nil {
		_ = f.admin.store.Subscribe(f.ctx, p, channels, func() {
			pauses.Reset()
			ready()
		}, func(channel, _ string) { news(channel) })
		select {
		case <-f.ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}
func (f *follower) read(p uint16) {
	f.mu.Lock()
	f.fresh[p] = true
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
func (f *follower) readAll() {
	for p := range f.admin.store.Partitions() {
		f.read(p)
	}
}

// take hands out what is to be read.
func (f *follower) take() map[uint16]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.fresh
	f.fresh = map[uint16]bool{}
	return out
}

// run reads and yields until there is a reason to stop; nil when the consumer left.
func (f *follower) run(yield func(flowfabric.FeedEvent, error) bool) error {
	f.readAll()
	safety := time.NewTimer(link.Jitter(link.Recheck))
	defer safety.Stop()
	prolong := time.NewTimer(f.wish.Keep / 4)
	defer prolong.Stop()
	for {
		select {
		case <-f.wake:
		case <-safety.C:
			if err := f.again(); err != nil {
				return err
			}
			f.readAll()
			safety.Reset(link.Jitter(link.Recheck))
			continue
		case <-prolong.C:
			if _, err := f.record(f.ctx); err != nil && link.Final(f.ctx, err) {
				return err
			}
			prolong.Reset(f.wish.Keep / 4)
			continue
		case <-f.ctx.Done():
			return link.Ended(f.ctx)
		case <-f.admin.conn.Life.Done():
			return client.ErrClosed
		}
		if !f.tell(yield) {
			return nil
		}
		for p := range f.take() {
			if err := f.partition(p, yield); errors.Is(err, errLeft) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
}

// again looks whether partitions were booted since the last look, has their events recorded again, and begins with
// their first ones. An error that waiting may end is none: the next look sees the same.
func (f *follower) again() error {
	now, err := f.admin.store.Booted(f.ctx)
	if err == nil && !slices.Equal(now, f.booted) {
		if _, err = f.record(f.ctx); err == nil { // boots those that nobody has booted yet
			now, err = f.admin.store.Booted(f.ctx)
		}
	}
	if err != nil {
		if f.ctx.Err() == nil && link.Final(f.ctx, err) {
			return err
		}
		return nil
	}
	for i, at := range now {
		if at != f.booted[i] {
			f.consumed(uint16(i), feedPlace{})
			f.lost = append(f.lost, uint16(i))
		}
	}
	f.booted = now
	return nil
}

// tell yields the partitions that were booted again; false when the consumer left.
func (f *follower) tell(yield func(flowfabric.FeedEvent, error) bool) bool {
	for len(f.lost) > 0 {
		p := f.lost[0]
		f.lost = f.lost[1:]
		if !yield(flowfabric.FeedEvent{}, fmt.Errorf(
			"subscription: %w: partition %d lost its data and was booted again",
			flowfabric.ErrFeedGap, p)) {
			return false
		}
	}
	return true
}

// partition yields one page of a partition. What is left, or could not be read, is read later.
func (f *follower) partition(p uint16, yield func(flowfabric.FeedEvent, error) bool) error {
	place := f.place(p)
	entries, err := f.admin.store.ReadFeed(f.ctx, p, place.id, feedPage)
	if err != nil {
		if f.ctx.Err() == nil && link.Final(f.ctx, err) {
			return err
		}
		f.later(p)
		return nil
	}
	chosen, err := f.chosen(entries)
	if err != nil {
		if f.ctx.Err() == nil && link.Final(f.ctx, err) {
			return err
		}
		f.later(p)
		return nil
	}
	delete(f.failing, p)
	for _, entry := range entries {
		if entry.Err != nil {
			if !yield(flowfabric.FeedEvent{}, fmt.Errorf("subscription: %w", entry.Err)) {
				return errLeft
			}
			entry.Number = place.number + 1
		}
		if entry.Number > place.number+1 {
			gap := fmt.Errorf("subscription: %w: %d entries of partition %d", flowfabric.ErrFeedGap,
				entry.Number-place.number-1, p)
			if !yield(flowfabric.FeedEvent{}, gap) {
				return errLeft
			}
		}
		for _, event := range entry.Events {
			if f.wants(event.Kind) && (chosen == nil || chosen[event.Execution]) && !yield(event, nil) {
				return errLeft
			}
		}
		place = feedPlace{entry.ID, entry.Number}
		f.consumed(p, place)
	}
	if len(entries) == feedPage {
		f.read(p)
	}
	return nil
}

// chosen reads the executions of a page that have an event which is asked for, and says which of them are asked for;
// nil is all.
func (f *follower) chosen(entries []engine.FeedEntry) (map[flowfabric.ExecutionID]bool, error) {
	if f.of.all() {
		return nil, nil
	}
	out, mu := map[flowfabric.ExecutionID]bool{}, sync.Mutex{}
	for _, entry := range entries {
		for _, event := range entry.Events {
			if f.wants(event.Kind) {
				out[event.Execution] = false
			}
		}
	}
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(feedReads)
	for id := range maps.Clone(out) {
		p.Go(func() error {
			s, err := f.admin.client.Execution(id).Get(f.ctx)
			if errors.Is(err, denied.NoExecution) || errors.Is(err, flowfabric.ErrResultPurged) {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = f.of.matches(s)
			return nil
		})
	}
	return out, p.Wait()
}
func (f *follower) wants(kind string) bool {
	switch kind {
	case engine.FeedEnd:
		return f.wish.Ends
	case engine.FeedLease:
		return f.wish.Leases
	}
	return f.wish.Signals
}
