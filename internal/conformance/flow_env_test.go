package conformance

import (
	"errors"
	"fmt"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// graph puts flows together and works on them.
type graph struct {
	*env
	looks int
	id    flowfabric.FlowID
	nodes []engine.FlowMember
	edges int
	w     *worker
}

// flow begins a flow in this partition.
func (w *env) flow() *graph {
	w.age()
	return &graph{env: w, id: flowfabric.FlowID(mint.ID(w.p)), w: w.worker("flow")}
}

type nodeOption func(*engine.FlowMember)

func anyOf(m *engine.FlowMember)      { m.Policy = codes.AnyOf }
func cancelRest(m *engine.FlowMember) { m.CancelRest = true }
func quorum(k int) nodeOption {
	return func(m *engine.FlowMember) { m.Policy, m.K = codes.Quorum, k }
}

// as gives a node the options of its execution.
func as(opts ...option) nodeOption {
	return func(m *engine.FlowMember) {
		for _, o := range opts {
			o(&m.NewExecution)
		}
	}
}

// unnamed takes the names from the inputs of a node.
func unnamed(m *engine.FlowMember) {
	for i := range m.Edges {
		m.Edges[i].Input = ""
	}
}

// node adds a node that depends on others.
func (g *graph) node(name string, after []string, opts ...nodeOption) *graph {
	x := g.item()
	x.ID = g.id.Member(name)
	m := engine.FlowMember{NewExecution: x, Node: name}
	for _, up := range after {
		m.Edges = append(m.Edges, engine.FlowEdge{From: g.id.Member(up), Input: "from-" + up})
	}
	for _, o := range opts {
		o(&m)
	}
	g.nodes, g.edges = append(g.nodes, m), g.edges+len(m.Edges)
	return g
}

// begin makes the header.
func (g *graph) begin() *graph {
	g.Helper()
	_, err := g.e.CreateFlow(g.ctx, engine.NewFlow{ID: g.id, Namespace: "default", Kind: "test"})
	g.no(err)
	g.check()
	return g
}

// stage creates and stages the flow.
func (g *graph) stage() *graph {
	g.Helper()
	g.begin()
	for first := 0; first < len(g.nodes); first += 100 {
		_, err := g.e.StageFlow(g.ctx, g.id, nil, g.nodes[first:min(first+100, len(g.nodes))])
		g.no(err)
		g.check()
		g.age()
	}
	return g
}

// submit makes the flow and releases it, as package client does: in one call if it fits.
func (g *graph) submit(mode engine.SealMode) *graph {
	g.Helper()
	if len(engine.Batches(g.nodes)) > 1 {
		return g.stage().submitted(mode)
	}
	_, err := g.e.CreateFlow(g.ctx, g.whole(mode))
	g.no(err)
	g.check()
	g.drain()
	return g
}

// whole is the flow with all its members, to be released by the call that makes it.
func (g *graph) whole(mode engine.SealMode) engine.NewFlow {
	return engine.NewFlow{ID: g.id, Namespace: "default", Kind: "test", Members: g.nodes, Mode: mode}
}

// submitted releases what is staged, or changes how it may grow.
func (g *graph) submitted(mode engine.SealMode) *graph {
	g.Helper()
	_, _, err := g.e.SealFlow(g.ctx, g.id, mode, len(g.nodes), g.edges)
	g.no(err)
	g.check()
	g.drain()
	return g
}

// drain works off the backlog.
func (g *graph) drain() {
	g.Helper()
	for range 1000 {
		more, err := g.e.DrainFlows(g.ctx, g.p)
		g.no(err)
		g.check()
		if !more {
			return
		}
	}
	g.Fatal("the backlog never ends")
}

// claim claims everything that can be, by node.
func (g *graph) claim() map[string]engine.Claim {
	out := map[string]engine.Claim{}
	for _, c := range g.w.claim(100) {
		out[c.Node] = c
	}
	return out
}

// complete settles a claimed node.
func (g *graph) complete(c engine.Claim, result string) {
	g.Helper()
	out, _, err := g.e.CompleteExecutions(g.ctx, g.p, []engine.Completion{{Fence: c.Fence, Result: []byte(result)}},
		nil)
	g.no(err)
	g.no(out[0].Err)
	g.check()
}

// fail ends a claimed node for good.
func (g *graph) fail(c engine.Claim) {
	g.Helper()
	_, err := g.e.FailExecution(g.ctx, c.Fence, engine.Failure{Category: "broken", Permanent: true})
	g.no(err)
	g.check()
}

// states reads the public state of every node, and of the flow.
func (g *graph) states() (states map[string]flowfabric.PublicState, flow flowfabric.FlowState) {
	g.Helper()
	states = map[string]flowfabric.PublicState{}
	for next := int64(0); next >= 0; {
		page, err := g.e.FlowMembers(g.ctx, g.id, next, 100, true)
		g.no(err)
		for _, m := range page.Members {
			states[m.Node] = m.State.Public
		}
		next = page.Next
	}
	record, err := g.e.DescribeFlow(g.ctx, g.id)
	g.no(err)
	return states, record.State
}

// are fails unless the nodes are in these states.
func (g *graph) are(want flowfabric.PublicState, nodes ...string) {
	g.Helper()
	states, _ := g.states()
	for _, n := range nodes {
		if states[n] != want {
			g.Fatalf("node %s is %s, want %s", n, states[n], want)
		}
	}
}

// is fails unless the flow is in this state.
func (g *graph) ends(want flowfabric.FlowState) {
	g.Helper()
	_, got := g.states()
	same(g.env, "flow", got, want)
}

// join stages one more member into the flow.
func (g *graph) join(name string, after []string, opts ...nodeOption) {
	g.Helper()
	g.node(name, after, opts...)
	_, err := g.e.StageFlow(g.ctx, g.id, nil, g.nodes[len(g.nodes)-1:])
	g.no(err)
	g.check()
}

// rejects fails unless the nodes are refused with an error, whose last slot is the node that it is about, and leave
// no trace.
func (g *graph) rejects(want error, node string, nodes ...engine.FlowMember) {
	g.Helper()
	g.unchanged(node, func() {
		_, err := g.e.StageFlow(g.ctx, g.id, nil, nodes)
		g.is(err, want)
		var e *flowfabric.Error
		if node != "" && (!errors.As(err, &e) || len(e.Detail) == 0 || e.Detail[len(e.Detail)-1] != node) {
			g.Fatalf("%v does not name node %q", err, node)
		}
	})
}

// last is the node that was added last, which is then forgotten.
func (g *graph) last() engine.FlowMember {
	n := g.nodes[len(g.nodes)-1]
	g.nodes, g.edges = g.nodes[:len(g.nodes)-1], g.edges-len(n.Edges)
	return n
}

// header reads the flow.
func (g *graph) header() engine.FlowRecord {
	g.Helper()
	h, err := g.e.DescribeFlow(g.ctx, g.id)
	g.no(err)
	return h
}

// shown reads one member as the flow shows it.
func (g *graph) shown(node string) engine.MemberRecord {
	g.Helper()
	for next := int64(0); next >= 0; {
		page, err := g.e.FlowMembers(g.ctx, g.id, next, 100, true)
		g.no(err)
		for _, m := range page.Members {
			if m.Node == node {
				return m
			}
		}
		next = page.Next
	}
	g.Fatalf("there is no node %s", node)
	return engine.MemberRecord{}
}

// group is what a member waits for: succeeded, failed and skipped of the total, and how it is decided.
func (g *graph) group(node string) string {
	g.Helper()
	r := g.shown(node).Group
	return fmt.Sprintf("%d %d %d of %d %s", r.Succeeded, r.Failed, r.Skipped, r.Total,
		map[bool]string{r.Pending: "pending", r.Satisfied: "satisfied", r.Impossible: "impossible"}[true])
}

// abort cancels the flow.
func (g *graph) abort(policy flowfabric.CancellationPolicy) engine.FlowCancelled {
	g.Helper()
	out, err := g.e.CancelFlow(trail.As(g.ctx, "me", "no more"), g.id, policy)
	g.no(err)
	g.check()
	g.drain()
	return out
}

// nodesOf names n nodes.
func nodesOf(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// wireMember is the wire form of a member.
func wireMember(m engine.FlowMember) []string {
	policy, rest := m.Policy, "run"
	if policy == "" {
		policy = codes.AllOf
	}
	if m.CancelRest {
		rest = "cancel"
	}
	args := append(itemArgs(m.NewExecution), m.Node, string(policy), strconv.Itoa(m.K), rest,
		strconv.Itoa(len(m.Edges)))
	for _, edge := range m.Edges {
		args = append(args, ids.UUID(edge.From).String(), edge.Input)
	}
	return args
}

// wireMake is the wire form of a call that makes a flow with members.
func wireMake(id flowfabric.FlowID, mode string, members ...engine.FlowMember) []string {
	args := []string{proto, ids.UUID(id).String(), "default", "kind", "me", "digest", mode, "1", "a.b", "c"}
	for _, m := range members {
		args = append(args, wireMember(m)...)
	}
	return args
}

// wireStage is the wire form of a call that stages members.
func wireStage(id flowfabric.FlowID, members ...engine.FlowMember) []string {
	args := []string{proto, ids.UUID(id).String(), ""}
	for _, m := range members {
		args = append(args, wireMember(m)...)
	}
	return args
}

// wireWait is the wire form of a wait for children, without protocol and fence.
func wireWait(name, mode, rest string, children ...engine.FlowMember) []string {
	args := []string{name, mode, "run", rest}
	for _, m := range children {
		args = append(args, wireMember(m)...)
	}
	return args
}

// child is one that an execution makes, which nobody can claim for an hour.
func (w *env) child(parent flowfabric.ExecutionID, wait, name string, opts ...option) engine.FlowMember {
	x := w.item(opts...)
	x.ID = parent.Child(wait, name)
	return engine.FlowMember{NewExecution: x, Node: name}
}

// check is that of the environment; the slowest server, where flows are large, is looked at after every fifth step.
func (g *graph) check() {
	g.Helper()
	if g.looks++; g.srv.Share >= 10 && g.looks%5 != 0 {
		return
	}
	g.env.check()
}
