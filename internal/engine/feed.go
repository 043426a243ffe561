package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Bounds and defaults of the feed.
const (
	FeedRetention     = 24 * time.Hour // events are kept this long, if the feed's length allows
	MinFeedKeep       = time.Minute
	MaxFeedKeep       = 7 * 24 * time.Hour
	DefaultFeedLength = 100_000 // entries kept in a partition, about; an entry holds all events of one call
)

// FeedWish says what is to be recorded in the feeds. Recording costs an append for every call that has such an event,
// so nothing is recorded unless somebody wishes it, and it ends by itself.
type FeedWish struct {
	Ends    bool          // executions that ended
	Leases  bool          // every other change of state: claimed, released, retried, requeued, suspended, resumed
	Signals bool          // signals that were accepted
	Keep    time.Duration // recording goes on for this long from now, 1 min..7 days
	Length  int           // entries kept in a partition, about: 1,000..10,000,000; 0 = 100,000
}

func (w FeedWish) kinds() string {
	kinds := ""
	if w.Ends {
		kinds += "c"
	}
	if w.Leases {
		kinds += "l"
	}
	if w.Signals {
		kinds += "s"
	}
	return kinds
}

// FeedState is what a partition records. Ends, Leases and Signals are the wishes of all.
type FeedState struct {
	Partition             uint16
	Ends, Leases, Signals bool
	Until                 time.Time
	Number                uint64 // of the newest entry ever recorded
	Err                   error
}

// The kinds of events.
const (
	FeedEnd    = "end"
	FeedLease  = "lease"
	FeedSignal = "signal"
)

// FeedEntry is what one call recorded.
type FeedEntry struct {
	ID     stream.Cursor // where to read on
	Number uint64        // counts up by one; a jump tells that entries were trimmed before they were read
	Events []flowfabric.FeedEvent
	Err    error // flowfabric.ErrCorrupt: the entry cannot be read; the ones after it can
}

// SetFeed starts or prolongs recording in every partition; a zero wish without kinds ends it for all, and removes what
// was recorded. Each partition has its own error; the call may be repeated.
func (e *Engine) SetFeed(ctx context.Context, wish FeedWish) []FeedState {
	return forEach(e, func(i uint16) FeedState { return e.setFeed(ctx, i, wish) })
}

// setFeed says what one partition records (lua/operate/ff_set_feed.lua).
func (e *Engine) setFeed(ctx context.Context, partition uint16, wish FeedWish) FeedState {
	r, _, err := ask[wire.SetFeedReply](ctx, e, partition, wire.SetFeed{Kinds: wish.kinds(),
		Keep: max(wish.Keep, MinFeedKeep), Length: cmp.Or(wish.Length, DefaultFeedLength)})
	return FeedState{Partition: partition, Ends: strings.Contains(r.Kinds, "c"),
		Leases: strings.Contains(r.Kinds, "l"), Signals: strings.Contains(r.Kinds, "s"), Until: r.Until,
		Number: uint64(r.Number), Err: err}
}

// NewsChannel is where a partition publishes that its feed has grown.
func (e *Engine) NewsChannel(partition uint16) string { return keys.Of(partition).News() }

// ReadFeed reads up to limit entries (1..1,000) after the given id (exclusive; the zero id is the oldest that is kept).
// Plain XRANGE.
func (e *Engine) ReadFeed(ctx context.Context, partition uint16, after stream.Cursor, limit int) ([]FeedEntry, error) {
	if partition >= e.partitions || limit < 1 || limit > 1000 {
		return nil, fmt.Errorf("read feed: %w: partition %d of %d, limit %d, want 1..1000", flowfabric.ErrInvalidInput,
			partition, e.partitions, limit)
	}
	client, err := e.reads(ctx)
	if err != nil {
		return nil, err
	}
	key := keys.Of(partition).Feed()
	entries, err := e.plainOn(ctx, client, func(c rueidis.Client) rueidis.Completed {
		return c.B().Xrange().Key(key).Start(behind(after)).End("+").Count(int64(limit)).Build()
	}).AsXRangeSlices()
	if err != nil {
		return nil, CallError("read feed", err)
	}
	return parseFeed(partition, entries)
}

// Booted tells of every partition when it was booted, as text to compare: another one says that the store was
// flushed, or lost its data, and was booted again since; "" that it is not booted. Plain HGET, in one round trip.
func (e *Engine) Booted(ctx context.Context) ([]string, error) {
	builds := make([]func(rueidis.Client) rueidis.Completed, len(e.roots))
	for i, root := range e.roots {
		builds[i] = func(c rueidis.Client) rueidis.Completed { return c.B().Hget().Key(root).Field("booted").Build() }
	}
	out := make([]string, len(builds))
	for i, answer := range e.plainAll(ctx, builds) {
		text, err := answer.ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, CallError("read when the partitions were booted", err)
		}
		out[i] = text
	}
	return out, nil
}

// LastOfFeed is the newest entry of a partition's feed; the zero id when there is none.
func (e *Engine) LastOfFeed(ctx context.Context, partition uint16) (FeedEntry, error) {
	client, err := e.reads(ctx)
	if err != nil {
		return FeedEntry{}, err
	}
	key := keys.Of(partition).Feed()
	entries, err := e.plainOn(ctx, client, func(c rueidis.Client) rueidis.Completed {
		return c.B().Xrevrange().Key(key).End("+").Start("-").Count(1).Build()
	}).AsXRangeSlices()
	if err != nil {
		return FeedEntry{}, CallError("read feed", err)
	}
	parsed, err := parseFeed(partition, entries)
	if err != nil || len(parsed) == 0 {
		return FeedEntry{}, err
	}
	return parsed[0], nil
}

func parseFeed(partition uint16, entries []rueidis.XRangeSlice) ([]FeedEntry, error) {
	out := make([]FeedEntry, 0, len(entries))
	for _, raw := range entries {
		id, err := ParseStreamID(raw.ID)
		if err != nil {
			return nil, fmt.Errorf("read feed of partition %d: %w: %w", partition, denied.Reply, err)
		}
		entry, err := parseFeedEntry(partition, raw)
		if err != nil { // one bad entry must not hide the others
			entry = FeedEntry{Err: fmt.Errorf("feed of partition %d: entry %s: %w: %w", partition, raw.ID,
				flowfabric.ErrCorrupt, err)}
		}
		entry.ID = id
		out = append(out, entry)
	}
	return out, nil
}

func parseFeedEntry(partition uint16, raw rueidis.XRangeSlice) (entry FeedEntry, err error) {
	if len(raw.FieldValues) == 0 || raw.FieldValues[0].Field != "n" {
		return entry, fmt.Errorf("has no number")
	}
	h := header{rest: raw.FieldValues[0].Value}
	entry.Number = h.unsigned()
	at := time.UnixMilli(int64(h.unsigned())).UTC()
	if h.err != nil || h.rest != "" {
		return entry, fmt.Errorf("number and time %q", clip(raw.FieldValues[0].Value))
	}
	for _, f := range raw.FieldValues[1:] {
		event, err := parseFeedEvent(partition, f.Field, f.Value)
		if err != nil {
			return entry, err
		}
		if event.Kind != "" {
			event.At = at
			entry.Events = append(entry.Events, event)
		}
	}
	return entry, nil
}

// parseFeedEvent reads one event; the zero event is one of a kind that a newer library records.
func parseFeedEvent(partition uint16, kind, text string) (e flowfabric.FeedEvent, err error) {
	h := header{rest: text}
	switch kind {
	case "c", "l":
		e = flowfabric.FeedEvent{Kind: FeedLease, Execution: h.id(partition)}
		state, known := codes.Project(codes.Code(h.next()))
		e.State, e.BlockingReason = state.Public, state.BlockingReason
		e.Attempt, e.Route, e.Epoch = int(h.orNone()), h.orNone(), h.orNone()
		e.Session = h.rest
		if kind == "c" {
			e.Kind = FeedEnd
		}
		if !known || e.Session == "" {
			return flowfabric.FeedEvent{}, fmt.Errorf("event %q", clip(text))
		}
		if e.Session == "-" {
			e.Session = ""
		}
		e.Worker = ids.Worker(e.Session)
	case "s":
		e = flowfabric.FeedEvent{Kind: FeedSignal, Execution: h.id(partition), Waitpoint: h.uuid(), Signal: h.uuid(),
			Effect: h.next(), Name: h.rest}
	}
	if h.err != nil {
		return flowfabric.FeedEvent{}, fmt.Errorf("event %q: %w", clip(text), h.err)
	}
	return e, nil
}
