package link

import (
	"cmp"
	"context"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxDrains is how many calls one operation spends on the backlog of a partition before it leaves the rest to the
// tick: enough for a flow of the greatest size.
const maxDrains = 200

// FlowReader is the part of the engine that reads flows and works off their backlog.
type FlowReader interface {
	DescribeFlow(ctx context.Context, id flowfabric.FlowID) (engine.FlowRecord, error)
	FlowMembers(ctx context.Context, id flowfabric.FlowID, next int64, limit int,
		edges bool) (engine.FlowMembersPage, error)
	DrainFlows(ctx context.Context, partition uint16) (more bool, err error)
}

// Drain works off the backlog of a partition while something is left, within bounds. Nobody depends on it, the tick
// does the same.
func Drain(ctx context.Context, from FlowReader, partition uint16) {
	for range maxDrains {
		if more, err := from.DrainFlows(ctx, partition); err != nil || !more {
			return
		}
	}
}

// ReadFlow reads a flow and its members, those after which they depend on first. The counters, which are read last,
// may be ahead of the members. A flow that ended or was replayed meanwhile is read again.
func ReadFlow(ctx context.Context, from FlowReader,
	id flowfabric.FlowID) (record engine.FlowRecord, nodes []engine.MemberRecord, err error) {
	for {
		before, err := from.DescribeFlow(ctx, id)
		if err != nil {
			return record, nil, err
		}
		nodes = nil
		for next := int64(0); next >= 0; {
			page, err := from.FlowMembers(ctx, id, next, limits.MaxBatch, true)
			if err != nil {
				return record, nil, err
			}
			nodes, next = append(nodes, page.Members...), page.Next
		}
		if record, err = from.DescribeFlow(ctx, id); err != nil {
			return record, nil, err
		}
		joinEdges(nodes)
		if record.EndedAt.IsZero() || record.EndedAt.Equal(before.EndedAt) {
			return record, nodes, nil
		}
	}
}

// joinEdges puts the edges into each node in the order of the nodes they come from, as the store has no order for them,
// and tells each node which others depend on it. The upstream of an edge
// may have been purged.
func joinEdges(nodes []engine.MemberRecord) {
	number := make(map[flowfabric.ExecutionID]int, len(nodes))
	for i, m := range nodes {
		number[m.ID] = i
	}
	for _, m := range nodes {
		slices.SortFunc(m.Edges, func(a, b engine.EdgeRecord) int {
			return cmp.Or(cmp.Compare(number[a.From], number[b.From]),
				strings.Compare(a.From.String(), b.From.String()))
		})
		for i, e := range m.Edges {
			at, ok := number[e.From]
			if ok && (i == 0 || e.From != m.Edges[i-1].From) { // two inputs may come from one node
				nodes[at].Dependants = append(nodes[at].Dependants, m.ID)
			}
		}
	}
}
