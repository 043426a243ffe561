package admin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// is wants an error that matches and says so much.
func is(t *testing.T, err, want error, says string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %v with %q", err, want, says)
	}
}

func tokens(name string, hard int64) admission.Gate {
	return admission.Gate{Name: name, Limits: map[string]admission.Limit{"tokens": {Hard: hard}}}
}

// spend reports under a key, and wants it to be counted.
func spend(ctx context.Context, t *testing.T, c *client.Client, name, key string, id flowfabric.ExecutionID, n int64) {
	t.Helper()
	r, err := admin.New(c).ReportUsage(ctx,
		admission.Usage{Gate: name, Key: key, Execution: id, Amounts: map[string]int64{"tokens": n}})
	if err != nil || !r.Applied {
		t.Fatalf("%+v, %v", r, err)
	}
}

func used(ctx context.Context, t *testing.T, c *client.Client, name string) int64 {
	t.Helper()
	b, err := admin.New(c).GetGate(ctx, name)
	must.No(t, err)
	return b.Used["tokens"]
}

func TestGatesOfAmounts(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		// Of what does not exist everybody hears so, and nothing is made by asking.
		_, err := admin.New(c).GetGate(ctx, "acme")
		is(t, err, denied.NoGate, `get gate "acme"`)
		_, err = admin.New(c).ReportUsage(ctx,
			admission.Usage{Gate: "acme", Key: "k", Amounts: map[string]int64{"tokens": 1}})
		is(t, err, denied.NoGate, "acme")
		_, _, err = admin.New(c).ResetUsage(ctx, "acme", false)
		is(t, err, denied.NoGate, "acme")
		_, err = admin.New(c).AdjustUsage(ctx, "acme", map[string]int64{"tokens": 1})
		is(t, err, denied.NoGate, "acme")
		_, err = admin.New(c).RefundUsage(ctx, "acme", mint.ID(0))
		is(t, err, denied.NoGate, "acme")
		is(t, admin.New(c).PutGate(ctx, tokens("acme", 5), flowfabric.IfRevision(1)), denied.NoGate, "acme")
		if removed, err := admin.New(c).RemoveGate(ctx, "acme"); removed || err != nil {
			t.Errorf("%v, %v", removed, err)
		}
		if list, err := admin.New(c).Gates(ctx); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}

		for range 2 { // equal is no error
			must.No(t, admin.New(c).PutGate(ctx, tokens("acme", 100), flowfabric.IfNew(), flowfabric.By("anna")))
		}
		is(t, admin.New(c).PutGate(ctx, tokens("acme", 101), flowfabric.IfNew()), denied.GateConflict,
			"at revision 1")
		for _, name := range []string{"zoo", "bank", "acme2"} {
			must.No(t, admin.New(c).PutGate(ctx, tokens(name, 7), flowfabric.IfNew()))
		}
		list, err := admin.New(c).Gates(ctx)
		must.No(t, err)
		var names []string
		for _, b := range list {
			names = append(names, b.Name)
		}
		if got := strings.Join(names, " "); got != "acme acme2 bank zoo" || list[3].Limits["tokens"].Hard != 7 {
			t.Errorf("%s, %+v", got, list)
		}

		x := mint.ID(0)
		spend(ctx, t, c, "acme", "x", x, 50)
		for _, want := range []bool{true, false} {
			if returned, err := admin.New(c).RefundUsage(ctx, "acme", x, flowfabric.By("anna")); returned != want ||
				err != nil || used(ctx, t, c, "acme") != 0 {
				t.Errorf("refunded %v, %v", returned, err)
			}
		}
		if period, left, err := admin.New(c).ResetUsage(ctx, "acme", false); period != 1 || left != 0 || err != nil {
			t.Errorf("%d, %s, %v", period, left, err)
		}

		spend(ctx, t, c, "acme", "z", flowfabric.ExecutionID{}, 90)
		after, err := admin.New(c).AdjustUsage(ctx, "acme", map[string]int64{"tokens": 10},
			flowfabric.Reason("invoice 7"))
		if err != nil || after["tokens"] != 100 {
			t.Errorf("%v, %v", after, err)
		}
		b, err := admin.New(c).GetGate(ctx, "acme")
		must.No(t, err)
		if left, limited := b.Headroom["tokens"]; left != 0 || !limited || !slices.Equal(b.Exhausted,
			[]string{"tokens"}) {
			t.Errorf("%d, %v, %v", left, limited, b.Exhausted)
		}
		last := b.Audit[len(b.Audit)-1]
		if b.Revision != 1 || b.ChangedBy != "anna" || last.What != "adjusted" || last.By != "billing" ||
			!strings.Contains(last.Detail, "invoice 7") {
			t.Errorf("%+v", b)
		}
		r, err := admin.New(c).ReportUsage(ctx,
			admission.Usage{Gate: "acme", Key: "over", Amounts: map[string]int64{"tokens": 1}})
		if err != nil || r.Applied || r.Verdict != codes.HardBreach || len(r.Breaches) != 1 ||
			r.Breaches[0].Limit != 100 {
			t.Errorf("%+v, %v", r, err)
		}

		more := b.Gate
		more.Limits = map[string]admission.Limit{"tokens": {Hard: 200, Soft: 150}}
		must.No(t, admin.New(c).PutGate(ctx, more, flowfabric.IfRevision(b.Revision)))
		more.Limits["tokens"] = admission.Limit{Hard: 300}
		is(t, admin.New(c).PutGate(ctx, more, flowfabric.IfRevision(b.Revision)), denied.GateConflict,
			"at revision 2")
		if b, err = admin.New(c).GetGate(ctx, "acme"); err != nil || b.Limits["tokens"].Hard != 200 ||
			b.Used["tokens"] != 100 || b.ChangedBy != "billing" {
			t.Errorf("%+v, %v", b, err)
		}
		if removed, err := admin.New(c).RemoveGate(ctx, "acme"); !removed || err != nil {
			t.Errorf("%v, %v", removed, err)
		}
		_, err = admin.New(c).GetGate(ctx, "acme")
		is(t, err, denied.NoGate, "acme")
	})
}

// A reset keeps the end of the period, or begins a new one.
func TestPeriods(t *testing.T) {
	k := newCalendar(t)
	b := tokens("hourly", 10)
	b.Reset = flowfabric.Millis(time.Minute)
	must.No(t, admin.New(k.c).PutGate(k.ctx, b, flowfabric.IfNew()))
	k.server.SetTime(k.now.Add(time.Second))
	for _, x := range []struct {
		restart bool
		left    time.Duration
	}{{false, 59 * time.Second}, {true, time.Minute}} {
		if _, left, err := admin.New(k.c).ResetUsage(k.ctx, "hourly", x.restart); left != x.left || err != nil {
			t.Errorf("restart %v: %s, %v", x.restart, left, err)
		}
	}
}

// What cannot be is refused before anything is sent: the engine of a closed server is never asked.
func TestGateRefusals(t *testing.T) {
	ctx, c, _ := open(t)
	dims := func(l admission.Limit) admission.Gate {
		return admission.Gate{Name: "b", Limits: map[string]admission.Limit{"tokens": l}}
	}
	many := map[string]admission.Limit{}
	for i := range 65 {
		many[fmt.Sprintf("d%d", i)] = admission.Limit{}
	}
	for _, x := range []struct {
		b    admission.Gate
		want error
		says string
	}{
		{tokens("", 1), flowfabric.ErrInvalidInput, "gate"},
		{tokens("a b", 1), flowfabric.ErrInvalidInput, `"a b"`},
		{tokens(strings.Repeat("a", 65), 1), flowfabric.ErrInvalidInput, "1..64"},
		{dims(admission.Limit{Hard: -1}), denied.GateSpec, "tokens"},
		{dims(admission.Limit{Hard: 1 << 53}), denied.GateSpec, "9007199254740991"},
		{dims(admission.Limit{Hard: 5, Soft: 6}), denied.GateSpec, "soft limit of tokens"},
		{admission.Gate{Name: "b", Limits: map[string]admission.Limit{"Tokens": {}}}, denied.GateSpec, "dimension"},
		{admission.Gate{Name: "b", Limits: many}, denied.GateSpec, "65 dimensions"},
		{admission.Gate{Name: "b", Reset: flowfabric.Millis(999 * time.Millisecond)}, denied.GateSpec,
			"reset 999ms"},
		{admission.Gate{Name: "b", Reset: flowfabric.Millis(time.Minute + time.Microsecond)}, denied.GateSpec,
			"reset"},
		{admission.Gate{Name: "b", OnHard: "explode"}, denied.GateSpec, "explode"},
		{admission.Gate{Name: "b", Refund: []string{"success"}}, denied.GateSpec, "success"},
		{admission.Gate{Name: "b", Scope: strings.Repeat("x", 129)}, denied.GateSpec, "129"},
	} {
		is(t, admin.New(c).PutGate(ctx, x.b, flowfabric.IfNew()), x.want, x.says)
	}
	for _, x := range []struct {
		q    admission.Gate
		want error
		says string
	}{
		{admission.Gate{Name: "{q}"}, flowfabric.ErrInvalidInput, "gate"},
		{admission.Gate{Name: "q", Rate: -1}, denied.GateSpec, "rate -1"},
		{admission.Gate{Name: "q", Rate: 5}, denied.GateSpec, "without a window"},
		{admission.Gate{Name: "q", Rate: 5, Window: flowfabric.Millis(31 * 24 * time.Hour)}, denied.GateSpec,
			"30 days"},
		{admission.Gate{Name: "q", Window: flowfabric.Millis(time.Nanosecond)}, denied.GateSpec, "window"},
		{admission.Gate{Name: "q", Concurrency: 1_000_001}, denied.GateSpec, "concurrency"},
		{admission.Gate{Name: "q", Jitter: flowfabric.Millis(61 * time.Second)}, denied.GateSpec, "jitter"},
	} {
		is(t, admin.New(c).PutGate(ctx, x.q, flowfabric.IfNew()), x.want, x.says)
	}
	is(t, admin.New(c).PutGate(ctx, tokens("b", 1), flowfabric.IfNew(), flowfabric.By(strings.Repeat("a", 65))),
		flowfabric.ErrInvalidInput, "By")
	report := func(u admission.Usage) error {
		u.Gate = "b"
		_, err := admin.New(c).ReportUsage(ctx, u)
		return err
	}
	one := map[string]int64{"tokens": 1}
	for _, n := range []int64{-5, 1 << 53} {
		is(t, report(admission.Usage{Key: "k", Amounts: map[string]int64{"tokens": n}}), denied.Delta, "tokens")
	}
	is(t, report(admission.Usage{Key: "k"}), flowfabric.ErrInvalidInput, "0 dimensions")
	is(t, report(admission.Usage{Amounts: one}), flowfabric.ErrInvalidInput, "key")
	is(t, report(admission.Usage{Key: "a b", Amounts: one}), flowfabric.ErrInvalidInput, "key")
	is(t, report(admission.Usage{Epoch: 1, Amounts: one}), flowfabric.ErrInvalidInput, "Sequence")
	_, err := admin.New(c).AdjustUsage(ctx, "b", map[string]int64{"tokens": -(1 << 53)})
	is(t, err, denied.Delta, "tokens")
	_, err = admin.New(c).AdjustUsage(ctx, "b", one, flowfabric.Reason(strings.Repeat("x", 257)))
	is(t, err, flowfabric.ErrInvalidInput, "reason")
	_, err = admin.New(c).RefundUsage(ctx, "b", flowfabric.ExecutionID{})
	is(t, err, flowfabric.ErrInvalidInput, "empty")

	gates := []flowfabric.Gate{flowfabric.Gate("b")}
	is(t, admin.New(c).AttachGates(ctx, admission.Scope{}, nil), flowfabric.ErrInvalidInput, "no gate")
	is(t, admin.New(c).AttachGates(ctx, admission.Scope{}, []flowfabric.Gate{"x y"}), flowfabric.ErrInvalidInput,
		`"x y"`)
	is(t, admin.New(c).AttachGates(ctx, admission.Scope{TagKey: "a.b", Tag: "c", Lane: "l"}, gates),
		flowfabric.ErrInvalidInput, "scope")
	is(t, admin.New(c).AttachGates(ctx, admission.Scope{TagKey: "nodot", Tag: "c"}, gates), denied.TagKey, "nodot")
	is(t, admin.New(c).AttachGates(ctx, admission.Scope{Namespace: "{"}, gates), flowfabric.ErrInvalidInput,
		"namespace")
	is(t, admin.New(c).AttachGates(ctx, admission.Scope{}, gates), denied.NoGate, "gate b")
	is(t, admin.New(c).SetLane(ctx, "l", admin.LaneChange{Namespace: "n", Weight: new(1001)}),
		flowfabric.ErrInvalidInput, "weight 1001")
	is(t, admin.New(c).SetLane(ctx, "l", admin.LaneChange{Ageing: new(flowfabric.Millis(25 * time.Hour))}),
		flowfabric.ErrInvalidInput,
		"ageing")
	is(t, admin.New(c).Hold(ctx, mint.ID(0), flowfabric.Reason(strings.Repeat("x", 257))),
		flowfabric.ErrInvalidInput, "reason")
	is(t, admin.New(c).Hold(ctx, flowfabric.ExecutionID{}), flowfabric.ErrInvalidInput, "empty")

	c.Close()
	_, list := admin.New(c).Gates(ctx)
	_, all := admin.New(c).Gated(ctx)
	for _, err := range []error{admin.New(c).PutGate(ctx, tokens("b", 1), flowfabric.IfNew()), list, all,
		admin.New(c).DetachGates(ctx, admission.Scope{}, nil),
		admin.New(c).SetLane(ctx, "l", admin.LaneChange{Namespace: "n", Weight: new(1)}),
		admin.New(c).Unhold(ctx, mint.ID(0))} {
		is(t, err, client.ErrClosed, "")
	}
}

func TestGatesOfStarts(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		_, err := admin.New(c).GetGate(ctx, "gpu")
		is(t, err, denied.NoGate, `get gate "gpu"`)
		q := admission.Gate{Name: "gpu", Rate: 10, Window: flowfabric.Millis(time.Minute), Concurrency: 2}
		for range 2 {
			must.No(t, admin.New(c).PutGate(ctx, q, flowfabric.IfNew()))
		}
		q.Concurrency = 3
		is(t, admin.New(c).PutGate(ctx, q, flowfabric.IfNew()), denied.GateConflict, "at revision 1")
		must.No(t, admin.New(c).PutGate(ctx, q, flowfabric.IfRevision(1)))
		is(t, admin.New(c).PutGate(ctx, admission.Gate{Name: "gpu"}, flowfabric.IfRevision(1)), denied.GateConflict,
			"you had revision 1, it is at revision 2")
		hold := engine.Hold{Execution: mint.ID(0), Epoch: 1}
		_, err = e.Admit(ctx, "gpu", engine.Waiter{Partition: 0, Route: 1}, time.Minute, false, []engine.Hold{hold})
		must.No(t, err)
		info, err := admin.New(c).GetGate(ctx, "gpu")
		must.No(t, err)
		if info.Free == nil || *info.Free != 2 || info.Started != 1 || len(info.Holds) != 1 ||
			info.Revision != 2 {
			t.Errorf("%+v", info)
		}
		list, err := admin.New(c).Gates(ctx)
		if err != nil || len(list) != 1 || list[0].Held != 1 || list[0].Window != flowfabric.Millis(time.Minute) {
			t.Errorf("%+v, %v", list, err)
		}
		if removed, err := admin.New(c).RemoveGate(ctx, "gpu"); !removed || err != nil {
			t.Errorf("%v, %v", removed, err)
		}
	})
}

// gatesOf is what an execution asks before it runs.
func gatesOf(ctx context.Context, t *testing.T, c *client.Client, id flowfabric.ExecutionID) string {
	t.Helper()
	s, err := c.Execution(id).Get(ctx)
	must.No(t, err)
	return fmt.Sprint(s.Route.Gates)
}

var costly = handler.Define[draft, verdict]("costly", flowfabric.Retries(0), flowfabric.Gates("acme", "gpu"))

// Gates come from definitions, options, flows and schedules; one that does not exist is refused before anything is
// made.
func TestExplicitGates(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		node := func() *flow.Flow {
			f := flow.New("story", flowfabric.Gates("gpu"))
			flow.Add(f, "a", write, draft{Topic: "a"}, flowfabric.Gates("team"))
			flow.Add(f, "b", costly, draft{Topic: "b"})
			return f
		}
		attempt := func() map[string]error {
			_, one := client.Submit(ctx, c, costly, draft{Topic: "x"})
			_, many := client.SubmitMany(ctx, c, write, []draft{{Topic: "x"}}, flowfabric.Gates("gpu"))
			_, graph := client.SubmitFlow(ctx, c, node(), flowfabric.IdempotencyKey("k"), flowfabric.Gates("acme"))
			_, planned := client.Schedule(ctx, c, "nightly", schedule.Cron("@daily", ""), costly, draft{Topic: "x"})
			return map[string]error{"submit": one, "submit many": many, "flow": graph, "schedule": planned}
		}
		for what, err := range attempt() {
			if !errors.Is(err, denied.NoGate) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := admin.New(c).GetSchedule(ctx, "nightly")
		is(t, err, denied.NoSchedule, "")
		if page, err := admin.New(c).ListPage(ctx, admin.Filter{}, "", 10); err != nil || len(page.Items) != 0 {
			t.Errorf("%+v, %v", page, err)
		}
		must.No(t, admin.New(c).PutGate(ctx, tokens("acme", 10), flowfabric.IfNew()))
		must.No(t, admin.New(c).PutGate(ctx, tokens("team", 10), flowfabric.IfNew()))
		must.No(t, admin.New(c).PutGate(ctx, admission.Gate{Name: "gpu", Concurrency: 1}, flowfabric.IfNew()))
		for what, err := range attempt() {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for want, opts := range map[string][]client.SubmitOption{
			"[gate acme gate gpu]": nil,
			"[gate team]":          {flowfabric.Gates("team")},
			"[]":                   {flowfabric.Gates()},
		} {
			x, err := client.Submit(ctx, c, costly, draft{Topic: "x"}, opts...)
			must.No(t, err)
			if got := gatesOf(ctx, t, c, x.ID()); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		fl, err := client.SubmitFlow(ctx, c, node(), flowfabric.IdempotencyKey("k"), flowfabric.Gates("acme"))
		must.No(t, err)
		if !fl.Duplicate() || gatesOf(ctx, t, c, fl.Member("a")) != "[gate acme gate gpu gate team]" ||
			gatesOf(ctx, t, c, fl.Member("b")) != "[gate acme gate gpu]" {
			t.Errorf("%v, %s, %s", fl.Duplicate(), gatesOf(ctx, t, c, fl.Member("a")),
				gatesOf(ctx, t, c, fl.Member("b")))
		}
		_, err = client.SubmitFlow(ctx, c, node(), flowfabric.IdempotencyKey("k")) // other gates: another definition
		is(t, err, denied.FlowConflict, "")
		info, err := admin.New(c).GetSchedule(ctx, "nightly")
		if err != nil || fmt.Sprint(info.Definition.Item.Gates()) != "[gate acme gate gpu]" {
			t.Errorf("%+v, %v", info, err)
		}
		// What was removed through this client is not believed any more.
		if _, err := admin.New(c).RemoveGate(ctx, "gpu"); err != nil {
			t.Fatal(err)
		}
		_, err = client.Submit(ctx, c, costly, draft{Topic: "x"})
		is(t, err, denied.NoGate, "gate gpu")
	})
}

// What is attached holds for what is created from then on, in every partition, and can be taken back one by one.
func TestAttach(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		must.No(t, admin.New(c).PutGate(ctx, tokens("acme", 10), flowfabric.IfNew()))
		must.No(t, admin.New(c).PutGate(ctx, admission.Gate{Name: "gpu", Concurrency: 1}, flowfabric.IfNew()))
		before := submit(ctx, t, c, "before", flowfabric.Lane("big"))
		acme, gpu := flowfabric.Gate("acme"), flowfabric.Gate("gpu")
		lane, tag := admission.Scope{Lane: "big"}, admission.Scope{TagKey: "app.tenant", Tag: "acme"}
		must.No(t, admin.New(c).AttachGates(ctx, lane, []flowfabric.Gate{gpu}, flowfabric.By("anna")))
		must.No(t, admin.New(c).AttachGates(ctx, lane, []flowfabric.Gate{acme, gpu}))
		must.No(t, admin.New(c).AttachGates(ctx, tag, []flowfabric.Gate{acme}))
		var got []string
		for _, opts := range [][]client.SubmitOption{{flowfabric.Lane("big")}, {flowfabric.Lane("big")},
			{flowfabric.Tags(map[string]string{"app.tenant": "acme"})}, nil} {
			got = append(got, gatesOf(ctx, t, c, submit(ctx, t, c, "after", opts...).ID()))
		}
		if want := []string{"[gate acme gate gpu]", "[gate acme gate gpu]", "[gate acme]",
			"[]"}; !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
		if got := gatesOf(ctx, t, c, before.ID()); got != "[]" {
			t.Errorf("what existed got %s", got)
		}
		all, err := admin.New(c).Gated(ctx)
		must.No(t, err)
		if len(all.Attached) != 2 || all.Partitions != 2 || all.Attached[0].Mixed ||
			all.Attached[0].Scope != (admission.Scope{Namespace: "default", Lane: "big"}) ||
			!reflect.DeepEqual(all.Attached[0].Gates, []flowfabric.Gate{acme, gpu}) ||
			all.Attached[0].By != "billing" || all.Attached[1].Scope != tag {
			t.Errorf("%+v", all)
		}
		must.No(t, e.FreezePartition(trail.As(ctx, "", "slot move"), 1))
		err = admin.New(c).DetachGates(ctx, lane, []flowfabric.Gate{gpu})
		is(t, err, flowfabric.ErrPartitionFrozen, "1 of 2 partitions")
		must.No(t, e.ThawPartition(ctx, 1))
		if all, err = admin.New(c).Gated(ctx); err != nil || !all.Attached[0].Mixed {
			t.Errorf("%+v, %v", all, err)
		}
		must.No(t, admin.New(c).DetachGates(ctx, lane, []flowfabric.Gate{gpu}))
		if all, err = admin.New(c).Gated(ctx); err != nil || all.Attached[0].Mixed ||
			!slices.Equal(all.Attached[0].Gates, []flowfabric.Gate{acme}) {
			t.Errorf("%+v, %v", all, err)
		}
		must.No(t, admin.New(c).DetachGates(ctx, lane, nil))
		must.No(t, admin.New(c).DetachGates(ctx, tag, nil))
		if all, err = admin.New(c).Gated(ctx); err != nil || len(all.Attached) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// grants asks for work of a partition as a worker does that understands gates.
func grants(ctx context.Context, t *testing.T, e *engine.Engine, partition uint16, session string) []engine.Grant {
	t.Helper()
	q := engine.ClaimRequest{Partition: partition, Session: session, Number: 1, TTL: time.Hour, Max: 10, Gates: true}
	table, err := e.ClaimNext(ctx, q)
	must.No(t, err)
	var routes []uint64
	for _, r := range table.Routes {
		routes = append(routes, r.ID)
	}
	q.Subscription, err = e.SetSubscription(ctx, partition, engine.Subscription{Classes: routes})
	must.No(t, err)
	q.Table = table.Table
	reply, err := e.ClaimNext(ctx, q)
	must.No(t, err)
	return append(table.Grants, reply.Grants...)
}

// An exhausted gate closes a route; whatever makes room in it opens the route at once, and nobody waits for the
// time that was said.
func TestWaking(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		must.No(t, admin.New(c).PutGate(ctx, tokens("acme", 10), flowfabric.IfNew()))
		x := submit(ctx, t, c, "tides", flowfabric.Gates("acme"))
		spender, n := mint.ID(0), 0
		exhaust := func() {
			n++
			b, err := admin.New(c).GetGate(ctx, "acme")
			must.No(t, err)
			left := b.Headroom["tokens"]
			spend(ctx, t, c, "acme", fmt.Sprint("key", n), spender, left)
		}
		for round, room := range map[string]func() error{
			"update": func() error {
				b, err := admin.New(c).GetGate(ctx, "acme")
				must.No(t, err)
				spec := b.Gate
				spec.Limits = map[string]admission.Limit{"tokens": {Hard: b.Limits["tokens"].Hard + 10}}
				return admin.New(c).PutGate(ctx, spec, flowfabric.IfRevision(b.Revision))
			},
			"adjust": func() error {
				_, err := admin.New(c).AdjustUsage(ctx, "acme", map[string]int64{"tokens": -3},
					flowfabric.Reason("typo"))
				return err
			},
			"raise": func() error {
				_, err := admin.New(c).RaiseLimits(ctx, "acme", map[string]int64{"tokens": 3}, flowfabric.ExecutionID{})
				return err
			},
			"reset":  func() error { _, _, err := admin.New(c).ResetUsage(ctx, "acme", false); return err },
			"refund": func() error { _, err := admin.New(c).RefundUsage(ctx, "acme", spender); return err },
		} {
			exhaust()
			session := engine.NewSessionID("tester")
			list := grants(ctx, t, e, x.ID().Partition(), session)
			if len(list) != 1 || list[0].Execution != x.ID() {
				t.Fatalf("%s: granted %+v", round, list)
			}
			asked, err := e.Admit(ctx, "acme", engine.Waiter{Partition: x.ID().Partition(), Route: list[0].Route},
				time.Minute, false,
				[]engine.Hold{{Execution: x.ID(), Epoch: list[0].Epoch}})
			if err != nil || asked.Count != 0 || asked.Why != "amount" {
				t.Fatalf("%s: %+v, %v", round, asked, err)
			}
			must.No(t, e.ReleaseGrants(ctx, x.ID().Partition(), session, []engine.GrantReturn{{Grant: list[0]}},
				[]engine.RouteClosing{{Route: list[0].Route, For: time.Hour, Why: "gate acme amount tokens 10 10"}}))
			all, err := admin.New(c).Gated(ctx)
			if err != nil || len(all.Closed) != 1 ||
				all.Closed[0].Reason.Text != "gate acme: 10 used of 10 tokens" ||
				all.Closed[0].Waiting != 1 || all.Closed[0].Partition != x.ID().Partition() {
				t.Errorf("%s: %+v, %v", round, all, err)
			}
			if b, err := admin.New(c).GetGate(ctx, "acme"); err != nil || b.Waiting != 1 {
				t.Errorf("%s: %+v, %v", round, b, err)
			}
			must.No(t, room())
			if all, err = admin.New(c).Gated(ctx); err != nil || len(all.Closed) != 0 {
				t.Errorf("%s: %+v, %v", round, all, err)
			}
		}
	})
}

func TestHold(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		for range 2 {
			must.No(t, admin.New(c).Hold(ctx, x.ID(), flowfabric.Reason("look first"), flowfabric.By("anna")))
		}
		events, err := admin.New(c).History(ctx, x.ID())
		if err != nil || !strings.Contains(fmt.Sprint(events), "look first") {
			t.Errorf("%v, %v", events, err)
		}
		for range 2 {
			must.No(t, admin.New(c).Unhold(ctx, x.ID()))
		}
		held := claim(ctx, t, e, x.ID())
		is(t, admin.New(c).Hold(ctx, x.ID()), denied.NotEligible, "active")
		settled, _, err := e.CompleteExecutions(ctx, x.ID().Partition(), []engine.Completion{{Fence: held.Fence}}, nil)
		if err != nil || settled[0].Err != nil {
			t.Fatalf("%v, %+v", err, settled)
		}
		is(t, admin.New(c).Hold(ctx, x.ID()), flowfabric.ErrTerminal, "completed")
		is(t, admin.New(c).Unhold(ctx, mint.ID(0)), flowfabric.ErrNotFound, "unhold")
	})
}

func TestShares(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		submit(ctx, t, c, "tides")
		must.No(t, admin.New(c).SetLane(ctx, "default", admin.LaneChange{Namespace: "default", Weight: new(7)}))
		must.No(t, admin.New(c).SetLane(ctx, "later", admin.LaneChange{Namespace: "default", Weight: new(3)}))
		must.No(t, admin.New(c).SetLane(ctx, "default",
			admin.LaneChange{Ageing: new(flowfabric.Millis(90 * time.Second))}, flowfabric.By("anna")))
		if l := laneOf(ctx, t, c, "default"); l.Weight != 7 || l.Ageing != flowfabric.Millis(90*time.Second) ||
			l.Mixed ||
			l.State != flowfabric.LaneActive || l.By != "anna" {
			t.Errorf("%+v", l)
		}
		if l := laneOf(ctx, t, c, "later"); l.Weight != 3 || l.Mixed || l.Routes != 0 {
			t.Errorf("%+v", l)
		}
		must.No(t, e.FreezePartition(trail.As(ctx, "", "slot move"), 1))
		is(t, admin.New(c).SetLane(ctx, "later", admin.LaneChange{Namespace: "default", Weight: new(0)}),
			flowfabric.ErrPartitionFrozen, "1 of 2 partitions")
		must.No(t, e.ThawPartition(ctx, 1))
		if l := laneOf(ctx, t, c, "later"); !l.Mixed {
			t.Errorf("%+v", l)
		}
	})
}

// What a schedule submits asks the gates of its definition.
func TestScheduledGates(t *testing.T) {
	k := newCalendar(t)
	must.No(t, admin.New(k.c).PutGate(k.ctx, tokens("acme", 10), flowfabric.IfNew()))
	must.No(t, admin.New(k.c).PutGate(k.ctx, tokens("team", 10), flowfabric.IfNew()))
	must.No(t, admin.New(k.c).PutGate(k.ctx, admission.Gate{Name: "gpu", Concurrency: 1}, flowfabric.IfNew()))
	_, err := client.Schedule(k.ctx, k.c, "nightly", daily, costly, draft{Topic: "tides"}, flowfabric.Gates("team"))
	must.No(t, err)
	k.pass(time.Minute)
	k.steps(1)
	if got := gatesOf(k.ctx, t, k.c, k.get("nightly").LastID); got != "[gate team]" {
		t.Error(got)
	}
}

// At the start of a program: what an operator changed stays with Ensure, and is what the program says with Sync.
func TestWhoOwnsLimits(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		a := admin.New(c)
		limit := func(want int64, cap int) {
			t.Helper()
			b, err := a.GetGate(ctx, "acme")
			must.No(t, err)
			q, err := a.GetGate(ctx, "api")
			must.No(t, err)
			if b.Limits["tokens"].Hard != want || q.Concurrency != cap {
				t.Errorf("limits %+v and cap %d, want %d and %d", b.Limits, q.Concurrency, want, cap)
			}
		}
		ensure := func(want error) {
			t.Helper()
			b := a.PutGate(ctx, tokens("acme", 100), flowfabric.IfNew())
			q := a.PutGate(ctx, admission.Gate{Name: "api", Concurrency: 2}, flowfabric.IfNew())
			if !errors.Is(b, want) || !errors.Is(q, want) {
				t.Errorf("put if new: %v, %v, want %v", b, q, want)
			}
		}
		ensure(nil)
		ensure(nil) // as it is described
		limit(100, 2)
		must.No(t, a.PutGate(ctx, tokens("acme", 500), flowfabric.IfRevision(1), flowfabric.By("anna")))
		must.No(t, a.PutGate(ctx, admission.Gate{Name: "api", Concurrency: 5}, flowfabric.IfRevision(1),
			flowfabric.By("anna")))
		ensure(flowfabric.ErrConflict)
		limit(500, 5)
		spend(ctx, t, c, "acme", "k", mint.ID(0), 50)
		for range 2 {
			must.No(t, a.PutGate(ctx, tokens("acme", 100)))
			must.No(t, a.PutGate(ctx, tokens("new", 1)))
			must.No(t, a.PutGate(ctx, admission.Gate{Name: "api", Concurrency: 2}))
		}
		limit(100, 2)
		if n := used(ctx, t, c, "acme"); n != 50 {
			t.Errorf("%d used, want 50", n)
		}
		is(t, a.PutGate(ctx, tokens("acme", -1)), flowfabric.ErrInvalidInput, "tokens")
	})
}
