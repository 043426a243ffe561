package httpapi

import (
	"fmt"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// completing is a member of a body: leases with results.
func completing(leasesAndResults ...string) string {
	var list []string
	for i := 0; i < len(leasesAndResults); i += 2 {
		list = append(list, fmt.Sprintf(`{"lease":%q,"result":%s}`, leasesAndResults[i], leasesAndResults[i+1]))
	}
	return `"complete":[` + strings.Join(list, ",") + `]`
}

// A claim ends what was done since the last one, first, and may be repeated.
func TestClaimCompletes(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	var paths []string
	for range 5 {
		paths = append(paths, a.submit(`{"kind":"remote"}`))
	}
	x := r.take(4)
	done := completing(x[0].Lease, `"a"`, x[1].Lease, `{"n":12345678901234567890}`, x[2].Lease, "null", x[3].Lease, "1")
	first := into[claimAnswer](t, r.call("claim", "", done, 200))
	if len(first.Executions) != 1 || len(first.Completed) != 4 {
		t.Fatalf("%+v", first)
	}
	for i, c := range first.Completed {
		if !c.Held || c.Already || c.Code != "" || c.Lease != x[i].Lease {
			t.Errorf("%d: %+v", i, c)
		}
	}
	again := into[claimAnswer](t, r.call("claim", "", `"wait_ms":0,`+done, 200))
	for i, c := range again.Completed {
		if !c.Held || !c.Already || c.Code != "" {
			t.Errorf("%d again: %+v", i, c)
		}
	}
	byID := map[string]string{}
	for i, want := range []string{`"a"`, `{"n":12345678901234567890}`, "null", "1"} {
		byID["/v1/executions/"+x[i].ID] = want
	}
	for _, p := range paths {
		want, completed := byID[p]
		if !completed {
			continue
		}
		if out := ended(t, a, p); out.State != "completed" || string(*out.Output) != want {
			t.Errorf("%s: %+v, want %s", p, out, want)
		}
	}
	last := into[claimAnswer](t, r.call("claim", "", `"max":0,`+completing(first.Executions[0].Lease, "2"), 200))
	if len(last.Executions) != 0 || len(last.Completed) != 1 || !last.Completed[0].Held {
		t.Errorf("%+v", last)
	}
}

// One that has not completed is told alone, at once, and the others stand.
func TestClaimCompletesSome(t *testing.T) {
	a := newAPI(t)
	r, stranger := a.remote("worker", "remote"), a.remote("worker", "remote")
	for range 6 {
		a.submit(`{"kind":"remote"}`)
	}
	x := r.take(5)
	foreign := stranger.one()
	a.as("producer", "POST", "/v1/executions/"+x[0].ID+":cancel", `{}`, 204)
	r.call("complete", x[1].Lease, `"result":"earlier"`, 200)
	f, _ := parseLease(x[2].Lease)
	f.Execution = mint.ID(0)
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	g := into[claimAnswer](t, r.call("claim", "", `"wait_ms":30000,`+completing(x[0].Lease, "0", x[1].Lease, "1",
		x[2].Lease, "2", x[3].Lease, large, foreign.Lease, "5", leaseText(f, ""), "6"), 200))
	want := []completedAnswer{{Code: "stale_lease"}, {already: already{true}, Code: "idempotency_conflict"},
		{Held: true}, {Held: true, Code: "payload_too_large"}, {Code: "stale_lease"}, {Code: "stale_lease"}}
	if len(g.Completed) != len(want) || len(g.Executions) != 0 {
		t.Fatalf("%+v", g)
	}
	for i, c := range g.Completed {
		c.Lease = ""
		if c != want[i] {
			t.Errorf("%d: %+v, want %+v", i, c, want[i])
		}
	}
	if f := into[failAnswer](t, r.call("fail", x[3].Lease, `"message":"too much to say","permanent":true`,
		200)); f.Retry {
		t.Errorf("%+v", f)
	}
	if l := stranger.renew(foreign.Lease); !l[0].Held {
		t.Errorf("%+v", l)
	}
	for place, members := range map[string]string{
		"/complete/0/lease":  completing("nonsense", "1"),
		"/complete/1/lease":  completing(x[4].Lease, "1", x[4].Lease, "1"),
		"/complete/0/other":  `"complete":[{"lease":"` + x[4].Lease + `","other":1}]`,
		"/complete":          completing(strings.Split(strings.Repeat(x[4].Lease+",1,", 101), ",")[:202]...),
		"/max":               `"max":0`,
		"/complete/0/result": `"complete":[{"lease":"` + x[4].Lease + `","result":1,"result":2}]`,
	} {
		if p := into[problem](t, r.call("claim", "", members, 400)); p.Field != place {
			t.Errorf("%s: %+v", place, p)
		}
	}
	if p := into[problem](t, r.call("claim", "", `"complete":[{"result":1}]`, 400)); p.Code != "fence_required" {
		t.Errorf("%+v", p)
	}
	if s := into[flowfabric.Snapshot](t, a.as("viewer", "GET", "/v1/executions/"+x[4].ID, "",
		200)); s.Public != "active" {
		t.Errorf("a body that was refused has changed %+v", s)
	}
}

// Results that do not fit into one call of the server go in several.
func TestClaimCompletesMuch(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	for range 12 {
		a.submit(`{"kind":"remote"}`)
	}
	var pairs []string
	for _, x := range r.take(12) {
		pairs = append(pairs, x.Lease, `"`+strings.Repeat("x", 100<<10)+`"`)
	}
	g := into[claimAnswer](t, r.call("claim", "", `"max":0,`+completing(pairs...), 200))
	for i, c := range g.Completed {
		if !c.Held || c.Code != "" {
			t.Errorf("%d: %+v", i, c)
		}
	}
}
