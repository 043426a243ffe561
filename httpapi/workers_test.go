package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// remote is a worker that knows nothing but the API.
type remote struct {
	a       *api
	role    string
	session string
}

func (a *api) remote(role string, kinds ...string) *remote {
	a.t.Helper()
	list, _ := json.Marshal(kinds)
	return a.open(role, `{"name":"py","kinds":`+string(list)+`}`)
}

func (a *api) open(role, body string) *remote {
	a.t.Helper()
	o := into[workerOpened](a.t, a.as(role, "POST", "/v1/workers", body, 201))
	return &remote{a, role, o.Session}
}

// call makes one call of the session. A lease in front of the other members.
func (r *remote) call(verb, lease, members string, want int) got {
	r.a.t.Helper()
	body := "{" + members + "}"
	if lease != "" {
		body = `{"lease":"` + lease + `"`
		if members != "" {
			body += "," + members
		}
		body += "}"
	}
	return r.a.as(r.role, "POST", "/v1/workers/"+r.session+":"+verb, body, want)
}

// take claims n executions.
func (r *remote) take(n int) []claimed {
	r.a.t.Helper()
	var out []claimed
	for tries := 0; len(out) < n; tries++ {
		out = append(out, into[claimAnswer](r.a.t,
			r.call("claim", "", fmt.Sprintf(`"max":%d,"wait_ms":20000`, n-len(out)), 200)).Executions...)
		if tries > 5 {
			r.a.t.Fatalf("%d executions, want %d", len(out), n)
		}
	}
	return out
}

func (r *remote) one() claimed { r.a.t.Helper(); return r.take(1)[0] }

// nothing finds no work.
func (r *remote) nothing() {
	r.a.t.Helper()
	if c := into[claimAnswer](r.a.t, r.call("claim", "", `"wait_ms":0`, 200)); len(c.Executions) != 0 {
		r.a.t.Errorf("there is %+v", c.Executions)
	}
}

func (r *remote) renew(leases ...string) []leaseAnswer {
	r.a.t.Helper()
	list, _ := json.Marshal(leases)
	return into[leasesAnswer](r.a.t, r.call("renew", "", `"leases":`+string(list), 200)).Leases
}

func ended(t *testing.T, a *api, path string) result {
	t.Helper()
	g := a.do(request{method: "GET", path: path + "/result", role: "viewer",
		header: http.Header{"Prefer": {"wait=60"}}})
	if g.status != 200 {
		t.Fatalf("%s: %d %s", path, g.status, g.body)
	}
	return into[result](t, g)
}

// A worker that speaks HTTP takes work that comes while it waits, streams, records, and completes.
func TestRemoteWorker(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	var waiting conc.WaitGroup
	var x claimed
	waiting.Go(func() { x = r.one() })
	path := a.submit(`{"kind":"remote","input":{"n":2},"tags":{"test.tag":"1"}}`)
	waiting.Wait()
	if "/v1/executions/"+x.ID != path || string(x.Input) != `{"n":2}` || x.AttemptType != "initial" ||
		x.Tags["test.tag"] != "1" || x.LeaseMs != 30000 {
		t.Fatalf("%+v", x)
	}
	if f := into[framesAnswer](t, r.call("frames", x.Lease, `"first":1,"frames":[{"text":"hel"},{"text":"lo"}]`,
		200)); f.LastSequence != 2 {
		t.Errorf("%+v", f)
	}
	if f := into[framesAnswer](t,
		r.call("frames", x.Lease,
			`"first":2,"frames":[{"text":"lo"},{"type":"log","json":{"a":1},"source":"tool"},{"base64":"AAE=","live_ms":5000}]`,
			200)); f.LastSequence != 4 {
		t.Errorf("%+v", f)
	}
	r.call("frames", x.Lease, `"first":9,"frames":[{"text":"gap"}]`, 409)
	if all := a.as("viewer", "GET", path+"/frames", "", 200); strings.Count(string(all.body), `"source":"tool"`) != 1 {
		t.Errorf("%s", all.body)
	}
	if s := into[already](t, r.call("step", x.Lease, `"name":"charge","value":{"id":7},"took_ms":1500`,
		200)); s.Already {
		t.Errorf("%+v", s)
	}
	if s := into[already](t, r.call("step", x.Lease, `"name":"charge","value":{"id":7}`, 200)); !s.Already {
		t.Errorf("%+v", s)
	}
	r.call("step", x.Lease, `"name":"charge","value":8`, 409)
	r.call("step", x.Lease, `"name":"late","took_ms":-1`, 400)
	if l := into[stepList](t, a.as("viewer", "GET", path+"/steps", "", 200)); len(l.Items) != 1 ||
		l.Items[0].Name != "charge" || l.Items[0].Kind != "step" ||
		l.Items[0].State != "recorded" || l.Items[0].Bytes != len(`{"id":7}`) ||
		l.Items[0].EndedAt.Sub(l.Items[0].StartedAt) != 1500*time.Millisecond {
		t.Errorf("%+v", l)
	}
	if v := into[flowfabric.Payload](t, a.as("viewer", "GET", path+"/steps/charge", "", 200)); string(v) != `{"id":7}` {
		t.Errorf("%+v", v)
	}
	if p := into[problem](t, a.as("viewer", "GET", path+"/steps/a%2Fb:c", "", 404)); p.Code != "not_found" {
		t.Errorf("%+v", p)
	}
	r.call("progress", x.Lease, `"percent":50,"message":"half"`, 204)
	if s := into[flowfabric.Snapshot](t, a.as("viewer", "GET", path, "", 200)); s.Public != "active" ||
		s.Worker != r.session ||
		s.Progress.Message != "half" || *s.Progress.Percent != 50 || s.Steps != 1 {
		t.Errorf("%+v", s)
	}
	if l := r.renew(x.Lease); len(l) != 1 || !l[0].Held {
		t.Errorf("%+v", l)
	}
	if c := into[already](t, r.call("complete", x.Lease, `"result":"done"`, 200)); c.Already {
		t.Errorf("%+v", c)
	}
	if c := into[already](t, r.call("complete", x.Lease, `"result":"done"`, 200)); !c.Already {
		t.Errorf("%+v", c)
	}
	if out := ended(t, a, path); out.State != "completed" || string(*out.Output) != `"done"` {
		t.Errorf("%+v", out)
	}
	if l := r.renew(x.Lease); l[0].Held || l[0].Code != "lease_lost" {
		t.Errorf("%+v", l)
	}
	if tr := into[transcript](t, a.as("viewer", "GET", path+"/transcript", "", 200)); tr.Text != `hello{"a":1}` {
		t.Errorf("%+v", tr)
	}
	r.nothing()
}

// A handler in another language fails and is retried with its steps, is put aside, gives back, gives up.
func TestRemoteWorkerEnds(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote","retries":1}`)
	x := r.one()
	r.call("step", x.Lease, `"name":"s"`, 200)
	r.call("fail", x.Lease, `"step":"é"`, 400)
	r.call("fail", x.Lease, `"step":"ship","step_took_ms":-1`, 400)
	if f := into[failAnswer](t,
		r.call("fail", x.Lease,
			`"category":"net","message":"no route","retry_after_ms":0,"step":"ship","step_took_ms":20`,
			200)); !f.Retry || f.RetryInMs != 0 {
		t.Errorf("%+v", f)
	}
	x = r.one()
	if l := into[stepList](t, a.as("viewer", "GET", path+"/steps", "", 200)); len(l.Items) != 2 ||
		l.Items[0].State != "recorded" || l.Items[1].Name != "ship" || l.Items[1].State != "failed" ||
		l.Items[1].Error != "no route" || l.Items[1].EndedAt.Sub(l.Items[1].StartedAt) != 20*time.Millisecond {
		t.Errorf("%+v", l)
	}
	if x.AttemptType != "retry" || x.Attempt != 2 || x.Retries != 1 || string(x.Steps["s"]) != "null" ||
		len(x.Steps) != 1 {
		t.Errorf("%+v", x)
	}
	r.call("release", x.Lease, "", 200)
	x = r.one()
	r.call("delay", x.Lease, `"delay_ms":1`, 200)
	x = r.one()
	if x.Attempt != 2 {
		t.Errorf("%+v", x)
	}
	if f := into[failAnswer](t, r.call("fail", x.Lease, `"message":"bad","permanent":true`, 200)); f.Retry {
		t.Errorf("%+v", f)
	}
	if f := into[failAnswer](t, r.call("fail", x.Lease, `"message":"bad","permanent":true`, 200)); !f.Already {
		t.Errorf("%+v", f)
	}
	if out := ended(t, a, path); out.State != "failed" || out.Failure.Category != "handler_error" ||
		out.Failure.Message != "bad" {
		t.Errorf("%+v", out)
	}
	path = a.submit(`{"kind":"remote"}`)
	x = r.one()
	r.call("cancel", x.Lease, `"reason":"enough"`, 200)
	if out := ended(t, a, path); out.State != "cancelled" {
		t.Errorf("%+v", out)
	}

	a.submit(`{"kind":"remote"}`)
	x = r.one()
	r.call("close", "", `"leases":["`+x.Lease+`"]`, 204)
	r.call("claim", "", "", 404)
	again := a.remote("worker", "remote")
	if y := again.one(); y.ID != x.ID || y.Reclaims != 0 {
		t.Errorf("%+v", y)
	}
	if l := into[workerList](t, a.as("viewer", "GET", "/v1/workers", "", 200)); !slices.ContainsFunc(l.Items,
		func(w flowfabric.Worker) bool {
			return w.Instance == again.session && slices.Equal(w.Kinds, []string{"remote"})
		}) {
		t.Errorf("%+v", l)
	}
}

// work calls every route of workers.
func (a *api) work() {
	o := admin.New(a.client)
	if err := o.PutGate(a.t.Context(),
		admission.Gate{Name: "work", Limits: map[string]admission.Limit{"tokens": {Hard: 10}}}); err != nil {
		a.t.Fatal(err)
	}
	must.No(a.t, o.PutGate(a.t.Context(), modelGate()))
	r := a.remote("worker", "work")
	for range 7 {
		a.submit(`{"kind":"work","gates":["work"]}`)
	}
	list := r.take(7)
	r.renew(list[0].Lease)
	for verb, members := range map[string]string{"frames": writes["frames"], "step": writes["step"],
		"receive": writes["receive"], "waitpoint": writes["waitpoint"],
		"spend":   `"gate":"work","sequence":1,"amounts":{"tokens":1}`,
		"reserve": `"reservation":1,"amounts":{"tokens":1}`,
		"acquire": `"service":"openai/gpt-5","call":1`} {
		r.call(verb, list[0].Lease, members, 200)
	}
	r.call("settle", list[0].Lease, `"reservation":1,"amounts":{"tokens":1}`, 200)
	r.call("unreserve", list[0].Lease, `"reservation":1`, 200)
	r.call("end-call", list[0].Lease, `"service":"openai/gpt-5","call":1,"how":"settled"`, 200)
	r.call("progress", list[0].Lease, writes["progress"], 204)
	r.call("log", list[0].Lease, writes["log"], 204)
	for i, verb := range []string{"complete", "fail", "delay", "cancel", "release", "suspend", "children"} {
		r.call(verb, list[i].Lease, writes[verb], 200)
	}
	r.call("close", "", "", 204)
}

// Approvals, signals that come early, and children.
func TestRemoteWorkerWaits(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	w := into[waitpointToken](t, r.call("waitpoint", x.Lease, `"key":"ok"`, 200))
	if again := into[waitpointToken](t, r.call("waitpoint", x.Lease, `"key":"ok"`, 200)); again != w || w.Token == "" {
		t.Errorf("%+v and %+v", w, again)
	}
	s := `"wait":"ok","reason":"waiting_for_approval","within_ms":3600000`
	if s := into[suspendAnswer](t, r.call("suspend", x.Lease, s, 200)); !s.Suspended || s.Answer != nil {
		t.Errorf("%+v", s)
	}
	if s := into[suspendAnswer](t, r.call("suspend", x.Lease, s, 200)); !s.Suspended {
		t.Errorf("%+v", s)
	}
	r.call("complete", x.Lease, "", 409)
	a.as("producer", "POST", "/v1/signals", `{"token":"`+w.Token+`","name":"approve","payload":{"by":"ann"}}`, 200)
	y := r.one()
	if y.ID != x.ID || y.AttemptType != "resumed" || y.Waits["ok"].Cause != "signal" ||
		string(y.Waits["ok"].Signals[0].Payload) != `{"by":"ann"}` || y.Lease == x.Lease {
		t.Errorf("%+v", y)
	}
	early := into[waitpointToken](t, r.call("waitpoint", y.Lease, `"key":"early","life_ms":60000`, 200))
	a.as("producer", "POST", "/v1/signals", `{"token":"`+early.Token+`","payload":1}`, 200)
	if s := into[suspendAnswer](t,
		r.call("suspend", y.Lease,
			`"wait":"second","until":{"any":[{"signal":"early"},{"all":[{"signal":"x"},{"count":1,"of":["y"]}]}]}`,
			200)); s.Suspended || s.Answer.Cause != "already_satisfied" {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{`"wait":""`, `"wait":"w","until":{}`,
		`"wait":"w","until":{"signal":"a","timeout":true}`, `"wait":"w","until":{"timeout":true}`,
		`"wait":"w","on_timeout":"explode"`, `"wait":"w","reason":"boredom"`, `"wait":"w","within_ms":-1`,
		`"wait":"w","until":{"all":[]}`, `"wait":"w","until":{"any":[{}]}`,
		`"wait":"w","until":{"count":2,"of":["a"]}`, `"wait":"w","until":{"signal":"a","by":"sources"}`} {
		r.call("suspend", y.Lease, bad, 400)
	}
	kids :=
		`"wait":"pages","children":[{"name":"a","kind":"stuck"},{"name":"b","kind":"fails","after":["a"],"retries":0}]`
	if c := into[childrenAnswer](t, r.call("children", y.Lease, kids, 200)); !c.Parked {
		t.Errorf("%+v", c)
	}
	close(a.release) // children that end before their parent is suspended leave it running
	z := r.one()
	if o := z.Children["pages"]; len(o) != 2 || o["a"].Outcome != "completed" || string(*o["a"].Result) != `"free"` ||
		o["b"].Outcome != "failed" || o["b"].Result != nil {
		t.Errorf("%+v", z)
	}
	if z.Waits["ok"].Cause != "signal" || z.Waits["second"].Cause != "already_satisfied" {
		t.Errorf("%+v", z.Waits)
	}
	if c := into[childrenAnswer](t, r.call("children", z.Lease, kids, 200)); c.Parked || len(c.Outcomes) != 2 {
		t.Errorf("%+v", c)
	}
	for _, bad := range []string{`"wait":"w"`,
		`"wait":"w","children":[{"name":"a","kind":"k"},{"name":"a","kind":"k"}]`,
		`"wait":"w","mode":"some","children":[{"name":"a","kind":"k"}]`,
		`"wait":"w","children":[{"name":"a","kind":"k","after":["z"]}]`, `"children":[{"name":"a","kind":"k"}]`} {
		r.call("children", z.Lease, bad, 400)
	}
	for _, bad := range []string{`"others":[{"name":"o","execution":"x"}]`, `"others":[{"name":"o","execution":"` +
		z.ID + `"}]`, `"cancel_remaining":true,"others":[{"name":"","execution":"` + y.ID + `"}]`} {
		r.call("children", z.Lease, `"wait":"w",`+bad, 400)
	}
	r.call("children", z.Lease, `"wait":"w","others":[{"name":"o","execution":"`+mint.ID(0).String()+
		`"}]`, 404)
	for _, bad := range []string{`"until":{"operator":true}`, `"until":{"mailbox":"m"}`, `"within_ms":-1`,
		`"on_timeout":"explode"`, `"reason":"boredom"`, `"until":{"message":"m","named":"x"}`,
		`"until":{"any":[{"message":"m","signal":"x"}]}`} {
		r.call("children", z.Lease, `"wait":"w","children":[{"name":"a","kind":"k"}],`+bad, 400)
	}
	fast :=
		`"wait":"fast","mode":"fail_fast","cancel_remaining":true,"within_ms":3600000,"until":{"any":[{"signal":"stop"},{"message":"user"}]},"children":[{"name":"slow","kind":"nobody"}]`
	if c := into[childrenAnswer](t, r.call("children", z.Lease, fast, 200)); !c.Parked {
		t.Errorf("%+v", c)
	}
	if c := into[childrenAnswer](t, r.call("children", z.Lease, fast, 200)); !c.Parked { // after a lost answer
		t.Errorf("%+v", c)
	}
	a.as("producer", "POST", path+"/messages", `{"mailbox":"user","payload":"stop"}`, 200)
	z = r.one()
	if o := z.Children["fast"]; z.Waits["fast"].Cause != "message" || len(o) != 1 || o["slow"].Outcome != "" {
		t.Errorf("%+v", z)
	}
	mail := `"wait":"mail","until":{"message":"user"},"children":[{"name":"slow","kind":"nobody"}]`
	if c := into[childrenAnswer](t, r.call("children", z.Lease, mail, 200)); c.Parked || c.Answer == nil ||
		c.Answer.Cause != "already_satisfied" || len(c.Outcomes) != 1 {
		t.Errorf("%+v", c)
	}
	other := into[submitted](t, a.as("producer", "POST", "/v1/executions", `{"kind":"echo","input":"hello"}`, 201))
	others := `"wait":"others","others":[{"name":"said","execution":"` + other.ID + `"}]`
	o := into[childrenAnswer](t, r.call("children", z.Lease, others, 200))
	if o.Parked {
		into[childrenAnswer](t, r.call("children", z.Lease, others, 200)) // after a lost answer
		z = r.one()
		o.Outcomes = z.Children["others"]
	}
	if said := o.Outcomes["said"]; said.Outcome != "completed" || said.ID != other.ID ||
		string(*said.Result) != `"hello"` {
		t.Errorf("%+v", o)
	}
	taken := into[submitted](t, a.as("producer", "POST", "/v1/executions", `{"kind":"nobody"}`, 201))
	if c := into[childrenAnswer](t, r.call("children", z.Lease,
		`"wait":"taken","others":[{"name":"it","execution":"`+taken.ID+`","cancel":true}]`, 200)); !c.Parked {
		t.Errorf("%+v", c)
	}
	a.as("producer", "POST", path+":cancel", "", 204)
	a.until("/v1/executions/"+taken.ID, "cancelled")
}

// What a gate says reaches the worker; a repeat counts once, and nobody spends of a gate that is not the
// execution's.
func TestRemoteWorkerSpends(t *testing.T) {
	a := newAPI(t)
	o := admin.New(a.client)
	for _, name := range []string{"llm", "other"} {
		if err := o.PutGate(t.Context(),
			admission.Gate{Name: name, Limits: map[string]admission.Limit{"tokens": {Hard: 10}}}); err != nil {
			t.Fatal(err)
		}
	}
	r := a.remote("worker", "remote")
	a.submit(`{"kind":"remote","gates":["llm"]}`)
	x := r.one()
	if !slices.Equal(x.GateNames, []string{"llm"}) {
		t.Errorf("%+v", x)
	}
	spend := `"gate":"llm","sequence":1,"amounts":{"tokens":7}`
	if s := into[admission.Reported](t, r.call("spend", x.Lease, spend,
		200)); s.Verdict != "OK" || !s.Applied || s.Replayed {
		t.Errorf("%+v", s)
	}
	if s := into[admission.Reported](t, r.call("spend", x.Lease, spend, 200)); !s.Replayed {
		t.Errorf("%+v", s)
	}
	if s := into[admission.Reported](t, r.call("spend", x.Lease, `"gate":"llm","sequence":2,"amounts":{"tokens":7}`,
		200)); s.Verdict != "HARD_BREACH" || s.Applied || s.Action != "reject" || len(s.Breaches) != 1 ||
		s.Breaches[0].Limit != 10 {
		t.Errorf("%+v", s)
	}
	r.call("spend", x.Lease, `"gate":"other","sequence":1,"amounts":{"tokens":1}`, 400)
	r.call("spend", x.Lease, `"gate":"llm","amounts":{"tokens":1}`, 400)
	must.No(t, o.PutGate(t.Context(), admission.Gate{Name: "top"}))
	must.No(t, o.PutGate(t.Context(), admission.Gate{Name: "firm", Parent: "top"}))
	must.No(t, o.PutGate(t.Context(), admission.Gate{Name: "llm", Parent: "firm",
		Limits: map[string]admission.Limit{"tokens": {Hard: 10}}}))
	for _, above := range []string{"firm", "top"} { // what counts in a gate counts in those above
		if s := into[admission.Reported](t, r.call("spend", x.Lease,
			`"gate":"`+above+`","sequence":1,"amounts":{"tokens":7}`, 200)); !s.Applied {
			t.Errorf("%+v", s)
		}
	}
	r.call("spend", x.Lease, `"gate":"nobody","sequence":1,"amounts":{"tokens":1}`, 400)
	r.call("complete", x.Lease, "", 200)
	if s := into[admission.Reported](t, r.call("spend", x.Lease, `"gate":"llm","sequence":3,"amounts":{"tokens":1}`,
		200)); !s.Applied {
		t.Errorf("%+v", s)
	}
}

// writes are the calls that need a lease, each with a body that would do.
var writes = map[string]string{
	"frames": `"first":1,"frames":[{"text":"x"}]`, "step": `"name":"s","value":1`,
	"receive": `"mailbox":"m","number":1,"look":true`, "progress": `"percent":1`,
	"log": `"first":1,"lines":[{"message":"m"}]`, "waitpoint": `"key":"k"`,
	"expect":  `"key":"e","subject":"order.paid","where":{"order.id":7}`,
	"suspend": `"wait":"w"`, "children": `"wait":"c","children":[{"name":"a","kind":"echo"}]`, "complete": `"result":1`,
	"fail":  `"message":"m"`,
	"delay": `"delay_ms":60000`, "continue": `"input":1`, "close-waitpoint": `"key":"k"`, "cancel": `"reason":"r"`,
	"release": "",
}

// Every write under every lease that is none changes nothing: another session's, an older and a newer epoch, another
// attempt, another claim, one that was revoked, one that was settled, half a lease, and none.
func TestEveryWriteIsFenced(t *testing.T) {
	for _, r := range routes { // nobody adds a write without a fence
		if verb, ok := strings.CutPrefix(r.path, "/v1/workers/{session}:"); ok && r.body != nil {
			if _, known := writes[verb]; !known && !slices.Contains([]string{"claim", "renew", "close", "mark-dead",
				"spend", "reserve", "settle", "unreserve", "acquire", "end-call"}, verb) {
				t.Errorf("%s is not tried here", verb)
			}
		}
	}
	a := newAPI(t)
	r, stranger := a.remote("worker", "remote"), a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote","retries":5}`)
	first := r.one()
	r.call("release", first.Lease, "", 200)
	held := r.one()
	f, _ := parseLease(held.Lease)
	change := func(do func(*flowfabric.Fence)) string {
		g := f
		do(&g)
		return leaseText(g, "")
	}
	a.submit(`{"kind":"remote"}`)
	other := stranger.one()
	g, _ := parseLease(other.Lease)
	leases := map[string]struct {
		lease, code string
		status      int
	}{
		"an earlier claim": {first.Lease, "stale_lease", 409},
		"another session":  {other.Lease, "stale_lease", 409},
		"a made up session": {change(func(x *flowfabric.Fence) {
			x.Session = strings.TrimSuffix(x.Session, x.Session[len(x.Session)-1:]) + "!"
		}), "stale_lease", 409},
		"an older epoch":    {change(func(x *flowfabric.Fence) { x.Epoch = 1 }), "stale_lease", 409},
		"a newer epoch":     {change(func(x *flowfabric.Fence) { x.Epoch++ }), "stale_lease", 409},
		"another attempt":   {change(func(x *flowfabric.Fence) { x.Attempt++ }), "stale_lease", 409},
		"another claim":     {change(func(x *flowfabric.Fence) { x.Claim++ }), "stale_lease", 409},
		"another execution": {change(func(x *flowfabric.Fence) { x.Execution = g.Execution }), "stale_lease", 409},
		"no execution": {change(func(x *flowfabric.Fence) { x.Execution = mint.ID(0) }),
			"stale_lease", 409},
		"an empty session":     {change(func(x *flowfabric.Fence) { x.Session = "" }), "stale_lease", 409},
		"nonsense":             {"nonsense", "invalid_input", 400},
		"base64 nonsense":      {base64.RawURLEncoding.EncodeToString([]byte("a,b,c,d,e")), "invalid_input", 400},
		"no lease":             {"", "fence_required", 400},
		"too long a lease":     {strings.Repeat("A", 4000), "invalid_input", 400},
		"an id with a bracket": {base64.RawURLEncoding.EncodeToString([]byte("0-{x},s,1,1,1")), "invalid_input", 400},
	}
	look := func() string {
		x := into[flowfabric.Snapshot](t, a.as("viewer", "GET", path, "", 200))
		x.LeaseExpiresAt = time.Time{}
		text, _ := json.Marshal(x)
		return string(text) + string(a.as("viewer", "GET", path+"/history", "", 200).body) +
			string(a.as("viewer", "GET", path+"/transcript", "", 200).body) +
			string(a.as("viewer", "GET", path+"/waitpoints", "", 200).body)
	}
	before := look()
	refused := func(what, lease, code string, status int) {
		t.Helper()
		for verb, members := range writes {
			if lease == "" && members == "" || lease == first.Lease && verb == "release" { // which is repeated
				continue
			}
			got := r.call(verb, lease, members, status)
			if p := into[problem](t, got); p.Code != code {
				t.Errorf("%s under %s: %s, want %s", verb, what, got.body, code)
			}
		}
	}
	for what, l := range leases {
		refused(what, l.lease, l.code, l.status)
		if after := look(); after != before {
			t.Errorf("%s: was %s\nis %s", what, before, after)
		}
	}
	if l := r.renew(held.Lease); !l[0].Held {
		t.Errorf("%+v", l)
	}
	a.as("operator", "POST", path+":revoke", `{"reason":"test"}`, 204)
	if l := r.renew(held.Lease); l[0].Held || l[0].Code != "lease_lost" {
		t.Errorf("%+v", l)
	}
	next := r.one() // the tick has taken it back
	if next.ID != held.ID {
		t.Fatalf("%+v", next)
	}
	before = look()
	refused("a revoked lease", held.Lease, "stale_lease", 409)
	if after := look(); after != before {
		t.Errorf("revoked: was %s\nis %s", before, after)
	}
	r.call("complete", next.Lease, `"result":1`, 200)
	before = look()
	for verb, members := range writes {
		if verb != "complete" {
			r.call(verb, next.Lease, members, 409)
		}
	}
	if after := look(); after != before {
		t.Errorf("settled: was %s\nis %s", before, after)
	}
}

// A worker that stops renewing loses its work to another one, which is told that it was lost, and goes on with its
// steps.
func TestRemoteWorkerDies(t *testing.T) {
	a := newAPI(t)
	r := a.open("worker", `{"kinds":["remote"],"lease_ms":2000}`)
	a.submit(`{"kind":"remote"}`)
	x := r.one()
	r.call("step", x.Lease, `"name":"s","value":1`, 200)
	next := a.remote("worker", "remote")
	y := next.one() // comes when the lease has run out
	if y.ID != x.ID || y.AttemptType != "reclaim" || y.Reclaims != 1 || string(y.Steps["s"]) != "1" {
		t.Errorf("%+v", y)
	}
	if l := r.renew(x.Lease); l[0].Held || l[0].Code != "lease_expired" {
		t.Errorf("%+v", l)
	}
	r.call("complete", x.Lease, "", 409)
	next.call("complete", y.Lease, "", 200)
}

// Another process serves the next call of a session, whether the first one lives or not.
func TestAnotherGatewayGoesOn(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	tokens := a.h.cfg.Authorize
	a.h.Close() // as if it had died: nothing is handed over
	second, err := New(Config{Admin: admin.New(a.client), Authorize: tokens, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer second.Close()
	a.server.Config.Handler = second
	if l := r.renew(x.Lease); !l[0].Held {
		t.Errorf("%+v", l)
	}
	r.call("frames", x.Lease, `"first":1,"frames":[{"text":"x"}]`, 200)
	r.call("complete", x.Lease, "", 200)
	if out := ended(t, a, path); out.State != "completed" {
		t.Errorf("%+v", out)
	}
	a.submit(`{"kind":"remote"}`)
	if y := r.one(); y.AttemptType != "initial" {
		t.Errorf("%+v", y)
	}
	for _, role := range []string{"admin"} { // somebody else's session
		a.as(role, "POST", "/v1/workers/"+r.session+":claim", `{}`, 404)
	}
	a.as("worker", "POST", "/v1/workers/py-0123456789ab:claim", `{}`, 404)
	a.as("worker", "POST", "/v1/workers/{x}:claim", `{}`, 404)
}

// A client that goes away while it waits for work takes nothing with it but what it was answered before.
func TestClaimOfNobody(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	answers := &recorded{h: a.server.Config.Handler, begun: make(chan struct{}, 1)}
	a.server.Config.Handler = answers
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		q, _ := http.NewRequestWithContext(ctx, "POST", a.server.URL+"/v1/workers/"+r.session+":claim",
			strings.NewReader(`{"max":5}`))
		q.Header = http.Header{"Authorization": {"Bearer " + secrets["worker"]}, "Content-Type": {"application/json"}}
		var gone conc.WaitGroup
		gone.Go(func() {
			if answer, err := http.DefaultClient.Do(q); err == nil {
				answer.Body.Close()
			}
		})
		<-answers.begun
		a.submit(`{"kind":"remote"}`)
		cancel()
		gone.Wait()
	}
	answers.running.Wait()
	a.server.Config.Handler = answers.h
	var given []claimed
	for _, body := range answers.bodies {
		var taken claimAnswer
		if err := json.Unmarshal(body, &taken); err == nil {
			given = append(given, taken.Executions...)
		}
	}
	kept := 0 // what the server saw that nobody would read, it took back
	for _, x := range given {
		q := request{method: "POST", path: "/v1/workers/" + r.session + ":complete", role: r.role,
			body: `{"lease":"` + x.Lease + `"}`}
		switch g := a.do(q); g.status {
		case 200:
			kept++
		case 409:
		default:
			t.Errorf("%d %s", g.status, g.body)
		}
	}
	for _, x := range r.take(20 - kept) {
		if x.Reclaims != 0 {
			t.Errorf("%+v", x)
		}
		r.call("complete", x.Lease, "", 200)
	}
	r.nothing()
}

// recorded keeps the answers of h to claims, whether or not anybody reads them.
type recorded struct {
	h       http.Handler
	begun   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	bodies  [][]byte
}

func (r *recorded) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if !strings.HasSuffix(q.URL.Path, ":claim") {
		r.h.ServeHTTP(w, q)
		return
	}
	r.running.Add(1)
	defer r.running.Done()
	r.begun <- struct{}{}
	body := &keeping{ResponseWriter: w}
	r.h.ServeHTTP(body, q)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, body.text)
}

// keeping is a writer that keeps what was written.
type keeping struct {
	http.ResponseWriter
	text []byte
}

func (k *keeping) Write(b []byte) (int, error) {
	k.text = append(k.text, b...)
	return k.ResponseWriter.Write(b)
}

func (k *keeping) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// Many workers of one kind get everything once, from one gateway.
func TestManyRemoteWorkers(t *testing.T) {
	a := newAPI(t)
	const n = 60
	seen := make(chan string, 2*n)
	var all conc.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 6 {
		r := a.open("worker", fmt.Sprintf(`{"kinds":["remote"%s]}`, []string{"", `,"other"`}[i%2])) // two offers
		all.Go(func() {
			for ctx.Err() == nil {
				g := a.do(request{method: "POST", path: "/v1/workers/" + r.session + ":claim", role: "worker",
					body: `{"max":3,"wait_ms":200}`})
				for _, x := range into[claimAnswer](t, g).Executions {
					r.call("complete", x.Lease, "", 200)
					seen <- x.ID
				}
			}
		})
	}
	want := map[string]bool{}
	for range n {
		want[strings.TrimPrefix(a.submit(`{"kind":"remote"}`), "/v1/executions/")] = true
	}
	for range n {
		id := <-seen
		if !want[id] {
			t.Errorf("%s came twice, or is nobody's", id)
		}
		delete(want, id)
	}
	cancel()
	all.Wait()
}

func TestRemoteWorkerInput(t *testing.T) {
	a := newAPI(t)
	for _, bad := range []string{`{}`, `{"kinds":[]}`, `{"kinds":[""]}`, `{"kinds":["k"],"lease_ms":1}`,
		`{"kinds":["k"],"lease_ms":600001}`, `{"kinds":["k"],"name":"a~b"}`,
		`{"kinds":["k"],"name":"` + strings.Repeat("n", 25) + `"}`,
		`{"kinds":["k"],"lanes":["` + strings.Repeat("l", 65) + `"]}`, `{"kinds":["k"],"concurrency":-1}`,
		`{"kinds":["k"],"lane_weights":{"default":0}}`, `{"kinds":["k"],"lane_weights":{"default":1001}}`,
		`{"kinds":["k"],"lanes":["a"],"lane_weights":{"default":2}}`, `{"kind":"k"}`} {
		a.as("worker", "POST", "/v1/workers", bad, 400)
	}
	if p := into[problem](t, a.as("worker", "POST", "/v1/workers", `{"kinds":["k","\u0000"]}`, 400)); p.Field !=
		"/kinds/1" {
		t.Errorf("%+v", p)
	}
	a.as("blue", "POST", "/v1/workers", `{"kinds":["k"],"namespaces":["default"]}`, 403)
	a.as("blue", "POST", "/v1/workers", `{"kinds":["k"],"namespaces":["*"]}`, 403)
	a.as("viewer", "POST", "/v1/workers", `{"kinds":["k"]}`, 403)
	blue := a.open("blue", `{"kinds":["remote"]}`)
	a.submit(`{"kind":"remote"}`)
	blue.nothing()
	a.as("blue", "POST", "/v1/executions", `{"kind":"remote"}`, 201)
	if x := blue.one(); x.Namespace != "blue" {
		t.Errorf("%+v", x)
	}
	r := a.remote("worker", "remote")
	x := r.one()
	for verb, list := range map[string][]string{
		"claim": {`"max":101`, `"max":-1`, `"wait_ms":30001`, `"wait_ms":-1`, `"maximum":1`},
		"frames": {`"first":1`, `"frames":[{"text":"x"}]`, `"first":1,"frames":[{}]`,
			`"first":1,"frames":[{"text":"x","json":1}]`, `"first":1,"frames":[{"text":"x","live_ms":1}]`,
			`"first":1,"frames":[{"text":"x","source":"` + strings.Repeat("s", 65) + `"}]`,
			`"first":1,"frames":[{"text":"x","correlation":"` + strings.Repeat("c", 257) + `"}]`,
			`"first":1,"frames":[{"text":"x","source":"\u001f"}]`,
			`"first":1,"frames":[{"text":"","type":"flowfabric.child"}]`},
		"step": {`"name":""`, `"name":"é"`, `"name":"` + strings.Repeat("n", 129) + `"`},
		"receive": {`"mailbox":"m"`, `"number":1`, `"mailbox":"é","number":1`, `"mailbox":"` + strings.Repeat("m",
			97) + `","number":1`, `"mailbox":"m","number":1001`, `"mailbox":"m","number":-1`,
			`"mailbox":"m","number":1,"max":101`, `"mailbox":"m","number":1,"max":-1`},
		"progress":  {`"percent":101`, `"percent":-1`, `"message":"` + strings.Repeat("m", 1025) + `"`},
		"waitpoint": {`"key":""`, `"key":"k","life_ms":1`, `"key":"k","life_ms":604800001`},
		"fail":      {`"retry_after_ms":-1`, `"category":"` + strings.Repeat("c", 65) + `"`},
		"delay":     {`"delay_ms":-1`, `"delay_ms":315360000001`, `"delay_ms":9223372036854775807`},
	} {
		for _, bad := range list {
			lease := x.Lease
			if verb == "claim" {
				lease = ""
			}
			r.call(verb, lease, bad, 400)
		}
	}
	r.call("renew", "", `"leases":["x"]`, 400)
	r.call("step", x.Lease, `"name":"s","value":"`+strings.Repeat("v", 256<<10)+`"`, 413)
	if s := into[flowfabric.Snapshot](t, a.as("viewer", "GET", "/v1/executions/"+x.ID, "", 200)); s.Steps != 0 ||
		s.Public != "active" {
		t.Errorf("%+v", s)
	}
	r.call("complete", x.Lease, "", 200)
}

func FuzzLease(f *testing.F) {
	f.Add(leaseText(flowfabric.Fence{Execution: mint.ID(3), Session: "gw~a~b", Claim: 1,
		Epoch: 1 << 41, Attempt: 2}, "5,a\x1fb"))
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("0-x,s,1,2,3")))
	f.Fuzz(func(t *testing.T, text string) {
		fence, ok := parseLease(text)
		if ok && leaseText(fence, "") != text {
			if again, ok := parseLease(leaseText(fence, "")); !ok || again != fence {
				t.Errorf("%q is %+v, which is %q", text, fence, leaseText(fence, ""))
			}
		}
	})
}

// A renewal says why an execution was lost.
func TestLossesHaveTheirReason(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	cancelled := a.submit(`{"kind":"remote"}`)
	x := r.one()
	a.submit(`{"kind":"remote","timeout_ms":1}`)
	y := r.one()
	a.as("producer", "POST", cancelled+":cancel", `{}`, 204)
	if l := r.renew(x.Lease); l[0].Held || l[0].Code != "cancelled" {
		t.Errorf("%+v", l)
	}
	for l := r.renew(y.Lease); l[0].Held || l[0].Code != "attempt_timeout"; l = r.renew(y.Lease) {
		// when the tick has seen it
		if !l[0].Held {
			t.Fatalf("%+v", l)
		}
	}
}

// links goes on with another input, and takes a waitpoint back.
func (a *api) links() {
	a.t.Helper()
	r := a.remote("worker", "linked")
	path := a.submit(`{"kind":"linked","input":1}`)
	x := r.one()
	r.call("waitpoint", x.Lease, `"key":"k"`, 200)
	r.call("expect", x.Lease, `"key":"paid","subject":"order.paid"`, 204)
	r.call("close-waitpoint", x.Lease, `"key":"nobody"`, 404)
	for _, before := range []bool{false, true} {
		if out := into[already](a.t, r.call("close-waitpoint", x.Lease, `"key":"k"`, 200)); out.Already != before {
			a.t.Errorf("closed before: %+v", out)
		}
	}
	for _, before := range []bool{false, true} {
		if out := into[already](a.t, r.call("continue", x.Lease, `"input":{"page":2}`, 200)); out.Already != before {
			a.t.Errorf("continued before: %+v", out)
		}
	}
	x = r.one()
	if x.AttemptType != "continue" || x.Continues != 1 || x.Attempt != 2 || string(x.Input) != `{"page":2}` ||
		len(x.Steps) != 0 {
		a.t.Errorf("%+v", x)
	}
	r.call("complete", x.Lease, "", 200)
	if out := ended(a.t, a, path); out.State != "completed" {
		a.t.Errorf("%+v", out)
	}
}
