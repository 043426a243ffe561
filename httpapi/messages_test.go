package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// mailboxes calls the routes of messages, and sees each status that a sender can get.
func (a *api) mailboxes() {
	t := a.t
	path := a.submit(`{"kind":"nobody"}`)
	if s := into[client.Sent](t, a.as("producer", "POST", path+"/messages",
		`{"mailbox":"user","payload":{"say":"hi"},"idempotency_key":"one"}`, 200)); s != (client.Sent{Number: 1,
		Waiting: 1}) {
		t.Errorf("%+v", s)
	}
	again := a.do(request{method: "POST", path: path + "/messages", role: "operator",
		body: `{"mailbox":"user","payload":"other"}`, header: http.Header{"Idempotency-Key": {`"one"`}}})
	if s := into[client.Sent](t, again); again.status != 200 || s != (client.Sent{Number: 1, Waiting: 1,
		Duplicate: true}) {
		t.Errorf("a repeat: %d %+v", again.status, s)
	}
	if s := into[client.Sent](t, a.as("producer", "POST", path+"/messages", `{"mailbox":"Other box","base64":"AP8="}`,
		200)); s != (client.Sent{Number: 2, Waiting: 2}) {
		t.Errorf("%+v", s)
	}
	a.as("admin", "POST", path+"/messages", `{"mailbox":"user"}`, 200)
	m := into[client.Mailboxes](t, a.as("viewer", "GET", path+"/messages", "", 200))
	if m.Total != 3 || m.Waiting != 3 || m.Bytes == 0 || len(m.Messages) != 3 || m.Messages[0].Mailbox != "user" ||
		m.Messages[0].By != "the-producer" || m.Messages[0].SentAt.IsZero() ||
		string(m.Messages[0].Payload) != `{"say":"hi"}` || string(m.Messages[1].Payload) != "\x00\xff" ||
		string(m.Messages[2].Payload) != "null" {
		t.Errorf("%+v", m)
	}
	if m := into[client.Mailboxes](t, a.as("viewer", "GET", path+"/messages?after=2", "", 200)); m.Waiting != 3 ||
		len(m.Messages) != 1 || m.Messages[0].Number != 3 {
		t.Errorf("behind the second: %+v", m)
	}
	for body, field := range map[string]string{`{}`: "/mailbox", `{"mailbox":"é"}`: "/mailbox",
		`{"mailbox":"` + strings.Repeat("m", 97) + `"}`: "/mailbox",
		`{"mailbox":"m","payload":1,"base64":"AA=="}`:   "/base64", `{"mailbox":"m","token":1}`: "/token"} {
		if p := into[problem](t, a.as("producer", "POST", path+"/messages", body, 400)); p.Code != "invalid_input" ||
			p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for _, query := range []string{"after=-1", "after=x", "after=9007199254740992", "before=1"} {
		a.as("viewer", "GET", path+"/messages?"+query, "", 400)
	}
	long := `{"mailbox":"m","payload":"` + strings.Repeat("x", 64<<10-2) + `"}`
	a.as("producer", "POST", path+"/messages", strings.Replace(long, "xx", "xxx", 1), 413)
	for i := range 15 {
		a.as("producer", "POST", path+"/messages", strings.Replace(long, "xx", fmt.Sprintf("%02d", i), 1), 200)
	}
	if p := into[problem](t, a.as("producer", "POST", path+"/messages", long, 409)); p.Code != "mailbox_full" {
		t.Errorf("%+v", p)
	}
	if m := into[client.Mailboxes](t, a.as("viewer", "GET", path+"/messages", "", 200)); m.Waiting != 18 ||
		len(m.Messages) >= 18 {
		t.Errorf("a page has %d of %d messages and %d bytes", len(m.Messages), m.Waiting, m.Bytes)
	}
	a.as("producer", "POST", path+":cancel", `{}`, 204)
	if p := into[problem](t, a.as("producer", "POST", path+"/messages", `{"mailbox":"user"}`, 409)); p.Code !=
		"target_not_signalable" {
		t.Errorf("%+v", p)
	}
	a.as("admin", "POST", path+":purge", "", 204)
	a.as("producer", "POST", path+"/messages", `{"mailbox":"user"}`, 410)
	a.as("viewer", "GET", path+"/messages", "", 410)
	none := "/v1/executions/1-00000000-0000-4000-8000-000000000000/messages"
	a.as("producer", "POST", none, `{"mailbox":"user"}`, 404)
	a.as("viewer", "GET", none, "", 404)
}

// A worker in another language receives messages once and in order, waits for one that has not come, and gets with a
// later claim what was received.
func TestRemoteWorkerReceives(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	send := func(box, text string) {
		t.Helper()
		a.as("producer", "POST", path+"/messages", `{"mailbox":"`+box+`","payload":"`+text+`"}`, 200)
	}
	receive := func(lease, members string) receiveAnswer {
		t.Helper()
		return into[receiveAnswer](t, r.call("receive", lease, members, 200))
	}
	said := func(list []suspend.Message) (all string) {
		for _, m := range list {
			all += fmt.Sprintf("%s %s by %s;", m.Mailbox, m.Payload, m.By)
		}
		return all
	}
	send("user", "one")
	send("tool", "result")
	x := r.one()
	if x.Receipts != nil {
		t.Errorf("%+v", x.Receipts)
	}
	for range 2 { // the second repeats the first
		if got := receive(x.Lease, `"mailbox":"user","number":1`); said(got.Messages) !=
			`user "one" by the-producer;` || got.Wait {
			t.Errorf("%+v", got)
		}
	}
	if got := receive(x.Lease, `"mailbox":"news","number":1,"look":true`); len(got.Messages) != 0 ||
		got.Nothing != "looked" || got.Wait {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{`"until":{"mailbox":"user"}`, `"until":{"number":1}`,
		`"until":{"mailbox":"user","number":1,"timeout":true}`, `"wait":"w","until":{"mailbox":"user","number":1}`,
		`"wait":"w","until":{"signal":"a","number":1}`,
		`"until":{"mailbox":"user","number":1},"question":{"title":"?"}`, `"until":{"mailbox":"é","number":1}`} {
		r.call("suspend", x.Lease, bad, 400)
	}

	second := `"mailbox":"user","number":2,"max":10`
	if got := receive(x.Lease, second); len(got.Messages) != 0 || !got.Wait || got.Nothing != "" {
		t.Errorf("%+v", got)
	}
	until := `"until":{"mailbox":"user","number":2},"within_ms":3600000`
	for range 2 {
		if s := into[suspendAnswer](t, r.call("suspend", x.Lease, until, 200)); !s.Suspended {
			t.Errorf("%+v", s)
		}
	}
	if e := into[flowfabric.Explanation](t, a.as("viewer", "GET", path+"/why", "", 200)); e.State != "suspended" ||
		!strings.Contains(e.Sentence, "mailbox") {
		t.Errorf("%+v", e)
	}
	send("tool", "another") // not what it waits for
	send("user", "two")
	y := r.one()
	if y.ID != x.ID || y.AttemptType != "resumed" || len(y.Waits) != 0 || len(y.Steps) != 0 {
		t.Errorf("%+v", y)
	}
	if got := y.Receipts["user"]["1"]; said(got.Messages) != `user "one" by the-producer;` ||
		y.Receipts["news"]["1"].Nothing != "looked" || len(y.Receipts["user"]) != 1 {
		t.Errorf("%+v", y.Receipts)
	}
	send("user", "three")
	if got := receive(y.Lease,
		second); said(got.Messages) != `user "two" by the-producer;user "three" by the-producer;` {
		t.Errorf("%+v", got)
	}
	if got := receive(y.Lease, `"mailbox":"tool","number":1,"max":1`); said(got.Messages) !=
		`tool "result" by the-producer;` {
		t.Errorf("%+v", got)
	}

	// One that came between the look and the suspension.
	if got := receive(y.Lease, `"mailbox":"user","number":3`); !got.Wait {
		t.Errorf("%+v", got)
	}
	send("user", "between")
	if s := into[suspendAnswer](t, r.call("suspend", y.Lease, `"until":{"mailbox":"user","number":3}`,
		200)); s.Suspended || s.Answer.Cause != "already_satisfied" {
		t.Errorf("%+v", s)
	}
	if got := receive(y.Lease, `"mailbox":"user","number":3`); said(got.Messages) != `user "between" by the-producer;` {
		t.Errorf("%+v", got)
	}

	// A wait that ends without one is recorded with its reason: a message that comes later is for the next receipt.
	for i, nothing := range []string{"timeout", "operator"} {
		wait := fmt.Sprintf(`"mailbox":"user","number":%d`, 4+i)
		body := `"until":{` + wait + `}`
		if nothing == "timeout" {
			body += `,"within_ms":1,"on_timeout":"auto_resume"`
		}
		r.call("suspend", y.Lease, body, 200)
		if nothing == "operator" {
			a.as("operator", "POST", path+":resume", `{"reason":"nobody writes"}`, 204)
		}
		if y = r.one(); len(y.Waits) != 0 {
			t.Errorf("%+v", y.Waits)
		}
		if got := receive(y.Lease, wait); len(got.Messages) != 0 || string(got.Nothing) != nothing || got.Wait {
			t.Errorf("%s: %+v", nothing, got)
		}
		send("user", "after "+nothing)
		if got := receive(y.Lease, wait); len(got.Messages) != 0 || string(got.Nothing) != nothing {
			t.Errorf("%s, again: %+v", nothing, got)
		}
		if got := receive(y.Lease, fmt.Sprintf(`"mailbox":"late","number":%d`, 1+i)); !got.Wait {
			t.Errorf("another receipt got the answer of that one: %+v", got)
		}
		if got := receive(y.Lease, fmt.Sprintf(`"mailbox":"user","number":%d`, 10+i)); said(got.Messages) !=
			`user "after `+nothing+`" by the-producer;` {
			t.Errorf("%s: %+v", nothing, got)
		}
	}
	r.call("complete", y.Lease, "", 200)
	kinds := map[string]int{}
	for _, s := range into[stepList](t, a.as("viewer", "GET", path+"/steps", "", 200)).Items {
		kinds[s.Kind]++
	}
	if len(kinds) != 1 || kinds["messages"] != 9 {
		t.Errorf("%v", kinds)
	}
}
