package client

import (
	"context"
	"io"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/flowdraw"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// FlowSnapshot is a flow as it was read: its header with the exact counters, and every member with its state, what it
// depends on, and how those ended. It renders itself, see [FlowSnapshot.Text], [FlowSnapshot.Mermaid] and
// [FlowSnapshot.Graphviz].
type FlowSnapshot struct {
	flowfabric.FlowRecord
	// Nodes are the members each after those that it depends on: the order in which they joined.
	// One that was purged meanwhile has no State. The edges into a node are in the order of the nodes they come
	// from.
	Nodes []flowfabric.MemberRecord `json:"nodes" jsonschema:"each after those that it depends on"`
}

// Node finds a member by its name in the flow. Children of different parents may have the same name: then it is the
// first.
func (s *FlowSnapshot) Node(name string) (flowfabric.MemberRecord, bool) {
	for _, m := range s.Nodes {
		if m.Node == name {
			return m, true
		}
	}
	return flowfabric.MemberRecord{}, false
}

// unended is how many members have not ended.
func unended(r flowfabric.FlowRecord) int {
	n := 0
	for state, count := range r.Count {
		if !state.Terminal() {
			n += count
		}
	}
	return n
}

// Text writes the flow for people: what it is and how it stands, and its nodes level by level, each with its state,
// what it waits for, and what it depends on. Times are the server's, UTC. Names that could break a line are quoted.
// The layout may change between releases. It returns the first error of w.
func (s FlowSnapshot) Text(w io.Writer) error { return flowdraw.Graph(s).Text(w) }

// Mermaid writes the flow as a Mermaid flowchart: nodes with name, kind and state, in the colour of the state, edges
// with the names of inputs. Whatever names hold, they stay labels. It returns the first error of w.
func (s FlowSnapshot) Mermaid(w io.Writer) error { return flowdraw.Graph(s).Mermaid(w) }

// Graphviz writes the flow as a graph in the language of dot, with the same content as [FlowSnapshot.Mermaid]. It
// returns the first error of w.
func (s FlowSnapshot) Graphviz(w io.Writer) error { return flowdraw.Graph(s).Graphviz(w) }

// Snapshot reads the flow with all of its members: one call for every hundred of them, or every thousand edges. Each
// call sees one moment, all of them together do not: the counters, which are read last, may be ahead of the nodes. A
// flow that has ended stays as it is; one that ended or was replayed meanwhile is read again.
//
// Errors: flowfabric.ErrNotFound; ErrResultPurged while the tombstone of a purged flow is left.
func (f *Flow) Snapshot(ctx context.Context) (FlowSnapshot, error) {
	if err := f.admit("read"); err != nil {
		return FlowSnapshot{}, err
	}
	s, err := f.snapshot(ctx)
	return s, link.AboutFlow("read", f.id, err)
}

func (f *Flow) snapshot(ctx context.Context) (s FlowSnapshot, err error) {
	s.FlowRecord, s.Nodes, err = link.ReadFlow(ctx, f.client.store, f.id)
	if s.Nodes == nil {
		s.Nodes = []flowfabric.MemberRecord{}
	}
	return s, err
}
