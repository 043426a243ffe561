package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// paid publishes an event that goes to so many waits.
func (a *api) paid(id, data string, resumes int) {
	a.t.Helper()
	p := into[client.Published](a.t, a.as("producer", "POST", "/v1/events:publish",
		`{"subject":"order.paid","id":"`+id+`","data":`+data+`}`, 200))
	if p != (client.Published{ID: id, Resumes: resumes}) {
		a.t.Errorf("%s: %+v", id, p)
	}
}

// came waits until a waitpoint has its event.
func (a *api) came(path, key string) {
	a.t.Helper()
	testwait.Progress(a.t, key+" has an event", func() (bool, any) {
		list := into[waitpointList](a.t, a.as("viewer", "GET", path+"/waitpoints", "", 200)).Items
		for _, w := range list {
			if w.Key == key && w.Signals == 1 {
				return w.Subject == "order.paid", w
			}
		}
		return false, list
	})
}

// An event that matches is kept for the wait that follows, or ends the one that there is. Each expectation takes one,
// whatever is repeated, and later runs expect none that has come.
func TestRemoteWorkerExpects(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	const late = `"key":"late","subject":"order.paid"`
	const early = `"key":"early","subject":"order.paid","where":{"order.id":7}`
	a.paid("before", `{"order":{"id":7}}`, 0)
	for range 2 { // after a lost answer
		r.call("expect", x.Lease, early, 204)
	}
	a.paid("other", `{"order":{"id":8}}`, 0)
	a.paid("mine", `{"order":{"id":7}}`, 1)
	a.came(path, "early")
	r.call("expect", x.Lease, early, 204)
	a.paid("next", `{"order":{"id":7}}`, 0)
	s := into[suspendAnswer](t, r.call("suspend", x.Lease, `"wait":"early"`, 200))
	if s.Suspended || s.Answer.Cause != suspend.CauseAlreadySatisfied || len(s.Answer.Signals) != 1 ||
		s.Answer.Signals[0].Source != "order.paid" || s.Answer.Signals[0].Correlation != "mine" ||
		string(s.Answer.Signals[0].Payload) != `{"order":{"id":7}}` {
		t.Errorf("%+v", s)
	}
	r.call("release", x.Lease, "", 200)
	x = r.one()
	r.call("expect", x.Lease, early, 204) // the run begins at the top
	r.call("expect", x.Lease, late, 204)
	if s := into[suspendAnswer](t, r.call("suspend", x.Lease, `"wait":"late"`, 200)); !s.Suspended {
		t.Errorf("%+v", s)
	}
	a.paid("last", `{"order":{"id":7}}`, 1)
	x = r.one()
	if w := x.Waits["late"]; w.Cause != suspend.CauseSignal || w.Signals[0].Correlation != "last" ||
		x.Waits["early"].Signals[0].Correlation != "mine" {
		t.Errorf("%+v", x.Waits)
	}
	for _, same := range []string{early, late} {
		r.call("expect", x.Lease, same, 204)
	}
	a.paid("nobody's", `{"order":{"id":7}}`, 0)
	r.call("continue", x.Lease, "", 200)
	x = r.one()
	r.call("expect", x.Lease, early, 204) // its steps start over
	a.paid("anew", `{"order":{"id":7}}`, 1)
	a.came(path, "early")
	r.call("complete", x.Lease, "", 200)
}

// A refusal names the field and the limit. A lease that is not held is told of nothing, also not whether an event came.
func TestExpectationsThatAreRefused(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	refused := func(members, code, field string, says ...string) {
		t.Helper()
		p := into[problem](t, r.call("expect", x.Lease, members, 400))
		if p.Code != code || p.Field != field {
			t.Errorf("%.200s: %+v", members, p)
		}
		for _, text := range says {
			if !strings.Contains(p.Detail, text) {
				t.Errorf("%.200s: %q does not say %q", members, p.Detail, text)
			}
		}
	}
	r.call("waitpoint", x.Lease, `"key":"token"`, 200)
	r.call("expect", x.Lease, `"key":"k","subject":"order.paid"`, 204)
	var nine []string
	for i := range 9 {
		nine = append(nine, fmt.Sprintf(`"f%d":1`, i))
	}
	long := strings.Repeat("x", 129)
	const paid = `"key":"e","subject":"order.paid"`
	for members, field := range map[string][]string{
		`"subject":"order.paid"`:                      {"/key"},
		`"key":"` + long + `","subject":"order.paid"`: {"/key", "128"},
		`"key":"e"`:                                         {"/subject"},
		`"key":"e","subject":"a{b}"`:                        {"/subject", "braces"},
		`"key":"e","subject":"` + long + `"`:                {"/subject", "128"},
		paid + `,"where":7`:                                 {"/where"},
		paid + `,"where":{"a":[1]}`:                         {"/where", `"a"`, "a string, a number"},
		paid + `,"where":{` + strings.Join(nine, ",") + `}`: {"/where", "has 9 fields", "at most 8"},
		`"key":"k","subject":"order.sent"`:                  {"/key", "something else"},
		`"key":"token","subject":"order.paid"`:              {"/key", "something else"},
	} {
		refused(members, "invalid_input", field[0], field[1:]...)
	}
	terms, err := trigger.Filter(map[string]any{"order.state": "paid"})
	must.No(t, err)
	for range limits.MaxExpected {
		must.No(t, a.client.Link().Engine.ExpectEvent(t.Context(), engine.Expectation{Terms: terms,
			Subject: engine.Subject{Namespace: "default", Text: "order.paid"}, Execution: mint.ID(0),
			Waitpoint: mint.UUID(), Digest: strings.Repeat("0", 64)}))
	}
	refused(paid+`,"where":{"order.state":"paid"}`, "too_many_expected", "/where", "at most 1000")

	a.as("operator", "POST", path+":revoke", `{"reason":"test"}`, 204)
	next := r.one()
	for _, members := range []string{`"key":"k","subject":"order.paid"`, `"key":"k","subject":"order.sent"`,
		`"key":"new","subject":"order.paid"`} {
		if p := into[problem](t, r.call("expect", x.Lease, members, 409)); p.Code != "stale_lease" {
			t.Errorf("%s: %+v", members, p)
		}
	}
	a.paid("one", `{}`, 1)
	a.came(path, "k")
	if p := into[problem](t, r.call("expect", x.Lease, `"key":"k","subject":"order.paid"`,
		409)); p.Code != "stale_lease" {
		t.Errorf("%+v", p)
	}
	r.call("complete", next.Lease, "", 200)
}
