package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

var sampleFlow = flowfabric.FlowID(mint.ID(3))

// flowCallers makes one call of every function about flows.
var flowCallers = []caller{
	{"ff_flow_create", func(ctx context.Context, e *Engine) error {
		_, err := e.CreateFlow(ctx, NewFlow{ID: sampleFlow})
		return err
	}},
	{"ff_flow_stage", func(ctx context.Context, e *Engine) error {
		_, err := e.StageFlow(ctx, sampleFlow, nil, []FlowMember{{NewExecution: NewExecution{ID: sampleID}}})
		return err
	}},
	{"ff_flow_seal", func(ctx context.Context, e *Engine) error {
		_, _, err := e.SealFlow(ctx, sampleFlow, SealClosed, 1, 0)
		return err
	}},
	{"ff_flow_cancel", func(ctx context.Context, e *Engine) error {
		_, err := e.CancelFlow(ctx, sampleFlow, flowfabric.CancelAll)
		return err
	}},
	{"ff_flow_drain", func(ctx context.Context, e *Engine) error { _, err := e.DrainFlows(ctx, 3); return err }},
	{"ff_flow_replay", func(ctx context.Context, e *Engine) error {
		out, err := e.ReplayFlow(ctx, sampleFlow, Replay{}, []flowfabric.ExecutionID{sampleID})
		return firstError(err, out, func(r FlowReplayed) error { return r.Err })
	}},
	{"ff_flow_describe",
		func(ctx context.Context, e *Engine) error { _, err := e.DescribeFlow(ctx, sampleFlow); return err }},
	{"ff_flow_members", func(ctx context.Context, e *Engine) error {
		_, err := e.FlowMembers(ctx, sampleFlow, 0, 10, true)
		return err
	}},
	{"ff_flow_list", func(ctx context.Context, e *Engine) error {
		_, err := e.ListFlows(ctx, 3, true, Position{}, 10)
		return err
	}},
	{"ff_make_children", func(ctx context.Context, e *Engine) error {
		_, err := e.MakeChildren(ctx, sampleFence, ChildWait{Name: "w", Mode: WaitAll})
		return err
	}},
	{"ff_read_inputs", func(ctx context.Context, e *Engine) error { _, err := e.inputs(ctx, sampleID); return err }},
}

// goodFlows holds for each of them a reply it must understand.
var goodFlows = map[string][]string{
	"ff_flow_create": {"OK", "F1", "1", "2", "3", "1"},
	"ff_flow_stage":  {"OK", "1", "2", "3"},
	"ff_flow_seal":   {"OK", "F1", "1"},
	"ff_flow_cancel": {"OK", "cancel_all", "why", "3", "1"},
	"ff_flow_drain":  {"OK", "1"},
	"ff_flow_replay": {"OK", "1", "+R3p"},
	"ff_flow_describe": {"OK", "1700000000000", "6", "st", "F4", "sl", "g", "ct", "1700000000000", "mw", "3", "bl", "1",
		"xc", "2", "1", "a.b", "c"},
	"ff_flow_members": {"OK", "5", "1", sampleUUID, "4", "node", "R3p", "7", "0", "io", "1700000000000", "",
		"quorum 2 cancel 3 1 1 0 p", "all 2 1 0 run p cancel", "1", sampleUUID, "l,2,left,right", "1", "7",
		"ns\x1flane\x1fk\x1f\x1f"},
	"ff_flow_list": {"OK", "1700000000000", "9", "1", "1", sampleUUID, "1700000000000", "F1", "1", "ns", "k",
		"1700000000000", "", "3", "1", "1", "2", "", "", "", "", "", "", "", ""},
	"ff_make_children": {"OK", "1", sampleUUID + ",s,0,a\x1f" + sampleUUID + ",.,,b,c"},
	"ff_read_inputs":   {"OK", "1", "left", sampleUUID, "0", "s", "node", ""},
}

func TestFlowReplies(t *testing.T) {
	e, f := openFake(t)
	at := time.UnixMilli(1700000000000).UTC()
	f.answer(func(name string) string { return envelope(1, good[name]...) })
	h, err := e.DescribeFlow(t.Context(), sampleFlow)
	want := FlowRecord{Now: at, Backlog: 1, FlowSummary: flowfabric.FlowSummary{ID: sampleFlow,
		State: flowfabric.FlowCancelled, Seal: string(SealGrowing), CreatedAt: at,
		Count: map[flowfabric.PublicState]int{flowfabric.Waiting: 3}},
		Siblings: SiblingCancels{Cancelled: 2}, Tags: map[string]string{"a.b": "c"}}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("header %+v, %v", h, err)
	}
	page, err := e.FlowMembers(t.Context(), sampleFlow, 0, 10, true)
	if err != nil || page.Next != 5 || len(page.Members) != 1 {
		t.Fatalf("members %+v, %v", page, err)
	}
	m := page.Members[0]
	if got := fmt.Sprintln(m.Number, m.Node, m.State.Public, m.Lane, m.Kind, m.Attempt, m.Category,
		m.StartedAt.Equal(at),
		m.EndedAt.IsZero()); got != "4 node waiting_children lane k 0 io true true\n" {
		t.Errorf("member %s", got)
	}
	if !reflect.DeepEqual(m.Group, &GroupRecord{Policy: codes.Quorum, K: 2, CancelRest: true, Total: 3, Succeeded: 1,
		Failed: 1, Pending: true}) {
		t.Errorf("group %+v", m.Group)
	}
	if !reflect.DeepEqual(m.Wait, &WaitRecord{Mode: string(WaitAll), Total: 2, Succeeded: 1, Pending: true}) {
		t.Errorf("wait %+v", m.Wait)
	}
	id, _ := ids.ParseUUID(sampleUUID)
	up := mint.Join(3, id)
	if !reflect.DeepEqual(m.Edges,
		[]EdgeRecord{{From: up, Input: "left,right", Outcome: flowfabric.Completed, Attempt: 2, Late: true}}) {
		t.Errorf("edges %+v", m.Edges)
	}
	flows, err := e.ListFlows(t.Context(), 3, true, Position{}, 10)
	if err != nil || flows.Size != 9 || !flows.More || len(flows.Flows) != 1 {
		t.Fatalf("flows %+v, %v", flows, err)
	}
	x := flows.Flows[0]
	if x.State != flowfabric.FlowOpen || x.Seal != string(SealClosed) || x.Members != 3 || x.Failing != 1 ||
		!reflect.DeepEqual(x.Count,
			map[flowfabric.PublicState]int{flowfabric.WaitingChildren: 1, flowfabric.Waiting: 2}) {
		t.Errorf("flow %+v", x)
	}
	kids, err := e.MakeChildren(t.Context(), sampleFence, ChildWait{Name: "w", Mode: WaitAll})
	if err != nil || !reflect.DeepEqual(kids, MadeChildren{Over: true, Outcomes: []ChildOutcome{
		{ID: up, Node: "a", Outcome: flowfabric.Completed}, {ID: up, Node: "b,c"}}}) {
		t.Errorf("children %+v, %v", kids, err)
	}
}

// What is no group, wait, edge or flow in a reply is told, or left out; nothing is made up.
func TestDamagedFlows(t *testing.T) {
	e, f := openFake(t)
	for what, c := range map[string]struct {
		function string
		slot     int
		value    string
	}{
		"state of a flow":   {"ff_flow_describe", 4, "F9"},
		"state of a create": {"ff_flow_create", 1, "T1"},
		"state of a seal":   {"ff_flow_seal", 1, ""},
		"number":            {"ff_flow_describe", 10, "x"},
		"edge":              {"ff_flow_members", 16, "s,1"},
		"upstream":          {"ff_flow_members", 15, "nobody"},
		"outcome":           {"ff_make_children", 2, "a,b,c,d"},
		"result's attempt":  {"ff_read_inputs", 4, "x"},
		"answers":           {"ff_flow_replay", 1, "2"},
	} {
		slots := append([]string(nil), good[c.function]...)
		slots[c.slot] = c.value
		f.answer(func(string) string { return envelope(1, slots...) })
		for _, caller := range callers {
			if caller.function != c.function {
				continue
			}
			if err := caller.call(t.Context(), e); !errors.Is(err, denied.Reply) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	slots := append([]string(nil), good["ff_flow_members"]...)
	slots[12], slots[13] = "quorum x", "some 1"
	f.answer(func(string) string { return envelope(1, slots...) })
	page, err := e.FlowMembers(t.Context(), sampleFlow, 0, 10, true)
	if err != nil || page.Members[0].Group != nil || page.Members[0].Wait != nil {
		t.Errorf("%+v, %v", page, err)
	}
}

// A flow, a member or an edge of another partition, and what no call may hold, is refused before anything is sent.
func TestForeignFlows(t *testing.T) {
	e, f := openFake(t)
	f.answer(func(string) string { t.Error("something was sent"); return nilReply })
	ctx, foreign := t.Context(), flowfabric.FlowID(mint.ID(4))
	elsewhere := mint.ID(2)
	stage := func(members ...FlowMember) error { _, err := e.StageFlow(ctx, sampleFlow, nil, members); return err }
	member := FlowMember{NewExecution: NewExecution{ID: sampleID}, Node: "n"}
	edge, large := member, member
	edge.Edges = []FlowEdge{{From: elsewhere}}
	large.Payload = make([]byte, limits.MaxCallBytes+1)
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"create": {func() error { _, err := e.CreateFlow(ctx, NewFlow{ID: foreign}); return err }(),
			flowfabric.ErrInvalidInput},
		"seal": {func() error { _, _, err := e.SealFlow(ctx, foreign, SealClosed, 0, 0); return err }(),
			flowfabric.ErrInvalidInput},
		"describe": {func() error { _, err := e.DescribeFlow(ctx, foreign); return err }(), flowfabric.ErrInvalidInput},
		"drain":    {func() error { _, err := e.DrainFlows(ctx, 4); return err }(), flowfabric.ErrInvalidInput},
		"none":     {stage(), flowfabric.ErrInvalidInput},
		"too many": {stage(make([]FlowMember, 101)...), flowfabric.ErrInvalidInput},
		"member":   {stage(FlowMember{NewExecution: NewExecution{ID: elsewhere}}), flowfabric.ErrInvalidInput},
		"zero id":  {stage(FlowMember{}), flowfabric.ErrInvalidInput},
		"upstream": {stage(edge), denied.NotInFlow},
		"bytes":    {stage(large), flowfabric.ErrPayloadTooLarge},
		"children": {func() error {
			_, err := e.MakeChildren(ctx, sampleFence, ChildWait{Children: make([]FlowMember, 101)})
			return err
		}(), flowfabric.ErrInvalidInput},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

func TestDecodeChildren(t *testing.T) {
	if got, err := DecodeChildren(3, nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	for _, text := range []string{",", "\x1f", "x,s,0,a", sampleUUID, sampleUUID + ",s", sampleUUID + ",s,0",
		sampleUUID + ",s,0,a\x1f", "\x1f" + sampleUUID + ",s,0,a", strings.ToUpper("a") + sampleUUID[1:35] + ",s,0,a"} {
		if got, err := DecodeChildren(3, []byte(text)); !errors.Is(err, flowfabric.ErrCorrupt) || got != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// FuzzDecodeChildren: whatever a step holds, a caller gets children of its partition, or that the step is corrupt.
func FuzzDecodeChildren(f *testing.F) {
	f.Add(sampleUUID + ",s,0,a\x1f" + sampleUUID + ",.,,b,c")
	f.Add(sampleUUID + ",~,9223372036854775808,")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := DecodeChildren(3, []byte(text))
		if err != nil {
			if !errors.Is(err, flowfabric.ErrCorrupt) || got != nil {
				t.Fatalf("%q: %v, %v", text, got, err)
			}
			return
		}
		if want := strings.Count(text, "\x1f") + 1; text != "" && len(got) != want {
			t.Fatalf("%q: %d children, want %d", text, len(got), want)
		}
		for _, c := range got {
			if c.ID.Partition() != 3 {
				t.Fatalf("%q: %s", text, c.ID)
			}
		}
	})
}

// FuzzGroups: a text is the group or the wait that it is, or none.
func FuzzGroups(f *testing.F) {
	f.Add("quorum 2 cancel 3 1 1 0 p", "all 2 1 0 run p cancel")
	f.Add("all 0 run", "first 1 1 1 d")
	f.Fuzz(func(t *testing.T, g, w string) {
		if r := groupRecord(g); r != nil && strings.Count(strings.TrimSpace(g), " ") < 7 &&
			!strings.ContainsAny(g, "\t\r\n\v\f") {
			t.Fatalf("%q is a group: %+v", g, r)
		}
		if r := waitRecord(w); r != nil && strings.Count(strings.TrimSpace(w), " ") < 5 &&
			!strings.ContainsAny(w, "\t\r\n\v\f") {
			t.Fatalf("%q is a wait: %+v", w, r)
		}
	})
}
