package admin

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/failed"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/narrow"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Ended stands for all states in which an execution has ended, in [Filter].States only.
const Ended flowfabric.PublicState = "ended"

// Held stands for what operators hold ([Admin.Hold]), whose public state is waiting, in [Filter].States only.
const Held flowfabric.PublicState = "held"

// maxErrorText is how long a text may be that is looked for in messages, in bytes.
const maxErrorText = 1024

// maxLooked is how many entries one page looks at before it returns with what it has.
const maxLooked = 10000

// indexes are listed in the order in which work goes through them, so that what moves on meanwhile is rather seen
// twice than not.
var indexes = [...]engine.Index{engine.IndexBlocked, engine.IndexHeld, engine.IndexWaiting, engine.IndexDelayed,
	engine.IndexSuspended, engine.IndexActive, engine.IndexEnded, engine.IndexUnsuccessful}

// The lists that span states come behind them as places of a cursor.
const (
	inCreation = len(indexes) + iota
	byTag
)

// indexOf are the states that may be asked for, and where executions in them are. What ended other than completed is
// in engine.IndexEnded, too, which is read instead when completed ones are asked for as well.
var indexOf = map[flowfabric.PublicState]engine.Index{
	flowfabric.WaitingChildren: engine.IndexBlocked, flowfabric.Waiting: engine.IndexWaiting,
	flowfabric.WaitingGate: engine.IndexWaiting,
	flowfabric.Delayed:     engine.IndexDelayed, flowfabric.Suspended: engine.IndexSuspended,
	Held: engine.IndexHeld, flowfabric.Active: engine.IndexActive, Ended: engine.IndexEnded,
	flowfabric.Completed: engine.IndexEnded, flowfabric.Failed: engine.IndexUnsuccessful,
	flowfabric.Cancelled: engine.IndexUnsuccessful, flowfabric.Expired: engine.IndexUnsuccessful,
	flowfabric.Skipped: engine.IndexUnsuccessful,
}

// Filter says what [Admin.List] lists. The zero value is everything in the client's namespace.
type Filter struct {
	Namespace  string // default client.Config.Namespace; or AllNamespaces
	Lane, Kind string // "" = any
	// States: waiting_children, waiting, waiting_gate, delayed, suspended, active, completed,
	// failed, cancelled, expired, skipped, or [Ended] for the last five; [Held] for what operators hold. Waiting
	// leaves out what is held, and what a gate or a limit of a key keeps from being handed out. Default
	// all. What is granted, because a worker asks its gates at the moment, is listed by default only,
	// with what is active.
	//
	// Failed lists all that ended because its attempts failed: also what ended as expired because its last attempt
	// timed out (category attempt_timeout), which expired lists as well. What ran into its deadline is expired only.
	States []flowfabric.PublicState
	// Categories of failure, any of them: of the end, or of the last failed attempt of what is retried or was
	// cancelled since. Default any, also none. What completed has none.
	Categories []flowfabric.Category
	// Since and Until bound the time of the end of what ended, and of the creation of everything else: from Since on,
	// and before Until, by the server's clock. The zero time is no bound. When only failed, cancelled, expired or
	// skipped ones are listed of what ended, entries outside of the bounds are not read at all.
	Since, Until time.Time
	// ErrorText is part of the message of that failure, in any case of letters. Default any, also none.
	ErrorText string
	// Tags that an execution must have, all of them, with these values.
	Tags map[string]string
	// Flow lists only the members of this flow, in the order in which they came. Its partition alone is asked.
	Flow flowfabric.FlowID
	// HeldBy lists only what is active under this session or worker instance; of a session that is dead until the
	// tick has requeued it.
	HeldBy string
	// Newest lists every state from its other end: what waits at the end of its queue first. Of what ended, what
	// ended last comes first when States names none of completed and [Ended]. Else what is purged last comes first,
	// which is what ended last only among executions of one retention.
	Newest bool
	// WithTags reads the tags of what is listed. Implied by Tags.
	WithTags bool
	// WithReasons reads the message of the last failure of what is listed. Implied by ErrorText.
	WithReasons bool

	narrow narrow.Filter // what a door adds
}

// Page is one page of a listing.
type Page[T any] struct {
	Items []T `json:"items"`
	// Cursor leads to the next page; "" when there is none. A page may be short, or empty, and have one.
	Cursor string `json:"next_cursor,omitempty" jsonschema:"absent after the last page"`
	// Missing says which partitions did not answer, of a list that the HTTP API answers all the same; "" when all did.
	Missing string `json:"missing,omitempty" jsonschema:"which partitions did not answer, so that what they have is not in the list"`
}

// Listed is one execution of a listing: what [flowfabric.Snapshot] says that one read of many tells.
type Listed struct {
	ID    flowfabric.ExecutionID `json:"id,omitzero" jsonschema:"absent for an entry that names none"`
	Drift string                 `json:"drift,omitempty" jsonschema:"damage of the entry, for example that its execution is missing; then the rest may be empty"`
	flowfabric.ExecutionSummary
	Since   time.Time `json:"since,omitzero" jsonschema:"when it was suspended or held; of those only"`
	PurgeAt time.Time `json:"purge_at,omitzero" jsonschema:"time of the purge; ended executions only"`
}

func newListed(x engine.Listed) Listed {
	return Listed{ID: x.ID, Drift: x.Drift, ExecutionSummary: x.ExecutionSummary, Since: x.Since, PurgeAt: x.PurgeAt}
}

// ListPage lists executions in all partitions, limit of them (1..1,000; 0 is 100), beginning behind the place that
// cursor names: "", or the Cursor of the page before, with the same filter.
//
// With States that span open and ended ones, or none, the list is in the order of creation if the store keeps that
// ([Admin.SetIndex]), and so is one with a tag that it keeps: everything that stays in the store comes exactly once,
// whatever happens to it meanwhile, and Since and Until bound the creation. Without:
//
// States come one after another: waiting_children (what was created first), held (what was held first), waiting (by
// partition and there in the order of claims), delayed (what is due first), suspended (what was suspended first),
// active (by partition, session and claim), ended. Waiting_children, held, delayed, suspended and ended ones of all
// partitions are merged.
//
// What ended comes in the order of the ends when failed, cancelled, expired or skipped ones are asked for: a page
// costs what it lists, however many completed ones there are. When completed or [Ended] is among the states, or
// States is empty, it comes in the order in which it is purged. With different retentions that is not the order of
// the ends: sort what was listed by EndedAt, or list one lane.
//
// What stays in its state, and waits at its priority, while all pages are read is listed exactly once. What changes
// its state meanwhile may be listed twice or not at all; a revoked execution is in no state for the moment until it
// is queued again. An entry that is damaged is listed with its Drift, whatever else the filter asks for, unless Since
// and Until keep it from being read.
//
// With a flow in the filter its members come in the order in which they came, whatever their state.
//
// A page looks at 10,000 executions at most: with a filter that few of them match it comes back short, with a cursor.
// It makes a call to every partition that may have something for it, and one for every 100 executions that it looks
// at.
//
// Errors: flowfabric.ErrInvalidInput for a filter, limit or cursor that is not legal, before any call; ErrTransport,
// ErrPartitionFrozen and others when a partition does not answer: the same page may be asked for again;
// [client.ErrClosed].
func (a *Admin) ListPage(ctx context.Context, f Filter, cursor string, limit int) (Page[Listed], error) {
	page, err := a.listPage(ctx, f, cursor, cmp.Or(limit, limits.DefaultListPage))
	if err != nil {
		return Page[Listed]{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

func (a *Admin) listPage(ctx context.Context, f Filter, cursor string, limit int) (Page[Listed], error) {
	if a.closed() {
		return Page[Listed]{}, client.ErrClosed
	}
	if limit < 1 || limit > limits.MaxListPage {
		return Page[Listed]{}, fmt.Errorf("%w: limit %d, want 1..%d", flowfabric.ErrInvalidInput, limit,
			limits.MaxListPage)
	}
	f.narrow = narrow.Of(ctx)
	f, err := f.complete(a.conn.Namespace)
	if err != nil {
		return Page[Listed]{}, err
	}
	mark := f.mark(a.store.Partitions())
	at, err := parsePlace(cursor, mark, a.store.Partitions())
	if err != nil {
		return Page[Listed]{}, err
	}
	if cursor == "" {
		at.index = f.first()
	}
	if !f.Flow.IsZero() && f.Flow.Partition() >= a.store.Partitions() {
		return Page[Listed]{}, fmt.Errorf("%w: Filter.Flow %s is of another store, this one has %d partitions",
			flowfabric.ErrInvalidInput, f.Flow, a.store.Partitions())
	}
	l := &lister{store: a.store, filter: f, limit: limit, at: at}
	more, err := l.run(ctx)
	if err != nil {
		return Page[Listed]{}, err
	}
	page := Page[Listed]{Items: l.out}
	if more {
		page.Cursor = l.at.text(mark)
	}
	return page, nil
}

// List is [Admin.ListPage] for all pages. The loop ends after the last execution, or with an error. It may be left at
// any time.
func (a *Admin) List(ctx context.Context, f Filter) iter.Seq2[Listed, error] {
	return pages(func(cursor string) (Page[Listed], error) { return a.ListPage(ctx, f, cursor, limits.MaxListPage) })
}

// pages yields the entries of page after page.
func pages[T any](read func(cursor string) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor, more := "", true; more; {
			page, err := read(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, x := range page.Items {
				if !yield(x, nil) {
					return
				}
			}
			cursor, more = page.Cursor, page.Cursor != ""
		}
	}
}

// complete checks a filter and fills in its defaults.
func (f Filter) complete(namespace string) (Filter, error) {
	f.Namespace = cmp.Or(f.Namespace, namespace)
	for _, name := range [...]struct{ field, value string }{{"Filter.Namespace", f.Namespace}, {"Filter.Lane", f.Lane},
		{"Filter.Kind", f.Kind}, {"Filter.HeldBy", f.HeldBy}} {
		if name.value == "" {
			continue
		}
		if err := valid.Name(name.field, name.value); err != nil {
			return f, err
		}
	}
	if err := valid.Tags(f.Tags); err != nil {
		return f, err
	}
	if f.HeldBy != "" && len(f.States) == 0 {
		f.States = []flowfabric.PublicState{flowfabric.Active}
	}
	switch {
	case len(f.States) > 0:
	case f.narrow.Shape != "":
		f.States = []flowfabric.PublicState{flowfabric.Failed}
	case f.narrow.Version != "":
		f.States = unended
	}
	for _, s := range f.States {
		index, known := indexOf[s]
		if !known {
			return f, fmt.Errorf(
				"%w: Filter.States has %q, want waiting_children, waiting, waiting_gate, held, delayed, suspended, active, completed, failed, cancelled, "+
					"expired, skipped or ended", flowfabric.ErrInvalidInput, s)
		}
		if f.HeldBy != "" && index != engine.IndexActive {
			return f, fmt.Errorf("%w: Filter.HeldBy lists active executions only, but States has %q",
				flowfabric.ErrInvalidInput, s)
		}
	}
	if !f.Flow.IsZero() && f.HeldBy != "" {
		return f, fmt.Errorf("%w: Filter.Flow and HeldBy exclude each other", flowfabric.ErrInvalidInput)
	}
	if slices.Contains(f.Categories, "") {
		return f, fmt.Errorf("%w: Filter.Categories has an empty name, want a failure category such as %s or %s",
			flowfabric.ErrInvalidInput, causes.HandlerError, causes.Timeout)
	}
	if len(f.ErrorText) > maxErrorText {
		return f, fmt.Errorf("%w: Filter.ErrorText has %d bytes, want at most %d", flowfabric.ErrInvalidInput,
			len(f.ErrorText), maxErrorText)
	}
	if n := utf8.RuneCountInString(f.narrow.Shape); n > failed.MaxShape {
		return f, fmt.Errorf("%w: shape has %d characters, want at most %d", flowfabric.ErrInvalidInput, n,
			failed.MaxShape)
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, fmt.Errorf("%w: Filter.Since %s is not before Until %s", flowfabric.ErrInvalidInput,
			f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	f.WithTags = f.WithTags || len(f.Tags) > 0
	f.WithReasons = f.WithReasons || f.ErrorText != "" || f.narrow.Shape != ""
	return f, nil
}

// first is where a listing begins: in the order of creation if states are asked for that no other order spans, or a
// tag, which the store may keep a list of.
func (f Filter) first() int {
	open := slices.ContainsFunc(indexes[:], func(i engine.Index) bool {
		return i != engine.IndexEnded && i != engine.IndexUnsuccessful && f.wants(i)
	})
	switch {
	case !f.Flow.IsZero() || f.HeldBy != "":
		return 0
	case len(f.Tags) > 0:
		return byTag
	case open && (f.wants(engine.IndexEnded) || f.wants(engine.IndexUnsuccessful)):
		return inCreation
	}
	return 0
}

// wants tells whether anything of an index is asked for.
func (f Filter) wants(index engine.Index) bool {
	if index == engine.IndexUnsuccessful && f.wants(engine.IndexEnded) {
		return false // it lists them, too
	}
	return len(f.States) == 0 ||
		slices.ContainsFunc(f.States, func(s flowfabric.PublicState) bool { return indexOf[s] == index })
}

// span is which scores of an index are asked for, from one on and before another: an index of ends is ordered by what
// Since and Until bound.
func (f Filter) span(index engine.Index) (from, before int64) {
	from, before = math.MinInt64, math.MaxInt64
	if bounded := index == engine.IndexUnsuccessful || across(index); !bounded {
		return from, before
	}
	if !f.Since.IsZero() {
		from = score(f.Since)
	}
	if !f.Until.IsZero() {
		before = score(f.Until)
	}
	return from, before
}

// maxScore is the largest score that a server keeps as a whole number.
const maxScore = 1<<53 - 1

// score is the first millisecond that is not before an instant, as a score.
func score(at time.Time) int64 {
	if at.Before(time.UnixMilli(0)) {
		return 0
	} else if at.After(time.UnixMilli(maxScore)) {
		return maxScore
	}
	return at.Add(time.Millisecond - 1).UnixMilli()
}

// routed tells whether executions of a route are asked for.
func (f Filter) routed(r engine.Route) bool {
	return within(f.Namespace, r.Namespace) && (f.Lane == "" || r.Lane == f.Lane) && (f.Kind == "" || r.Kind == f.Kind)
}

// holds tells whether a session is asked for.
func (f Filter) holds(session string) bool {
	return f.HeldBy == "" || session == f.HeldBy || ids.Worker(session) == f.HeldBy
}

// across tells whether an index has executions of all states by when they were created.
func across(index engine.Index) bool {
	return index == engine.IndexCreated || index == engine.IndexTagged
}

// has tells whether an entry of an index that is asked for is asked for.
func (f Filter) has(x engine.Listed, created bool) bool {
	if x.Drift != "" {
		return true
	}
	for k, v := range f.Tags {
		if have, ok := x.Tags[k]; !ok || have != v {
			return false
		}
	}
	if f.ErrorText != "" && !strings.Contains(strings.ToLower(x.Failure.Message), strings.ToLower(f.ErrorText)) {
		return false
	}
	if f.narrow.Shape != "" && (x.Failure == flowfabric.Failure{} ||
		!failed.Matches(f.narrow.Shape, x.Route.Kind, x.Failure)) {
		return false
	}
	if v := f.narrow.Version; v != "" && ids.SessionMark(x.Session) != ids.VersionMark(v) {
		return false
	}
	at := x.CreatedAt
	if x.State.Terminal() && !created {
		at = x.EndedAt
	}
	if !f.Since.IsZero() && at.Before(f.Since) || !f.Until.IsZero() && !at.Before(f.Until) {
		return false
	}
	if !f.routed(x.Route) || len(f.Categories) > 0 && !slices.Contains(f.Categories, x.Failure.Category) {
		return false
	}
	return len(f.States) == 0 || slices.ContainsFunc(f.States, func(s flowfabric.PublicState) bool {
		held := x.State.BlockingReason == codes.Held
		switch s {
		case Ended:
			return x.State.Terminal()
		case Held:
			return held
		case flowfabric.Waiting:
			return x.State.Public == s && !held
		case flowfabric.Failed:
			return gaveUp(x)
		}
		return x.State.Public == s
	})
}

// gaveUp tells whether an execution ended because its attempts failed, whatever its state is called.
func gaveUp(x engine.Listed) bool {
	return x.State.Public == flowfabric.Failed ||
		x.State.Public == flowfabric.Expired && x.Failure.Category == causes.Timeout
}
