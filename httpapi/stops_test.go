package httpapi

import "testing"

// A stop leaves the lease to its worker, which hears of it when it renews, by the answer to a step, and with a later
// claim, until a step heeds it.
func TestRemoteWorkerHearsStops(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	if x.Stopping != "" {
		t.Errorf("nobody has stopped %+v", x)
	}
	told := func(lease string) string {
		t.Helper()
		first := r.renew(lease)[0]
		if !first.Held || first.Stopping == "" || first.Code != "" {
			t.Errorf("%+v, want it held and stopped", first)
		}
		if again := r.renew(lease)[0]; again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
		return first.Stopping
	}
	a.as("producer", "POST", path+":stop", `{"reason":"wrong"}`, 200)
	stop := told(x.Lease)
	step := func(members string) stepAnswer {
		t.Helper()
		return into[stepAnswer](t, r.call("step", x.Lease, members, 200))
	}
	if s := step(`"name":"look","value":1`); s.Already || s.Stopping != stop {
		t.Errorf("%+v", s)
	}
	r.call("release", x.Lease, "", 200)
	if x = r.one(); x.Stopping != stop {
		t.Errorf("the next run is not told: %+v", x)
	}
	if p := into[problem](t, r.call("step", x.Lease, `"name":"said","value":"all","turn":"over"`,
		409)); p.Code != "turn_stopped" {
		t.Errorf("%+v", p)
	}
	if s := step(`"name":"said","value":"half","turn":"stopped"`); s.Already || s.Stopping != stop {
		t.Errorf("%+v", s)
	}
	if s := step(`"name":"said","value":"half","turn":"stopped"`); !s.Already || s.Stopping != "" {
		t.Errorf("a repeat: %+v", s)
	}
	if p := into[problem](t, a.as("producer", "POST", path+":stop", `{}`, 409)); p.Code != "nothing_to_stop" {
		t.Errorf("the turn is over: %+v", p)
	}
	if s := step(`"name":"heard","value":"another question","turn":"begin"`); s.Stopping != "" {
		t.Errorf("%+v", s)
	}
	a.as("producer", "POST", path+":stop", `{}`, 200)
	if another := told(x.Lease); another == stop {
		t.Errorf("the second stop is told as %s, which was heeded", another)
	}
	if p := into[problem](t, r.call("step", x.Lease, `"name":"n","turn":"ends"`, 400)); p.Field != "/turn" {
		t.Errorf("%+v", p)
	}
	r.call("complete", x.Lease, "", 200)
}
