package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// What a budget or quota keeps from running is shown where one looks for it, in words, and only there.
func TestBlockedWork(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	ok := func(line string) string {
		t.Helper()
		code, out, errOut := w.run(line, "")
		if code != exitOK {
			t.Fatalf("%s: exit %d, %s", line, code, errOut)
		}
		return out
	}
	ok("budget create acme --limit tokens=10")
	ok("budget create other --limit tokens=10")
	ok("quota create gpu --cap 1")
	ok("budget report acme tokens=10 --key all")
	id, err := flowfabric.ParseExecutionID(
		strings.TrimSpace(ok("submit report --key costly --budget acme --quota gpu")))
	must.No(t, err)
	w.close(id, "budget acme tokens 10 10")
	for line, want := range map[string]string{
		"budget show acme":                   "budget acme: 10 used of 10 tokens",
		"gate ls":                            "budget acme: 10 used of 10 tokens",
		"budget show acme --json":            `"reason":{"code":"budget","budget":"acme","dimension":"tokens","used":10,"limit":10,`,
		"budget ls --json":                   `"exhausted":["tokens"]`,
		"gate ls --json":                     `"kind":"report","budgets":["acme"],"quotas":["gpu"],"until":`,
		"show " + id.String():                "waiting_budget (budget acme: 10 used of 10 tokens)",
		"ls --state waiting_budget --json":   `"state":"waiting_budget"`,
		"ls --state waiting_budget":          id.String(),
		"show --json " + id.String():         `"blocking_reason":"waiting_budget"`,
		"show --json --steps " + id.String(): `"closed":{"code":"budget","budget":"acme"`,
	} {
		if out := ok(line); !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}
	for _, line := range []string{"budget show other", "quota show gpu"} {
		if out := ok(line); strings.Contains(out, "keeps from running") {
			t.Errorf("%s: %s", line, out)
		}
	}
	// nobody waits for it by the server's list, but nothing is lost: it opens by itself
	ok("budget update acme --limit tokens=20")
	var v admin.GatesInfo
	if err := json.Unmarshal([]byte(ok("gate ls --json")), &v); err != nil || len(v.Closed) != 1 ||
		v.Closed[0].Partition != id.Partition() {
		t.Errorf("%+v, %v", v, err)
	}
}

// close has a worker of one's own asked for an execution, and refuse it.
func (w *env) close(id flowfabric.ExecutionID, why string) {
	w.Helper()
	must := func(err error) {
		w.Helper()
		must.No(w, err)
	}
	q := engine.ClaimRequest{Partition: id.Partition(), Session: engine.NewSessionID("w3"), Number: 1, TTL: time.Hour,
		Max: 10, Gates: true}
	table, err := w.engine.ClaimNext(w.ctx, q)
	must(err)
	for _, r := range table.Routes {
		q.Subscription, err = w.engine.SetSubscription(w.ctx, id.Partition(),
			engine.Subscription{Classes: []uint64{r.ID}})
		must(err)
	}
	q.Table = table.Table
	reply, err := w.engine.ClaimNext(w.ctx, q)
	must(err)
	if len(reply.Grants) != 1 {
		w.Fatalf("%+v", reply)
	}
	must(w.engine.ReleaseGrants(w.ctx, id.Partition(), q.Session, []engine.GrantReturn{{Grant: reply.Grants[0]}},
		[]engine.RouteClosing{{Route: reply.Grants[0].Route, For: time.Hour, Why: why}}))
}

// Reasons are what is agreed on with the worker; one that is not known is shown as it is.
func TestReasonWords(t *testing.T) {
	for why, want := range map[string]struct {
		json string
		text string
	}{
		"budget acme tokens 10 20": {`{"code":"budget","budget":"acme","dimension":"tokens","used":10,"limit":20}`,
			"budget acme: 10 used of 20 tokens"},
		"budget acme tokens 10 20 15": {
			`{"code":"budget","budget":"acme","dimension":"tokens","used":10,"limit":20,"refused":15}`,
			"budget acme: 10 used of 20 tokens, 15 do not fit"},
		"quota gpu cap":               {`{"code":"cap","quota":"gpu"}`, "quota gpu: all slots are taken"},
		"quota mail rate":             {`{"code":"rate","quota":"mail"}`, "quota mail: too many starts in its window"},
		"budget_not_found acme":       {`{"code":"budget_not_found","budget":"acme"}`, "there is no budget acme"},
		"quota_policy_not_found mail": {`{"code":"quota_policy_not_found","quota":"mail"}`, "there is no quota mail"},
		"something new":               {`{"code":"other"}`, "something new"},
		"":                            {`{"code":"other"}`, ""},
	} {
		c := gatetext.WhyClosed(why)
		if c.Text != want.text || c.String() != want.text {
			t.Errorf("%q: %q, %s, want %s", why, c.Text, c, want.text)
		}
		c.Text = ""
		if got, err := json.Marshal(c); err != nil || string(got) != strings.TrimSuffix(want.json, "}")+`,"text":""}` {
			t.Errorf("%q: %s, %v", why, got, err)
		}
	}
}

// Work of one lane and kind that waits for the same is one line, however many partitions it is in.
func TestClosedTable(t *testing.T) {
	soon, later := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	route := func(kind string) flowfabric.Route {
		return flowfabric.Route{Namespace: "default", Lane: "batch", Kind: kind}
	}
	var p page
	closedTable(&p, "waits:", []admin.ClosedRoute{
		{Partition: 0, Route: route("report"), Waiting: 5, Until: later,
			Reason: gatetext.WhyClosed("budget acme tokens 10 10")},
		{Partition: 3, Route: route("report"), Waiting: 7, Until: soon,
			Reason: gatetext.WhyClosed("budget acme tokens 12 10")},
		{Partition: 3, Route: route("report"), Waiting: 1, Until: later,
			Reason: gatetext.WhyClosed("budget acme calls 2 2")},
		{Partition: 1, Route: route("other"), Waiting: 2,
			Until: time.Now().Add(-time.Second), Reason: gatetext.WhyClosed("quota gpu cap")},
	})
	want := [][]string{
		{"default/batch", "report", "12", "2", instant(soon), "budget acme: 12 used of 10 tokens"},
		{"default/batch", "report", "1", "1", instant(later), "budget acme: 2 used of 2 calls"},
		{"default/batch", "other", "2", "1", "due", "quota gpu: all slots are taken"},
	}
	lines := strings.Split(strings.TrimSpace(p.String()), "\n")
	if len(lines) != 2+len(want) {
		t.Fatal(p.String())
	}
	for i, row := range want {
		if got := strings.Join(strings.Fields(lines[i+2]), " "); got != strings.Join(row, " ") {
			t.Errorf("got %q, want %q", got, row)
		}
	}
}

// What an audit log says is told in words.
func TestAuditLogWords(t *testing.T) {
	period := uint64(3)
	for want, e := range map[string]admission.AuditEntry{
		"limits cost=500 tokens=10 (soft 8)": {Budget: &admission.Budget{Limits: map[string]admission.Limit{
			"cost": {Hard: 500}, "tokens": {Hard: 10, Soft: 8}}}},
		"limits tokens unlimited (soft 8)": {Budget: &admission.Budget{Limits: map[string]admission.Limit{
			"tokens": {Soft: 8}}}},
		"no limits": {Budget: &admission.Budget{}},
		"4 at once": {Quota: &admission.Quota{Cap: 4}},
		"no limit":  {Quota: &admission.Quota{}},
		"100 in 1m00s, 5 at once": {Quota: &admission.Quota{Rate: 100,
			Window: flowfabric.Millis(time.Minute), Cap: 5}},
		"period 3, used cost=1 tokens=5": {Period: &period, Amounts: map[string]int64{"cost": 1, "tokens": 5}},
		"period 3, used nothing":         {Period: &period, Amounts: map[string]int64{}},
		"tokens=-5 counted twice":        {Amounts: map[string]int64{"tokens": -5}, Reason: "counted twice"},
		"some-id failed tokens=5": {Execution: "some-id", Outcome: "failed",
			Amounts: map[string]int64{"tokens": 5}},
		"tokens is at 9, its soft limit is 8": {Breach: &admission.Breach{Dimension: "tokens", Used: 9, Limit: 8}},
		"what is this":                        {What: "adjusted", Detail: "what is this"},
	} {
		if got := auditWords(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// One that is attached is removed only by force.
func TestRemoveAttached(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	for _, x := range []struct {
		line, err string
		code      int
	}{
		{"budget create acme --limit tokens=10", "", exitOK},
		{"gate attach everything --budget acme", "", exitOK},
		{"gate attach lane:batch --budget acme", "", exitOK},
		{"budget rm acme", `remove budget "acme": it is attached to everything, lane:default/batch, and`, exitRefused},
		{"budget rm acme --force", "", exitOK},
		{"budget rm acme", "no budget has this name", exitNotFound},
		{"gate detach everything --all", "", exitOK},
		{"gate detach lane:batch --all", "", exitOK},
		{"budget rm acme", "no budget has this name", exitNotFound},
	} {
		if code, _, errOut := w.run(x.line, ""); code != x.code || !strings.Contains(errOut, x.err) {
			t.Errorf("%s: exit %d, %s", x.line, code, errOut)
		}
	}
}
