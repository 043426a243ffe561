package httpapi

import (
	"net/url"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// times are those of the last hour, of what this process has measured so far.
func (a *api) times(query string) apiv1.Times {
	a.t.Helper()
	a.h.timing.recorder.Send(a.t.Context())
	return into[apiv1.Times](a.t, a.as("viewer", "GET", "/v1/times"+query, "", 200))
}

// What workers over HTTP end is counted by kind, once, whichever way it ends, with how long it waited and ran.
func TestTimesOfWorkersOverHTTP(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	for range 3 {
		a.submit(`{"kind":"remote"}`)
	}
	rest := r.take(3)
	a.submit(`{"kind":"remote","retries":1}`)
	retried := r.one()
	r.call("complete", rest[0].Lease, `"result":1`, 200)
	r.call("complete", rest[0].Lease, `"result":1`, 200) // again
	r.call("fail", rest[1].Lease, `"message":"no","permanent":true`, 200)
	r.call("claim", "", `"max":0,`+completing(rest[2].Lease, "2"), 200)
	r.call("fail", retried.Lease, `"message":"no","retry_after_ms":0`, 200)
	second := r.one()
	r.call("progress", second.Lease, `"percent":7`, 204)
	r.call("delay", second.Lease, `"delay_ms":3600000`, 200)

	out := a.times("?by_kind=true")
	want := apiv1.TimesSum{Completed: 2, Failed: 1, Retried: 1, Other: 1}
	got := out.Total
	got.Waited, got.Ran = apiv1.Percentiles{}, apiv1.Percentiles{}
	if got != want || out.Total.Waited.Count != 4 || out.Total.Ran.Count != 4 {
		t.Errorf("%+v", out.Total)
	}
	if len(out.Kinds) != 1 || out.Kinds[0].Kind != "remote" || out.Kinds[0].TimesSum != out.Total {
		t.Errorf("%+v", out.Kinds)
	}
	if len(out.Steps) != 60 || time.Duration(out.Step) != time.Minute {
		t.Errorf("%d steps of %v", len(out.Steps), out.Step)
	}
	var sum uint64
	for _, s := range a.times("?kind=remote&step_ms=300000").Steps {
		sum += s.Completed
	}
	if sum != 2 {
		t.Errorf("the steps have %d", sum)
	}
	if all := a.times("?namespace=*"); all.Total != out.Total || all.Namespace != "*" {
		t.Errorf("of all namespaces: %+v", all)
	}
	if none := a.times("?kind=other"); none.Total != (apiv1.TimesSum{}) || none.Kind != "other" {
		t.Errorf("of a kind that never ran: %+v", none)
	}
}

// A lease proves whose an execution is. What it says of the claim counts for no namespace that is not the token's.
func TestTimesOfOtherNamespaces(t *testing.T) {
	a := newAPI(t)
	r := a.remote("blue", "remote")
	a.submit(`{"kind":"remote","namespace":"blue"}`)
	x := r.one()
	f, _ := parseLease(x.Lease)
	r.call("complete", leaseText(f, "5,default\x1fremote"), `"result":1`, 200)
	if out := a.times("?namespace=*"); out.Total.Completed != 0 {
		t.Errorf("%+v", out.Total)
	}
	a.submit(`{"kind":"remote","namespace":"blue"}`)
	r.call("complete", r.one().Lease, `"result":1`, 200)
	if out := a.times("?namespace=blue"); out.Total.Completed != 1 {
		t.Errorf("%+v", out.Total)
	}
	a.as("red", "GET", "/v1/times?namespace=blue", "", 403)
	a.as("red", "GET", "/v1/times?namespace=*", "", 403)
}

// A wrong question is refused by the name of its parameter.
func TestTimesRefusals(t *testing.T) {
	a := newAPI(t)
	now := time.Now()
	at := func(d time.Duration) string { return url.QueryEscape(now.Add(d).Format(time.RFC3339)) }
	for query, want := range map[string]string{
		"since=yesterday":                              "since",
		"since=" + at(-48*time.Hour):                   "since",
		"since=" + at(time.Hour):                       "since",
		"until=" + at(0) + "&since=" + at(time.Minute): "since",
		"step_ms=1000":                                 "step_ms",
		"step_ms=90000":                                "step_ms",
		"step_ms=86400001":                             "step_ms",
		"by_kind=maybe":                                "by_kind",
		"by_kind=true&kind=k":                          "by_kind",
	} {
		if p := into[problem](t, a.as("viewer", "GET", "/v1/times?"+query, "", 400)); p.Field != want {
			t.Errorf("%s: %+v", query, p)
		}
	}
	day := into[apiv1.Times](t, a.as("viewer", "GET", "/v1/times?since="+at(-24*time.Hour), "", 200))
	if len(day.Steps) != 60 || time.Duration(day.Step) != 24*time.Minute {
		t.Errorf("a day has %d steps of %v", len(day.Steps), day.Step)
	}
}
