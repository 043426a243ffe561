package httpapi

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// questions asks people, and answers for them.
func (a *api) questions() {
	t := a.t
	path := a.submit(`{"kind":"decides"}`)
	a.until(path, "suspended")
	page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals?assignee=ops", "", 200))
	if len(page.Items) != 1 || page.Cursor != "" || page.Items[0].ID.String() != path[len("/v1/executions/"):] {
		t.Fatalf("%+v", page)
	}
	q := page.Items[0].Question
	if q == nil || q.Title != "Ship it?" || q.Text != "42 tests" || q.Assignee != "ops" || len(q.Choices) != 2 ||
		q.Choices[0] != (suspend.Choice{Name: "go", Label: "Ship"}) ||
		q.Choices[1] != (suspend.Choice{Name: "stop", Label: "stop"}) {
		t.Errorf("%+v", q)
	}
	if page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals?assignee=nobody", "", 200)); len(
		page.Items) != 0 {
		t.Errorf("%+v", page)
	}
	if page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals?root="+page.Items[0].ID.String(), "",
		200)); len(page.Items) != 0 {
		t.Errorf("below one that no handler made, and that made none: %+v", page)
	}
	a.as("viewer", "GET", "/v1/approvals?root=x", "", 400)
	a.as("blue", "GET", "/v1/approvals?root="+page.Items[0].ID.String(), "", 404)
	a.as("viewer", "GET", "/v1/approvals?assignee="+strings.Repeat("x", 129), "", 400)
	if one := into[admin.Approval](t, a.as("viewer", "GET", path+"/wait", "", 200)); !reflect.DeepEqual(one,
		page.Items[0]) {
		t.Errorf("%+v", one)
	}
	a.as("blue", "GET", path+"/wait", "", 404)
	answer := path + "/waitpoints/ship:answer"
	for _, bad := range []string{`{"payload":{"choice":"maybe"}}`, `{"payload":"go"}`, `{"name":"signal"}`} {
		if p := into[problem](t, a.as("operator", "POST", answer, bad, 400)); p.Field != "/payload/choice" ||
			!strings.Contains(p.Detail, "one of go, stop") {
			t.Errorf("%s: %+v", bad, p)
		}
	}
	a.as("operator", "POST", answer, `{"payload":{"choice":"go","comment":"well done"}}`, 200)
	a.until(path, "completed")
	a.as("viewer", "GET", path+"/wait", "", 204)
	if p := into[problem](t, a.as("admin", "POST", answer, `{"payload":{"choice":"stop"}}`, 409)); p.Code !=
		"waitpoint_closed" || !strings.Contains(p.Detail, "was answered at 20") ||
		!strings.HasSuffix(p.Detail, " by the-operator") {
		t.Errorf("%+v", p)
	}
	if r := into[result](t, a.as("viewer", "GET", path+"/result", "", 200)); string(*r.Output) !=
		`{"choice":"go","comment":"well done","by":"the-operator"}` {
		t.Errorf("%+v", r)
	}
}

// An answer that is no choice of its question is refused whatever door it comes through, and a choice needs no name.
func TestSignalsAnswerQuestions(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"decides"}`)
	a.until(path, "suspended")
	id, err := flowfabric.ParseExecutionID(path[len("/v1/executions/"):])
	must.No(t, err)
	record, err := a.client.Execution(id).Suspension(t.Context())
	must.No(t, err)
	token, err := admin.New(a.client).ReissueToken(t.Context(), id, record.Waitpoints[0].ID, flowfabric.By("test"))
	must.No(t, err)
	for _, bad := range []string{`"payload":true`, `"name":"approve"`, `"payload":{"choice":"maybe"}`,
		`"payload":"go"`} {
		if p := into[problem](t, a.as("producer", "POST", "/v1/signals", `{"token":"`+token.Reveal()+`",`+bad+`}`,
			400)); p.Field != "/payload/choice" || !strings.Contains(p.Detail, "one of go, stop") {
			t.Errorf("%s: %+v", bad, p)
		}
	}
	if _, err := a.client.Execution(id).Approve(t.Context(), "ship", true, flowfabric.By("test")); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Errorf("Approve: %v", err)
	}
	if x := a.until(path, "suspended"); x.Public != "suspended" {
		t.Errorf("%+v", x)
	}
	p := into[problem](t, a.as("producer", "POST", "/v1/signals", `{"token":"`+token.Reveal()+`","payload":"go"}`, 400))
	if p.Detail != "the payload names no choice of the question, want one of go, stop" {
		t.Errorf("a choice outside of a payload's choice: %+v", p)
	}
	a.as("producer", "POST", "/v1/signals", `{"token":"`+token.Reveal()+`","payload":{"choice":"go"}}`, 200)
	a.until(path, "completed")
}

// Several questions of one execution are entries of their own, each is answered on its own, and changed arguments that
// do not fit are refused at every door, with the place.
func TestSeveralQuestions(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"decides several"}`)
	a.until(path, "suspended")
	page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals?assignee=ops", "", 200))
	var asked []string
	for _, x := range page.Items {
		if len(x.Waitpoints) != 1 || x.Question == nil || (x.TimeoutAt.IsZero()) != (x.Question.Title == "Ship it?") {
			t.Fatalf("%+v", x)
		}
		asked = append(asked, x.Waitpoints[0].Key+": "+x.Question.Title)
	}
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"pay: Pay?", "ship: Ship it?"}) {
		t.Errorf("%q", asked)
	}
	wait := into[admin.Approval](t, a.as("viewer", "GET", path+"/wait", "", 200))
	if len(wait.Waitpoints) != 2 || wait.Waitpoints[0].Question == nil || wait.Waitpoints[1].Question == nil {
		t.Errorf("%+v", wait)
	}
	if why := string(a.as("viewer", "GET", path+"/why", "", 200).body); !strings.Contains(why, `asks \"Pay?\"`) ||
		!strings.Contains(why, `asks \"Ship it?\"`) ||
		!strings.Contains(why, "the others stay open") {
		t.Errorf("%s", why)
	}
	id, err := flowfabric.ParseExecutionID(path[len("/v1/executions/"):])
	must.No(t, err)
	record, err := a.client.Execution(id).Suspension(t.Context())
	must.No(t, err)
	pay := record.Waitpoints[slices.IndexFunc(record.Waitpoints,
		func(w suspend.Waitpoint) bool { return w.Key == "pay" })]
	token, err := admin.New(a.client).ReissueToken(t.Context(), id, pay.ID, flowfabric.By("test"))
	must.No(t, err)
	for _, bad := range []string{`{"cents":"all"}`, `{}`, `[1]`, `"{"`, `{"cents":1.5}`,
		`{"cents":1,"x":"` + strings.Repeat("x", 17<<10) + `"}`} {
		payload := `"payload":{"choice":"approve","arguments":` + bad + `}}`
		for door, body := range map[string]string{path + "/waitpoints/pay:answer": `{` + payload,
			"/v1/signals": `{"token":"` + token.Reveal() + `",` + payload} {
			if p := into[problem](t, a.as("operator", "POST", door, body, 400)); p.Field != "/payload/arguments" {
				t.Errorf("%s %.40s: %+v", door, bad, p)
			}
		}
	}
	a.as("operator", "POST", path+"/waitpoints/pay:answer", `{"payload":{"choice":"approve","arguments":{"cents":"`+
		strings.Repeat("x", 2<<20)+`"}}}`, 413)
	a.as("operator", "POST", path+"/waitpoints/ship:answer", `{"payload":{"choice":"approve","arguments":{"a":1}}}`,
		400)
	a.as("operator", "POST", path+"/waitpoints/pay:answer", `{"payload":{"choice":"approve","arguments":{"cents":4}}}`,
		200)
	if p := into[problem](t, a.as("admin", "POST", path+"/waitpoints/pay:answer", `{"payload":{"choice":"reject"}}`,
		409)); p.Code != "waitpoint_closed" || !strings.HasSuffix(p.Detail, " by the-operator") {
		t.Errorf("%+v", p)
	}
	if page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals?assignee=ops", "", 200)); len(
		page.Items) != 1 || page.Items[0].Question.Title != "Ship it?" {
		t.Errorf("%+v", page)
	}
	a.as("operator", "POST", path+"/waitpoints/ship:answer", `{"payload":{"choice":"reject"}}`, 200)
	a.until(path, "completed")
	if r := into[result](t, a.as("viewer", "GET", path+"/result", "", 200)); string(*r.Output) !=
		`[{"choice":"approve","by":"the-operator","arguments":{"cents":4}},{"choice":"reject","by":"the-operator"}]` {
		t.Errorf("%s", *r.Output)
	}
}

// A worker over HTTP asks a question, of whom a person chooses an answer.
func TestRemoteWorkerAsks(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	for _, bad := range []string{`{"title":""}`, `{"title":"a","choices":[{"name":"x"}]}`,
		`{"title":"a","text":"` + strings.Repeat("x", 4097) + `"}`} {
		r.call("suspend", x.Lease, `"wait":"ok","question":`+bad, 400)
	}
	if s := into[suspendAnswer](t,
		r.call("suspend", x.Lease, `"wait":"ok","question":{"title":"Well?"}`, 200)); !s.Suspended {
		t.Errorf("%+v", s)
	}
	page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals", "", 200))
	if len(page.Items) != 1 || page.Items[0].Reason != "waiting_for_approval" ||
		page.Items[0].Question.Title != "Well?" ||
		page.Items[0].Question.Choices[1] != (suspend.Choice{Name: "reject", Label: "Reject"}) {
		t.Fatalf("%+v", page)
	}
	a.as("operator", "POST", path+"/waitpoints/ok:answer", `{"payload":{"choice":"maybe"}}`, 400)
	a.as("operator", "POST", path+"/waitpoints/ok:answer", `{"payload":{"choice":"reject"}}`, 200)
	if y := r.one(); y.Waits["ok"].Signals[0].Name != "reject" ||
		string(y.Waits["ok"].Signals[0].Payload) != `{"choice":"reject"}` {
		t.Errorf("%+v", y)
	}
}
