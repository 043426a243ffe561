package bounds

import (
	"fmt"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// graph is a flow that is put together.
type graph struct {
	*bench
	id    flowfabric.FlowID
	nodes []engine.FlowMember
	edges int
}

func (b *bench) flow() *graph {
	return &graph{bench: b, id: flowfabric.FlowID(mint.ID(0))}
}

func (b *bench) item(id flowfabric.ExecutionID) engine.NewExecution {
	return engine.NewExecution{ID: id, Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "bench",
		Policy: flowfabric.Policy{Retry: valid.DefaultRetry(), MaxReplays: 10}}, Payload: []byte("0123456789abcdef")}
}

type option func(*engine.FlowMember)

func anyOf(m *engine.FlowMember)      { m.Policy = codes.AnyOf }
func cancelRest(m *engine.FlowMember) { m.CancelRest = true }

// named gives every edge an input.
func named(m *engine.FlowMember) {
	for i := range m.Edges {
		m.Edges[i].Input = fmt.Sprint("input", i)
	}
}

// node adds a node that depends on others.
func (g *graph) node(name string, after []string, opts ...option) {
	m := engine.FlowMember{NewExecution: g.item(g.id.Member(name)), Node: name}
	for _, up := range after {
		m.Edges = append(m.Edges, engine.FlowEdge{From: g.id.Member(up)})
	}
	for _, o := range opts {
		o(&m)
	}
	g.nodes, g.edges = append(g.nodes, m), g.edges+len(m.Edges)
}

// many adds n nodes and returns their names.
func (g *graph) many(prefix string, n int, after []string, opts ...option) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
		g.node(out[i], after, opts...)
	}
	return out
}

// create makes the header.
func (g *graph) create() {
	_, err := g.e.CreateFlow(g.ctx, engine.NewFlow{ID: g.id, Namespace: "default", Kind: "bench"})
	g.no(err)
}

// make makes the flow with what was added and releases it, in one call.
func (g *graph) make(mode engine.SealMode) {
	_, err := g.e.CreateFlow(g.ctx, engine.NewFlow{ID: g.id, Namespace: "default", Kind: "bench", Members: g.nodes,
		Mode: mode})
	g.no(err)
}

// stage stages what was added, in the largest calls that are allowed.
func (g *graph) stage(nodes []engine.FlowMember) {
	for len(nodes) > 0 {
		n, edges := 0, 0
		for n < len(nodes) && n < limits.MaxBatch && edges+len(nodes[n].Edges) <= 1000 {
			edges += len(nodes[n].Edges)
			n++
		}
		_, err := g.e.StageFlow(g.ctx, g.id, nil, nodes[:n])
		g.no(err)
		nodes = nodes[n:]
	}
}

// submit stages and releases everything.
func (g *graph) submit() {
	g.create()
	g.stage(g.nodes)
	g.seal(engine.SealClosed)
	g.drain()
}

func (g *graph) seal(mode engine.SealMode) {
	_, _, err := g.e.SealFlow(g.ctx, g.id, mode, len(g.nodes), g.edges)
	g.no(err)
}

// drain works off the backlog.
func (b *bench) drain() {
	for more := true; more; {
		var err error
		more, err = b.e.DrainFlows(b.ctx, 0)
		b.no(err)
	}
}

// subscription makes this worker able to claim everything.
func (b *bench) subscription() {
	r, err := b.e.ClaimNext(b.ctx, b.claim)
	b.no(err)
	b.claim.Table = r.Table
	var routes []uint64
	for _, row := range r.Routes {
		routes = append(routes, row.ID)
	}
	if len(routes) > 0 {
		b.claim.Subscription, err = b.e.SetSubscription(b.ctx, 0, engine.Subscription{Classes: routes})
		b.no(err)
	}
	b.fences = map[flowfabric.ExecutionID]flowfabric.Fence{}
}

// take claims up to most executions, in calls of 100.
func (b *bench) take(most int) (claimed []flowfabric.ExecutionID) {
	if b.claim.Subscription == "" {
		b.subscription()
	}
	for len(claimed) < most {
		b.claim.Max = min(100, most-len(claimed))
		r, err := b.e.ClaimNext(b.ctx, b.claim)
		b.no(err)
		if len(r.Claims) == 0 {
			return claimed
		}
		claimed = append(claimed, b.held(r)...)
	}
	return claimed
}

func (b *bench) held(r engine.ClaimReply) (ids []flowfabric.ExecutionID) {
	b.claim.Number++
	for _, c := range r.Claims {
		b.fences[c.Fence.Execution] = c.Fence
		ids = append(ids, c.Fence.Execution)
	}
	return ids
}

// complete settles held executions in one call, which claims as many again if so wanted.
func (b *bench) complete(ids []flowfabric.ExecutionID, claim bool) {
	items := make([]engine.Completion, len(ids))
	for i, id := range ids {
		items[i] = engine.Completion{Fence: b.fences[id], Result: []byte("0123456789abcdef")}
		delete(b.fences, id)
	}
	var q *engine.ClaimRequest
	if claim {
		b.claim.Max = 100
		q = &b.claim
	}
	out, next, err := b.e.CompleteExecutions(b.ctx, 0, items, q)
	b.no(err)
	for _, s := range out {
		b.no(s.Err)
	}
	if claim {
		b.held(*next)
	}
}

// completeAll settles held executions, size in a call.
func (b *bench) completeAll(ids []flowfabric.ExecutionID, size int) {
	for call := range slices.Chunk(ids, size) {
		b.complete(call, false)
	}
}

func (b *bench) fail(id flowfabric.ExecutionID) {
	_, err := b.e.FailExecution(b.ctx, b.fences[id], engine.Failure{Category: "broken", Permanent: true})
	b.no(err)
	delete(b.fences, id)
}

// everyone are the held executions in the order of their ids.
func (b *bench) everyone() []flowfabric.ExecutionID {
	return slices.SortedFunc(maps.Keys(b.fences), func(x, y flowfabric.ExecutionID) int {
		return slices.Compare([]byte(x.String()), []byte(y.String()))
	})
}

// advance moves the server's clock.
func (b *bench) advance(ms string) {
	b.no(b.s.Do(b.ctx, "HSET", keys.Root(0), "clock_offset", ms).Error())
}

func (b *bench) tick(times int) {
	for range times {
		_, err := b.e.Tick(b.ctx, 0, "bounds", false)
		b.no(err)
	}
}

func (g *graph) members(nodes []string) []flowfabric.ExecutionID {
	out := make([]flowfabric.ExecutionID, len(nodes))
	for i, n := range nodes {
		out[i] = g.id.Member(n)
	}
	return out
}
