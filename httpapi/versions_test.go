package httpapi

import (
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// versions are told by name.
func (a *api) versions(query string) map[string]apiv1.Version {
	a.t.Helper()
	all := map[string]apiv1.Version{}
	for _, v := range into[apiv1.Versions](a.t, a.as("viewer", "GET", "/v1/versions"+query, "", 200)).Items {
		all[v.Version] = v
	}
	return all
}

// held are the ids of what a version still holds, as paths.
func (a *api) held(version string) (paths []string) {
	a.t.Helper()
	page := into[executionPage](a.t, a.as("viewer", "GET", "/v1/executions?version="+version, "", 200))
	for _, x := range page.Items {
		paths = append(paths, "/v1/executions/"+x.ID.String())
	}
	slices.Sort(paths)
	return paths
}

// of is what an execution says of its version.
func (a *api) of(path string) string {
	a.t.Helper()
	return into[flowfabric.Snapshot](a.t, a.as("viewer", "GET", path, "", 200)).Version
}

// What a version claimed last is told until a worker of another version claims it, also when its workers are gone.
func TestVersions(t *testing.T) {
	a := newAPI(t)
	asked := a.submit(`{"kind":"asks"}`)
	a.until(asked, "suspended")
	old := a.open("worker", `{"name":"old","kinds":["remote"],"version":"2.0"}`)
	first, second := a.submit(`{"kind":"remote"}`), a.submit(`{"kind":"remote"}`)
	if got := a.of(first); got != "" {
		t.Errorf("before its claim it is of version %q", got)
	}
	taken := old.take(2)
	if got := a.of(first) + a.of(asked); got != "2.01.4" {
		t.Errorf("they are of %q", got)
	}
	v := a.versions("")
	if x := v["2.0"]; x.Workers != 1 || x.Active != 2 || x.Suspended+x.Delayed+x.Waiting != 0 || x.Since.IsZero() ||
		!slices.Equal(x.Kinds, []string{"remote"}) {
		t.Errorf("%+v", x)
	}
	if x := v["1.4"]; x.Workers != 1 || x.Active != 0 || x.Suspended != 1 || x.OldestAt.IsZero() || len(v) != 2 {
		t.Errorf("%+v of %+v", x, v)
	}
	for _, x := range taken {
		old.call("delay", x.Lease, `"delay_ms":3600000`, 200)
	}
	old.call("close", "", "", 204)
	if x := a.versions("")["2.0"]; x.Workers != 0 || x.Active != 0 || x.Delayed != 2 {
		t.Errorf("after the worker left: %+v", x)
	}
	want := []string{first, second}
	slices.Sort(want)
	if got := a.held("2.0"); !slices.Equal(got, want) {
		t.Errorf("2.0 holds %q, want %q", got, want)
	}
	if got := a.held("1.4"); !slices.Equal(got, []string{asked}) {
		t.Errorf("1.4 holds %q, want %q", got, asked)
	}
	if got := a.held("3.0"); len(got) != 0 {
		t.Errorf("3.0 holds %q", got)
	}
	r := into[admin.BulkResult](t, a.as("operator", "POST", "/v1/executions:bulk?version=2.0",
		`{"action":"run_now"}`, 200))
	if r.Matched != 2 || r.Done != 2 {
		t.Errorf("%+v", r)
	}
	if x := a.versions("")["2.0"]; x.Delayed != 0 || x.Waiting != 2 {
		t.Errorf("run now: %+v", x)
	}
	later := a.open("worker", `{"name":"new","kinds":["remote"],"version":"3.0"}`)
	later.take(2)
	if got := a.of(first); got != "3.0" {
		t.Errorf("it is of version %q, want 3.0", got)
	}
	none := a.open("worker", `{"name":"none","kinds":["unversioned"]}`)
	plain := a.submit(`{"kind":"unversioned"}`)
	none.take(1)
	if got := a.of(plain); got != "" {
		t.Errorf("without a version it is of %q", got)
	}
	v = a.versions("")
	if _, still := v["2.0"]; still || v["3.0"].Active != 2 {
		t.Errorf("drained: %+v", v)
	}
	if got := a.held("3.0"); !slices.Equal(got, want) {
		t.Errorf("3.0 holds %q, want %q", got, want)
	}
	if v := a.versions("?namespace=other"); v["1.4"].Suspended != 0 {
		t.Errorf("in another namespace: %+v", v)
	}
	for _, path := range []string{"/v1/executions?version=", "/v1/executions?version=" + strings.Repeat("v", 65),
		"/v1/versions?kind=x"} {
		a.as("viewer", "GET", path, "", 400)
	}
}

// Work that requires a version waits for a worker of it, which offers that by itself.
func TestWorkIsPinnedToAVersion(t *testing.T) {
	a := newAPI(t)
	pinned := a.submit(`{"kind":"remote","capabilities":["version:2.0"]}`)
	other := a.open("worker", `{"name":"other","kinds":["remote"],"version":"3.0"}`)
	other.nothing()
	why := into[flowfabric.Explanation](t, a.as("viewer", "GET", pinned+"/why", "", 200))
	if why.Reason != "waiting_no_capability" || !strings.Contains(why.Sentence, `It waits for version "2.0"`) {
		t.Errorf("%+v", why)
	}
	right := a.open("worker", `{"name":"right","kinds":["remote"],"version":"2.0"}`)
	if x := right.one(); "/v1/executions/"+x.ID != pinned {
		t.Errorf("%+v", x)
	}
}
