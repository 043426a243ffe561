package admin

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// FlowQuery says which flows [Admin.Flows] lists. The zero value is every flow of the client's namespace.
type FlowQuery struct {
	Namespace string                 // default client.Config.Namespace; or AllNamespaces
	Kind      string                 // "" = any
	States    []flowfabric.FlowState // none = all
	Oldest    bool                   // those that were created first come first; else they come last
}

// FlowsPage lists flows of all partitions in the order in which they were created, newest first unless q says
// otherwise: limit of them (1..1,000; 0 is 100), beginning behind the place that cursor names: "", or the Cursor of
// the page before, with the same query. A flow stays where it is, whatever becomes of it, until it is purged: while
// pages are read each is listed at most once, and exactly once if it was there at the beginning and is there at the
// end. An entry without a flow behind it, which an audit that repairs removes, is listed without a State, whatever
// else the query asks for.
//
// A page looks at 10,000 flows at most: with a query that few of them match it comes back short, with a cursor.
//
// Errors: flowfabric.ErrInvalidInput for a query, limit or cursor that is not legal, before any call; ErrTransport,
// ErrPartitionFrozen and others when a partition does not answer: the same page may be asked for again;
// [client.ErrClosed].
func (a *Admin) FlowsPage(ctx context.Context, q FlowQuery, cursor string, limit int) (Page[flowfabric.FlowSummary],
	error) {
	page, err := a.flowsPage(ctx, q, cursor, cmp.Or(limit, limits.DefaultListPage))
	if err != nil {
		return Page[flowfabric.FlowSummary]{}, fmt.Errorf("list flows: %w", err)
	}
	return page, nil
}

func (a *Admin) flowsPage(ctx context.Context, q FlowQuery, cursor string, limit int) (Page[flowfabric.FlowSummary],
	error) {
	if a.closed() {
		return Page[flowfabric.FlowSummary]{}, client.ErrClosed
	}
	if limit < 1 || limit > limits.MaxListPage {
		return Page[flowfabric.FlowSummary]{}, fmt.Errorf("%w: limit %d, want 1..%d", flowfabric.ErrInvalidInput, limit,
			limits.MaxListPage)
	}
	q, err := q.complete(a.conn.Namespace)
	if err != nil {
		return Page[flowfabric.FlowSummary]{}, err
	}
	mark := q.mark(a.store.Partitions())
	at, err := parsePlace(cursor, mark, a.store.Partitions())
	if err != nil {
		return Page[flowfabric.FlowSummary]{}, err
	}
	var page Page[flowfabric.FlowSummary]
	looked := 0
	m := merging[engine.ListedFlow]{newest: !q.Oldest, full: func() bool {
		return len(page.Items) >= limit || looked >= maxLooked
	}}
	for p := range a.store.Partitions() {
		m.sources = append(m.sources, &source[engine.ListedFlow]{partition: p})
	}
	start := at.after
	m.take = func(x engine.ListedFlow) {
		at.after = x.Position()
		looked++
		if q.has(x) {
			page.Items = append(page.Items, x.FlowSummary)
		}
	}
	m.read = func(ctx context.Context, s *source[engine.ListedFlow]) error {
		got, err := a.store.ListFlows(ctx, s.partition, !q.Oldest, s.after, s.chunk)
		s.buffer, s.more = got.Flows, got.More
		return err
	}
	more, err := m.run(ctx, start, limit)
	if err != nil {
		return Page[flowfabric.FlowSummary]{}, err
	}
	if more {
		page.Cursor = at.text(mark)
	}
	return page, nil
}

// Flows is [Admin.FlowsPage] for all pages. The loop ends after the last flow, or with an error. It may be left at
// any time.
func (a *Admin) Flows(ctx context.Context, q FlowQuery) iter.Seq2[flowfabric.FlowSummary, error] {
	return pages(func(cursor string) (Page[flowfabric.FlowSummary], error) {
		return a.FlowsPage(ctx, q, cursor, limits.MaxListPage)
	})
}

// flowStates are those that may be asked for.
var flowStates = []flowfabric.FlowState{flowfabric.FlowStaging, flowfabric.FlowOpen, flowfabric.FlowCompleted,
	flowfabric.FlowFailed, flowfabric.FlowCancelled}

// complete checks a query and fills in its defaults.
func (q FlowQuery) complete(namespace string) (FlowQuery, error) {
	q.Namespace = cmp.Or(q.Namespace, namespace)
	for _, name := range [...]struct{ field, value string }{{"FlowQuery.Namespace", q.Namespace},
		{"FlowQuery.Kind", q.Kind}} {
		if name.value == "" {
			continue
		}
		if err := valid.Name(name.field, name.value); err != nil {
			return q, err
		}
	}
	for _, s := range q.States {
		if !slices.Contains(flowStates, s) {
			return q, fmt.Errorf("%w: FlowQuery.States has %q, want staging, open, completed, failed or cancelled",
				flowfabric.ErrInvalidInput, s)
		}
	}
	return q, nil
}

// has tells whether a flow is asked for.
func (q FlowQuery) has(x engine.ListedFlow) bool {
	if x.State == "" {
		return true
	}
	return within(q.Namespace, x.Namespace) && (q.Kind == "" || x.Kind == q.Kind) &&
		(len(q.States) == 0 || slices.Contains(q.States, x.State))
}

// mark is what a cursor depends on.
func (q FlowQuery) mark(partitions uint16) string {
	parts := []string{"flows", strconv.Itoa(int(partitions)), q.Namespace, q.Kind, strconv.FormatBool(q.Oldest)}
	for _, s := range slices.Sorted(slices.Values(q.States)) {
		parts = append(parts, string(s))
	}
	return strings.Join(parts, "\x1f")
}
