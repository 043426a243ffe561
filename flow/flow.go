package flow

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Flow is a graph of work that is put together and then submitted, as often as one likes: client.SubmitFlow gives
// every flow its own id, unless a key says otherwise. Nothing is sent before. It is not safe for concurrent use.
type Flow struct {
	*graph
	kind string
	mode engine.SealMode
	tags map[string]string
	of   flowfabric.Start // what it says for all nodes
}

// New begins a flow. kind is what flows of this shape are called, in lists and metrics: 1..64 bytes of printable
// ASCII without braces. Without options it is closed: only what is submitted belongs to it. What is wrong is reported
// by [Flow.Err].
func New(kind string, opts ...Option) *Flow {
	f := &Flow{graph: newGraph("flow "+kind, limits.MaxFlowMembers, denied.FlowTooLarge), kind: kind,
		mode: engine.SealClosed}
	if err := valid.Name("kind", kind); err != nil {
		f.refuse(err)
	}
	for i, o := range opts {
		if own, ok := o.(flowFunc); ok {
			own(f)
		} else if err := option.Apply(&f.of, i, o); err != nil {
			f.refuse(err)
		}
	}
	f.tags = f.of.Tags
	if err := option.Foreign(&f.of, "flow", "a flow: it belongs to the nodes"); err != nil {
		f.refuse(err)
	}
	if err := valid.Tags(f.tags); err != nil {
		f.refuse(err)
	}
	return f
}

// Kind returns the kind that New was given.
func (f *Flow) Kind() string { return f.kind }

// Nodes are the names of the nodes, in the order they were added.
func (f *Flow) Nodes() []string {
	names := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		names[i] = n.name
	}
	return names
}

// Node is a node of a [Flow], whose execution has a result of type Out.
type Node[Out any] struct {
	n      *node
	decode func([]byte) (Out, error)
}

// Add adds a node: an execution of def with input in, encoded now as client.Submit does. name is its name in the
// flow, by which its id is derived: 1..64 bytes of UTF-8 without control characters, unique in the flow. Lane,
// priority, deadline, tags, capabilities and policy come from the definition, options override them. What is wrong is
// reported by [Flow.Err].
//
// A codec that does not copy shares in with the flow: such an input must not change until the flow was submitted. A
// []byte is copied.
func Add[In, Out any](f *Flow, name string, def Definition[In, Out], in In, opts ...NodeOption) *Node[Out] {
	n := add(f.graph, name, def, in, opts)
	if n.streamed {
		n.refuse("%w: Streamed is for a Child, whose output is shown in that of its parent", flowfabric.ErrInvalidInput)
	}
	return &Node[Out]{n: n, decode: decoder(def)}
}

// Definition is the kind of work of a node or a child, with its types; *handler.Definition is one.
type Definition[In, Out any] interface {
	Err() error
	Info() flowfabric.Start
	Encode(in In) (payload []byte, digest string, err error)
	Decode(result []byte) (Out, error)
}

// check is what is wrong with a definition, or nil.
func check[In, Out any](def Definition[In, Out]) error {
	if def == nil {
		return fmt.Errorf("%w: the definition is nil", flowfabric.ErrInvalidInput)
	}
	return def.Err()
}

// decoder decodes results of a definition; nil without one.
func decoder[In, Out any](def Definition[In, Out]) func(result []byte) (Out, error) {
	if def == nil {
		return nil
	}
	return def.Decode
}

// Existing names a member that a submitted flow has already, and its result has type Out: new nodes that
// client.Flow.Add adds to the flow can depend on it. name is that of a node that was submitted or added; children
// that a handler made cannot be named. Twice the same name is the same member. A member that the flow does not have
// is found by the server (flowfabric.ErrNotFound).
func Existing[Out any](f *Flow, name string) Source[Out] { return &Node[Out]{n: f.existing(name)} }

// With gives a node more options, edges for example from nodes that were added after it. So a graph can be read from
// a table in any order. It returns the node.
func (n *Node[Out]) With(opts ...NodeOption) *Node[Out] {
	n.n.apply(opts)
	return n
}

// Name is the node's name in its flow.
func (n *Node[Out]) Name() string { return n.n.name }

// ID is the node's execution in a flow.
func (n *Node[Out]) ID(flow flowfabric.FlowID) flowfabric.ExecutionID { return flow.Member(n.n.name) }

// Decode turns the stored result of the node into an Out; an empty one is the zero value.
func (n *Node[Out]) Decode(result []byte) (Out, error) { return decoded(n.decode, result) }

func (n *Node[Out]) upstream() *node {
	if n == nil {
		return nil
	}
	return n.n
}

func (n *Node[Out]) yields(Out) {}

// Upstream is a node that another node can depend on: a *[Node] or a *[ChildNode], of any type.
type Upstream interface{ upstream() *node }

// Source is an [Upstream] with a result of type T.
type Source[T any] interface {
	Upstream
	yields(T)
}

// Err returns what is wrong with the flow, or nil. It sends nothing and may be called again; client.SubmitFlow and
// client.Flow.Add report the same before they send anything.
//
// All mistakes are reported at once, joined, each with the names of flow, node and edge: flowfabric.ErrInvalidInput
// (names, a node or input name that is there twice, options out of bounds, [AnyOf], [AllEnded] or [AnyFailed] without
// an edge, a [Quorum] that cannot be met, an empty flow, two edges between the same nodes, a cycle, with the nodes in
// it), ErrNotFound (an edge from a node of another flow, or of none), ErrLimit (above 1,000 upstreams, 10,000 nodes
// or 50,000 edges); and those of a submission, of each node the first: ErrInvalidInput, ErrPayloadTooLarge, the
// definition's, the codec's.
func (f *Flow) Err() error {
	_, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(0)),
		Start: flowfabric.Start{Namespace: limits.DefaultNamespace}, Adds: len(f.there) > 0})
	return err
}

// Plan checks the flow and gives its members the ids that they have in a flow, for package client, which sends it. It
// changes nothing, and may be called again. The errors are those of [Flow.Err], and flowfabric.ErrInvalidInput for the
// zero id.
func (f *Flow) Plan(q flowplan.Request) (flowplan.Plan, error) {
	if q.Adds {
		return f.more(q.Flow, q.Start)
	}
	return f.plan(q.Flow, q.Start)
}

// more checks nodes that are added to a flow that was submitted, and gives them the ids that they have in it.
func (f *Flow) more(id flowfabric.FlowID, d flowfabric.Start) (flowplan.Plan, error) {
	gated(&d, &f.of)
	members, edges, err := f.members(id.Member, d)
	switch {
	case err != nil:
		return flowplan.Plan{}, err
	case f.mode != engine.SealClosed || f.tags != nil:
		return flowplan.Plan{}, fmt.Errorf("%s: %w: tags, Unsealed and Growing belong to the flow that was submitted",
			f.title, flowfabric.ErrInvalidInput)
	case len(members) == 0:
		return flowplan.Plan{}, fmt.Errorf("%s: %w: it has no new nodes", f.title, flowfabric.ErrInvalidInput)
	}
	return flowplan.Plan{Kind: f.kind, Members: members, Edges: edges}, nil
}

// plan checks the flow and gives its members the ids that they have in flow id.
func (f *Flow) plan(id flowfabric.FlowID, d flowfabric.Start) (flowplan.Plan, error) {
	gated(&d, &f.of)
	if d.Tags == nil {
		d.Tags = f.tags
	}
	members, edges, err := f.members(id.Member, d)
	switch {
	case err != nil:
		return flowplan.Plan{}, err
	case len(f.there) > 0:
		return flowplan.Plan{}, fmt.Errorf("%s: node %s: %w: Existing is for nodes that client.Flow.Add adds", f.title,
			printable(f.there[0].name), denied.NotInFlow)
	case id.IsZero():
		return flowplan.Plan{}, fmt.Errorf("%s: %w: the flow id is zero", f.title, flowfabric.ErrInvalidInput)
	case len(members) == 0:
		return flowplan.Plan{}, fmt.Errorf("%s: %w: it has no nodes", f.title, flowfabric.ErrInvalidInput)
	}
	return flowplan.Plan{Kind: f.kind, Mode: f.mode, Members: members, Edges: edges, Digest: f.digest(d),
		Tags: maps.Clone(d.Tags)}, nil
}

// digest is the same for flows that differ only in the order in which they were put together, and in how their nodes
// are handled: lane, priority, times, tags and policy, as with the payload digest of an execution. What it may cost
// is no such thing: the gates of its nodes count.
func (f *Flow) digest(d flowfabric.Start) string {
	h := sha256.New()
	write(h, "flowfabric flow v1", f.kind, string(f.mode))
	nodes := slices.SortedFunc(slices.Values(f.nodes), func(a, b *node) int { return strings.Compare(a.name, b.name) })
	for _, n := range nodes {
		write(h, "node", n.name, n.item.Kind, n.item.Digest, string(n.policy), fmt.Sprint(n.k, n.cancel, len(n.edges)))
		for _, g := range n.start(d).Gates() {
			write(h, "gate", string(g))
		}
		edges := slices.SortedFunc(slices.Values(n.edges), func(a, b *edge) int {
			return strings.Compare(a.from.name, b.from.name)
		})
		for _, e := range edges {
			write(h, e.from.name, e.input)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// write adds texts to a hash so that no two lists of texts look the same.
func write(h hash.Hash, texts ...string) {
	var size [8]byte
	for _, text := range texts {
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
}

// decoded decodes a result; one that is empty was stored as nothing at all.
func decoded[T any](decode func([]byte) (T, error), result []byte) (T, error) {
	if len(result) == 0 {
		var zero T
		return zero, nil
	}
	return decode(result)
}
