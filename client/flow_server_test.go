package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
)

// hands does the work of one partition as a worker would.
type hands struct {
	ctx       context.Context
	t         *testing.T
	e         *engine.Engine
	partition uint16
}

func newHands(ctx context.Context, t *testing.T, e *engine.Engine, partition uint16) *hands {
	return &hands{ctx, t, e, partition}
}

func (h *hands) no(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// claim takes everything that can be claimed, by node, in a session of its own.
func (h *hands) claim() map[string]engine.Claim {
	h.t.Helper()
	q := engine.ClaimRequest{Partition: h.partition, Session: engine.NewSessionID("hands"), Number: 1, TTL: time.Minute, Max: 100}
	table, err := h.e.ClaimNext(h.ctx, q)
	h.no(err)
	var routes []uint64
	for _, r := range table.Routes {
		routes = append(routes, r.ID)
	}
	q.Interest, err = h.e.SetInterest(h.ctx, h.partition, routes)
	h.no(err)
	q.Table = table.Table
	reply, err := h.e.ClaimNext(h.ctx, q)
	h.no(err)
	out := map[string]engine.Claim{}
	for _, c := range reply.Claims {
		out[c.Node] = c
	}
	return out
}

// complete ends claims with a text; none are all that can be claimed.
func (h *hands) complete(text string, claims ...engine.Claim) {
	h.t.Helper()
	for _, c := range claims {
		out, _, err := h.e.CompleteExecutions(h.ctx, h.partition, []engine.Completion{{Fence: c.Fence, Result: []byte(`{"Text":"` + text + `"}`)}}, nil)
		h.no(err)
		h.no(out[0].Err)
	}
}

// fail ends a claim for good.
func (h *hands) fail(c engine.Claim) {
	h.t.Helper()
	_, err := h.e.FailExecution(h.ctx, c.Fence, engine.Failure{Category: "broken", Permanent: true})
	h.no(err)
}

var left, right = flow.NewInput[verdict]("left"), flow.NewInput[verdict]("right")

// diamond is a flow of four nodes.
func diamond(kind string, opts ...flow.FlowOption) (f *flow.Flow, join *flow.Node[verdict]) {
	f = flow.New(kind, opts...)
	a := flow.Add(f, "a", write, draft{"a"})
	b := flow.Add(f, "b", write, draft{"b"}, flow.After(a))
	c := flow.Add(f, "c", write, draft{"c"}, flow.After(a))
	return f, flow.Add(f, "d", write, draft{"d"}, left.From(b), right.From(c))
}

// chain is a flow of n nodes, each after the one before.
func chain(n int) *flow.Flow {
	f := flow.New("chain")
	var last *flow.Node[verdict]
	for i := range n {
		var opts []flow.Option
		if last != nil {
			opts = append(opts, flow.After(last))
		}
		last = flow.Add(f, fmt.Sprintf("n%03d", i), write, draft{"x"}, opts...)
	}
	return f
}

func submitFlow(ctx context.Context, t *testing.T, c *client.Client, f *flow.Flow, opts ...client.FlowOption) *client.Flow {
	t.Helper()
	fl, err := client.SubmitFlow(ctx, c, f, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return fl
}

func snapshot(ctx context.Context, t *testing.T, fl *client.Flow) client.FlowSnapshot {
	t.Helper()
	s, err := fl.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// states are the nodes of a flow by state, in order.
func states(s client.FlowSnapshot) string {
	by := map[flowfabric.PublicState][]string{}
	for _, m := range s.Nodes {
		by[m.State.Public] = append(by[m.State.Public], m.Node)
	}
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(by), "map["), "]")
}

func TestFlowFromSubmitToEnd(t *testing.T) { // spec 60 §12 FS12
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, join := diamond("article", flow.Tags(map[string]string{"team.name": "sea"}))
		fl := submitFlow(ctx, t, c, f, client.Creator("anna"))
		if fl.Duplicate() || fl.ID().IsZero() {
			t.Errorf("%+v", fl)
		}
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer func() {
			if t.Failed() {
				cancel()
			}
			wg.Wait()
			cancel()
		}()
		wg.Go(func() {
			if s, err := c.Flow(fl.ID()).Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted || len(s.Nodes) != 4 || s.EndedAt.IsZero() {
				t.Errorf("waited: %+v, %v", s.FlowRecord, err)
			}
		})
		wg.Go(func() {
			if out, err := client.NodeResult(ctx, fl, join); err != nil || out.Text != "done" {
				t.Errorf("result: %+v, %v", out, err)
			}
		})
		s := snapshot(ctx, t, fl)
		if s.Kind != "article" || s.Creator != "anna" || s.Tags["team.name"] != "sea" || s.Members != 4 || s.Edges != 4 || s.State != flowfabric.FlowOpen ||
			s.Unended() != 4 || states(s) != "waiting:[a] waiting_children:[b c d]" {
			t.Errorf("%s: %+v", states(s), s.FlowRecord)
		}
		d, ok := s.Node("d")
		if !ok || d.ID != fl.Member("d") || len(d.Edges) != 2 || d.Group.Policy != flowfabric.AllOf || d.Kind != "write-article" || d.Lane != "default" {
			t.Errorf("%+v", d)
		}
		if _, ok := s.Node("e"); ok {
			t.Error("there is no such node")
		}
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.complete("one", h.claim()["a"])
		two := h.claim()
		h.complete("two", two["b"], two["c"])
		last := h.claim()["d"]
		if string(last.Inputs["left"]) != `{"Text":"two"}` {
			t.Errorf("%q", last.Inputs)
		}
		h.complete("done", last)
		if s, err := fl.Wait(ctx); err != nil || s.Count[flowfabric.Completed] != 4 || s.Unended() != 0 { // after the end
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
	})
}

// A failed flow is no error of Wait, and its nodes' results say what became of them.
func TestFlowThatFails(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, join := diamond("article")
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.fail(h.claim()["a"])
		s, err := fl.Wait(ctx)
		if err != nil || s.State != flowfabric.FlowFailed || states(s) != "failed:[a] skipped:[b c d]" || s.Failing != 1 {
			t.Errorf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
		if _, err := client.NodeResult(ctx, fl, join); !errors.Is(err, flowfabric.ErrSkipped) || !strings.Contains(err.Error(), `node "d"`) {
			t.Errorf("%v", err)
		}
		if _, err := fl.Cancel(ctx, flowfabric.CancelAll); !errors.Is(err, flowfabric.ErrFlowTerminal) || !strings.Contains(err.Error(), "it is failed") {
			t.Errorf("%v", err)
		}
		done, err := fl.Replay(ctx, client.By("anna"), client.Reason("the model is back"))
		if err != nil || done.Blocked != 3 || done.Runnable != 1 || len(done.Refused) != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		s = snapshot(ctx, t, fl)
		if s.State != flowfabric.FlowOpen || !s.EndedAt.IsZero() || states(s) != "waiting:[a] waiting_children:[b c d]" {
			t.Errorf("%s: %+v", states(s), s.FlowRecord)
		}
		events, err := c.History(ctx, fl.Member("a"))
		if err != nil || !slices.ContainsFunc(events, func(e engine.Event) bool { return e.Kind == engine.EventReplayed && e.By == "anna" }) {
			t.Errorf("%v, %v", events, err)
		}
		for range 3 {
			for _, x := range h.claim() {
				h.complete("again", x)
			}
		}
		if s, err = fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
		if done, err := fl.Replay(ctx); err != nil || done.Blocked+done.Runnable+len(done.Refused) != 0 {
			t.Errorf("nothing is left to replay: %+v, %v", done, err)
		}
	})
}

// Members that wait for others are listed, explained, and leave their story behind.
func TestMembersAreExecutions(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, _ := diamond("article")
		fl := submitFlow(ctx, t, c, f)
		blocked := client.Filter{States: []flowfabric.PublicState{flowfabric.WaitingChildren}}
		list := func(f client.Filter) (n int) {
			for x, err := range c.List(ctx, f) {
				if err != nil || x.Drift != "" {
					t.Fatalf("%+v, %v", x, err)
				}
				n++
			}
			return n
		}
		if n, all := list(blocked), list(client.Filter{}); n != 3 || all != 4 {
			t.Errorf("%d blocked of %d", n, all)
		}
		why, err := c.Why(ctx, fl.Member("d"))
		if err != nil || why.Reason != explain.WhyAwaitingOthers || !strings.Contains(why.String(), `"b" is waiting_children`) {
			t.Errorf("%s: %s, %v", why.Reason, why, err)
		}
		newHands(ctx, t, e, fl.ID().Partition()).fail(newHands(ctx, t, e, fl.ID().Partition()).claim()["a"])
		if n, all := list(blocked), list(client.Filter{States: []flowfabric.PublicState{client.Ended}}); n != 0 || all != 4 {
			t.Errorf("%d blocked, %d ended", n, all)
		}
		why, err = c.Why(ctx, fl.Member("d"))
		if err != nil || why.Reason != explain.WhySkipped || !strings.Contains(why.String(), "all of its 2 upstreams, of which 0 succeeded") {
			t.Errorf("%s: %s, %v", why.Reason, why, err)
		}
		events, err := c.History(ctx, fl.Member("d"))
		if err != nil || !slices.ContainsFunc(events, func(e engine.Event) bool {
			return e.Kind == engine.EventSkipped && strings.Contains(e.String(), "did not succeed")
		}) {
			t.Errorf("%v, %v", events, err)
		}
		if _, err := fl.Replay(ctx, client.FromNode("d")); err != nil {
			t.Fatal(err)
		}
		why, err = c.Why(ctx, fl.Member("d"))
		if err != nil || why.Reason != explain.WhyAwaitingReplay || !strings.Contains(why.String(), `"b" is skipped, "c" is skipped`) && !strings.Contains(why.String(), `"c" is skipped, "b" is skipped`) {
			t.Errorf("%s: %s, %v", why.Reason, why, err)
		}
	})
}

func TestSubmitFlowWithAKey(t *testing.T) { // spec 60 §12 FS1
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, _ := diamond("article")
		var wg sync.WaitGroup
		handles := make([]*client.Flow, 5)
		for i := range handles {
			wg.Go(func() {
				var err error
				if handles[i], err = client.SubmitFlow(ctx, c, f, client.FlowKey("tides")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		for _, h := range handles {
			if h.ID() != flowfabric.DeriveFlowID(2, "default", "article", "tides") {
				t.Errorf("%s", h.ID())
			}
		}
		if again := submitFlow(ctx, t, c, f, client.FlowKey("tides")); !again.Duplicate() {
			t.Error("it was there before")
		}
		if s := snapshot(ctx, t, handles[0]); s.Members != 4 || s.Edges != 4 || s.Count[flowfabric.Waiting] != 1 {
			t.Errorf("%+v", s.FlowRecord)
		}
		other, _ := diamond("article", flow.Growing())
		_, err := client.SubmitFlow(ctx, c, other, client.FlowKey("tides"))
		if !errors.Is(err, flowfabric.ErrFlowConflict) || !strings.Contains(err.Error(), `key "tides" names a flow with another definition`) {
			t.Errorf("%v", err)
		}
		for what, bad := range map[string][]client.FlowOption{"key": {client.FlowKey("")}, "namespace": {client.Namespace("a{b")}, "creator": {client.Creator(strings.Repeat("x", 65))}} {
			if _, err := client.SubmitFlow(ctx, c, f, bad...); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := client.SubmitFlow(ctx, c, nil); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%v", err)
		}
		elsewhere := submitFlow(ctx, t, c, f, client.FlowKey("tides"), client.Namespace("other"))
		if s := snapshot(ctx, t, elsewhere); s.Namespace != "other" || elsewhere.Duplicate() || elsewhere.ID() == handles[0].ID() {
			t.Errorf("%+v", s.FlowRecord)
		}
		one, two := submitFlow(ctx, t, c, f), submitFlow(ctx, t, c, f)
		if one.ID().Partition() == two.ID().Partition() {
			t.Error("flows do not rotate over the partitions")
		}
	})
}

// Whoever dies between staging and the seal leaves a flow that does not run; the same key completes it.
func TestSubmitFlowCompletesWhatWasCutShort(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := chain(150)
		id := flowfabric.DeriveFlowID(2, "default", "chain", "k")
		plan, err := f.Build(id, flow.Defaults{Namespace: "default"})
		h := newHands(ctx, t, e, id.Partition())
		h.no(err)
		_, err = e.CreateFlow(ctx, engine.NewFlow{ID: id, Namespace: "default", Kind: "chain", Digest: plan.Digest})
		h.no(err)
		_, err = e.StageFlow(ctx, id, nil, plan.Members[:70])
		h.no(err)
		if got := h.claim(); len(got) != 0 {
			t.Fatalf("half a flow runs: %v", got)
		}
		half := c.Flow(id)
		if s := snapshot(ctx, t, half); s.State != flowfabric.FlowStaging || len(s.Nodes) != 70 {
			t.Errorf("%+v", s.FlowRecord)
		}
		if err := half.Seal(ctx); !errors.Is(err, flowfabric.ErrFlowIncomplete) {
			t.Errorf("%v", err)
		}
		fl := submitFlow(ctx, t, c, f, client.FlowKey("k"))
		if s := snapshot(ctx, t, fl); s.State != flowfabric.FlowOpen || len(s.Nodes) != 150 || s.Edges != 149 || fl.Duplicate() {
			t.Errorf("%+v", s.FlowRecord)
		}
		if got := h.claim(); len(got) != 1 || got["n000"].Node == "" {
			t.Errorf("%v", got)
		}
	})
}

func TestCancelFlow(t *testing.T) { // spec 60 §12 FS30 FS32 FS33
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := chain(200)
		for i := range 200 {
			flow.Add(f, fmt.Sprintf("r%03d", i), write, draft{"x"})
		}
		fl := submitFlow(ctx, t, c, f)
		if _, err := fl.Cancel(ctx, "cancel_some"); !errors.Is(err, flowfabric.ErrCancellationPolicy) {
			t.Errorf("%v", err)
		}
		out, err := fl.Cancel(ctx, flowfabric.CancelAll, client.By("anna"), client.Reason("too late"), client.UntilCancelled())
		if err != nil || out.Already || out.Policy != flowfabric.CancelAll || out.Unended != 0 || len(out.Left) != 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		s, err := fl.Wait(ctx)
		if err != nil || s.State != flowfabric.FlowCancelled || s.Count[flowfabric.Cancelled] != 400 || s.CancelBy != "anna" || s.Reason != "too late" {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
		out, err = fl.Cancel(ctx, flowfabric.CancelFlow, client.Reason("other"))
		if err != nil || !out.Already || out.Policy != flowfabric.CancelAll || out.Reason != "too late" {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := fl.Replay(ctx); !errors.Is(err, flowfabric.ErrFlowCancelled) {
			t.Errorf("%v", err)
		}

		f, _ = diamond("pending")
		flow.Add(f, "alone", write, draft{"x"})
		fl = submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		held := h.claim()
		out, err = fl.Cancel(ctx, flowfabric.CancelPending, client.UntilCancelled())
		if err != nil || out.Unended != 2 { // what is active is not waited for
			t.Errorf("%+v, %v", out, err)
		}
		if s := snapshot(ctx, t, fl); states(s) != "active:[a alone] cancelled:[b c d]" || !s.EndedAt.IsZero() || s.CancelBy != "billing" {
			t.Errorf("%s: %+v", states(s), s.FlowRecord)
		}
		h.complete("x", held["a"], held["alone"])
		if s, err := fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCancelled || s.Count[flowfabric.Completed] != 2 {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}

		f, _ = diamond("only")
		fl = submitFlow(ctx, t, c, f)
		if out, err = fl.Cancel(ctx, flowfabric.CancelFlow, client.UntilCancelled()); err != nil || out.Unended != 4 {
			t.Errorf("%+v, %v", out, err)
		}
		h = newHands(ctx, t, e, fl.ID().Partition())
		for range 3 {
			for _, x := range h.claim() {
				h.complete("x", x)
			}
		}
		if s, err := fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCancelled || s.Count[flowfabric.Completed] != 4 {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
	})
}

func TestReplayFlow(t *testing.T) { // spec 60 §12 FS44
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		fl := submitFlow(ctx, t, c, chain(200)) // more than a call takes, and than a call skips
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.fail(h.claim()["n000"])
		done, err := fl.Replay(ctx, client.FromNode("n000"))
		if err != nil || done.Blocked != 199 || done.Runnable != 1 || len(done.Refused) != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		again, err := fl.Replay(ctx, client.FromNode("n000"), client.ReplayRequest(done.Request))
		if err != nil || again.Already != 1 || again.Runnable != 1 || again.Blocked != 0 {
			t.Errorf("%+v, %v", again, err)
		}
		another, err := fl.Replay(ctx, client.FromNode("n000"))
		if err != nil || len(another.Refused) != 1 || another.Refused[0].Node != "n000" || !errors.Is(another.Refused[0], flowfabric.ErrNotTerminal) {
			t.Errorf("%+v, %v", another, err)
		}
		h.complete("x", h.claim()["n000"])
		if got := h.claim(); len(got) != 1 || got["n001"].Type != flowfabric.AttemptReplay && got["n001"].Type != flowfabric.AttemptInitial {
			t.Errorf("%+v", got)
		}
		if _, err := fl.Replay(ctx, client.FromNode("nobody")); !errors.Is(err, flowfabric.ErrNotInFlow) {
			t.Errorf("%v", err)
		}
	})
}

// One of two branches is replayed: the other stays as it is, and so does what succeeded.
func TestReplayFromANode(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := flow.New("branches")
		a, b := flow.Add(f, "a", write, draft{"a"}), flow.Add(f, "b", write, draft{"b"})
		flow.Add(f, "a1", write, draft{"x"}, flow.After(a))
		flow.Add(f, "b1", write, draft{"x"}, flow.After(b))
		flow.Add(f, "ok", write, draft{"x"})
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		first := h.claim()
		h.fail(first["a"])
		h.fail(first["b"])
		h.complete("x", first["ok"])
		done, err := fl.Replay(ctx, client.FromNode("a"))
		if err != nil || done.Blocked != 1 || done.Runnable != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		if s := snapshot(ctx, t, fl); states(s) != "completed:[ok] failed:[b] skipped:[b1] waiting:[a] waiting_children:[a1]" {
			t.Error(states(s))
		}
		done, err = fl.Replay(ctx, client.FromNode("ok"))
		if err != nil || len(done.Refused) != 1 || !errors.Is(done.Refused[0], flowfabric.ErrReplayNotAllowed) {
			t.Errorf("%+v, %v", done, err)
		}
		if done, err = fl.Replay(ctx, client.FromNode("ok"), client.Force(), client.FromScratch()); err != nil || done.Runnable != 1 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// The losers of a race are not run again unless somebody asks for everything.
func TestReplayLeavesWhatNobodyNeeds(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := flow.New("race")
		a, b := flow.Add(f, "a", write, draft{"a"}), flow.Add(f, "b", write, draft{"b"})
		flow.Add(f, "join", write, draft{"x"}, flow.After(a, b), flow.AnyOf(), flow.CancelRemaining())
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.complete("x", h.claim()["a"])
		h.fail(h.claim()["join"])
		s, err := fl.Wait(ctx)
		if err != nil || states(s) != "cancelled:[b] completed:[a] failed:[join]" || s.Siblings.Cancelled != 1 {
			t.Errorf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
		done, err := fl.Replay(ctx)
		if err != nil || done.Runnable != 1 || done.Unneeded != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		if done, err = fl.Replay(ctx, client.Everything()); err != nil || done.Runnable != 1 || done.Unneeded != 0 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

func TestSealAndTagFlow(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, _ := diamond("open", flow.Unsealed())
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		for range 3 {
			for _, x := range h.claim() {
				h.complete("x", x)
			}
		}
		s := snapshot(ctx, t, fl)
		if s.State != flowfabric.FlowOpen || s.Unended() != 0 || s.Seal != engine.SealOpen {
			t.Errorf("%+v", s.FlowRecord)
		}
		for range 2 {
			if err := fl.Seal(ctx); err != nil {
				t.Error(err)
			}
		}
		if s, err := fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted || s.Seal != engine.SealClosed {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
		h.no(fl.SetTags(ctx, map[string]string{"a.b": "1", "c.d": "2"}))
		h.no(fl.SetTags(ctx, map[string]string{"a.b": "3"}, "c.d"))
		if record, err := fl.Describe(ctx); err != nil || fmt.Sprint(record.Tags) != "map[a.b:3]" {
			t.Errorf("%v, %v", record.Tags, err)
		}
		if err := fl.SetTags(ctx, map[string]string{"plain": ""}); !errors.Is(err, flowfabric.ErrInvalidTagKey) {
			t.Errorf("%v", err)
		}
		growing, _ := diamond("grows", flow.Growing())
		fl = submitFlow(ctx, t, c, growing)
		h.no(fl.Seal(ctx))
		if record, err := fl.Describe(ctx); err != nil || record.Seal != engine.SealClosed || record.State != flowfabric.FlowOpen {
			t.Errorf("%+v, %v", record, err)
		}
	})
}

func TestFlowsThatAreNone(t *testing.T) {
	ctx, c, _ := open(t)
	nobody := c.Flow(flowfabric.NewFlowID(1))
	for verb, call := range aboutFlows(ctx) {
		if err := call(nobody); !errors.Is(err, flowfabric.ErrFlowNotFound) || !strings.HasPrefix(err.Error(), verb+" flow "+nobody.ID().String()) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := call(c.Flow(flowfabric.FlowID{})); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.HasSuffix(err.Error(), "the flow id is empty") {
			t.Errorf("%s, no id: %v", verb, err)
		}
		if err := call(c.Flow(flowfabric.NewFlowID(9))); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s, another store's id: %v", verb, err)
		}
	}
	c.Close()
	for verb, call := range aboutFlows(ctx) {
		if err := call(nobody); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := call(c.Flow(flowfabric.FlowID{})); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s, no id: %v", verb, err)
		}
	}
	f, node := diamond("late")
	_, submit := client.SubmitFlow(ctx, c, f)
	_, page := c.FlowsPage(ctx, client.FlowQuery{}, "", 0)
	_, result := client.NodeResult(ctx, nobody, node)
	for what, err := range map[string]error{"submit": submit, "list": page, "result": result} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// aboutFlows is every method of a handle, by the verb its errors begin with.
func aboutFlows(ctx context.Context) map[string]func(*client.Flow) error {
	return map[string]func(*client.Flow) error{
		"describe":    func(f *client.Flow) error { _, err := f.Describe(ctx); return err },
		"read":        func(f *client.Flow) error { _, err := f.Snapshot(ctx); return err },
		"wait for":    func(f *client.Flow) error { _, err := f.Wait(ctx); return err },
		"cancel":      func(f *client.Flow) error { _, err := f.Cancel(ctx, flowfabric.CancelAll); return err },
		"replay":      func(f *client.Flow) error { _, err := f.Replay(ctx); return err },
		"seal":        func(f *client.Flow) error { return f.Seal(ctx) },
		"set tags of": func(f *client.Flow) error { return f.SetTags(ctx, map[string]string{"a.b": "c"}) },
	}
}

func TestWaitForAFlowEndsWithItsContext(t *testing.T) {
	ctx, c, _ := open(t)
	f, _ := diamond("article")
	fl := submitFlow(ctx, t, c, f)
	short, cancel := context.WithCancelCause(ctx)
	cause := errors.New("no more patience")
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	if _, err := fl.Wait(short); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, err := fl.Wait(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
	time.AfterFunc(10*time.Millisecond, c.Close)
}

func TestListFlows(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		var ids []flowfabric.FlowID
		for i := range 25 {
			kind := "even"
			if i%2 == 1 {
				kind = "odd"
			}
			f := flow.New(kind)
			flow.Add(f, "a", write, draft{"x"})
			ids = append(ids, submitFlow(ctx, t, c, f).ID())
		}
		f, _ := diamond("elsewhere")
		other := submitFlow(ctx, t, c, f, client.Namespace("other"))
		for _, id := range ids[:5] {
			if _, err := c.Flow(id).Cancel(ctx, flowfabric.CancelAll); err != nil {
				t.Fatal(err)
			}
		}
		list := func(q client.FlowQuery, limit int) (out []flowfabric.FlowID) {
			t.Helper()
			for cursor := ""; ; {
				page, err := c.FlowsPage(ctx, q, cursor, limit)
				if err != nil || len(page.Flows) > limit {
					t.Fatalf("%d, %v", len(page.Flows), err)
				}
				for _, x := range page.Flows {
					out = append(out, x.ID)
				}
				if cursor = page.Cursor; cursor == "" {
					return out
				}
			}
		}
		sorted := func(all []flowfabric.FlowID) (names []string) {
			for _, id := range all {
				names = append(names, id.String())
			}
			slices.Sort(names)
			return names
		}
		for _, limit := range []int{1, 7, 100} {
			if got := list(client.FlowQuery{}, limit); !slices.Equal(sorted(got), sorted(ids)) {
				t.Errorf("limit %d: %d flows", limit, len(got))
			}
		}
		var last time.Time
		for x, err := range c.Flows(ctx, client.FlowQuery{AllNamespaces: true}) {
			if err != nil || !last.IsZero() && x.CreatedAt.After(last) {
				t.Fatalf("%v after %v, %v", x.CreatedAt, last, err)
			}
			last = x.CreatedAt
		}
		if got := list(client.FlowQuery{Oldest: true, AllNamespaces: true}, 10); len(got) != 26 {
			t.Errorf("%d flows", len(got))
		}
		for what, q := range map[string]struct {
			q client.FlowQuery
			n int
		}{
			"kind": {client.FlowQuery{Kind: "odd"}, 12}, "cancelled": {client.FlowQuery{States: []flowfabric.FlowState{flowfabric.FlowCancelled}}, 5},
			"both":  {client.FlowQuery{Kind: "odd", States: []flowfabric.FlowState{flowfabric.FlowOpen, flowfabric.FlowStaging}}, 10},
			"other": {client.FlowQuery{Namespace: "other"}, 1}, "nothing": {client.FlowQuery{Kind: "none"}, 0},
		} {
			if got := list(q.q, 3); len(got) != q.n {
				t.Errorf("%s: %d flows, want %d", what, len(got), q.n)
			}
		}
		if got := list(client.FlowQuery{Namespace: "other"}, 3); got[0] != other.ID() {
			t.Error(got)
		}
		page, err := c.FlowsPage(ctx, client.FlowQuery{}, "", 2)
		if err != nil || page.Cursor == "" {
			t.Fatal(err)
		}
		for what, bad := range map[string]func() error{
			"another query": func() error { _, err := c.FlowsPage(ctx, client.FlowQuery{Kind: "odd"}, page.Cursor, 2); return err },
			"no cursor":     func() error { _, err := c.FlowsPage(ctx, client.FlowQuery{}, "x", 2); return err },
			"limit":         func() error { _, err := c.FlowsPage(ctx, client.FlowQuery{}, "", 1001); return err },
			"state": func() error {
				_, err := c.FlowsPage(ctx, client.FlowQuery{States: []flowfabric.FlowState{"gone"}}, "", 1)
				return err
			},
			"namespaces": func() error {
				_, err := c.FlowsPage(ctx, client.FlowQuery{Namespace: "a", AllNamespaces: true}, "", 1)
				return err
			},
		} {
			if err := bad(); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
