package httpapi

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/failed"
)

// failureGroups asks for groups of failures, and uses the key of the one of an execution that failed with "no ink" as
// the filter of a list and of a bulk action.
func (a *api) failureGroups(id flowfabric.ExecutionID) {
	t := a.t
	groups := into[apiv1.Failures](t, a.as("viewer", "GET", "/v1/failures?kind=fails", "", 200))
	if len(groups.Items) != 1 {
		t.Fatalf("%+v", groups)
	}
	g := groups.Items[0]
	if g.Kind != "fails" || g.Category != "handler_error" || g.Shape != "no ink" || g.Count != 1 || groups.More ||
		len(g.Examples) != 1 || g.Examples[0] != id || g.FirstAt.IsZero() || !g.LastAt.Equal(g.FirstAt) ||
		!groups.From.Equal(g.FirstAt) {
		t.Errorf("%+v", groups)
	}
	if g := into[apiv1.Failures](t, a.as("viewer", "GET", "/v1/failures?lane=other", "", 200)); len(g.Items) != 0 ||
		g.Items == nil {
		t.Errorf("%+v", g)
	}
	until := url.QueryEscape(g.FirstAt.Add(-time.Second).Format(time.RFC3339Nano))
	if g := into[apiv1.Failures](t, a.as("viewer", "GET", "/v1/failures?until="+until, "", 200)); len(g.Items) != 0 {
		t.Errorf("%+v", g)
	}
	for shape, want := range map[string]int{g.Key: 1, "no ink": 1, "NO INK": 0, failed.NoMessage: 0,
		failed.Key("fails", "permanent", "no ink"): 0} {
		path := "/v1/executions?shape=" + url.QueryEscape(shape)
		if page := into[executionPage](t, a.as("viewer", "GET", path, "", 200)); len(page.Items) != want {
			t.Errorf("%s: %+v", path, page)
		}
		path = "/v1/executions:bulk?shape=" + url.QueryEscape(shape)
		if r := into[admin.BulkResult](t, a.as("operator", "POST", path, `{"action":"replay","dry_run":true}`,
			200)); r.Matched != want {
			t.Errorf("%s: %+v", path, r)
		}
	}
	long := url.QueryEscape(string(make([]rune, failed.MaxShape+1)))
	for _, path := range []string{"/v1/executions?shape=", "/v1/executions?shape=" + long, "/v1/failures?shape=x",
		"/v1/failures?since=soon", "/v1/executions?shape=a&shape=b"} {
		a.as("viewer", "GET", path, "", 400)
	}
}

// A group of many has one shape, its key replays exactly its own, and the others stay as they ended.
func TestAGroupOfFailuresIsReplayed(t *testing.T) {
	a := newAPI(t)
	var paths []string
	for n := range 5 {
		paths = append(paths, a.submit(`{"kind":"fails","input":"order `+strconv.Itoa(n*n*7)+`: no stock"}`))
	}
	other := a.submit(`{"kind":"fails","input":"out of paper"}`)
	for _, path := range append(paths, other) {
		a.until(path, "failed")
	}
	groups := into[apiv1.Failures](t, a.as("viewer", "GET", "/v1/failures", "", 200)).Items
	if len(groups) != 2 || groups[0].Shape != "order <n>: no stock" || groups[0].Count != 5 ||
		len(groups[0].Examples) != 3 || groups[1].Shape != "out of paper" || groups[1].Count != 1 {
		t.Fatalf("%+v", groups)
	}
	r := into[admin.BulkResult](t, a.as("operator", "POST", "/v1/executions:bulk?shape="+groups[0].Key,
		`{"action":"replay","reason":"more stock"}`, 200))
	if r.Matched != 5 || r.Done != 5 {
		t.Errorf("%+v", r)
	}
	for _, path := range paths {
		a.until(path, "failed")
		if s := into[flowfabric.Snapshot](t, a.as("viewer", "GET", path, "", 200)); s.Attempts != 2 {
			t.Errorf("%s has %d attempts", path, s.Attempts)
		}
	}
	if s := into[flowfabric.Snapshot](t, a.as("viewer", "GET", other, "", 200)); s.Attempts != 1 {
		t.Errorf("the other one has %d attempts", s.Attempts)
	}
	a.as("producer", "POST", "/v1/executions:bulk?shape="+groups[0].Key, `{"action":"replay"}`, 403)
}
