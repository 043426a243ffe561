package client

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/engine"
)

// lister makes one page. A home is a row of groups, and a group a few sources that are merged: all partitions of a home that is
// ordered by time, the routes of one partition, or one session. at is where it has got, at every moment.
type lister struct {
	client *Client
	filter Filter
	limit  int
	at     place
	looked int
	out    []engine.Listed
}

// group is what is merged.
type group struct {
	partition uint16
	key       string
	sources   []*source
}

// source is one sorted set of one partition.
type source struct {
	partition uint16
	key       string
	after     engine.Position
	chunk     int // how many are read next
	more      bool
	buffer    []engine.Listed
}

// full tells whether the page is done, though there may be more.
func (l *lister) full() bool { return len(l.out) >= l.limit || l.looked >= maxLooked }

// run fills the page and tells whether another may follow it.
func (l *lister) run(ctx context.Context) (more bool, err error) {
	for l.at.home < len(homes) {
		if home := homes[l.at.home]; l.filter.wants(home) {
			walk := l.merged
			if home == engine.HomeWaiting || home == engine.HomeActive {
				walk = l.apart
			}
			if full, err := walk(ctx, home); err != nil || full {
				return full, err
			}
		}
		l.at = place{home: l.at.home + 1}
	}
	return false, nil
}

// merged lists a home that is ordered by time, over all partitions.
func (l *lister) merged(ctx context.Context, home engine.Home) (full bool, err error) {
	var g group
	for p := range l.client.store.Partitions() {
		g.sources = append(g.sources, &source{partition: p})
	}
	return l.merge(ctx, home, g)
}

// apart lists a home whose groups are of one partition each, a few partitions at a time.
func (l *lister) apart(ctx context.Context, home engine.Home) (full bool, err error) {
	find := l.queues
	if home == engine.HomeActive {
		find = l.sessions
	}
	for first, n := int(l.at.partition), int(l.client.store.Partitions()); first < n; first += partitionCalls {
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
				l.at = place{home: l.at.home, partition: g.partition, key: g.key}
			}
			if full, err := l.merge(ctx, home, g); err != nil || full {
				return full, err
			}
		}
	}
	return false, nil
}

// queues is the group of a partition's routes that have something for the filter.
func (l *lister) queues(ctx context.Context, partition uint16) ([]group, error) {
	queues, err := l.client.store.Queues(ctx, partition)
	g := group{partition: partition}
	for _, q := range queues {
		if q.Depth > 0 && (q.Drift != "" || l.filter.routed(q.Route)) {
			g.sources = append(g.sources, &source{partition: partition, key: strconv.FormatUint(q.Route.ID, 10)})
		}
	}
	if len(g.sources) == 0 {
		return nil, err
	}
	return []group{g}, err
}

// sessions are the groups of a partition's sessions.
func (l *lister) sessions(ctx context.Context, partition uint16) (groups []group, err error) {
	holders, err := l.client.store.PartitionSessions(ctx, partition)
	for _, h := range holders {
		if h.Held > 0 && l.filter.holds(h.ID) {
			groups = append(groups, group{partition, h.ID, []*source{{partition: partition, key: h.ID}}})
		}
	}
	return groups, err
}

// merge lists a group in the order of its sources together, from where the lister is.
func (l *lister) merge(ctx context.Context, home engine.Home, g group) (full bool, err error) {
	each := 2*(l.limit-len(l.out))/len(g.sources) + 2
	for _, s := range g.sources {
		s.after, s.chunk, s.more = l.at.after, min(each, 100), true
	}
	if err := l.fill(ctx, home, g.sources); err != nil {
		return false, err
	}
	q := &merging{newest: l.filter.Newest}
	for _, s := range g.sources {
		if len(s.buffer) > 0 {
			q.sources = append(q.sources, s)
		}
	}
	heap.Init(q)
	for q.Len() > 0 {
		if l.full() {
			return true, nil
		}
		s := q.sources[0]
		x := s.buffer[0]
		s.buffer = s.buffer[1:]
		l.at.after = x.Position()
		l.looked++
		if l.filter.has(x) {
			l.out = append(l.out, x)
		}
		if len(s.buffer) == 0 && s.more {
			if l.full() { // there is more, and nobody will read it now
				return true, nil
			}
			if err := l.fill(ctx, home, []*source{s}); err != nil {
				return false, err
			}
		}
		if len(s.buffer) == 0 {
			heap.Pop(q)
		} else {
			heap.Fix(q, 0)
		}
	}
	return false, nil
}

// fill reads the next entries of sources that have none left, until they have some or nothing more.
func (l *lister) fill(ctx context.Context, home engine.Home, sources []*source) error {
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(partitionCalls).WithContext(ctx).WithCancelOnError()
	for _, s := range sources {
		p.Go(func(ctx context.Context) error {
			for len(s.buffer) == 0 && s.more {
				page, err := l.client.store.ListExecutions(ctx, s.partition, engine.ListQuery{Home: home, Key: s.key,
					Newest: l.filter.Newest, After: s.after, Limit: s.chunk, Tags: l.filter.WithTags})
				if err != nil {
					return inPartition(s.partition, err)
				}
				s.buffer, s.more = page.Executions, page.More && len(page.Executions) > 0
				if n := len(s.buffer); n > 0 {
					s.after = s.buffer[n-1].Position()
				}
				s.chunk = min(2*s.chunk, 100)
			}
			return nil
		})
	}
	return p.Wait()
}

func inPartition(partition uint16, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("partition %d: %w", partition, err)
}

// merging is a heap of sources by their next entry.
type merging struct {
	sources []*source
	newest  bool
}

func (q *merging) Len() int { return len(q.sources) }

func (q *merging) Less(i, j int) bool {
	a, b := q.sources[i].buffer[0], q.sources[j].buffer[0]
	if q.newest {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Member, b.Member)) < 0
}

func (q *merging) Swap(i, j int) { q.sources[i], q.sources[j] = q.sources[j], q.sources[i] }

func (q *merging) Push(any) {} // sources are known from the beginning

func (q *merging) Pop() any {
	q.sources = q.sources[:len(q.sources)-1]
	return nil
}
