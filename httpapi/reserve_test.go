package httpapi

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// reserving is an API with gates, and a worker of it.
type reserving struct {
	*api
	o *admin.Admin
	r *remote
}

func newReserving(t *testing.T, gates ...admission.Gate) *reserving {
	t.Helper()
	a := newAPI(t)
	o := admin.New(a.client)
	for _, g := range gates {
		must.No(t, o.PutGate(t.Context(), g))
	}
	return &reserving{a, o, a.remote("worker", "remote")}
}

func tokensUpTo(name string, n int64) admission.Gate {
	return admission.Gate{Name: name, Limits: map[string]admission.Limit{"tokens": {Hard: n}}}
}

func (a *reserving) reserve(lease string, number, tokens int) reserveAnswer {
	a.t.Helper()
	return into[reserveAnswer](a.t, a.r.call("reserve", lease,
		fmt.Sprintf(`"reservation":%d,"amounts":{"tokens":%d}`, number, tokens), 200))
}

func (a *reserving) settle(lease string, number, tokens int) settleAnswer {
	a.t.Helper()
	return into[settleAnswer](a.t, a.r.call("settle", lease,
		fmt.Sprintf(`"reservation":%d,"amounts":{"tokens":%d}`, number, tokens), 200))
}

func (a *reserving) unreserve(lease string, number int) already {
	a.t.Helper()
	return into[already](a.t, a.r.call("unreserve", lease, fmt.Sprintf(`"reservation":%d`, number), 200))
}

// has checks what is used of a gate's tokens, and what of that is reserved.
func (a *reserving) has(gate string, used, reserved int64) {
	a.t.Helper()
	g, err := a.o.GetGate(a.t.Context(), gate)
	must.No(a.t, err)
	if g.Used["tokens"] != used || g.Reserved["tokens"] != reserved {
		a.t.Errorf("gate %s: %d used, %d of it reserved, want %d and %d", gate, g.Used["tokens"],
			g.Reserved["tokens"], used, reserved)
	}
}

// A worker reserves, is refused what does not fit, settles and gives back, each of it as often as it likes.
func TestRemoteWorkerReserves(t *testing.T) {
	a := newReserving(t, tokensUpTo("llm", 10), admission.Gate{Name: "slots", Concurrency: 5})
	a.submit(`{"kind":"remote","gates":["llm","slots"]}`)
	x := a.r.one().Lease
	for range 2 {
		if got := a.reserve(x, 1, 7); !got.Reserved || !slices.Equal(got.Gates, []string{"llm"}) {
			t.Errorf("%+v", got)
		}
	}
	a.has("llm", 7, 7)
	if got := a.reserve(x, 2, 4); got.Reserved || got.Over || got.Gate != "llm" || got.Action != "reject" ||
		len(got.Breaches) != 1 || got.Breaches[0].Limit != 10 {
		t.Errorf("%+v", got)
	}
	a.r.call("reserve", x, `"reservation":1,"amounts":{"tokens":1}`, 409) // another amount: nothing is changed
	a.has("llm", 7, 7)
	if got := a.settle(x, 1, 5); got.Already || len(got.Gates) != 1 || got.Gates[0].Verdict != "OK" {
		t.Errorf("%+v", got)
	}
	for _, again := range []int{5, 9} {
		if got := a.settle(x, 1, again); !got.Already {
			t.Errorf("%+v", got)
		}
	}
	if got := a.unreserve(x, 1); !got.Already {
		t.Errorf("%+v", got)
	}
	a.has("llm", 5, 0)
	if got := a.reserve(x, 1, 7); got.Reserved || !got.Over {
		t.Errorf("%+v", got)
	}
	a.reserve(x, 3, 5)
	a.has("llm", 10, 5)
	for _, before := range []bool{false, true} {
		if got := a.unreserve(x, 3); got.Already != before {
			t.Errorf("%+v", got)
		}
	}
	a.has("llm", 5, 0)
	if got := a.reserve(x, 3, 5); got.Reserved || !got.Over {
		t.Errorf("%+v", got)
	}
	a.settle(x, 4, 20) // without a reservation: what is used is used
	if got := a.settle(x, 4, 20); !got.Already {
		t.Errorf("%+v", got)
	}
	a.has("llm", 25, 0)
	a.r.call("settle", x, `"reservation":5`, 200) // nothing was used
	a.has("llm", 25, 0)
}

// What was reserved when the execution ends can be settled and given back afterwards, but no more is reserved.
func TestReservationsAreEndedAfterTheLease(t *testing.T) {
	a := newReserving(t, tokensUpTo("llm", 100))
	a.submit(`{"kind":"remote","gates":["llm"],"retries":3}`)
	first := a.r.one().Lease
	a.reserve(first, 1, 10)
	a.reserve(first, 2, 10)
	a.r.call("release", first, "", 200)
	second := a.r.one().Lease
	a.reserve(second, 1, 30)
	a.has("llm", 50, 50)
	a.r.call("reserve", first, `"reservation":3,"amounts":{"tokens":1}`, 409)
	a.settle(first, 1, 4)
	a.unreserve(first, 2)
	a.has("llm", 34, 30)
	a.r.call("complete", second, "", 200)
	a.r.call("reserve", second, `"reservation":2,"amounts":{"tokens":1}`, 409)
	if got := a.settle(second, 1, 3); got.Already {
		t.Errorf("%+v", got)
	}
	a.has("llm", 7, 0)
}

// All gates of an execution and those above have what is reserved, or none: also where this process has not heard of
// those above, and one of them is refused.
func TestRemoteWorkerReservesInAllGates(t *testing.T) {
	team := tokensUpTo("team", 50)
	a := newReserving(t, tokensUpTo("firm", 20), admission.Gate{Name: "team", Parent: "firm", Limits: team.Limits},
		admission.Gate{Name: "own", Parent: "team", Limits: team.Limits},
		admission.Gate{Name: "slots", Parent: "firm", Concurrency: 5})
	a.submit(`{"kind":"remote","gates":["own","slots"]}`)
	x := a.r.one().Lease
	all := []string{"firm", "own", "team"}
	if got := a.reserve(x, 1, 15); !got.Reserved || !slices.Equal(got.Gates, all) {
		t.Errorf("%+v", got)
	}
	if got := a.reserve(x, 2, 6); got.Reserved || got.Gate != "firm" {
		t.Errorf("%+v", got)
	}
	if got := a.reserve(x, 2, 6); got.Reserved || !got.Over { // the answer was lost: it is asked again
		t.Errorf("%+v", got)
	}
	for _, gate := range all {
		a.has(gate, 15, 15)
	}
	for range 2 {
		a.settle(x, 1, 12)
	}
	for _, gate := range all {
		a.has(gate, 12, 0)
	}
	a.reserve(x, 3, 8)
	a.unreserve(x, 3)
	for _, gate := range all {
		a.has(gate, 12, 0)
	}
	must.No(t, second(a.o.RemoveGate(t.Context(), "firm")))
	a.settle(x, 4, 1)
	a.has("team", 13, 0)
	a.r.call("reserve", x, `"reservation":5,"amounts":{"tokens":1}`, 404)
	a.has("team", 13, 0)
}

func second(_ bool, err error) error { return err }

// What cannot be is refused, and nothing is counted.
func TestRemoteWorkerReservesNonsense(t *testing.T) {
	strict := tokensUpTo("strict", 10)
	strict.StrictDimensions = true
	a := newReserving(t, strict)
	a.submit(`{"kind":"remote","gates":["strict"]}`)
	a.submit(`{"kind":"remote"}`)
	x, y := a.r.one(), a.r.one()
	if len(x.GateNames) == 0 {
		x, y = y, x
	}
	lease := x.Lease
	for _, body := range []string{"", `"reservation":1`, `"reservation":1,"amounts":{}`, `"amounts":{"tokens":1}`,
		`"reservation":0,"amounts":{"tokens":1}`, `"reservation":-1,"amounts":{"tokens":1}`,
		`"reservation":9007199254740993,"amounts":{"tokens":1}`, `"reservation":1,"amounts":{"tokens":-1}`,
		`"reservation":1,"amounts":{"tokens":9007199254740992}`, `"reservation":1,"amounts":{"tokens":1e30}`,
		`"reservation":1,"amounts":{"tokens":1.5}`, `"reservation":1,"amounts":{"No Dim":1}`} {
		a.r.call("reserve", lease, body, 400)
		if body != `"reservation":1` && body != `"reservation":1,"amounts":{}` {
			a.r.call("settle", lease, body, 400)
		}
	}
	a.r.call("unreserve", lease, "", 400)
	a.r.call("unreserve", lease, `"reservation":1,"amounts":{"tokens":1}`, 400)
	a.has("strict", 0, 0)
	if got := into[reserveAnswer](t, a.r.call("reserve", lease, `"reservation":1,"amounts":{"pages":1}`,
		200)); !got.Reserved || len(got.Gates) != 0 { // no gate counts it
		t.Errorf("%+v", got)
	}
	if got := into[reserveAnswer](t, a.r.call("reserve", lease, `"reservation":2,"amounts":{"pages":1,"tokens":3}`,
		200)); !got.Reserved || len(got.Gates) != 1 {
		t.Errorf("%+v", got)
	}
	a.r.call("settle", lease, `"reservation":2,"amounts":{"pages":1,"tokens":2}`, 200)
	g, err := a.o.GetGate(t.Context(), "strict")
	must.No(t, err)
	if !maps.Equal(g.Used, map[string]int64{"tokens": 2}) || len(g.Reserved) != 0 {
		t.Errorf("%v, %v reserved", g.Used, g.Reserved)
	}
	a.settle(lease, 3, 1<<53-3)
	a.r.call("settle", lease, `"reservation":4,"amounts":{"tokens":9007199254740991}`, 200) // as much as it can count
	a.has("strict", 1<<53-1, 0)
	if got := a.reserve(y.Lease, 1, 5); !got.Reserved || len(got.Gates) != 0 {
		t.Errorf("%+v", got)
	}
	if got := a.settle(y.Lease, 1, 5); got.Already || len(got.Gates) != 0 {
		t.Errorf("%+v", got)
	}
}

// Nobody reserves, settles or gives back for another worker's execution, or under a lease that never was.
func TestReservationsAreFenced(t *testing.T) {
	a := newReserving(t, tokensUpTo("llm", 100))
	stranger := a.remote("worker", "remote")
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	held := a.r.one().Lease
	a.reserve(held, 1, 10)
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	other := stranger.one().Lease
	f, _ := parseLease(held)
	g, _ := parseLease(other)
	change := func(do func(*flowfabric.Fence)) string {
		x := f
		do(&x)
		return leaseText(x, "")
	}
	for what, lease := range map[string]string{
		"another session's lease":   other,
		"another session's work":    change(func(x *flowfabric.Fence) { x.Execution, x.Epoch = g.Execution, g.Epoch }),
		"a newer epoch":             change(func(x *flowfabric.Fence) { x.Epoch++ }),
		"a made up session":         change(func(x *flowfabric.Fence) { x.Session = x.Session[:len(x.Session)-1] + "!" }),
		"an execution that is none": change(func(x *flowfabric.Fence) { x.Execution = mint.ID(0) }),
	} {
		t.Run(what, func(t *testing.T) {
			for verb, body := range map[string]string{"reserve": `"reservation":1,"amounts":{"tokens":1}`,
				"settle": `"reservation":1,"amounts":{"tokens":1}`, "unreserve": `"reservation":1`} {
				if p := into[problem](t, a.r.call(verb, lease, body, 409)); p.Code != "stale_lease" {
					t.Errorf("%s: %+v", verb, p)
				}
			}
		})
	}
	for what, lease := range map[string]string{
		"an older epoch":  change(func(x *flowfabric.Fence) { x.Epoch-- }),
		"another attempt": change(func(x *flowfabric.Fence) { x.Attempt++ }),
	} {
		if got := a.r.call("reserve", lease, `"reservation":1,"amounts":{"tokens":1}`, 409); got.status != 409 {
			t.Errorf("%s: %d", what, got.status)
		}
	}
	a.has("llm", 10, 10)
	path := "/v1/executions/" + f.Execution.String()
	a.as("operator", "POST", path+":revoke", `{"reason":"test"}`, 204)
	a.r.call("reserve", held, `"reservation":2,"amounts":{"tokens":1}`, 409)
	a.settle(held, 1, 6)
	a.has("llm", 6, 0)
}

// A gate that blocks has the execution released, and it comes back when there is room for what it asked for.
func TestRemoteWorkerWaitsForRoom(t *testing.T) {
	gate := tokensUpTo("llm", 10)
	gate.OnHard = admission.HardBlock
	a := newReserving(t, gate)
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	x, y := a.r.one(), a.r.one()
	a.reserve(x.Lease, 1, 8)
	if got := a.reserve(y.Lease, 1, 5); got.Reserved || got.Action != admission.HardBlock {
		t.Errorf("%+v", got)
	}
	a.r.call("release", y.Lease, "", 200)
	a.r.nothing()
	a.settle(x.Lease, 1, 3)
	z := a.r.one()
	if z.ID != y.ID {
		t.Errorf("%+v", z)
	}
	if got := a.reserve(z.Lease, 1, 5); !got.Reserved {
		t.Errorf("%+v", got)
	}
	a.has("llm", 8, 5)
}

// A gate that asks says so, and lets work start: who does not start asks nobody.
func TestRemoteWorkerAsksForMore(t *testing.T) {
	gate := tokensUpTo("llm", 10)
	gate.OnHard = admission.HardAsk
	a := newReserving(t, gate)
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	x := a.r.one()
	a.reserve(x.Lease, 1, 10)
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	y := a.r.one()
	if got := a.reserve(y.Lease, 1, 5); got.Reserved || got.Action != admission.HardAsk {
		t.Errorf("%+v", got)
	}
	a.as("operator", "POST", "/v1/gates/llm:raise", `{"amounts":{"tokens":5},"execution":"`+y.ID+`"}`, 200)
	if got := a.reserve(x.Lease, 2, 5); got.Reserved {
		t.Errorf("%+v", got)
	}
	if got := a.reserve(y.Lease, 2, 5); !got.Reserved {
		t.Errorf("%+v", got)
	}
}

// However an execution was left, what its call used is counted.
func TestReservationsAreSettledHoweverTheWorkEnds(t *testing.T) {
	a := newReserving(t, tokensUpTo("llm", 1000))
	used := int64(0)
	for _, verb := range []string{"complete", "fail", "delay", "cancel", "release", "suspend", "continue", "children"} {
		// the one with children, which comes again when they have ended, is the last
		a.submit(`{"kind":"remote","gates":["llm"],"retries":3}`)
		x := a.r.one()
		a.reserve(x.Lease, 1, 10)
		a.r.call(verb, x.Lease, writes[verb], 200)
		if got := a.settle(x.Lease, 1, 3); got.Already {
			t.Errorf("after %s: %+v", verb, got)
		}
		used += 3
		a.has("llm", used, 0)
		if verb == "fail" || verb == "release" || verb == "continue" { // it comes again
			y := a.r.one()
			if y.ID != x.ID {
				t.Fatalf("after %s: %+v", verb, y)
			}
			if got := a.reserve(y.Lease, 1, 10); !got.Reserved { // numbers count under each lease
				t.Errorf("after %s: %+v", verb, got)
			}
			if got := a.settle(x.Lease, 1, 9); !got.Already {
				t.Errorf("after %s: %+v", verb, got)
			}
			a.unreserve(y.Lease, 1)
			a.r.call("complete", y.Lease, "", 200)
		}
		a.has("llm", used, 0)
	}
}

// Whatever is repeated at the same time, it counts once.
func TestReservationsRepeatedAtOnce(t *testing.T) {
	a := newReserving(t, tokensUpTo("firm", 100), admission.Gate{Name: "own", Parent: "firm"})
	a.submit(`{"kind":"remote","gates":["own"]}`)
	x := a.r.one().Lease
	for n := 1; n <= 10; n++ {
		for _, do := range []func(){
			func() {
				if got := a.reserve(x, n, 5); !got.Reserved {
					t.Errorf("%+v", got)
				}
			},
			func() { a.settle(x, n, 3) },
			func() { a.settle(x, n, 3) },
		} {
			var at conc.WaitGroup
			for range 4 {
				at.Go(do)
			}
			at.Wait()
		}
		a.has("own", int64(3*n), 0)
		a.has("firm", int64(3*n), 0)
	}
}
