package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/stream"
)

// feeds is the part of the engine that subscriptions need.
type feeds interface {
	SetFeed(ctx context.Context, wish engine.FeedWish) []engine.FeedState
	ReadFeed(ctx context.Context, partition uint16, after stream.Cursor, limit int) ([]engine.FeedEntry, error)
	LastOfFeed(ctx context.Context, partition uint16) (engine.FeedEntry, error)
	Booted(ctx context.Context) ([]string, error)
	NewsChannel(partition uint16) string
	Cluster() bool
	Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
		fn func(channel, message string)) error
}

// feedPage is how many entries of a partition are read at once.
const feedPage = 100

// feedReads is how many executions are read at the same time, to choose events.
const feedReads = 16

// SubscribeOptions say what to follow. The zero value follows executions that end, from now on.
type SubscribeOptions struct {
	// Ends, Leases and Signals choose the events; none of them means Ends. Leases are all changes of state that are no
	// end: claimed, released, retried, requeued, suspended, resumed.
	Ends, Leases, Signals bool

	// Namespace, Lane, Kind and Tags choose executions; "" and none are any. With any of them each execution that has
	// an event is read once a page, which is a call for each; an event of one that was purged before it was read is
	// left out.
	Namespace, Lane, Kind string
	Tags                  map[string]string

	From   string // go on after this, which Subscription.Cursor gave; empty is now
	Oldest bool   // without From: begin with the oldest event that is kept

	// Keep is for how long recording goes on when nobody follows: 1 min..7 days, default 24 h. A subscriber that
	// comes back within it, and within the 24 h that events are kept, misses nothing.
	Keep time.Duration
	// Length is how many entries each partition keeps, about; an entry holds the events of one call. Default 100,000.
	Length int
}

// Subscription follows what happens. It is made by [Admin.Subscribe] and used by one goroutine, but for Cursor.
type Subscription struct {
	admin  *Admin
	wish   engine.FeedWish
	of     SubscribeOptions // which executions
	booted []string         // when each partition was, as last seen; of the loop alone
	lost   []uint16         // partitions that were booted again, which is to be told; of the loop alone

	mu     sync.Mutex
	cursor feedCursor
}

// Subscribe begins to record the events that are asked for, in all partitions, and returns a subscription that starts
// where the options say. Events that happened while nobody had asked for their kind are not there. Recording costs a
// call that has such an event one append (about a tenth of what the call costs), and memory of about 100 bytes an
// event.
//
// Errors: flowfabric.ErrInvalidInput for Keep, Length or a cursor of another store; ErrTransport and others when a
// partition cannot be told. The call may be repeated.
func (a *Admin) Subscribe(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	if a.closed() {
		return nil, fmt.Errorf("subscribe: %w", client.ErrClosed)
	}
	wish := engine.FeedWish{Ends: o.Ends || !o.Leases && !o.Signals, Leases: o.Leases, Signals: o.Signals, Keep: o.Keep,
		Length: o.Length}
	if wish.Keep == 0 {
		wish.Keep = engine.FeedRetention
	}
	if wish.Keep < engine.MinFeedKeep || wish.Keep > engine.MaxFeedKeep {
		return nil, fmt.Errorf("subscribe: %w: Keep is %s, want %s..%s", flowfabric.ErrInvalidInput, o.Keep,
			engine.MinFeedKeep, engine.MaxFeedKeep)
	}
	n := int(a.store.Partitions())
	from, err := parseFeedCursor(o.From)
	if err = errors.Join(err, o.validate()); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	s := &Subscription{admin: a, wish: wish, of: o, cursor: from}
	var unnumbered []int
	switch {
	case o.From == "":
		if s.cursor.at, unnumbered, err = s.begin(ctx, n, o.Oldest); err != nil {
			return nil, fmt.Errorf("subscribe: %w", err)
		}
	case len(from.at) != n:
		return nil, fmt.Errorf("subscribe: %w: From is a cursor over %d partitions, this store has %d",
			flowfabric.ErrInvalidInput, len(from.at), n)
	}
	states, err := s.record(ctx)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	for i, state := range states {
		if s.cursor.at[i].number > state.Number { // counted by a store that is gone: begin with the oldest, after a gap
			s.cursor.at[i] = feedPlace{}
			s.lost = append(s.lost, uint16(i))
		}
	}
	if s.booted, err = a.store.Booted(ctx); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	for _, i := range unnumbered { // nothing was there to tell it, so that all entries up to now are trimmed
		s.cursor.at[i].number = states[i].Number
	}
	return s, nil
}

// begin finds where to begin in every partition, before the oldest entry or after the newest, and lists the partitions
// in which no entry tells its number.
func (s *Subscription) begin(ctx context.Context, n int, oldest bool) ([]feedPlace, []int, error) {
	at, told := make([]feedPlace, n), make([]bool, n)
	look := s.newest
	if oldest {
		look = s.oldest
	}
	p := pool.New().WithContext(ctx).WithMaxGoroutines(16).WithCancelOnError().WithFirstError()
	for i := range at {
		p.Go(func(ctx context.Context) (err error) {
			at[i], told[i], err = look(ctx, uint16(i))
			return err
		})
	}
	var unnumbered []int
	err := p.Wait()
	for i := range told {
		if !told[i] {
			unnumbered = append(unnumbered, i)
		}
	}
	return at, unnumbered, err
}

// newest is the place after what is recorded already, and whether its number is known.
func (s *Subscription) newest(ctx context.Context, partition uint16) (feedPlace, bool, error) {
	last, err := s.admin.store.LastOfFeed(ctx, partition)
	return feedPlace{last.ID, last.Number}, last.Number > 0, err
}

// oldest is the place before what is kept, and whether its number is known.
func (s *Subscription) oldest(ctx context.Context, partition uint16) (feedPlace, bool, error) {
	entries, err := s.admin.store.ReadFeed(ctx, partition, stream.Cursor{}, feedPage)
	for i, entry := range entries {
		if before := uint64(i) + 1; entry.Err == nil && entry.Number >= before { // those in front of it cannot be read
			return feedPlace{number: entry.Number - before}, true, err
		}
	}
	return feedPlace{}, false, err
}

// record makes sure that the events are recorded from now on, and returns what each partition records.
func (s *Subscription) record(ctx context.Context) ([]engine.FeedState, error) {
	states := s.admin.store.SetFeed(ctx, s.wish)
	for _, state := range states {
		if state.Err != nil {
			return nil, fmt.Errorf("partition %d: %w", state.Partition, state.Err)
		}
	}
	return states, nil
}

// Cursor is the place after the last event that was consumed: a subscription that starts From it goes on there. An
// event counts as consumed when the loop asks for the next one, together with all events of the same call; so after a
// crash a few come twice, and none is left out. It is printable ASCII, about 25 bytes for each partition, to be
// stored and given back as it is. It may be called from any goroutine.
func (s *Subscription) Cursor() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor.String()
}

// Events yields events until ctx ends or the loop is left: those of one partition, and so of one execution, in the
// order in which they happened; those of different partitions as they are found. It waits for new ones without
// polling more than every 5 s; it goes on while the server cannot be reached.
//
// An error that wraps flowfabric.ErrFeedGap says that events of a partition were trimmed before they were read, or
// that the partition lost its data and was booted again: then recording begins anew within about 5 s, and a few
// events may come twice. One that wraps ErrCorrupt that an entry cannot be read and is left out; the loop may go on
// after both. Any other error is the last thing yielded: the context's cause, client.ErrClosed, flowfabric.ErrAuth
// and others that waiting cannot repair. Another Events call goes on where the last one ended.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[flowfabric.FeedEvent, error] {
	return func(yield func(flowfabric.FeedEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		f := newFollower(ctx, s)
		defer f.owner.Wait()
		defer cancel()
		f.listen()
		if err := f.run(yield); err != nil {
			yield(flowfabric.FeedEvent{}, fmt.Errorf("subscription: %w", err))
		}
	}
}

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

// hear keeps one subscription; whenever it stands anew, what was missed is read.
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

// all tells whether events of every execution are asked for.
func (o *SubscribeOptions) all() bool {
	return o.Namespace == "" && o.Lane == "" && o.Kind == "" && len(o.Tags) == 0
}

func (o *SubscribeOptions) validate() error {
	for _, name := range []struct{ field, value string }{{"namespace", o.Namespace}, {"lane", o.Lane},
		{"kind", o.Kind}} {
		if name.value == "" {
			continue
		}
		if err := valid.Name(name.field, name.value); err != nil {
			return err
		}
	}
	return valid.Tags(o.Tags)
}

// matches tells whether an execution is asked for.
func (o *SubscribeOptions) matches(s flowfabric.Snapshot) bool {
	for k, v := range o.Tags {
		if have, ok := s.Tags[k]; !ok || have != v {
			return false
		}
	}
	r := s.Route
	return (o.Namespace == "" || r.Namespace == o.Namespace) && (o.Lane == "" || r.Lane == o.Lane) &&
		(o.Kind == "" || r.Kind == o.Kind)
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

func (s *Subscription) place(p uint16) feedPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor.at[p]
}

func (s *Subscription) consumed(p uint16, place feedPlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor.at[p] = place
}
