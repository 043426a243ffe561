package flow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// graph is what a flow and a set of children have in common: named nodes in the order they were added, and the edges
// between them.
type graph struct {
	title  string // "flow race" or "children pages", in front of errors
	most   int
	over   error // what more than most members is
	kin    bool  // they are children
	nodes  []*node
	there  []*node // members that the flow has already, see Existing
	byName map[string]*node
	errs   []error
}

// node is one member to be.
type node struct {
	graph  *graph
	name   string
	item   engine.NewExecution // without id, and what the whole says
	policy string
	k      int
	cancel bool
	share  map[string]int64
	// streamed shows its output in that of the execution that waits for it
	streamed bool
	there    bool // it is a member already: nothing but its name counts
	other    bool // it is no member, see Other: only its name counts
	edges    []*edge
	into     map[*node]*edge
	inputs   map[string]*edge
	errs     []error
}

// edge leads from an upstream; order is whether After named it, input the name it has for its result.
type edge struct {
	from  *node
	order bool
	input string
}

func newGraph(title string, most int, over error) *graph {
	return &graph{title: title, most: most, over: over, byName: map[string]*node{}}
}

// refuse remembers what is wrong with the graph as a whole.
func (g *graph) refuse(err error) { g.errs = append(g.errs, err) }

// refuse remembers what is wrong with a node.
func (n *node) refuse(format string, args ...any) {
	n.errs = append(n.errs, fmt.Errorf(format, args...))
}

// add makes a node of a definition. It is always returned, so that what is wrong with it is reported with everything
// else.
func add[In, Out any](g *graph, name string, def Definition[In, Out], in In, opts []NodeOption) *node {
	n := &node{graph: g, name: name, policy: codes.AllOf, into: map[*node]*edge{}, inputs: map[string]*edge{}}
	if err := validateName(name); err != nil {
		n.refuse("%w", err)
	}
	if err := check(def); err != nil {
		n.refuse("%w", err)
	} else {
		n.item.Start = def.Info()
		if n.item.Payload, n.item.Digest, err = def.Encode(in); err != nil {
			n.refuse("%w", err)
		}
		if _, raw := any(in).([]byte); raw { // it may be submitted much later
			n.item.Payload = bytes.Clone(n.item.Payload)
		}
	}
	n.apply(opts)
	g.nodes = append(g.nodes, n)
	if _, taken := g.byName[name]; taken {
		n.refuse("%w: there is another node of this name", flowfabric.ErrInvalidInput)
	} else {
		g.byName[name] = n
	}
	return n
}

func (n *node) apply(opts []NodeOption) {
	_ = option.Over(&n.item.Start, func() error {
		for i, o := range opts {
			if own, ok := o.(nodeFunc); ok {
				own(n)
			} else if _, ok := o.(remaining); ok {
				n.cancel = true
			} else if err := option.Apply(&n.item.Start, i, o); err != nil {
				n.refuse("%w", err)
			}
		}
		return nil
	})
	if err := option.Foreign(&n.item.Start, "node word", "a node"); err != nil {
		n.refuse("%w", err)
	}
}

// existing is a member that the flow has already.
func (g *graph) existing(name string) *node {
	n := g.byName[name]
	switch {
	case n == nil:
		n = &node{graph: g, name: name, there: true}
		if err := validateName(name); err != nil {
			g.refuse(fmt.Errorf("existing node: %w", err))
		}
		g.there, g.byName[name] = append(g.there, n), n
	case !n.there:
		g.refuse(fmt.Errorf("%w: existing node %s: it is added here", flowfabric.ErrInvalidInput, name))
	}
	return n
}

// edge returns the one edge from an upstream, making it the first time; nil when there can be none.
func (n *node) edge(from *node) *edge {
	switch {
	case from == nil:
		n.refuse("%w: an edge from a node that was never added", denied.NotInFlow)
		return nil
	case from == n:
		n.refuse("edge from %s: %w", from.name, denied.SelfEdge)
		return nil
	case from.other:
		n.refuse("edge from %s: %w: it is an Other, which is in no flow with this node", from.name, denied.NotInFlow)
		return nil
	case from.graph != n.graph:
		n.refuse("edge from %s: %w: it belongs to %s", from.name, denied.NotInFlow, from.graph.title)
		return nil
	}
	e := n.into[from]
	if e == nil {
		e = &edge{from: from}
		n.into[from], n.edges = e, append(n.edges, e)
	}
	return e
}

// after adds an edge that passes nothing on.
func (n *node) after(from *node) {
	e := n.edge(from)
	if e != nil && e.order {
		n.refuse("edge from %s: %w", from.name, denied.DuplicateEdge)
	} else if e != nil {
		e.order = true
	}
}

// input adds an edge that passes the result on, or gives the one that is there a name.
func (n *node) input(name string, from *node) {
	e := n.edge(from)
	switch {
	case e == nil:
	case e.input != "":
		n.refuse("edge from %s: %w: its result is input %s and input %s; read one input twice", from.name,
			denied.DuplicateEdge, e.input, name)
	case n.inputs[name] != nil:
		n.refuse("edge from %s: %w: input %s already comes from %s", from.name, flowfabric.ErrInvalidInput, name,
			n.inputs[name].from.name)
	default:
		if err := validateName(name); err != nil {
			n.refuse("edge from %s: input: %w", from.name, err)
		}
		e.input, n.inputs[name] = name, e
	}
}

// start is what the node starts with when all nodes have d.
func (n *node) start(d flowfabric.Start) *flowfabric.Start {
	s := n.item.Start
	s.Namespace, s.Creator = d.Namespace, cmp.Or(s.Creator, d.Creator)
	gated(&s, &d)
	return &s
}

// gated has a start ask the gates and limits of another one as well.
func gated(s, more *flowfabric.Start) {
	s.Names = slices.Concat(more.Names, s.Names)
	s.Limits = slices.Concat(more.Limits, s.Limits)
}

// validateName accepts 1..64 bytes of UTF-8 without control characters.
func validateName(name string) error {
	switch {
	case name == "" || len(name) > limits.MaxName:
		return fmt.Errorf("%w: name %.80q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, name, len(name),
			limits.MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: name %q is not UTF-8", flowfabric.ErrInvalidInput, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: name %q has a control character", flowfabric.ErrInvalidInput, name)
	}
	return nil
}

// checkShare checks what [Share] says.
func (n *node) checkShare() error {
	switch {
	case n.share == nil:
		return nil
	case !n.graph.kin:
		return fmt.Errorf("%w: Share is for children", flowfabric.ErrInvalidInput)
	case len(n.share) == 0 || len(n.share) > limits.MaxShareDimensions:
		return fmt.Errorf("%w: Share of %d dimensions, want 1..%d", flowfabric.ErrInvalidInput, len(n.share),
			limits.MaxShareDimensions)
	}
	for _, dimension := range slices.Sorted(maps.Keys(n.share)) {
		if err := valid.Dimension("Share", dimension); err != nil {
			return err
		}
		if amount := n.share[dimension]; amount < 1 || amount > limits.MaxAmount {
			return fmt.Errorf("%w: Share of %s is %d, want 1..%d", flowfabric.ErrInvalidInput, dimension, amount,
				int64(limits.MaxAmount))
		}
	}
	return nil
}

// policyNames are the options that set a policy.
var policyNames = map[string]string{codes.AnyOf: "AnyOf", codes.AllEnded: "AllEnded", codes.AnyFailed: "AnyFailed"}

// group checks what can be said about a node only when all its edges are known.
func (n *node) group() error {
	if err := n.checkShare(); err != nil {
		return err
	}
	watches := n.policy == codes.AllEnded || n.policy == codes.AnyFailed
	switch {
	case len(n.edges) > limits.MaxFanIn:
		return fmt.Errorf("%w: it depends on %d nodes, want at most %d", denied.FanIn, len(n.edges), limits.MaxFanIn)
	case len(n.edges) == 0 && (n.policy == codes.AnyOf || watches):
		return fmt.Errorf("%w: %s without an edge", flowfabric.ErrInvalidInput, policyNames[n.policy])
	case n.policy == codes.Quorum && (n.k < 1 || n.k > len(n.edges)):
		return fmt.Errorf("%w: Quorum(%d) of %d edges, want 1..%d", flowfabric.ErrInvalidInput, n.k, len(n.edges),
			len(n.edges))
	case n.cancel && watches:
		return fmt.Errorf("%w: CancelRemaining with %s: nothing remains when all have ended",
			flowfabric.ErrInvalidInput, policyNames[n.policy])
	}
	return nil
}

// members makes the members of all nodes, upstreams first, or tells everything that is wrong.
func (g *graph) members(id func(node string) flowfabric.ExecutionID,
	d flowfabric.Start) (members []engine.FlowMember, edges int, err error) {
	errs, now := slices.Clone(g.errs), time.Now()
	if len(g.nodes) > g.most {
		errs = append(errs, fmt.Errorf("%w: it has %d nodes, want at most %d", g.over, len(g.nodes), g.most))
	}
	order, circles := g.order()
	members = make([]engine.FlowMember, 0, len(order))
	for _, n := range order {
		if n.there {
			continue
		}
		m := engine.FlowMember{NewExecution: n.item, Node: n.name, Policy: n.policy, K: n.k, CancelRest: n.cancel,
			Share: n.share}
		m.ID, m.Start = id(n.name), *n.start(d)
		bad := append(slices.Clone(n.errs), n.group())
		if m.Kind != "" { // else it has no definition, and said so
			bad = append(bad, valid.Start(&m.Start, now))
		}
		errs = append(errs, titled("node "+printable(n.name), bad)...)
		for _, e := range n.edges {
			m.Edges = append(m.Edges, engine.FlowEdge{From: id(e.from.name), Input: e.input})
		}
		edges += len(m.Edges)
		members = append(members, m)
	}
	if edges > limits.MaxFlowEdges {
		errs = append(errs, fmt.Errorf("%w: it has %d edges, want at most %d", denied.FlowTooLarge, edges,
			limits.MaxFlowEdges))
	}
	if errs = append(errs, circles...); len(errs) > 0 {
		return nil, 0, errors.Join(titled(g.title, errs)...)
	}
	return members, edges, nil
}

// printable is the name of a node in front of errors: quoted, if no node can have it.
func printable(name string) string {
	if validateName(name) != nil {
		return fmt.Sprintf("%.80q", name)
	}
	return name
}

// titled puts a title in front of each error, so that every line names where it is; nil ones are left out.
func titled(title string, errs []error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, fmt.Errorf("%s: %w", title, err))
		}
	}
	return out
}

// order lists the nodes with those that they depend on before them, else as they were added, and an error for each
// circle.
func (g *graph) order() (order []*node, circles []error) {
	const open, done = 1, 2
	state, path := make(map[*node]int, len(g.nodes)), []*node{}
	var visit func(n *node)
	visit = func(n *node) {
		state[n], path = open, append(path, n)
		for _, e := range n.edges {
			switch state[e.from] {
			case open:
				circles = append(circles, circle(path[slices.Index(path, e.from):]))
			case done:
			default:
				visit(e.from)
			}
		}
		state[n], path = done, path[:len(path)-1]
		order = append(order, n)
	}
	for _, n := range g.nodes {
		if state[n] == 0 {
			visit(n)
		}
	}
	return order, circles
}

// circle names the nodes of a circle in the direction of the edges, which path goes against.
func circle(path []*node) error {
	names := []string{path[0].name}
	for _, n := range slices.Backward(path) {
		names = append(names, n.name)
	}
	return fmt.Errorf("%w: %s", denied.Cycle, strings.Join(names, " -> "))
}
