package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// What a budget or quota keeps from running is shown where one looks for it, in words, and only there.
func TestBlockedWork(t *testing.T) {
	w := newWorld(t, testserver.Embedded(t))
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
	id, err := flowfabric.ParseExecutionID(strings.TrimSpace(ok("submit report --key costly --budget acme --quota gpu")))
	if err != nil {
		t.Fatal(err)
	}
	w.close(id, "budget acme tokens 10 10")
	for line, want := range map[string]string{
		"budget show acme":          "budget acme: 10 used of 10 tokens",
		"gate ls":                   "budget acme: 10 used of 10 tokens",
		"budget show acme --json":   `"reason":"budget acme tokens 10 10"`,
		"budget ls --json":          `"exhausted":["tokens"]`,
		"gate ls --json":            `"kind":"report","waiting":1`,
		"show " + quoted(id):        "budgets   acme",
		"show --json " + quoted(id): `"quotas":["gpu"]`,
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
	ok("budget update acme --limit tokens=20") // nobody waits for it by the server's book, but nothing is lost: it opens by itself
	var v gatesView
	if err := json.Unmarshal([]byte(ok("gate ls --json")), &v); err != nil || len(v.Blocked) != 1 || v.Blocked[0].Partition != id.Partition() {
		t.Errorf("%+v, %v", v, err)
	}
}

func quoted(id flowfabric.ExecutionID) string { return "'" + id.String() + "'" }

// close has a worker of one's own asked for an execution, and refuse it.
func (w *world) close(id flowfabric.ExecutionID, why string) {
	w.Helper()
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	q := engine.ClaimRequest{Partition: id.Partition(), Session: engine.NewSessionID("w3"), Number: 1, TTL: time.Hour, Max: 10, Gates: true}
	table, err := w.engine.ClaimNext(w.ctx, q)
	must(err)
	for _, r := range table.Routes {
		if len(r.Gates) > 0 {
			q.Interest, err = w.engine.SetInterest(w.ctx, id.Partition(), []uint64{r.ID})
			must(err)
		}
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
		gate flowfabric.Gate
		text string
	}{
		"budget acme tokens 10 20":    {"b:acme", "budget acme: 10 used of 20 tokens"},
		"quota gpu cap":               {"q:gpu", "quota gpu: all slots are taken"},
		"quota mail rate":             {"q:mail", "quota mail: too many starts in its window"},
		"budget_not_found acme":       {"b:acme", "there is no budget acme"},
		"quota_policy_not_found mail": {"q:mail", "there is no quota mail"},
		"something new":               {"", "something new"},
		"":                            {"", ""},
	} {
		if closer(why) != want.gate || inWords(why) != want.text {
			t.Errorf("%q: %q, %q", why, closer(why), inWords(why))
		}
	}
}

// Settings in a book are told in words, whatever text stands in front of them.
func TestBookWords(t *testing.T) {
	for _, x := range []struct{ what, detail, want string }{
		{"created", "all of it strict fail allow 86400000 0 failed h:cost,500,s:cost,0,h:tokens,10,s:tokens,8", "limits cost=500 tokens=10 (soft 8)"},
		{"changed", " 0 0 4 0", "4 at once"},
		{"changed", "mail and more 100 60000 5 0", "100 in 1m00s, 5 at once"},
		{"created", " 0 0 0 0", "no limit"},
		{"created", "a b c d e f 0 0 4 0", "4 at once"},
		{"created", " strict fail allow 0 0  ", "no limits"},
		{"period", "3 1700000000000 0 tokens=5,cost=1", "period 3, used tokens=5 cost=1"},
		{"adjusted", "tokens=-5 counted twice", "tokens=-5 counted twice"},
	} {
		if got := (bookEntry{What: x.what, Detail: x.detail}).words(); got != x.want {
			t.Errorf("%s %q: %q, want %q", x.what, x.detail, got, x.want)
		}
	}
}
