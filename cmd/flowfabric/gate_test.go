package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// What a gate keeps from running is shown where one looks for it, in words, and only there.
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
	ok("gate create acme --limit tokens=10")
	ok("gate create other --limit tokens=10")
	ok("gate create gpu --concurrency 1")
	ok("gate report acme tokens=10 --key all")
	id, err := flowfabric.ParseExecutionID(
		strings.TrimSpace(ok("submit report --key costly --gate acme --gate gpu")))
	must.No(t, err)
	w.close(id, "gate acme amount tokens 10 10")
	for line, want := range map[string]string{
		"gate show acme":                     "gate acme: 10 used of 10 tokens",
		"gate ls":                            "gate acme: 10 used of 10 tokens",
		"gate show acme --json":              `"code":"amount","gate":"acme","dimension":"tokens","used":10,"limit":10,`,
		"gate show acme  --json":             `"exhausted":["tokens"]`,
		"gate ls --json":                     `"kind":"report","gates":["acme","gpu"],"until":`,
		"show " + id.String():                "waiting_gate (gate acme: 10 used of 10 tokens)",
		"ls --state waiting_gate --json":     `"state":"waiting_gate"`,
		"ls --state waiting_gate":            id.String(),
		"show --json " + id.String():         `"blocking_reason":"waiting_amount"`,
		"show --json --steps " + id.String(): `"closed":{"code":"amount","gate":"acme"`,
	} {
		if out := ok(line); !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}
	for _, line := range []string{"gate show other", "gate show gpu"} {
		if out := ok(line); strings.Contains(out, "keeps from running") {
			t.Errorf("%s: %s", line, out)
		}
	}
	// nobody waits for it by the server's list, but nothing is lost: it opens by itself
	ok("gate update acme --limit tokens=20")
	var v admin.Gated
	if err := json.Unmarshal([]byte(ok("gate ls --json")), &v); err != nil || len(v.Closed) != 1 ||
		v.Closed[0].Partition != id.Partition() {
		t.Errorf("%+v, %v", v, err)
	}
}

// Of a service there is shown who waits for a call, and where.
func TestServiceIsShown(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	ok := func(line string) string {
		t.Helper()
		code, out, errOut := w.run(line, "")
		if code != exitOK {
			t.Fatalf("%s: exit %d, %s", line, code, errOut)
		}
		return out
	}
	ok("gate create openai/gpt-5 --per-minute tokens=60000 --calls 20 --weight acme=3")
	e, number := w.engine, uint64(0)
	ask := func(n int64) engine.Turn {
		t.Helper()
		number++
		turn, err := e.Acquire(t.Context(), engine.ServiceCall{Service: "openai/gpt-5", Namespace: "acme",
			Fence: flowfabric.Fence{Execution: mint.ID(3), Epoch: 1}, Number: number,
			Estimate: map[string]int64{"tokens": n}})
		must.No(t, err)
		return turn
	}
	if turn := ask(60000); !turn.Admitted { // it is in debt for a minute
		t.Fatalf("%+v", turn)
	}
	if turn := ask(500); turn.Admitted || turn.Stay {
		t.Fatalf("%+v", turn)
	}
	for line, wants := range map[string][]string{
		"gate show openai/gpt-5": {"under way   1 of 20", "in line     1 execution", "weights     acme=3", "in line:",
			"acme       tokens=500", "away", "calls under way:", ", epoch 1"},
		"gate ls":        {"openai/gpt-5  service", "tokens in 1m", "calls at once"},
		"gate ls --json": {`"under_way":1`, `"waiting":1`},
	} {
		out := ok(line)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in %s", line, want, out)
			}
		}
	}
}

// What is reserved is shown beside what is used, of which it is a part.
func TestReservedAmounts(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	ok := func(line string) string {
		t.Helper()
		code, out, errOut := w.run(line, "")
		if code != exitOK {
			t.Fatalf("%s: exit %d, %s", line, code, errOut)
		}
		return out
	}
	ok("gate create acme --limit tokens=100")
	id, err := flowfabric.ParseExecutionID(strings.TrimSpace(ok("submit report --gate acme")))
	must.No(t, err)
	r, _, err := w.engine.Reserve(w.ctx, engine.Reservation{Gate: "acme", Execution: id, Epoch: 1, Number: 1,
		Since: time.Now(), Amounts: map[string]int64{"tokens": 37}})
	must.No(t, err)
	if !r.Applied {
		t.Fatalf("%+v", r)
	}
	for _, line := range []string{"gate ls", "gate show acme"} {
		out := ok(line)
		if row := regexp.MustCompile(`tokens +37 +37 +- +100 +63`); !strings.Contains(out, "RESERVED") ||
			!row.MatchString(out) {
			t.Errorf("%s: %s", line, out)
		}
		if out := ok(line + " --json"); !strings.Contains(out, `"reserved":{"tokens":37}`) {
			t.Errorf("%s: %s", line, out)
		}
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
		"gate acme amount tokens 10 20": {`{"code":"amount","gate":"acme","dimension":"tokens","used":10,"limit":20}`,
			"gate acme: 10 used of 20 tokens"},
		"gate acme amount tokens 10 20 15": {
			`{"code":"amount","gate":"acme","dimension":"tokens","used":10,"limit":20,"refused":15}`,
			"gate acme: 10 used of 20 tokens, 15 do not fit"},
		"gate gpu cap":        {`{"code":"cap","gate":"gpu"}`, "gate gpu: all slots are taken"},
		"gate mail rate":      {`{"code":"rate","gate":"mail"}`, "gate mail: too many starts in its window"},
		"gate_not_found acme": {`{"code":"gate_not_found","gate":"acme"}`, "there is no gate acme"},
		"something new":       {`{"code":"other"}`, "something new"},
		"":                    {`{"code":"other"}`, ""},
	} {
		c := gatetext.WhyClosed(why)
		if c.Text != want.text {
			t.Errorf("%q: %q, want %s", why, c.Text, want.text)
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
			Reason: gatetext.WhyClosed("gate acme amount tokens 10 10")},
		{Partition: 3, Route: route("report"), Waiting: 7, Until: soon,
			Reason: gatetext.WhyClosed("gate acme amount tokens 12 10")},
		{Partition: 3, Route: route("report"), Waiting: 1, Until: later,
			Reason: gatetext.WhyClosed("gate acme amount calls 2 2")},
		{Partition: 1, Route: route("other"), Waiting: 2,
			Until: time.Now().Add(-time.Second), Reason: gatetext.WhyClosed("gate gpu cap")},
	})
	want := [][]string{
		{"default/batch", "report", "12", "2", instant(soon), "gate acme: 12 used of 10 tokens"},
		{"default/batch", "report", "1", "1", instant(later), "gate acme: 2 used of 2 calls"},
		{"default/batch", "other", "2", "1", "due", "gate gpu: all slots are taken"},
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
		"limits cost=500 tokens=10 (soft 8)": {Gate: &admission.Gate{Limits: map[string]admission.Limit{
			"cost": {Hard: 500}, "tokens": {Hard: 10, Soft: 8}}}},
		"limits tokens unlimited (soft 8)": {Gate: &admission.Gate{Limits: map[string]admission.Limit{
			"tokens": {Soft: 8}}}},
		"no limits": {Gate: &admission.Gate{}},
		"4 at once": {Gate: &admission.Gate{Concurrency: 4}},
		"100 in 1m00s, 5 at once": {Gate: &admission.Gate{Rate: 100,
			Window: flowfabric.Millis(time.Minute), Concurrency: 5}},
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
		{"gate create acme --limit tokens=10", "", exitOK},
		{"gate attach everything acme", "", exitOK},
		{"gate attach lane:batch acme", "", exitOK},
		{"gate rm acme", `remove gate "acme": it is attached to everything, lane:default/batch, and`, exitRefused},
		{"gate rm acme --force", "", exitOK},
		{"gate rm acme", "no gate has this name", exitNotFound},
		{"gate detach everything --all", "", exitOK},
		{"gate detach lane:batch --all", "", exitOK},
		{"gate rm acme", "no gate has this name", exitNotFound},
	} {
		if code, _, errOut := w.run(x.line, ""); code != x.code || !strings.Contains(errOut, x.err) {
			t.Errorf("%s: exit %d, %s", x.line, code, errOut)
		}
	}
}
