package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/stream"
)

// example is a value that a schema allows: with the members that it requires, or with all of them.
func example(s *jsonschema.Schema, all bool) any {
	switch s.Type {
	case "object":
		out := map[string]any{}
		for name, p := range s.Properties {
			if all || slices.Contains(s.Required, name) {
				out[name] = example(p, all)
			}
		}
		if s.Properties == nil && all {
			out["x"] = example(s.AdditionalProperties, all)
		}
		return out
	case "array":
		if s.Items.Type == "object" {
			return []any{example(s.Items, all)}
		}
		return []any{}
	case "integer":
		return 1
	case "boolean":
		return true
	case "string":
		switch {
		case s.Format == "date-time":
			return "2030-01-01T00:00:00Z"
		case s.ContentEncoding != "":
			return "AAAA"
		}
		return "text"
	}
	return nil
}

// spoil calls try with each body that is wrong in one place, and with that place: a member that must be there and is
// not, null, one of another type, one that nobody knows, and an empty text where none may be.
func spoil(s *jsonschema.Schema, v any, at string, try func(place string, undo func())) {
	switch v := v.(type) {
	case map[string]any:
		if s.Properties == nil {
			spoil(s.AdditionalProperties, v["x"], at+"/x", try)
			return
		}
		change := func(name string, to any) {
			was, there := v[name]
			if v[name] = to; to == missing {
				delete(v, name)
			}
			try(at+"/"+name, func() {
				if v[name] = was; !there {
					delete(v, name)
				}
			})
		}
		change("nobody_knows", 1)
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			if slices.Contains(s.Required, name) {
				change(name, missing)
			}
			if p.Type == "" {
				continue
			}
			change(name, nil)
			change(name, map[bool]any{true: "text", false: 1}[p.Type != "string"])
			if p.MinLength != nil {
				change(name, "")
			}
			if inner := v[name]; inner != nil {
				spoil(p, inner, at+"/"+name, try)
			}
		}
	case []any:
		if len(v) > 0 {
			spoil(s.Items, v[0], at+"/0", try)
		}
	}
}

// missing stands for a member that is to be left out.
var missing = &struct{ int }{}

// What the document says of bodies holds for every route: what it requires is required, null is nowhere a value but
// in what may be any, and nothing else is taken.
func TestBodiesAreWhatTheDocumentSays(t *testing.T) {
	a := newAPI(t)
	nobody := mint.ID(1).String()
	tried := 0
	for _, r := range routes {
		if r.body == nil {
			continue
		}
		schema := schemaOf(r.body, true)
		path := strings.NewReplacer("{id}", nobody, "{key}", "k", "{session}", "k").Replace(r.path)
		refused := func(body, field string) {
			t.Helper()
			g := a.do(request{method: r.method, path: path, role: "admin", body: body})
			if p := into[problem](t, g); g.status != http.StatusBadRequest || p.Field != field {
				t.Errorf("%s %.300s: %d %s, want 400 at %q", r.name, body, g.status, g.body, field)
			}
			tried++
		}
		for _, body := range []string{"null", "[]", "1", `""`} {
			refused(body, "")
		}
		if len(schema.Required) > 0 {
			refused("", "/"+schema.Required[0])
			refused("{}", "/"+schema.Required[0])
		}
		for _, all := range []bool{false, true} {
			body := example(schema, all)
			text, _ := json.Marshal(body)
			if g := a.do(request{method: r.method, path: path, role: "admin", body: string(text)}); g.status ==
				http.StatusBadRequest && !all && strings.Contains(string(g.body), "is missing") {
				t.Errorf("%s %s: %s", r.name, text, g.body)
			}
			spoil(schema, body, "", func(place string, undo func()) {
				text, _ := json.Marshal(body)
				undo()
				refused(string(text), place)
			})
		}
	}
	if tried < 1000 {
		t.Errorf("%d bodies were tried", tried)
	}
	for body, field := range map[string]string{`{"action":"priority"}`: "/priority",
		`{"action":"cancel","priority":1}`: "/priority", `{"action":"hold","force":true}`: "/action"} {
		if p := into[problem](t, a.as("operator", "POST", "/v1/executions:bulk?kind=nobody", body, 400)); p.Field !=
			field {
			t.Errorf("%s: %+v", body, p)
		}
	}
}

// A whole number is one however it is written, and what is wrong with a value is said in words of JSON.
func TestValuesOfBodies(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"nobody","priority":7.0,"delay_ms":36e5,"tags":{"test.tag":"1"},"input":1.0}`)
	if x := into[flowfabric.Snapshot](t, a.as("viewer", "GET", path, "", 200)); x.Priority != 7 ||
		x.Public != "delayed" ||
		x.Tags["test.tag"] != "1" {
		t.Errorf("%+v", x)
	}
	if in := into[flowfabric.Payload](t, a.as("viewer", "GET", path+"/input", "", 200)); string(in) != "1.0" {
		t.Errorf("%s", in)
	}
	for body, want := range map[string]string{
		`{"kind":"a","delay_until":"tomorrow"}`:                "time like 2026",
		`{"kind":"a","priority":1.5}`:                          "whole number",
		`{"kind":"a","priority":1e30}`:                         "whole number",
		`{"kind":"a","delay_ms":9223372036854775808}`:          "not a whole number of milliseconds",
		`{"kind":"a","delay_until":{}}`:                        "a string",
		`{"kind":"a","tags":[]}`:                               "an object",
		`{"kind":"a","gates":{}}`:                              "an array",
		`{"kind":"a","limits":[{"key":"k","concurrency":""}]}`: "a whole number",
	} {
		if p := into[problem](t, a.as("producer", "POST", "/v1/executions", body, 400)); !strings.Contains(p.Detail,
			want) || p.Field == "" {
			t.Errorf("%s: %+v, want %q", body, p, want)
		}
	}
	if p := into[problem](t, a.as("producer", "POST", path+"/messages", `{"mailbox":"m","base64":"%"}`,
		400)); !strings.Contains(p.Detail, "base64") || p.Field != "/base64" {
		t.Errorf("%+v", p)
	}
	if p := into[problem](t, a.as("operator", "PUT", "/v1/gates/q", `{"rate":1,"window_ms":1,"revision":-1}`,
		400)); !strings.Contains(p.Detail, "from 0 to 18446744073709551615") {
		t.Errorf("%+v", p)
	}
}

// A transcript is the beginning of what there is, and its events go on where it ends.
func TestTranscriptsAreBounded(t *testing.T) {
	a := newAPI(t)
	path := a.submit(`{"kind":"talks","input":50}`)
	a.until(path, "completed")
	whole := into[transcript](t, a.as("viewer", "GET", path+"/transcript", "", 200))
	a.h.most = 100
	part := into[transcript](t, a.as("viewer", "GET", path+"/transcript", "", 200))
	if whole.More || !part.More || len(part.Text) > 120 || !strings.HasPrefix(whole.Text, part.Text) {
		t.Fatalf("%+v", part)
	}
	text := part.Text
	rest, _ := a.follow(path+"/events?after="+part.Position, nil, nil)
	for _, e := range rest {
		if e.name == "frame" && e.data.Frame.Encoding == stream.UTF8 {
			text += string(e.data.Frame.Payload)
		}
	}
	if text != whole.Text {
		t.Errorf("%q, want %q", text, whole.Text)
	}
}

// Sessions of one token have a bound, and those that ended are no part of it.
func TestSessionsAreBounded(t *testing.T) {
	a := newAPI(t)
	token := tokenOf(Principal{Name: "the-worker"})
	for i := range maxSessions {
		a.h.workers.remember(&workerSession{id: strconv.Itoa(i), token: token, lease: time.Minute})
	}
	if p := into[problem](t, a.as("worker", "POST", "/v1/workers", `{"kinds":["k"]}`, 429)); p.Code !=
		"too_many_sessions" {
		t.Errorf("%+v", p)
	}
	a.as("admin", "POST", "/v1/workers", `{"kinds":["k"]}`, 201)
	a.h.workers.known["0"].until = time.Now().Add(-time.Second)
	a.as("worker", "POST", "/v1/workers", `{"kinds":["k"]}`, 201)
}

// Wherever a body has an idempotency key the header is one, too. Two different ones are refused, and so is an empty
// one.
func TestIdempotencyKeys(t *testing.T) {
	a := newAPI(t)
	nobody := mint.ID(1).String()
	for _, r := range routes {
		if r.body == nil || bodySchema(r.body).Properties["idempotency_key"] == nil {
			continue
		}
		path := strings.NewReplacer("{id}", nobody, "{key}", "k", "{session}", "k").Replace(r.path)
		body := example(bodySchema(r.body), false).(map[string]any)
		for _, keys := range [][2]string{{"a", "b"}, {"", "\"\""}} {
			if delete(body, "idempotency_key"); keys[0] != "" {
				body["idempotency_key"] = keys[0]
			}
			text, _ := json.Marshal(body)
			g := a.do(request{method: r.method, path: path, role: "admin", body: string(text),
				header: http.Header{"Idempotency-Key": {keys[1]}}})
			if p := into[problem](t, g); g.status != 400 || p.Field != "Idempotency-Key" {
				t.Errorf("%s, keys %q: %d %s", r.name, keys, g.status, g.body)
			}
		}
	}
	one := func(method, path, body string) got {
		return a.do(request{method: method, path: path, role: "producer", body: body,
			header: http.Header{"Idempotency-Key": {"k-1"}}})
	}
	const flow = `{"kind":"f","nodes":[{"name":"a","kind":"nobody"}]}`
	if first, again := one("POST", "/v1/flows", flow), one("POST", "/v1/flows", flow); first.status != 201 ||
		again.status != 200 || !into[flowMade](t, again).Duplicate {
		t.Errorf("%d %d %s", first.status, again.status, again.body)
	}
	if g := one("POST", "/v1/executions:batch", `{"items":[{"kind":"nobody"}]}`); g.status != 400 ||
		into[problem](t, g).Field != "Idempotency-Key" {
		t.Errorf("%d %s", g.status, g.body)
	}
	for body, field := range map[string]string{`{"every_ms":1000,"zone":"Mars/Olympus","kind":"k"}`: "/zone",
		`{"every_ms":1000,"zone":"UTC","kind":"k"}`:          "/zone",
		`{"cron":"* * * * *","zone":"localtime","kind":"k"}`: ""} {
		if p := into[problem](t, a.as("operator", "PUT", "/v1/schedules/s", body, 400)); p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
}
