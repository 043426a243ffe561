package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// lister makes one page. An index is a row of groups, and a group a few sources that are merged: all partitions of an
// index that is ordered by time, the routes of one partition, or one session. at is where it has got, at every
// moment.
type lister struct {
	store  store
	filter Filter
	limit  int
	at     place
	looked int
	out    []Listed
}

// group is what is merged.
type group struct {
	partition uint16
	key       string
	sources   []*source[engine.Listed]
}

// full tells whether the page is done, though there may be more.
func (l *lister) full() bool { return len(l.out) >= l.limit || l.looked >= maxLooked }

// run fills the page and tells whether another may follow it.
func (l *lister) run(ctx context.Context) (more bool, err error) {
	if flow := l.filter.Flow; !flow.IsZero() {
		return l.merge(ctx, engine.IndexFlow, group{partition: flow.Partition(),
			sources: []*source[engine.Listed]{{partition: flow.Partition(), key: ids.UUID(flow).String()}}})
	}
	if l.at.index >= len(indexes) {
		resumed := l.at.after.Member != ""
		more, err := l.across(ctx)
		if !errors.Is(err, denied.NotIndexed) {
			return more, err
		}
		if resumed {
			return false, fmt.Errorf("%w: cursor of a list that the store does not keep any more; begin again",
				flowfabric.ErrInvalidInput)
		}
		l.at = place{}
	}
	for l.at.index < len(indexes) {
		if index := indexes[l.at.index]; l.filter.wants(index) {
			walk := l.merged
			if index == engine.IndexWaiting || index == engine.IndexActive {
				walk = l.apart
			}
			if full, err := walk(ctx, index); err != nil || full {
				return full, err
			}
		}
		l.at = place{index: l.at.index + 1}
	}
	return false, nil
}

// across lists executions of all states by when they were created, those with a tag if the filter has one.
func (l *lister) across(ctx context.Context) (more bool, err error) {
	index := engine.IndexCreated
	wanted := []string{engine.CreatedKey(one(l.filter.Namespace), l.filter.Lane, l.filter.Kind)}
	if l.at.index == byTag {
		index, wanted = engine.IndexTagged, nil
		for _, key := range slices.Sorted(maps.Keys(l.filter.Tags)) {
			wanted = append(wanted, engine.TaggedKey(key, l.filter.Tags[key]))
		}
		if l.at.key != "" {
			wanted = []string{l.at.key}
		}
	}
	for _, key := range wanted {
		var g group
		for p := range l.store.Partitions() {
			g.sources = append(g.sources, &source[engine.Listed]{partition: p, key: key})
		}
		l.at.key = key
		if more, err = l.merge(ctx, index, g); !errors.Is(err, denied.NotIndexed) {
			return more, err
		}
	}
	return false, err
}

// merged lists an index that is ordered by time, over all partitions.
func (l *lister) merged(ctx context.Context, index engine.Index) (full bool, err error) {
	var g group
	for p := range l.store.Partitions() {
		g.sources = append(g.sources, &source[engine.Listed]{partition: p})
	}
	return l.merge(ctx, index, g)
}

// apart lists an index whose groups are of one partition each, a few partitions at a time.
func (l *lister) apart(ctx context.Context, index engine.Index) (full bool, err error) {
	find := l.queues
	if index == engine.IndexActive {
		find = l.sessions
	}
	for first, n := int(l.at.partition), int(l.store.Partitions()); first < n; first += partitionCalls {
		found := make([][]group, min(partitionCalls, n-first))
		p := pool.New().WithErrors().WithFirstError().WithContext(ctx).WithCancelOnError()
		for i := range found {
			p.Go(func(ctx context.Context) (err error) {
				found[i], err = find(ctx, uint16(first+i))
				return inPartition(uint16(first+i), err)
			})
		}
		if err := p.Wait(); err != nil {
			return false, err
		}
		for _, g := range slices.Concat(found...) {
			if c := cmp.Or(cmp.Compare(g.partition, l.at.partition), strings.Compare(g.key, l.at.key)); c < 0 {
				continue
			} else if c > 0 {
				l.at = place{index: l.at.index, partition: g.partition, key: g.key}
			}
			if full, err := l.merge(ctx, index, g); err != nil || full {
				return full, err
			}
		}
	}
	return false, nil
}

// queues is the group of a partition's routes that have something for the filter.
func (l *lister) queues(ctx context.Context, partition uint16) ([]group, error) {
	queues, err := l.store.Queues(ctx, partition, one(l.filter.Namespace), 0)
	g := group{partition: partition}
	for _, q := range queues {
		if q.Depth > 0 && (q.Drift != "" || l.filter.routed(q.Route)) {
			g.sources = append(g.sources,
				&source[engine.Listed]{partition: partition, key: strconv.FormatUint(q.Route.ID, 10)})
		}
	}
	if len(g.sources) == 0 {
		return nil, err
	}
	return []group{g}, err
}

// sessions are the groups of a partition's sessions.
func (l *lister) sessions(ctx context.Context, partition uint16) (groups []group, err error) {
	holders, err := l.store.PartitionSessions(ctx, partition)
	for _, h := range holders {
		if h.Held > 0 && l.filter.holds(h.ID) {
			groups = append(groups, group{partition, h.ID, []*source[engine.Listed]{{partition: partition, key: h.ID}}})
		}
	}
	return groups, err
}

// merge lists a group in the order of its sources together, from where the lister is.
func (l *lister) merge(ctx context.Context, index engine.Index, g group) (full bool, err error) {
	from, before := l.filter.span(index)
	if l.at.after.Member == "" {
		l.at.after = start(from, before, l.filter.Newest)
	}
	m := merging[engine.Listed]{sources: g.sources, newest: l.filter.Newest, full: l.full}
	m.take = func(x engine.Listed) {
		l.at.after = x.Position()
		l.looked++
		if l.filter.has(x, across(index)) {
			l.out = append(l.out, newListed(x))
		}
	}
	m.read = func(ctx context.Context, s *source[engine.Listed]) error {
		page, err := l.store.ListExecutions(ctx, s.partition, engine.ListQuery{Index: index, Key: s.key,
			Newest: l.filter.Newest, After: s.after, Limit: s.chunk, Tags: l.filter.WithTags,
			Reasons: l.filter.WithReasons})
		s.buffer, s.more = page.Executions, page.More
		if i := slices.IndexFunc(s.buffer, func(x engine.Listed) bool {
			return x.Score < from || x.Score >= before
		}); i >= 0 {
			s.buffer, s.more = s.buffer[:i], false
		}
		return err
	}
	return m.run(ctx, l.at.after, l.limit-len(l.out))
}

// start is the place before the first entry whose score is asked for; the zero value is the end of the index.
func start(from, before int64, newest bool) engine.Position {
	const least = "-" // comes before the ids of executions
	if newest && before < math.MaxInt64 {
		return engine.Position{Score: before, Member: least}
	} else if !newest && from > math.MinInt64 {
		return engine.Position{Score: from, Member: least}
	}
	return engine.Position{}
}
