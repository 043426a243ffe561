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
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

func TestFlowFromSubmitToEnd(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, join := diamond("article", flowfabric.Tags(map[string]string{"team.name": "sea"}))
		fl := submitFlow(ctx, t, c, f, flowfabric.Creator("anna"))
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
			if s, err := c.Flow(fl.ID()).Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted ||
				len(s.Nodes) != 4 || s.EndedAt.IsZero() {
				t.Errorf("waited: %+v, %v", s.FlowRecord, err)
			}
		})
		wg.Go(func() {
			if out, err := client.NodeResult(ctx, fl, join); err != nil || out.Text != "done" {
				t.Errorf("result: %+v, %v", out, err)
			}
		})
		s := snapshot(ctx, t, fl)
		if s.Kind != "article" || s.Creator != "anna" || s.Tags["team.name"] != "sea" || s.Members != 4 ||
			s.Edges != 4 || s.State != flowfabric.FlowOpen || unended(s) != 4 ||
			states(s) != "waiting:[a] waiting_children:[b c d]" {
			t.Errorf("%s: %+v", states(s), s.FlowRecord)
		}
		d, ok := s.Node("d")
		if !ok || d.ID != fl.Member("d") || len(d.Edges) != 2 || d.Group.Policy != codes.AllOf ||
			d.Kind != "write-article" || d.Lane != "default" {
			t.Errorf("%+v", d)
		}
		left, right := fl.Member("b"), fl.Member("c")
		for node, want := range map[string][]flowfabric.ExecutionID{"a": {left, right}, "b": {d.ID}, "c": {d.ID},
			"d": nil} {
			if m, _ := s.Node(node); !slices.Equal(m.Dependants, want) {
				t.Errorf("dependants of %s: %v, want %v", node, m.Dependants, want)
			}
		}
		if _, ok := s.Node("e"); ok {
			t.Error("there is no such node")
		}
		h := newHands(ctx, t, e, fl.ID().Partition())
		h.Complete("one", h.Claim()["a"])
		two := h.Claim()
		h.Complete("two", two["b"], two["c"])
		last := h.Claim()["d"]
		if string(last.Inputs["left"]) != `{"Text":"two"}` {
			t.Errorf("%q", last.Inputs)
		}
		h.Complete("done", last)
		if s, err := fl.Wait(ctx); err != nil || s.Count[flowfabric.Completed] != 4 || unended(s) != 0 {
			// after the end
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
		h.Fail(h.Claim()["a"])
		s, err := fl.Wait(ctx)
		if err != nil || s.State != flowfabric.FlowFailed || states(s) != "failed:[a] skipped:[b c d]" ||
			s.Failing != 1 {
			t.Errorf("%s: %+v, %v", states(s), s.FlowRecord, err)
		}
		if _, err := client.NodeResult(ctx, fl, join); !errors.Is(err, flowfabric.ErrSkipped) ||
			!strings.Contains(err.Error(), `node "d"`) {
			t.Errorf("%v", err)
		}
		if _, err := fl.Cancel(ctx, flowfabric.CancelAll); !errors.Is(err, denied.FlowTerminal) ||
			!strings.Contains(err.Error(), "it is failed") {
			t.Errorf("%v", err)
		}
	})
}

func TestSubmitFlowWithAKey(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, _ := diamond("article")
		var wg sync.WaitGroup
		handles := make([]*client.Flow, 5)
		for i := range handles {
			wg.Go(func() {
				var err error
				if handles[i], err = client.SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey("tides")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		for _, h := range handles {
			if h.ID() != flowfabric.FlowID(
				mint.Join(ids.KeyedFlow(2, "default", "article", "tides"))) {
				t.Errorf("%s", h.ID())
			}
		}
		if again := submitFlow(ctx, t, c, f, flowfabric.IdempotencyKey("tides")); !again.Duplicate() {
			t.Error("it was there before")
		}
		if s := snapshot(ctx, t, handles[0]); s.Members != 4 || s.Edges != 4 || s.Count[flowfabric.Waiting] != 1 {
			t.Errorf("%+v", s.FlowRecord)
		}
		other, _ := diamond("article", flow.Growing())
		_, err := client.SubmitFlow(ctx, c, other, flowfabric.IdempotencyKey("tides"))
		if !errors.Is(err, denied.FlowConflict) ||
			!strings.Contains(err.Error(), `key "tides" names a flow with another definition`) {
			t.Errorf("%v", err)
		}
		for what, bad := range map[string][]client.FlowOption{"key": {flowfabric.IdempotencyKey("")},
			"namespace": {flowfabric.Namespace("a{b")}, "creator": {flowfabric.Creator(strings.Repeat("x", 65))},
			"tags": {flowfabric.Tags(map[string]string{"plain": ""})}, "nil": {nil}} {
			if _, err := client.SubmitFlow(ctx, c, f, bad...); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := client.SubmitFlow(ctx, c, nil); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%v", err)
		}
		elsewhere := submitFlow(ctx, t, c, f, flowfabric.IdempotencyKey("tides"), flowfabric.Namespace("other"),
			flowfabric.Tags(map[string]string{"team.name": "lake"}))
		if s := snapshot(ctx, t, elsewhere); s.Namespace != "other" || s.Tags["team.name"] != "lake" ||
			elsewhere.Duplicate() || elsewhere.ID() == handles[0].ID() {
			t.Errorf("%+v", s.FlowRecord)
		}
		one, two := submitFlow(ctx, t, c, f), submitFlow(ctx, t, c, f)
		if one.ID().Partition() == two.ID().Partition() {
			t.Error("flows do not rotate over the partitions")
		}
	})
}

// A process that dies between staging and the seal leaves a flow that does not run; the same key completes it.
func TestSubmitFlowCompletesWhatWasCutShort(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := chain(150)
		id := flowfabric.FlowID(mint.Join(ids.KeyedFlow(2, "default", "chain", "k")))
		plan, err := f.Plan(flowplan.Request{Flow: id, Start: flowfabric.Start{Namespace: "default"}})
		h := newHands(ctx, t, e, id.Partition())
		h.No(err)
		_, err = e.CreateFlow(ctx, engine.NewFlow{ID: id, Namespace: "default", Kind: "chain", Digest: plan.Digest})
		h.No(err)
		_, err = e.StageFlow(ctx, id, nil, plan.Members[:70])
		h.No(err)
		if got := h.Claim(); len(got) != 0 {
			t.Fatalf("half a flow runs: %v", got)
		}
		half := c.Flow(id)
		if s := snapshot(ctx, t, half); s.State != flowfabric.FlowStaging || len(s.Nodes) != 70 {
			t.Errorf("%+v", s.FlowRecord)
		}
		if err := half.Seal(ctx); !errors.Is(err, denied.FlowIncomplete) {
			t.Errorf("%v", err)
		}
		fl := submitFlow(ctx, t, c, f, flowfabric.IdempotencyKey("k"))
		if s := snapshot(ctx, t, fl); s.State != flowfabric.FlowOpen || len(s.Nodes) != 150 || s.Edges != 149 ||
			fl.Duplicate() {
			t.Errorf("%+v", s.FlowRecord)
		}
		if got := h.Claim(); len(got) != 1 || got["n000"].Node == "" {
			t.Errorf("%v", got)
		}
	})
}

func TestCancelFlow(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f := chain(200)
		for i := range 200 {
			flow.Add(f, fmt.Sprintf("r%03d", i), write, draft{Topic: "x"})
		}
		fl := submitFlow(ctx, t, c, f)
		if _, err := fl.Cancel(ctx, "cancel_some"); !errors.Is(err, denied.CancellationPolicy) {
			t.Errorf("%v", err)
		}
		out, err := fl.Cancel(ctx, flowfabric.CancelAll, flowfabric.By("anna"), flowfabric.Reason("too late"))
		if err != nil || out.Already || out.Policy != flowfabric.CancelAll || out.Unended != 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		s, err := fl.Wait(ctx)
		if err != nil || s.State != flowfabric.FlowCancelled || s.Count[flowfabric.Cancelled] != 400 ||
			s.CancelBy != "anna" || s.Reason != "too late" {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
		out, err = fl.Cancel(ctx, flowfabric.CancelFlow, flowfabric.Reason("other"))
		if err != nil || !out.Already || out.Policy != flowfabric.CancelAll || out.Reason != "too late" {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := admin.New(c).ReplayFlow(ctx, fl.ID(), admin.FlowReplay{}); !errors.Is(err, denied.FlowCancelled) {
			t.Errorf("%v", err)
		}

		f, _ = diamond("pending")
		flow.Add(f, "alone", write, draft{Topic: "x"})
		fl = submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		held := h.Claim()
		out, err = fl.Cancel(ctx, flowfabric.CancelPending)
		if err != nil || out.Unended != 2 { // what is active goes on
			t.Errorf("%+v, %v", out, err)
		}
		if s := snapshot(ctx, t, fl); states(s) != "active:[a alone] cancelled:[b c d]" || !s.EndedAt.IsZero() ||
			s.CancelBy != "billing" {
			t.Errorf("%s: %+v", states(s), s.FlowRecord)
		}
		h.Complete("x", held["a"], held["alone"])
		if s, err := fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCancelled ||
			s.Count[flowfabric.Completed] != 2 {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
	})
}

func TestSealAndTagFlow(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		f, _ := diamond("open", flow.Unsealed())
		fl := submitFlow(ctx, t, c, f)
		h := newHands(ctx, t, e, fl.ID().Partition())
		for range 3 {
			for _, x := range h.Claim() {
				h.Complete("x", x)
			}
		}
		s := snapshot(ctx, t, fl)
		if s.State != flowfabric.FlowOpen || unended(s) != 0 || s.Seal != string(engine.SealOpen) {
			t.Errorf("%+v", s.FlowRecord)
		}
		for range 2 {
			if err := fl.Seal(ctx); err != nil {
				t.Error(err)
			}
		}
		if s, err := fl.Wait(ctx); err != nil || s.State != flowfabric.FlowCompleted ||
			s.Seal != string(engine.SealClosed) {
			t.Errorf("%+v, %v", s.FlowRecord, err)
		}
		h.No(admin.New(c).SetFlowTags(ctx, fl.ID(), map[string]string{"a.b": "1", "c.d": "2"}, nil))
		h.No(admin.New(c).SetFlowTags(ctx, fl.ID(), map[string]string{"a.b": "3"}, []string{"c.d"}))
		if record, err := fl.Describe(ctx); err != nil || fmt.Sprint(record.Tags) != "map[a.b:3]" {
			t.Errorf("%v, %v", record.Tags, err)
		}
		if err := admin.New(c).SetFlowTags(ctx, fl.ID(), map[string]string{"plain": ""}, nil); !errors.Is(err,
			denied.TagKey) {
			t.Errorf("%v", err)
		}
		growing, _ := diamond("grows", flow.Growing())
		fl = submitFlow(ctx, t, c, growing)
		h.No(fl.Seal(ctx))
		if record, err := fl.Describe(ctx); err != nil || record.Seal != string(engine.SealClosed) ||
			record.State != flowfabric.FlowOpen {
			t.Errorf("%+v, %v", record, err)
		}
	})
}

func TestFlowsThatAreNone(t *testing.T) {
	ctx, c, _ := open(t)
	nobody := c.Flow(flowfabric.FlowID(mint.ID(1)))
	for verb, call := range aboutFlows(ctx, c) {
		if err := call(nobody); !errors.Is(err, denied.NoFlow) ||
			!strings.HasPrefix(err.Error(), verb+" flow "+nobody.ID().String()) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := call(c.Flow(flowfabric.FlowID{})); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.HasSuffix(err.Error(), "the flow id is empty") {
			t.Errorf("%s, no id: %v", verb, err)
		}
		if err := call(c.Flow(flowfabric.FlowID(mint.ID(9)))); !errors.Is(err,
			flowfabric.ErrInvalidInput) {
			t.Errorf("%s, another store's id: %v", verb, err)
		}
	}
	c.Close()
	for verb, call := range aboutFlows(ctx, c) {
		if err := call(nobody); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := call(c.Flow(flowfabric.FlowID{})); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s, no id: %v", verb, err)
		}
	}
	f, node := diamond("late")
	_, submit := client.SubmitFlow(ctx, c, f)
	_, page := admin.New(c).FlowsPage(ctx, admin.FlowQuery{}, "", 0)
	_, result := client.NodeResult(ctx, nobody, node)
	for what, err := range map[string]error{"submit": submit, "list": page, "result": result} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// aboutFlows is every method of a handle, by the verb its errors begin with.
func aboutFlows(ctx context.Context, c *client.Client) map[string]func(*client.Flow) error {
	return map[string]func(*client.Flow) error{
		"describe": func(f *client.Flow) error { _, err := f.Describe(ctx); return err },
		"read":     func(f *client.Flow) error { _, err := f.Snapshot(ctx); return err },
		"wait for": func(f *client.Flow) error { _, err := f.Wait(ctx); return err },
		"cancel":   func(f *client.Flow) error { _, err := f.Cancel(ctx, flowfabric.CancelAll); return err },
		"replay": func(f *client.Flow) error {
			_, err := admin.New(c).ReplayFlow(ctx, f.ID(), admin.FlowReplay{})
			return err
		},
		"seal": func(f *client.Flow) error { return f.Seal(ctx) },
		"add to": func(f *client.Flow) error {
			nodes, _ := more(1)
			return f.Add(ctx, nodes)
		},
		"set tags of": func(f *client.Flow) error {
			return admin.New(c).SetFlowTags(ctx, f.ID(), map[string]string{"a.b": "c"}, nil)
		},
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

// unended is how many members have not ended.
func unended(s client.FlowSnapshot) (n int) {
	for state, count := range s.Count {
		if !state.Terminal() {
			n += count
		}
	}
	return n
}
