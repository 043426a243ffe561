package httpapi

import (
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

const model = "openai/gpt-5"

// modelGate lets 120 requests and 60,000 tokens pass in a minute: 3 and 1,500 at once.
func modelGate() admission.Gate {
	return admission.Gate{Name: model, Service: &admission.Service{PerMinute: map[string]int64{"requests": 120,
		"tokens": 60_000}}}
}

func (a *reserving) acquire(lease string, number, tokens int) acquireAnswer {
	a.t.Helper()
	return into[acquireAnswer](a.t, a.r.call("acquire", lease,
		fmt.Sprintf(`"service":%q,"call":%d,"estimate":{"tokens":%d}`, model, number, tokens), 200))
}

// ended ends a call that was to use so many tokens.
func (a *reserving) ended(lease string, number, tokens int, members string, before bool) {
	a.t.Helper()
	got := into[already](a.t, a.r.call("end-call", lease, fmt.Sprintf(
		`"service":%q,"call":%d,"estimate":{"tokens":%d},%s`, model, number, tokens, members), 200))
	if got.Already != before {
		a.t.Errorf("end of call %d: already %v", number, got.Already)
	}
}

func (a *reserving) state() *admission.ServiceState {
	a.t.Helper()
	g := into[admission.GateRecord](a.t, a.as("viewer", "GET", "/v1/gates/openai%2Fgpt-5", "", 200))
	if g.State == nil {
		a.t.Fatalf("no state: %+v", g)
	}
	return g.State
}

// A worker asks for each call, again as often as it likes, and says how it ended, once.
func TestRemoteWorkerCallsAService(t *testing.T) {
	a := newReserving(t, modelGate())
	a.submit(`{"kind":"remote"}`)
	x := a.r.one().Lease
	for range 2 {
		if got := a.acquire(x, 1, 1500); !got.Admitted || got.Stay || got.Retry != 0 {
			t.Errorf("%+v", got)
		}
	}
	if s := a.state(); s.UnderWay != 1 {
		t.Errorf("%+v", s)
	}
	if got := a.acquire(x, 2, 1400); got.Admitted || !got.Stay || got.Place != 1 || got.Waiting != 1 ||
		got.Retry <= 0 {
		t.Errorf("%+v", got)
	}
	a.ended(x, 1, 1500, `"how":"settled","used":{"tokens":0}`, false)
	a.ended(x, 1, 1500, `"how":"released"`, true)
	if got := a.acquire(x, 2, 1400); !got.Admitted {
		t.Errorf("%+v", got)
	}
	a.r.call("complete", x, "", 200)
	a.ended(x, 2, 1400, `"how":"released"`, false) // also when the lease is over
	if s := a.state(); s.UnderWay != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	a.r.call("acquire", x, fmt.Sprintf(`"service":%q,"call":3`, model), 409)
}

// A service that refused a call is closed for others. They are put aside until their turn is near.
func TestRemoteWorkerWaitsForATurnWithoutASlot(t *testing.T) {
	a := newReserving(t, modelGate())
	a.submit(`{"kind":"remote"}`)
	a.submit(`{"kind":"remote"}`)
	x, y := a.r.one(), a.r.one()
	a.acquire(x.Lease, 1, 100)
	a.ended(x.Lease, 1, 100, `"how":"refused","retry_after_ms":3600000`, false)
	got := a.acquire(y.Lease, 1, 100)
	if got.Admitted || got.Stay || time.Duration(got.Retry) < 59*time.Minute || got.Place != 1 {
		t.Fatalf("%+v", got)
	}
	a.r.call("delay", y.Lease, fmt.Sprintf(`"delay_ms":%d,"service":%q`, time.Duration(got.Retry).Milliseconds(),
		model), 200)
	a.r.nothing()
	if s := a.state(); s.Refused != 1 || s.Share != 700 || s.ClosedUntil.IsZero() || s.Waiting != 1 {
		t.Errorf("%+v", s)
	}
	id, err := flowfabric.ParseExecutionID(y.ID)
	must.No(t, err)
	if turn, err := a.h.conn.Engine.TurnOf(t.Context(), model, id); err != nil || turn.Place != 1 {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestRemoteWorkerCallsNonsense(t *testing.T) {
	a := newReserving(t, modelGate(), tokensUpTo("llm", 100))
	stranger := a.remote("worker", "remote")
	a.submit(`{"kind":"remote"}`)
	x := a.r.one().Lease
	a.submit(`{"kind":"remote"}`)
	other := stranger.one().Lease
	for body, want := range map[string]int{
		"": 400, `"service":"openai/gpt-5"`: 400, `"service":"/x","call":1`: 400, `"service":"llm","call":1`: 400,
		`"service":"no/model","call":1`: 404, `"service":"openai/gpt-5","call":0`: 400,
		`"service":"openai/gpt-5","call":1,"estimate":{"tokens":-1}`:                                           400,
		`"service":"openai/gpt-5","call":1,"estimate":{"No":1}`:                                                400,
		`"service":"openai/gpt-5","call":1,"estimate":{"tokens":60001}`:                                        400,
		`"service":"openai/gpt-5","call":1,"waited_ms":-1`:                                                     400,
		`"service":"openai/gpt-5","call":1,"waited_ms":3600001`:                                                400,
		`"service":"openai/gpt-5","call":1,"estimate":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`: 400,
	} {
		if got := a.r.call("acquire", x, body, want); got.status != want {
			t.Errorf("%s: %d, want %d", body, got.status, want)
		}
	}
	for _, body := range []string{`"how":"over"`, `"how":"released","used":{}`, `"how":"settled","retry_after_ms":1`,
		`"how":"refused","retry_after_ms":3600001`, `"how":"settled","used":{"tokens":-1}`} {
		a.r.call("end-call", x, `"service":"openai/gpt-5","call":1,`+body, 400)
	}
	a.r.call("acquire", other, `"service":"openai/gpt-5","call":1`, 409)
	a.r.call("end-call", other, `"service":"openai/gpt-5","call":1,"how":"settled"`, 409)
	a.r.call("delay", x, `"delay_ms":1,"service":"no way"`, 400)
	if s := a.state(); s.UnderWay != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}
