package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// gatesAndPartitions calls the routes of gates, partitions and token keys, and what else only operators do.
func (a *api) gatesAndPartitions() {
	t := a.t
	const acme = "/v1/gates/acme"
	b := into[admission.GateRecord](t,
		a.as("operator", "PUT", acme,
			`{"limits":{"tokens":{"hard":10,"soft":5}},"on_hard":"fail","reset_ms":86400000,"refund":["failed"],"scope":"all of acme"}`,
			200))
	if b.Limits["tokens"].Hard != 10 || b.OnHard != "fail" || b.Reset != flowfabric.Millis(24*time.Hour) ||
		b.NextReset.IsZero() ||
		b.Scope != "all of acme" || len(b.Audit) != 1 || b.Audit[0].By != "the-operator" {
		t.Errorf("%+v", b)
	}
	a.as("operator", "PUT", acme, `{"limits":{"tokens":{"hard":20}}}`, 409)
	if p := into[problem](t, a.as("operator", "PUT", acme, `{"limits":{"tokens":{"hard":3,"soft":5}}}`, 400)); p.Code !=
		"invalid_gate_spec" {
		t.Errorf("%+v", p)
	}
	a.as("operator", "PUT", acme, `{"limits":{"tokens":{"hard":20}},"revision":`+num(b.Revision)+`}`, 200)
	if r := into[apiv1.Used](t, a.as("operator", "POST", acme+":adjust", `{"amounts":{"tokens":7},"reason":"by hand"}`,
		200)); r.Used["tokens"] != 7 {
		t.Errorf("%+v", r)
	}
	spent := a.submit(`{"kind":"echo","gates":["acme"]}`)
	for _, x := range []struct {
		who  string
		want int64
	}{{"", 5}, {"", 10}, {`,"execution":"` + strings.TrimPrefix(spent, "/v1/executions/") + `"`, 5}} {
		if r := into[apiv1.Raised](t, a.as("operator", "POST", acme+":raise",
			`{"amounts":{"tokens":5,"other":1}`+x.who+`}`, 200)); r.Raised["tokens"] != x.want || len(r.Raised) != 1 {
			t.Errorf("%+v", r)
		}
	}
	if b := into[admission.GateRecord](t, a.as("viewer", "GET", acme, "", 200)); b.Raised["tokens"] != 10 {
		t.Errorf("%+v", b.Raised)
	}
	a.as("operator", "POST", acme+":raise", `{"amounts":{"tokens":5},"execution":"x"}`, 400)
	a.as("operator", "POST", acme+":raise", `{"amounts":{"tokens":-5}}`, 400)
	a.as("producer", "POST", acme+":raise", `{"amounts":{"tokens":5}}`, 403)
	if r := into[apiv1.Returned](t, a.as("operator", "POST", acme+":refund",
		`{"execution":"`+strings.TrimPrefix(spent, "/v1/executions/")+`"}`, 200)); r.Returned {
		t.Errorf("%+v", r)
	}
	a.as("operator", "POST", acme+":refund", `{"execution":"x"}`, 400)
	const used = `{"key":"invoice-17","amounts":{"tokens":9}}`
	for _, again := range []bool{false, true} {
		r := into[admission.Reported](t, a.as("operator", "POST", acme+":report", used, 200))
		if !r.Applied || r.Replayed != again {
			t.Errorf("%+v, again %v", r, again)
		}
	}
	a.as("operator", "POST", acme+":report", `{"key":"k","amounts":{"tokens":1},"execution":"x"}`, 400)
	a.as("operator", "POST", acme+":report", `{"amounts":{"tokens":1}}`, 400)
	p := into[apiv1.Period](t, a.as("operator", "POST", acme+":reset", `{"move":true}`, 200))
	if p.Period != 1 || p.Left != 0 {
		t.Errorf("%+v", p)
	}
	if l := into[admission.GateRecord](t, a.as("viewer", "GET", "/v1/limits/tenant-7?concurrency=2", "",
		200)); l.Concurrency != 2 || l.Held != 0 {
		t.Errorf("%+v", l)
	}
	a.as("viewer", "GET", "/v1/limits/tenant-7", "", 400)
	if l := into[gateList](t, a.as("viewer", "GET", "/v1/gates", "", 200)); !slices.ContainsFunc(l.Items,
		func(b admission.GateRecord) bool { return b.Name == "acme" && b.Used["tokens"] == 0 && b.Period == 1 }) {
		t.Errorf("%+v", l)
	}
	if b := into[admission.GateRecord](t, a.as("viewer", "GET", acme, "", 200)); len(b.Audit) != 7 {
		t.Errorf("%+v", b)
	}

	a.as("operator", "POST", acme+":report", `{"key":"r1","amounts":{"tokens":1}}`, 200)
	a.as("viewer", "GET", "/v1/limits/tenant?concurrency=3", "", 200)

	const llm = "/v1/gates/llm"
	q := into[admission.GateRecord](t, a.as("operator", "PUT", llm, `{"concurrency":3,"rate":5,"window_ms":1000}`, 200))
	if q.Concurrency != 3 || q.Rate != 5 || q.Window != flowfabric.Millis(time.Second) {
		t.Errorf("%+v", q)
	}
	a.as("operator", "PUT", llm, `{"rate":3}`, 400)
	a.as("operator", "PUT", llm, `{"concurrency":4,"revision":`+num(q.Revision)+`}`, 200)
	if l := into[gateList](t, a.as("viewer", "GET", "/v1/gates", "", 200)); !slices.ContainsFunc(l.Items,
		func(g admission.GateRecord) bool { return g.Name == "llm" && g.Concurrency == 4 && g.Rate == 0 }) {
		t.Errorf("%+v", l)
	}
	a.as("viewer", "GET", llm, "", 200)
	a.as("viewer", "GET", "/v1/gates/none", "", 404)

	// What is there is answered as it is, and what is new is made.
	if q := into[admission.GateRecord](t, a.as("operator", "POST", llm+":ensure", `{"concurrency":9}`,
		200)); q.Concurrency != 4 {
		t.Errorf("%+v", q)
	}
	if b := into[admission.GateRecord](t, a.as("operator", "POST", acme+":ensure",
		`{"name":"acme","limits":{"tokens":{"hard":9}}}`, 200)); b.Limits["tokens"].Hard != 20 {
		t.Errorf("%+v", b)
	}
	for i, want := range []int{201, 200} {
		g := into[admission.GateRecord](t, a.as("operator", "POST", "/v1/gates/fresh:ensure",
			`{"concurrency":9,"scope":"x","limits":{"tokens":{"hard":9}},"on_hard":"block"}`, want))
		if g.Concurrency != 9 || g.Scope != "x" || g.Limits["tokens"].Hard != 9 || g.OnHard != "block" {
			t.Errorf("%d: %+v", i, g)
		}
	}
	a.as("operator", "POST", "/v1/gates/bad:ensure", `{"limits":{"tokens":{"hard":-1}}}`, 400)
	a.as("operator", "POST", "/v1/gates/bad:ensure", `{"revision":1}`, 400)
	a.as("operator", "POST", "/v1/gates/bad:ensure", `{"concurrency":-1}`, 400)
	a.as("operator", "POST", "/v1/gates/bad:ensure", `{"concurrency":1,"name":"another"}`, 400)
	a.as("operator", "PUT", "/v1/gates/bad", `{"name":"another"}`, 400)
	a.as("producer", "POST", "/v1/gates/bad:ensure", `{}`, 403)
	a.as("blue", "POST", "/v1/gates/bad:ensure", `{}`, 403)
	a.as("operator", "DELETE", "/v1/gates/fresh", "", 204)
	a.as("operator", "DELETE", "/v1/gates/fresh", "", 404)

	a.as("operator", "POST", "/v1/gates:attach",
		`{"scope":{"namespace":"elsewhere"},"gates":["acme","llm"]}`, 204)
	a.as("operator", "POST", "/v1/gates:attach", `{"scope":{}}`, 400)
	a.as("operator", "POST", "/v1/gates:attach", `{"scope":{},"gates":["none"]}`, 404)
	a.as("viewer", "GET", "/v1/gated?busy=perhaps", "", 400)
	g := into[gatedAnswer](t, a.as("viewer", "GET", "/v1/gated", "", 200))
	if g.Busy != nil {
		t.Errorf("%+v was not asked for", g.Busy)
	}
	if len(g.Attached) != 1 || g.Attached[0].Scope.Namespace != "elsewhere" ||
		!slices.Equal(g.Attached[0].Names, []string{"acme", "llm"}) || g.Attached[0].By != "the-operator" {
		t.Errorf("%+v", g)
	}
	a.as("operator", "POST", "/v1/gates:detach", `{"scope":{"namespace":"elsewhere"}}`, 204)
	a.as("operator", "DELETE", acme, "", 204)
	a.as("operator", "DELETE", llm, "", 204)
	a.as("viewer", "GET", acme, "", 404)
	for _, path := range []string{"/v1/gates", acme, llm, "/v1/gated", "/v1/doctor", "/v1/partitions",
		"/v1/token-keys"} {
		a.as("blue", "GET", path, "", 403)
	}
	a.as("blue", "PUT", acme, `{}`, 403)
	a.as("blue", "POST", "/v1/settings:plan", `{}`, 403)
	a.as("viewer", "POST", "/v1/settings:plan", `{}`, 403)
	a.as("blue", "GET", "/v1/settings", "", 403)
	a.as("viewer", "GET", "/v1/settings", "", 403)
	if f := into[settingsFile](t, a.as("operator", "GET", "/v1/settings", "", 200)); f.Settings.Index == nil {
		t.Errorf("%+v", f)
	}
	a.as("operator", "POST", "/v1/settings:plan", `{"index":{"tags":["who.else"]}}`, 403)
	a.as("operator", "POST", "/v1/settings:plan", `{"prune":true}`, 400)
	if p := into[settingsPlan](t, a.as("operator", "POST", "/v1/settings:plan",
		`{"gates":{"new":{"concurrency":1}}}`, 200)); len(p.Changes) != 1 || p.Changes[0].Action != "create" {
		t.Errorf("%+v", p)
	}
	a.as("viewer", "GET", "/v1/gates/new", "", 404)
	a.as("blue", "POST", "/v1/gates:attach", `{}`, 403)
	a.as("blue", "POST", "/v1/partitions/1:freeze", `{}`, 403)
	a.as("blue", "POST", "/v1/token-keys:rotate", `{"kid":"k1"}`, 403)

	a.as("operator", "POST", "/v1/partitions/3:freeze", `{}`, 403)
	a.as("admin", "POST", "/v1/partitions/x:freeze", `{}`, 400)
	a.as("admin", "POST", "/v1/partitions/9:freeze", `{}`, 400)
	a.as("admin", "POST", "/v1/partitions/3:freeze", `{"reason":"it moves"}`, 204)
	l := into[partitionList](t, a.as("viewer", "GET", "/v1/partitions", "", 200))
	if len(l.Items) != 4 || !l.Items[3].Frozen || l.Items[3].FrozenReason != "it moves (by the-admin)" ||
		l.Items[0].Frozen {
		t.Errorf("%+v", l)
	}
	a.as("admin", "POST", "/v1/partitions/3:thaw", `{"reason":"it has moved"}`, 204)
	testwait.Progress(t, "the partition's time is kept again", func() (bool, any) {
		c := into[doctor.Checkup](t, a.as("viewer", "GET", "/v1/doctor", "", 200))
		return c.Healthy && len(c.Checks) > 0, fmt.Sprint(c.Checks)
	})

	if l := into[tokenKeyList](t, a.as("viewer", "GET", "/v1/token-keys", "", 200)); len(l.Items) != 4 ||
		l.Items[0].Current != "k1" || len(l.Items[0].Keys) != 1 {
		t.Errorf("%+v", l)
	}
	if l := into[rotatedList](t, a.as("admin", "POST", "/v1/token-keys:rotate", `{"kid":"k1"}`, 200)); len(l.Items) !=
		4 || !l.Items[0].Noop {
		t.Errorf("%+v", l)
	}
	a.as("admin", "POST", "/v1/token-keys:rotate", `{"kid":"k2"}`, 400)

	ask := a.submit(`{"kind":"asks"}`)
	a.until(ask, "suspended")
	a.as("operator", "POST", ask+":resume", `{"reason":"never mind"}`, 204)
	a.until(ask, "failed")

	open := flow.New("open", flow.Unsealed())
	flow.Add(open, "only", handler.Define[int, int]("nobody"), 1)
	made, err := client.SubmitFlow(t.Context(), a.client, open)
	must.No(t, err)
	path := "/v1/flows/" + made.ID().String()
	a.as("blue", "POST", path+":seal", `{}`, 404)
	a.as("operator", "POST", path+":tags", `{"set":{"a.b":"c"}}`, 204)
	a.as("operator", "POST", path+":seal", `{}`, 204)
	a.as("operator", "POST", "/v1/lanes/side:set",
		`{"state":"active","weight":5,"ageing_ms":60000,"retention_s":{"completed":3600}}`, 204)
	for _, bad := range []string{`{"completed":-1}`, `{"completed":18446744100}`, `{"failed":315360001}`,
		`{"happy":1}`} {
		a.as("operator", "POST", "/v1/lanes/side:set", `{"retention_s":`+bad+`}`, 400)
	}
}

// noted is what the audit trail says of the routes that change something. Others only add: executions, signals and
// frames say who sent them. What is in written streams is their writers' own.
var noted = map[string]string{"cancel": "cancel execution", "fork": "fork execution", "stop": "stop execution",
	"replay": "replay execution", "revoke": "revoke execution", "rewind": "rewind execution",
	"hold": "hold execution", "unhold": "unhold execution", "resume": "resume execution",
	"runNow": "set delay execution", "setDelay": "set delay execution", "setPriority": "set priority execution",
	"setTags": "set tags execution", "purge": "purge execution", "answerWaitpoint": "answer execution",
	"bulk": "cancel executions", "cancelFlow": "cancel flow", "replayFlow": "replay flow", "sealFlow": "seal flow",
	"putTrigger": "put trigger", "removeTrigger": "remove trigger", "publishEvent": "",
	"setIndex":    "set index store",
	"setFlowTags": "set tags flow", "setLane": "set lane", "markWorkerDead": "mark dead worker",
	"putSchedule": "put schedule", "syncSchedules": "put schedule", "pauseSchedule": "pause schedule",
	"editSchedule": "put schedule", "runSchedule": "run schedule", "backfillSchedule": "backfill schedule",
	"resumeSchedule": "resume schedule", "removeSchedule": "remove schedule", "putGate": "create gate",
	"ensureGate": "create gate", "removeGate": "remove gate", "adjustUsage": "adjust gate",
	"raiseLimits": "raise gate",
	"resetUsage":  "reset gate", "refundUsage": "", "reportUsage": "",
	"attachGates": "attach scope", "detachGates": "detach scope",
	// the test has nothing to refund, and one key
	"freezePartition": "freeze partition", "thawPartition": "thaw partition", "rotateTokenKeys": "",
	"planSettings": "", // which changes nothing
	"submit":       "", "submitBatch": "", "submitFlow": "", "addToFlow": "", "signal": "", "sendMessage": "",
	"createStreamToken": "", "openStream": "", "appendToStream": "", "deleteStream": ""}

// everyChangeIsNoted holds the audit trail against the routes that were called.
func (a *api) everyChangeIsNoted() {
	t := a.t
	var all []admin.Change
	for cursor := ""; ; {
		page := into[changePage](t, a.as("viewer", "GET", "/v1/trail?limit=50&cursor="+cursor, "", 200))
		all = append(all, page.Items...)
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	for _, r := range routes {
		want, known := noted[r.name]
		switch {
		case r.method == http.MethodGet || slices.Contains(r.need, Worker):
			continue
		case !known:
			t.Errorf("say what the audit trail has of %s", r.name)
		case want != "" && !slices.ContainsFunc(all, func(c admin.Change) bool {
			return c.Action+" "+c.On == want && strings.HasPrefix(c.By, "the-") &&
				strings.HasPrefix(c.From, "api 127.0.0.1") && c.Text != "" &&
				// which is only there by a sync
				(c.Why != "" || r.name == "answerWaitpoint" || r.name == "syncSchedules" && c.Name == "p")
		}):
			t.Errorf("%s: the audit trail has no %q by a token with a reason", r.name, want)
		}
	}
	if page := into[changePage](t, a.as("viewer", "GET", "/v1/trail?by=the-admin&on=partition&name=3", "", 200)); len(
		page.Items) != 2 || page.Items[0].Why != "it has moved" {
		t.Errorf("%+v", page)
	}
	if page := into[changePage](t, a.as("blue", "GET", "/v1/trail", "", 200)); len(page.Items) != 0 {
		t.Errorf("%+v", page)
	}
	if page := into[changePage](t, a.as("viewer", "GET", "/v1/trail?namespace=default&on=execution", "", 200)); len(
		page.Items) < 10 {
		t.Errorf("%+v", page)
	}
	a.as("blue", "GET", "/v1/trail?namespace=default", "", 403)
}

// A token that is bound to a namespace sees in the audit trail what was changed in it, by whomever.
func TestTrailOfANamespace(t *testing.T) {
	a := newAPI(t)
	blue := a.submit(`{"kind":"echo","namespace":"blue","delay_ms":3600000}`)
	other := a.submit(`{"kind":"echo","delay_ms":3600000}`)
	for _, path := range []string{blue, other} {
		a.as("operator", "POST", path+":cancel", `{"reason":"not now"}`, 204)
	}
	page := into[changePage](t, a.as("blue", "GET", "/v1/trail", "", 200))
	if len(page.Items) != 1 || page.Items[0].Name != strings.TrimPrefix(blue, "/v1/executions/") ||
		page.Items[0].By != "the-operator" || page.Items[0].Why != "not now" {
		t.Errorf("%+v", page)
	}
	h := into[history](t, a.as("viewer", "GET", blue+"/history", "", 200))
	if last := h.Items[len(h.Items)-2]; last.Kind != "cancelled" || last.From != "api 127.0.0.1" {
		t.Errorf("%+v", h)
	}
}

// The trail says which assistant made a change: as it calls itself, 64 bytes of it, before the address.
func TestTheTrailNamesAssistants(t *testing.T) {
	a := newAPI(t)
	for name, want := range map[string]string{"": "api 127.0.0.1",
		" copilot 7.1 ":               "assistant copilot 7.1, api 127.0.0.1",
		strings.Repeat("é", 40):       "assistant " + strings.Repeat("é", 32) + ", api 127.0.0.1",
		"x" + strings.Repeat("é", 40): "assistant x" + strings.Repeat("é", 31) + ", api 127.0.0.1"} {
		path := a.submit(`{"kind":"echo","delay_ms":3600000}`)
		a.do(request{role: "operator", method: "POST", path: path + ":cancel", body: "{}",
			header: http.Header{"X-Assistant": {name}}})
		page := into[changePage](t, a.as("viewer", "GET",
			"/v1/trail?on=execution&name="+strings.TrimPrefix(path, "/v1/executions/"), "", 200))
		if len(page.Items) != 1 || page.Items[0].From != want {
			t.Errorf("%+v, want %q", page.Items, want)
		}
	}
}

func num(n uint64) string { return strconv.FormatUint(n, 10) }
