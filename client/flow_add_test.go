package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/clienttest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// more is n nodes that are added to a flow of kind article, each after d.
func more(n int) (*flow.Flow, *flow.Node[clienttest.Verdict]) {
	f := flow.New("article")
	d := flow.Existing[clienttest.Verdict](f, "d")
	var last *flow.Node[clienttest.Verdict]
	for i := range n {
		last = flow.Add(f, fmt.Sprintf("e%03d", i), write, draft{Topic: "e"}, clienttest.Left.From(d))
	}
	return f, last
}

// Nodes join a flow while it runs and after all of it has ended, get the results of members that are there, and join
// once.
func TestNodesJoinAnOpenFlow(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, _ := diamond("article", flow.Unsealed())
		fl := submitFlow(ctx, t, c, f, flowfabric.Namespace("sea"))
		h := newHands(ctx, t, e, fl.ID().Partition())
		first, node := more(3)
		for range 2 { // the second finds them
			must.No(t, fl.Add(ctx, first))
		}
		s := snapshot(ctx, t, fl)
		if s.Members != 7 || s.Edges != 7 || states(s) != "waiting:[a] waiting_children:[b c d e000 e001 e002]" {
			t.Fatalf("%s: %+v", states(s), s.FlowRecord)
		}
		for range 3 {
			for _, x := range h.Claim() {
				h.Complete("x", x)
			}
		}
		claimed := h.Claim()
		if got := claimed["e001"].Inputs["left"]; string(got) != `{"Text":"x"}` || len(claimed) != 3 {
			t.Errorf("%d claims, input %q", len(claimed), got)
		}
		for _, x := range claimed {
			h.Complete("y", x)
		}
		if out, err := client.NodeResult(ctx, fl, node); err != nil || out.Text != "y" {
			t.Errorf("%+v, %v", out, err)
		}
		late, _ := more(250) // several calls, with an upstream that has ended
		must.No(t, c.Flow(fl.ID()).Add(ctx, late))
		if s = snapshot(ctx, t, fl); s.Members != 254 || s.Count[flowfabric.Waiting] != 247 {
			t.Errorf("%+v", s.FlowRecord)
		}
		h.No(fl.Seal(ctx))
		if err := fl.Add(ctx, late); err != nil { // all of it is there
			t.Error(err)
		}
		if later, _ := more(251); !errors.Is(fl.Add(ctx, later), denied.FlowSealed) {
			t.Errorf("sealed: %v", fl.Add(ctx, later))
		}
		if _, err := fl.Cancel(ctx, flowfabric.CancelAll); err != nil {
			t.Fatal(err)
		}
		if later, _ := more(251); !errors.Is(fl.Add(ctx, later), denied.FlowTerminal) {
			t.Errorf("cancelled: %v", fl.Add(ctx, later))
		}
	})
}

// What cannot be added is refused, with its reason, and adds nothing.
func TestNodesThatCannotJoin(t *testing.T) {
	ctx, c, _ := open(t)
	f, _ := diamond("article", flow.Unsealed())
	fl := submitFlow(ctx, t, c, f)
	sealed, _ := diamond("article")
	for _, x := range []struct {
		name string
		to   *client.Flow
		add  func(*flow.Flow)
		opts []flow.Option
		err  error
		says string
	}{
		{"a stranger's result", fl, func(f *flow.Flow) {
			flow.Add(f, "x", write, draft{}, flow.After(flow.Existing[clienttest.Verdict](f, "nobody")))
		}, nil, denied.NotInFlow, "x"},
		{"a name that is taken", fl, func(f *flow.Flow) { flow.Add(f, "a", write, draft{Topic: "another"}) }, nil,
			denied.Idempotency, "a"},
		{"a bad name", fl, func(f *flow.Flow) {
			flow.Add(f, "x", write, draft{}, flow.After(flow.Existing[clienttest.Verdict](f, "")))
		}, nil, flowfabric.ErrInvalidInput, "existing node: "},
		{"added and there", fl, func(f *flow.Flow) {
			flow.Add(f, "x", write, draft{}, flow.After(flow.Add(f, "y", write, draft{})))
			flow.Existing[clienttest.Verdict](f, "y")
		}, nil, flowfabric.ErrInvalidInput, "existing node y: it is added here"},
		{"there and added", fl, func(f *flow.Flow) {
			flow.Existing[clienttest.Verdict](f, "y")
			flow.Add(f, "y", write,
				draft{})
		}, nil, flowfabric.ErrInvalidInput, "another node of this name"},
		{"nothing", fl, func(f *flow.Flow) { flow.Existing[clienttest.Verdict](f, "a") }, nil,
			flowfabric.ErrInvalidInput, "no new nodes"},
		{"options of a flow", fl, func(f *flow.Flow) { flow.Add(f, "x", write, draft{}) },
			[]flow.Option{flow.Growing()}, flowfabric.ErrInvalidInput, "belong to the flow"},
		{"a closed flow", submitFlow(ctx, t, c, sealed), func(f *flow.Flow) { flow.Add(f, "x", write, draft{}) }, nil,
			denied.FlowSealed, ""},
	} {
		add := flow.New("article", x.opts...)
		x.add(add)
		if err := x.to.Add(ctx, add); !errors.Is(err, x.err) || !strings.Contains(err.Error(), x.says) ||
			!strings.HasPrefix(err.Error(), "add to flow "+x.to.ID().String()) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	other := flow.New("race")
	flow.Add(other, "x", write, draft{})
	if err := fl.Add(ctx, other); !errors.Is(err, flowfabric.ErrInvalidInput) ||
		!strings.Contains(err.Error(), "of kind article, the nodes are for flows of kind race") {
		t.Error(err)
	}
	if err := fl.Add(ctx, nil); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if s := snapshot(ctx, t, fl); s.Members != 4 {
		t.Errorf("%+v", s.FlowRecord)
	}
	lost := flow.New("article")
	flow.Add(lost, "x", write, draft{}, flow.After(flow.Existing[clienttest.Verdict](lost, "a")))
	if _, err := client.SubmitFlow(ctx, c, lost); !errors.Is(err, denied.NotInFlow) || !strings.Contains(err.Error(),
		"node a: ") {
		t.Errorf("a flow of its own: %v", err)
	}
	if err := lost.Err(); err != nil { // it may be added
		t.Error(err)
	}
}
