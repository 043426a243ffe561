package flow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	work = handler.Define[int, string]("work", flowfabric.Lane("slow"), flowfabric.Priority(3),
		handler.Retry(5, time.Second, time.Minute))
	raw   = handler.Define[[]byte, []byte]("raw")
	bad   = handler.Define[int, string]("{bad}")
	left  = flow.Input[string]{Name: "left"}
	right = flow.Input[string]{Name: "right"}
)

var someone = flowfabric.Start{Namespace: "shop", Creator: "me"}

func build(t *testing.T, f *flow.Flow) flowplan.Plan {
	t.Helper()
	p, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(3)), Start: someone})
	must.No(t, err)
	return p
}

// Every mistake is reported, with the names of flow, node and edge.
func TestMistakes(t *testing.T) {
	other := flow.New("other")
	foreign := flow.Add(other, "foreign", work, 1)
	chained := func(f *flow.Flow, n int) (nodes []*flow.Node[string]) {
		for i := range n {
			nodes = append(nodes, flow.Add(f, fmt.Sprint("n", i), work, i))
		}
		return nodes
	}
	ups := func(nodes []*flow.Node[string]) (all []flow.Upstream) {
		for _, n := range nodes {
			all = append(all, n)
		}
		return all
	}
	for _, x := range []struct {
		name string
		fill func(f *flow.Flow)
		want error
		text string // in the error
	}{
		{"an empty flow", func(*flow.Flow) {}, flowfabric.ErrInvalidInput,
			"flow f: invalid_input: a value is not valid: it has no nodes"},
		{"a name twice", func(f *flow.Flow) { flow.Add(f, "a", work, 1); flow.Add(f, "a", work, 2) },
			flowfabric.ErrInvalidInput, "flow f: node a: "},
		{"no name", func(f *flow.Flow) { flow.Add(f, "", work, 1) }, flowfabric.ErrInvalidInput, "want 1..64"},
		{"a long name", func(f *flow.Flow) { flow.Add(f, strings.Repeat("x", 65), work, 1) },
			flowfabric.ErrInvalidInput, "65 bytes"},
		{"a name with a control character", func(f *flow.Flow) { flow.Add(f, "a\nb", work, 1) },
			flowfabric.ErrInvalidInput,
			`flow f: node "a\nb": invalid_input: a value is not valid: name "a\nb" has a control character`},
		{"a name that is no text", func(f *flow.Flow) { flow.Add(f, "a\xff", work, 1) }, flowfabric.ErrInvalidInput,
			"UTF-8"},
		{"an edge to itself", func(f *flow.Flow) { a := flow.Add(f, "a", work, 1); a.With(flow.After(a)) },
			denied.SelfEdge, "flow f: node a: edge from a: "},
		{"an edge twice", func(f *flow.Flow) {
			a := flow.Add(f, "a", work, 1)
			flow.Add(f, "b", work, 1, flow.After(a), flow.After(a))
		}, denied.DuplicateEdge, "flow f: node b: edge from a: "},
		{"a result under two names", func(f *flow.Flow) {
			a := flow.Add(f, "a", work, 1)
			flow.Add(f, "b", work, 1, left.From(a), right.From(a))
		}, denied.DuplicateEdge, "its result is input left and input right"},
		{"an input name twice", func(f *flow.Flow) {
			a, b := flow.Add(f, "a", work, 1), flow.Add(f, "b", work, 1)
			flow.Add(f, "c", work, 1, left.From(a), left.From(b))
		}, flowfabric.ErrInvalidInput,
			"flow f: node c: edge from b: invalid_input: a value is not valid: input left already comes from a"},
		{"an input without a name", func(f *flow.Flow) {
			flow.Add(f, "b", work, 1, flow.Input[string]{Name: ""}.From(flow.Add(f, "a", work, 1)))
		}, flowfabric.ErrInvalidInput, "edge from a: input: "},
		{"a circle", func(f *flow.Flow) {
			a := flow.Add(f, "a", work, 1)
			b := flow.Add(f, "b", work, 1, flow.After(a))
			c := flow.Add(f, "c", work, 1, flow.After(b))
			a.With(flow.After(c))
		}, denied.Cycle, ": a -> b -> c -> a"},
		{"a node of another flow", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.After(foreign)) },
			denied.NotInFlow,
			"flow f: node a: edge from foreign: execution_not_in_flow: the execution is not a member of the flow: it belongs to flow other"},
		{"a node that was never added", func(f *flow.Flow) {
			flow.Add(f, "a", work, 1,
				flow.After((*flow.Node[string])(nil)))
		}, denied.NotInFlow, "never added"},
		{"no node at all", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.After(nil), left.From(nil)) },
			denied.NotInFlow, "never added"},
		{"a zero node", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.After(&flow.Node[string]{})) },
			denied.NotInFlow, "never added"},
		{"a child as an upstream", func(f *flow.Flow) {
			flow.Add(f, "a", work, 1, flow.After(flow.Child(flow.Children("w"), "c", work, 1)))
		}, denied.NotInFlow, "children w"},
		{"any of nothing", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.AnyOf()) }, flowfabric.ErrInvalidInput,
			"flow f: node a: invalid_input: a value is not valid: AnyOf without an edge"},
		{"cleanup of nothing", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.AllEnded()) },
			flowfabric.ErrInvalidInput, "AllEnded without an edge"},
		{"failures of nothing", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.AnyFailed()) },
			flowfabric.ErrInvalidInput, "AnyFailed without an edge"},
		{"a quorum of none", func(f *flow.Flow) {
			flow.Add(f, "q", work, 1, flow.After(ups(chained(f, 5))...), flow.Quorum(0))
		}, flowfabric.ErrInvalidInput, "node q: invalid_input: a value is not valid: Quorum(0) of 5"},
		{"a quorum of more", func(f *flow.Flow) {
			flow.Add(f, "q", work, 1, flow.After(ups(chained(f, 5))...), flow.Quorum(6))
		}, flowfabric.ErrInvalidInput, "Quorum(6) of 5"},
		{"nothing remains", func(f *flow.Flow) {
			flow.Add(f, "a", work, 1, flow.After(ups(chained(f, 2))...), flow.AnyFailed(), flow.CancelRemaining())
		}, flowfabric.ErrInvalidInput, "CancelRemaining with AnyFailed"},
		{"streamed", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flow.Streamed()) }, flowfabric.ErrInvalidInput,
			"Streamed is for a Child"},
		{"fan-in", func(f *flow.Flow) { flow.Add(f, "q", work, 1, flow.After(ups(chained(f, 1001))...)) }, denied.FanIn,
			"node q: "},
		{"members", func(f *flow.Flow) { chained(f, 10_001) }, denied.FlowTooLarge, "10001 nodes"},
		{"edges", func(f *flow.Flow) {
			all := ups(chained(f, 1000))
			for i := range 51 {
				flow.Add(f, fmt.Sprint("q", i), work, 1, flow.After(all[:981]...))
			}
		}, denied.FlowTooLarge, "50031 edges"},
		{"a definition", func(f *flow.Flow) { flow.Add(f, "a", bad, 1) }, flowfabric.ErrInvalidInput,
			"flow f: node a: definition of kind"},
		{"no definition", func(f *flow.Flow) { flow.Add[int, string](f, "a", nil, 1) }, flowfabric.ErrInvalidInput,
			"the definition is nil"},
		{"an input too large", func(f *flow.Flow) { flow.Add(f, "a", raw, make([]byte, 1<<20+1)) },
			flowfabric.ErrPayloadTooLarge, "node a: "},
		{"a nil option", func(f *flow.Flow) { flow.Add(f, "a", work, 1, nil) }, flowfabric.ErrInvalidInput,
			"option 0 is nil"},
		{"priority", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Priority(9001)) },
			flowfabric.ErrInvalidInput, "Priority is 9001"},
		{"lane", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Lane("{}")) }, flowfabric.ErrInvalidInput,
			"lane"},
		{"delay", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Delay(-1)) }, flowfabric.ErrInvalidInput,
			"Delay is -1ns"},
		{"deadline", func(f *flow.Flow) {
			flow.Add(f, "a", work, 1, flowfabric.Deadline(time.Second), flowfabric.Delay(time.Minute))
		}, flowfabric.ErrInvalidInput, "leaves no time"},
		{"tags", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Tags(map[string]string{"X": ""})) },
			denied.TagKey, "node a: "},
		{"capabilities", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Capabilities("a b")) },
			denied.Capabilities, "node a: "},
		{"retention", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Retention(time.Millisecond)) },
			flowfabric.ErrInvalidInput, "retention"},
		{"retries", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Retries(1001)) }, denied.Policy,
			"node a: invalid_policy: the policy of the execution is not valid: Retry.MaxRetries is 1001, want 0..1000"},
		{"timeout", func(f *flow.Flow) { flow.Add(f, "a", work, 1, flowfabric.Timeout(-1)) }, denied.Policy,
			"Timeout is -1ns"},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := flow.New("f")
			x.fill(f)
			_, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(0)), Start: someone})
			if !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%v\nwant %v with %q", err, x.want, x.text)
			}
		})
	}
}

// What is wrong with a flow as a whole, and everything at once, a line each.
func TestAllMistakesAtOnce(t *testing.T) {
	f := flow.New("x{", nil, flowfabric.Tags(map[string]string{"no": ""}))
	a := flow.Add(f, "a", bad, 1, flow.Quorum(2))
	flow.Add(f, "b", work, 1, flow.After(a, a), flowfabric.Lane(""))
	_, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID{}, Start: flowfabric.Start{}})
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{"kind", "option 0", "tags", "node a: definition",
		"node a: invalid_input: a value is not valid: Quorum(2)", "node b: edge from a: ",
		"node b: invalid_input: a value is not valid: namespace"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], "flow x{: ") || !strings.Contains(lines[i], want) {
			t.Errorf("line %d of\n%v\nwant %q", i, err, want)
		}
	}
	if len(lines) != 7 {
		t.Errorf("%d lines:\n%v", len(lines), err)
	}
	ok := flow.New("f")
	flow.Add(ok, "a", work, 1)
	if _, err := ok.Plan(flowplan.Request{Flow: flowfabric.FlowID{}, Start: someone}); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Errorf("a zero id: %v", err)
	}
}

// A plan has members with derived ids, what the definition says or the options, and edges with inputs, upstreams first.
func TestPlan(t *testing.T) {
	id, at := flowfabric.FlowID(mint.ID(3)), time.Now().Add(time.Hour)
	f := flow.New("report", flow.Growing(), flowfabric.Tags(map[string]string{"team.name": "a"}))
	b := flow.Add(f, "b", work, 2)
	a := flow.Add(f, "a", work, 1, flowfabric.Priority(7), flowfabric.Lane("fast"),
		flowfabric.Capabilities("y", "x", "y"), flowfabric.Creator("you"), flowfabric.DelayUntil(at),
		flowfabric.Delay(time.Second), flowfabric.DeadlineAt(at), flowfabric.Deadline(time.Minute),
		flowfabric.Retention(time.Minute), flowfabric.Tags(map[string]string{"a.b": "c"}),
		flowfabric.Retries(8), flowfabric.Timeout(time.Minute))
	payload := []byte("bytes")
	c := flow.Add(f, "c", raw, payload, left.From(a), flow.After(a, b), flow.Quorum(1), flow.CancelRemaining(),
		flowfabric.Priority(1), flowfabric.DelayUntil(at), flowfabric.DeadlineAt(at.Add(1)))
	payload[0] = 'X'
	b.With(left.From(a))
	p, err := f.Plan(flowplan.Request{Flow: id, Start: someone})
	must.No(t, err)
	if p.Kind != "report" || f.Kind() != "report" || p.Mode != engine.SealGrowing || p.Edges != 3 ||
		p.Tags["team.name"] != "a" || len(p.Digest) != 32 {
		t.Errorf("%+v", p)
	}
	if got := fmt.Sprint(names(p), f.Nodes()); got != "[a b c] [b a c]" {
		t.Errorf("order %s", got)
	}
	x, y, z := p.Members[0], p.Members[1], p.Members[2]
	_, digest, _ := work.Encode(1)
	if x.ID != id.Member("a") || x.ID != a.ID(id) || x.Namespace != "shop" || x.Creator != "you" || x.Lane != "fast" ||
		x.Priority != 7 || x.Kind != "work" || fmt.Sprint(x.Capabilities) != "[x y]" ||
		x.Delay != flowfabric.Millis(time.Second) ||
		!x.DelayUntil.IsZero() || x.Deadline != flowfabric.Millis(time.Minute) || !x.DeadlineAt.IsZero() ||
		x.NewExecution.Policy.Retention != valid.RetainAll(time.Minute) ||
		x.NewExecution.Policy.Retry.MaxRetries != 8 ||
		x.NewExecution.Policy.AttemptTimeout != flowfabric.Millis(time.Minute) ||
		x.Tags["a.b"] != "c" || string(x.Payload) != "1" || x.Digest != digest {
		t.Errorf("%+v", x)
	}
	if y.NewExecution.Policy.Retry.MaxRetries != 5 || y.NewExecution.Policy.AttemptTimeout != 0 || y.Creator != "me" ||
		y.Lane != "slow" || y.Priority != 3 || y.Policy != codes.AllOf || y.CancelRest {
		t.Errorf("%+v", y)
	}
	if z.Policy != codes.Quorum || z.K != 1 || !z.CancelRest {
		t.Errorf("%+v", z)
	}
	if string(z.Payload) != "bytes" || z.DelayUntil != at || fmt.Sprint(z.Edges) != fmt.Sprint(
		[]engine.FlowEdge{{From: x.ID, Input: "left"}, {From: y.ID}}) || c.Name() != "c" || z.Kind != "raw" {
		t.Errorf("%+v", z)
	}
	if got, err := a.Decode([]byte(`"x"`)); got != "x" || err != nil {
		t.Error(got, err)
	}
	if got, err := a.Decode(nil); got != "" || err != nil {
		t.Error(got, err)
	}
}

func names(p flowplan.Plan) (out []string) {
	for _, m := range p.Members {
		out = append(out, m.Node)
	}
	return out
}

// The digest tells flows apart by what they are, not by the order in which they were put together or how nodes are
// handled.
func TestDigest(t *testing.T) {
	base := func(change func(f *flow.Flow, a, b, c *flow.Node[string])) string {
		f := flow.New("f")
		a, b := flow.Add(f, "a", work, 1), flow.Add(f, "b", work, 1)
		c := flow.Add(f, "c", work, 1, left.From(a), flow.After(b), flow.AnyOf())
		if change != nil {
			change(f, a, b, c)
		}
		return build(t, f).Digest
	}
	same := base(nil)
	f := flow.New("f")
	c := flow.Add(f, "c", work, 1, flow.AnyOf(), flowfabric.Priority(9), flowfabric.Lane("x"),
		flowfabric.Delay(time.Second))
	b := flow.Add(f, "b", work, 1)
	c.With(flow.After(b), left.From(flow.Add(f, "a", work, 1)))
	if got := build(t, f).Digest; got != same {
		t.Errorf("another order: %s, want %s", got, same)
	}
	seen := map[string]string{same: "nothing"}
	for name, change := range map[string]func(f *flow.Flow, a, b, c *flow.Node[string]){
		"a node":     func(f *flow.Flow, _, _, _ *flow.Node[string]) { flow.Add(f, "d", work, 1) },
		"an edge":    func(_ *flow.Flow, a, b, _ *flow.Node[string]) { b.With(flow.After(a)) },
		"an input":   func(_ *flow.Flow, _, b, c *flow.Node[string]) { c.With(right.From(b)) },
		"a policy":   func(_ *flow.Flow, _, _, c *flow.Node[string]) { c.With(flow.AnyFailed()) },
		"cleanup":    func(_ *flow.Flow, _, _, c *flow.Node[string]) { c.With(flow.AllEnded()) },
		"a quorum":   func(_ *flow.Flow, _, _, c *flow.Node[string]) { c.With(flow.Quorum(2)) },
		"a gate":     func(_ *flow.Flow, a, _, _ *flow.Node[string]) { a.With(flowfabric.Gates("acme")) },
		"two gates":  func(_ *flow.Flow, a, _, _ *flow.Node[string]) { a.With(flowfabric.Gates("acme", "gpu")) },
		"the losers": func(_ *flow.Flow, _, _, c *flow.Node[string]) { c.With(flow.CancelRemaining()) },
	} {
		got := base(change)
		if before := seen[got]; before != "" {
			t.Errorf("%s has the digest of %s", name, before)
		}
		seen[got] = name
	}
	for name, other := range map[string]*flow.Flow{"kind": flow.New("g"), "mode": flow.New("f", flow.Unsealed()),
		"input": flow.New("f")} {
		in := 1
		if name == "input" {
			in = 2
		}
		a, b := flow.Add(other, "a", work, in), flow.Add(other, "b", work, 1)
		flow.Add(other, "c", work, 1, left.From(a), flow.After(b), flow.AnyOf())
		if build(t, other).Digest == same {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// Gates of a node replace those of its definition; those of the flow, and of who submits it, come in
// addition.
func TestGates(t *testing.T) {
	costly := handler.Define[int, string]("costly", flowfabric.Gates("own", "gpu"))
	f := flow.New("f", flowfabric.Gates("team", "gpu"))
	flow.Add(f, "a", work, 1)
	flow.Add(f, "b", costly, 1)
	flow.Add(f, "c", costly, 1, flowfabric.Gates("x", "team"))
	plan, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(0)),
		Start: flowfabric.Start{Namespace: "n", Names: []string{"all"}}})
	must.No(t, err)
	for i, want := range []string{"[gate all gate gpu gate team]", "[gate all gate gpu gate own gate team]",
		"[gate all gate gpu gate team gate x]"} {
		if got := fmt.Sprint(plan.Members[i].Gates()); got != want {
			t.Errorf("%s: %s, want %s", plan.Members[i].Node, got, want)
		}
	}
	if got := fmt.Sprint(costly.Info().Gates()); got != "[gate gpu gate own]" {
		t.Errorf("the definition has %s now", got)
	}
	flow.Add(f, "d", work, 1, flowfabric.Gates("no name"))
	if _, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(0)), Start: flowfabric.Start{
		Namespace: "n"}}); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), `node d: `) {
		t.Error(err)
	}
}

// Of any graph, members come after those they depend on, and in the order they were added where edges allow it; or
// there is a circle, and the error names one.
func TestAnyGraph(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "nodes")
		f, nodes := flow.New("f"), make([]*flow.Node[string], n)
		for i := range nodes {
			nodes[i] = flow.Add(f, fmt.Sprint(i), work, i)
		}
		edges, reach := map[[2]int]bool{}, make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
		}
		forward := true
		for range rapid.IntRange(0, 20).Draw(rt, "edges") {
			from, to := rapid.IntRange(0, n-1).Draw(rt, "from"), rapid.IntRange(0, n-1).Draw(rt, "to")
			if from == to || edges[[2]int{from, to}] {
				continue
			}
			edges[[2]int{from, to}], reach[from][to] = true, true
			nodes[to].With(flow.After(nodes[from]))
			forward = forward && from < to
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		circular := false
		for i := range n {
			circular = circular || reach[i][i]
		}
		p, err := f.Plan(flowplan.Request{Flow: flowfabric.FlowID(mint.ID(0)), Start: someone})
		if errors.Is(err, denied.Cycle) != circular || (err == nil) == circular {
			rt.Fatalf("edges %v: %v", edges, err)
		}
		if circular {
			path := strings.Split(strings.SplitN(strings.Split(err.Error(), "\n")[0], "circle: ", 2)[1], " -> ")
			for i := range len(path) - 1 {
				var a, b int
				fmt.Sscan(path[i]+" "+path[i+1], &a, &b)
				if !edges[[2]int{a, b}] || path[0] != path[len(path)-1] {
					rt.Fatalf("edges %v have no circle %v", edges, path)
				}
			}
			return
		}
		at := map[flowfabric.ExecutionID]int{}
		for i, m := range p.Members {
			at[m.ID] = i
			for _, e := range m.Edges {
				if before, ok := at[e.From]; !ok || before >= i {
					rt.Fatalf("%s comes before what it depends on", m.Node)
				}
			}
		}
		if forward && !slices.Equal(names(p), f.Nodes()) {
			rt.Fatalf("order %v", names(p))
		}
	})
}

// A long chain that was added backwards is built, and its batches keep to the limits of a call.
func TestLongChain(t *testing.T) {
	f := flow.New("chain")
	var last *flow.Node[[]byte]
	for i := range 10_000 {
		n := flow.Add(f, fmt.Sprint(i), raw, make([]byte, 20_000*(i/9_000)))
		if last != nil {
			last.With(flow.After(n))
		}
		last = n
	}
	p := build(t, f)
	batches, total := engine.Batches(p.Members), 0
	for i, batch := range batches {
		total += len(batch)
		if i < 19 && len(batch) != 51 { // 51 times 20,000 bytes are just below 1 MiB, with room for a cipher
			t.Fatalf("batch %d has %d members, want 51", i, len(batch))
		}
	}
	if total != 10_000 || p.Members[0].Node != "9999" || len(batches[50]) != 100 {
		t.Errorf("%d in batches, the first is %s", total, p.Members[0].Node)
	}
	wide := flow.New("wide")
	var ups []flow.Upstream
	for i := range 400 {
		ups = append(ups, flow.Add(wide, fmt.Sprint(i), work, i))
	}
	for i := range 7 {
		flow.Add(wide, fmt.Sprint("join", i), work, i, flow.After(ups...))
	}
	var sizes []int
	for _, batch := range engine.Batches(build(t, wide).Members) {
		sizes = append(sizes, len(batch))
	}
	if fmt.Sprint(sizes) != "[100 100 100 100 2 2 2 1]" {
		t.Errorf("batches of %v", sizes)
	}
}
