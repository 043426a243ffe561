package flowplan_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

var work = handler.Define[string, string]("work", handler.Retry(2, time.Second, time.Minute),
	flowfabric.Timeout(time.Minute))

func plan(t *testing.T, f *flow.Flow, id flowfabric.FlowID) flowplan.Plan {
	t.Helper()
	p, err := f.Plan(flowplan.Request{Flow: id, Start: flowfabric.Start{Namespace: "blue", Creator: "me"}})
	must.No(t, err)
	return p
}

func race() *flow.Flow {
	f := flow.New("race", flow.Growing(), flowfabric.Tags(map[string]string{"a.b": "c"}))
	fast := flow.Add(f, "fast", work, "x", flowfabric.Priority(7), flowfabric.Delay(time.Second),
		flowfabric.Gates("gpu"))
	deep := flow.Add(f, "deep", work, "y", flowfabric.Deadline(time.Hour),
		flowfabric.Tags(map[string]string{"d.e": "f"}))
	flow.Add(f, "answer", work, "z", flow.Input[string]{Name: "left"}.From(fast), flow.After(deep), flow.AnyOf(),
		flow.CancelRemaining())
	return f
}

// A flow that was stored is the flow that was planned, under another id: the server takes the one for a repeat of the
// other.
func TestAStoredFlowIsTheSameFlow(t *testing.T) {
	id := flowfabric.FlowID(mint.ID(3))
	want := plan(t, race(), id)
	text, err := plan(t, race(), flowfabric.FlowID(mint.ID(0))).Encode()
	must.No(t, err)
	if again, err := plan(t, race(), id).Encode(); err != nil || string(again) != string(text) {
		t.Errorf("%s\n%s, %v", text, again, err)
	}
	template, err := flowplan.Decode(text)
	must.No(t, err)
	got, err := template.Plan(id, flowplan.Wait{}, maps.Clone[map[string]string])
	if err != nil || got.Kind != want.Kind || got.Mode != want.Mode || got.Digest != want.Digest ||
		got.Edges != want.Edges || len(got.Members) != 3 || got.Tags["a.b"] != "c" {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, m := range got.Members {
		w := want.Members[i]
		if m.ID != w.ID || m.Node != w.Node || m.Namespace != "blue" || m.Creator != "me" || m.Digest != w.Digest ||
			string(m.Payload) != string(w.Payload) || m.Policy != w.Policy || m.K != w.K ||
			m.CancelRest != w.CancelRest || m.Priority != w.Priority || m.Delay != w.Delay ||
			m.Deadline != w.Deadline || !maps.Equal(m.Tags, w.Tags) || len(m.Gates()) != len(w.Gates()) ||
			m.NewExecution.Policy.Retry.MaxRetries != 2 ||
			m.NewExecution.Policy.AttemptTimeout != flowfabric.Millis(time.Minute) || len(m.Edges) != len(w.Edges) {
			t.Errorf("%+v, want %+v", m, w)
		}
		for n, e := range m.Edges {
			if e != w.Edges[n] {
				t.Errorf("%+v, want %+v", e, w.Edges[n])
			}
		}
	}
}

// The members that wait for no other wait for the start, and all deadlines count from there.
func TestMembersWaitForTheStart(t *testing.T) {
	text, err := plan(t, race(), flowfabric.FlowID(mint.ID(0))).Encode()
	must.No(t, err)
	template, err := flowplan.Decode(text)
	must.No(t, err)
	start := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	p, err := template.Plan(flowfabric.FlowID(mint.ID(0)),
		flowplan.Wait{Until: start, For: time.Minute}, maps.Clone[map[string]string])
	must.No(t, err)
	fast, deep, answer := p.Members[0], p.Members[1], p.Members[2]
	if fast.Delay != flowfabric.Millis(time.Minute+time.Second) || !deep.DelayUntil.Equal(start) ||
		deep.Deadline != flowfabric.Millis(time.Hour+time.Minute) || answer.Delay != 0 || !answer.DelayUntil.IsZero() {
		t.Errorf("%+v\n%+v\n%+v", fast, deep, answer)
	}
}

func TestUnreadableTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "not readable",
		`{"v":2,"nodes":[{"name":"a"}]}`: "version 2",
		`{"v":1}`:                        "0 nodes",
		`{"v":1,"nodes":[{"edges":[{"from":0}]}]}`:  "from node 0 to node 0",
		`{"v":1,"nodes":[{"edges":[{"from":-1}]}]}`: "from node -1",
	} {
		if _, err := flowplan.Decode([]byte(text)); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever is stored is read or refused, and planned or refused.
func FuzzDecode(f *testing.F) {
	text, err := plan(&testing.T{}, race(), flowfabric.FlowID(mint.ID(0))).Encode()
	must.No(f, err)
	f.Add(text)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		template, err := flowplan.Decode(text)
		if err != nil {
			if !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		id := flowfabric.FlowID(mint.ID(3))
		if p, err := template.Plan(id, flowplan.Wait{}, maps.Clone[map[string]string]); err == nil &&
			len(p.Members) != len(template.Nodes) {
			t.Errorf("%q: %d members of %d nodes", text, len(p.Members), len(template.Nodes))
		}
	})
}
