package httpapi

import (
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// terms of work mean the same wherever work comes from: a submission, a schedule, a node of a flow.
func TestTermsOfWork(t *testing.T) {
	a := newAPI(t)
	a.as("operator", "PUT", "/v1/gates/acme", `{"limits":{"tokens":{"hard":10}}}`, 200)
	a.as("operator", "PUT", "/v1/gates/whole", `{"limits":{"tokens":{"hard":10}}}`, 200)
	a.as("operator", "PUT", "/v1/gates/llm", `{"concurrency":3}`, 200)
	const charged = `"gates":["acme","llm"],"limits":[{"key":"tenant-7","concurrency":2,"rate":5,"per_ms":1000}]`
	const terms = `"lane":"side","priority":7,"deadline_ms":3600000,"timeout_ms":5000,"retries":2,"retention_s":{"failed":600},"capabilities":["gpu"],"tags":{"a.b":"c"},` + charged
	gates := []flowfabric.Gate{"acme", "llm", "@2.5.1000@tenant-7"}
	charges := func(all []flowfabric.Gate, more ...flowfabric.Gate) bool {
		want := append(slices.Clone(gates), more...)
		return slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(want)))
	}
	node := func(where, path string, more ...flowfabric.Gate) flowfabric.Snapshot {
		t.Helper()
		id, err := flowfabric.ParseExecutionID(path)
		must.No(t, err)
		s, err := a.client.Execution(id).Get(t.Context())
		must.No(t, err)
		p := s.Policy
		if s.Route.Lane != "side" || s.Priority != 7 || p.AttemptTimeout != flowfabric.Millis(5*time.Second) ||
			p.Retry.MaxRetries != 2 ||
			p.Retention.Failed != 10*time.Minute || !slices.Equal(s.Route.Capabilities, []string{"gpu"}) ||
			s.Tags["a.b"] != "c" || !charges(s.Route.Gates, more...) {
			t.Errorf("%s: %+v", where, s)
		}
		return s
	}
	node("a submission", a.submit(`{"kind":"nobody",` + terms + `}`)[len("/v1/executions/"):])

	f := into[flowMade](t,
		a.as("producer", "POST", "/v1/flows",
			`{"kind":"f","gates":["whole"],"nodes":[{"name":"a","kind":"nobody","delay_until":"2035-01-01T00:00:00Z",`+
				terms+`},
		{"name":"b","kind":"nobody","deadline_at":"2035-01-01T00:00:00Z"}]}`, 201))
	if s := node("a node", f.Nodes["a"], "whole"); s.DelayUntil.Year() != 2035 {
		t.Errorf("%+v", s)
	}
	a.as("operator", "PUT", "/v1/schedules/one", `{"every_ms":3600000,"kind":"nobody",`+terms+`}`, 200)
	a.as("operator", "PUT", "/v1/schedules/many", `{"every_ms":3600000,"kind":"f",`+charged+
		`,"nodes":[{"name":"a","kind":"nobody","retention_s":{"failed":600}}]}`, 200)
	for name, own := range map[string]bool{"one": true, "many": false} {
		s, err := admin.New(a.client).GetSchedule(t.Context(), name)
		must.No(t, err)
		i := s.Definition.Item
		if !charges(i.Gates()) || own != (i.Lane == "side" && i.Priority == 7 &&
			i.Deadline == flowfabric.Millis(time.Hour) &&
			i.Policy.AttemptTimeout == flowfabric.Millis(5*time.Second) && i.Policy.Retry.MaxRetries == 2 &&
			i.Policy.Retention.Failed ==
				10*time.Minute && slices.Equal(i.Capabilities, []string{"gpu"}) && i.Tags["a.b"] == "c") {
			t.Errorf("%s: %+v", name, i)
		}
	}
	for body, field := range map[string]string{
		`{"kind":"f","nodes":[{"name":"a","kind":"k","delay_ms":1,"delay_until":"2035-01-01T00:00:00Z"}]}`:    "/nodes/0/delay_until",
		`{"kind":"f","nodes":[{"name":"a","kind":"k","deadline_ms":1,"deadline_at":"2035-01-01T00:00:00Z"}]}`: "/nodes/0/deadline_at",
		`{"kind":"f","gates":["none"],"nodes":[{"name":"a","kind":"k"}]}`:                                     "",
		`{"kind":"f","limits":[{"key":"","concurrency":1}],"nodes":[{"name":"a","kind":"k"}]}`:                "",
		`{"kind":"f","retention_s":{"failed":600},"nodes":[{"name":"a","kind":"k"}]}`:                         "/retention_s",
		`{"kind":"f","nodes":[{"name":"a","kind":"k","retention_s":{"failed":-1}}]}`:                          "",
	} {
		want := 400
		if strings.Contains(body, `"none"`) {
			want = 404
		}
		if p := into[problem](t, a.as("producer", "POST", "/v1/flows", body, want)); p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if p := into[problem](t,
		a.as("operator", "PUT", "/v1/schedules/bad",
			`{"every_ms":1000,"kind":"f","capabilities":["gpu"],"nodes":[{"name":"a","kind":"k"}]}`, 400)); p.Field !=
		"/nodes" {
		t.Errorf("%+v", p)
	}
}
