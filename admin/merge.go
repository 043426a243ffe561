package admin

import (
	"cmp"
	"container/heap"
	"context"
	"strings"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// placed is an entry of a sorted set.
type placed interface{ Position() engine.Position }

// source is one sorted set of one partition, which is read in chunks.
type source[T placed] struct {
	partition uint16
	key       string
	after     engine.Position
	chunk     int // how many are read next
	more      bool
	buffer    []T
}

// merging lists the entries of a few sources in the order of all of them together. As a heap it has the sources with
// entries by the next one.
type merging[T placed] struct {
	sources []*source[T]
	newest  bool        // from the other end
	full    func() bool // enough was taken
	take    func(T)     // is told every entry
	// fills the buffer with up to chunk entries behind after, and says whether there are more
	read func(ctx context.Context, s *source[T]) error
}

// run takes entries behind a position until it is full, which may be before wanted, or nothing is left.
func (m *merging[T]) run(ctx context.Context, after engine.Position, wanted int) (full bool, err error) {
	if len(m.sources) == 0 {
		return false, nil
	}
	for _, s := range m.sources {
		s.after, s.chunk, s.more = after, min(2*wanted/len(m.sources)+2, 100), true
	}
	if err := m.fill(ctx, m.sources); err != nil {
		return false, err
	}
	var some []*source[T]
	for _, s := range m.sources {
		if len(s.buffer) > 0 {
			some = append(some, s)
		}
	}
	m.sources = some
	heap.Init(m)
	for m.Len() > 0 {
		if m.full() {
			return true, nil
		}
		s := m.sources[0]
		m.take(s.buffer[0])
		s.buffer = s.buffer[1:]
		if len(s.buffer) == 0 && s.more {
			if m.full() { // there is more, and nobody will read it now
				return true, nil
			}
			if err := m.fill(ctx, []*source[T]{s}); err != nil {
				return false, err
			}
		}
		if len(s.buffer) == 0 {
			heap.Pop(m)
		} else {
			heap.Fix(m, 0)
		}
	}
	return false, nil
}

// fill reads the next entries of sources that have none left, until they have some or nothing more.
func (m *merging[T]) fill(ctx context.Context, sources []*source[T]) error {
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(partitionCalls).WithContext(ctx).WithCancelOnError()
	for _, s := range sources {
		p.Go(func(ctx context.Context) error {
			for len(s.buffer) == 0 && s.more {
				if err := m.read(ctx, s); err != nil {
					return inPartition(s.partition, err)
				}
				if n := len(s.buffer); n > 0 {
					s.after = s.buffer[n-1].Position()
				} else {
					s.more = false
				}
				s.chunk = min(2*s.chunk, 100)
			}
			return nil
		})
	}
	return p.Wait()
}

func (m *merging[T]) Len() int { return len(m.sources) }

func (m *merging[T]) Less(i, j int) bool {
	a, b := m.sources[i].buffer[0].Position(), m.sources[j].buffer[0].Position()
	if m.newest {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Member, b.Member)) < 0
}

func (m *merging[T]) Swap(i, j int) { m.sources[i], m.sources[j] = m.sources[j], m.sources[i] }

func (m *merging[T]) Push(any) {} // sources are known from the beginning

func (m *merging[T]) Pop() any {
	m.sources = m.sources[:len(m.sources)-1]
	return nil
}
