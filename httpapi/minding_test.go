package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// minding is a member of a body: leases, each with the stop that was heard.
func minding(leasesAndStops ...string) string {
	var list []string
	for i := 0; i < len(leasesAndStops); i += 2 {
		list = append(list, `{"lease":"`+leasesAndStops[i]+`","stopping":"`+leasesAndStops[i+1]+`"}`)
	}
	return `"leases":[` + strings.Join(list, ",") + `]`
}

// A claim that waits for work tells at once that an execution was taken from its worker, or stopped.
func TestClaimMindsLeases(t *testing.T) {
	a := newAPI(t)
	r, stranger := a.remote("worker", "remote"), a.remote("worker", "remote")
	for range 4 {
		a.submit(`{"kind":"remote"}`)
	}
	x := r.take(3)
	foreign := stranger.one()
	path := func(x claimed) string { return "/v1/executions/" + x.ID }

	// Nothing happens: there is nothing to tell.
	all := minding(x[0].Lease, "", x[1].Lease, "", x[2].Lease, "")
	if g := into[claimAnswer](t, r.call("claim", "", `"wait_ms":0,`+all, 200)); g.Leases != nil || g.Executions == nil {
		t.Errorf("%+v", g)
	}
	// What happens while it waits is told, with and without room for work.
	for i, members := range []string{`"wait_ms":30000,`, `"wait_ms":30000,"max":0,`} {
		var g claimAnswer
		var waiting conc.WaitGroup
		began := time.Now()
		waiting.Go(func() { g = into[claimAnswer](t, r.call("claim", "", members+all, 200)) })
		testwait.Until(t, "the claim listens", func() bool { return a.h.gateway.Watched() == 1 })
		if i == 0 {
			a.as("producer", "POST", path(x[0])+":stop", `{}`, 200)
		} else {
			a.as("producer", "POST", path(x[1])+":cancel", `{}`, 204)
		}
		waiting.Wait()
		if took := time.Since(began); took > 15*time.Second { // timed: half of what the claim waits
			t.Errorf("it was told after %v", took)
		}
		if len(g.Executions) != 0 || len(g.Leases) != 1 {
			t.Fatalf("%d: %+v", i, g)
		}
		switch l := g.Leases[0]; i {
		case 0:
			if l.Lease != x[0].Lease || !l.Held || l.Stopping == "" || l.Code != "" {
				t.Errorf("%+v", l)
			}
			all = minding(x[0].Lease, l.Stopping, x[1].Lease, "", x[2].Lease, "")
		case 1:
			if l.Lease != x[1].Lease || l.Held || l.Stopping != "" || l.Code != "cancelled" {
				t.Errorf("%+v", l)
			}
		}
	}
	// What happened before is told without a wait; a stop that was heard is not.
	g := into[claimAnswer](t, r.call("claim", "", `"wait_ms":30000,`+all, 200))
	if len(g.Leases) != 1 || g.Leases[0].Lease != x[1].Lease {
		t.Errorf("%+v", g)
	}
	g = into[claimAnswer](t, r.call("claim", "", `"wait_ms":30000,`+minding(foreign.Lease, ""), 200))
	if len(g.Leases) != 1 || g.Leases[0].Held || g.Leases[0].Code != "stale_lease" {
		t.Errorf("another session's: %+v", g)
	}
	// Work that comes ends the wait as ever.
	a.submit(`{"kind":"remote"}`)
	g = into[claimAnswer](t, r.call("claim", "", `"wait_ms":30000,`+minding(x[2].Lease, ""), 200))
	if len(g.Executions) != 1 || g.Leases != nil {
		t.Errorf("%+v", g)
	}
	for field, members := range map[string]string{
		"/leases/0/lease": minding("nonsense", ""),
		"/leases/1/lease": minding(x[2].Lease, "", x[2].Lease, ""),
		"/leases":         minding(strings.Split(strings.Repeat(x[2].Lease+",,", 1001), ",")[:2002]...),
	} {
		if p := into[problem](t, r.call("claim", "", members, 400)); p.Field != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
	if n := a.h.gateway.Watched(); n != 0 {
		t.Errorf("%d claims that have ended still listen", n)
	}
}

// A claim renews the leases that it minds.
func TestClaimRenews(t *testing.T) {
	a := newAPI(t)
	r := a.open("worker", `{"kinds":["remote"],"lease_ms":2000}`)
	a.submit(`{"kind":"remote"}`)
	x := r.one()
	until := time.Now().Add(3 * time.Second) // timed: longer than the lease
	for time.Now().Before(until) {
		if g := into[claimAnswer](t, r.call("claim", "", `"max":0,"wait_ms":300,`+minding(x.Lease, ""),
			200)); g.Leases != nil {
			t.Fatalf("%+v", g)
		}
	}
	r.call("complete", x.Lease, "", 200)
}
