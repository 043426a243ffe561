package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
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
// that the partition lost its data and was booted again: then recording starts again within about 5 s, and a few
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
