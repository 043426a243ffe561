package httpapi

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

const mailSchema = `{"type":"object","required":["to"],"properties":{"to":{"type":"array","items":{"type":"string"}}}}`

// What a worker in any language says of its kinds is listed, and submissions are held against it, whatever their door.
func TestSchemasOfWorkersOverHTTP(t *testing.T) {
	a := newAPI(t)
	kinds := `{"kinds":["mail","other"],"schemas":{"mail":{"input":` + mailSchema + `,"result":{"type":"integer"}}}}`
	a.open("worker", kinds)
	list := into[apiv1.Schemas](t, a.as("viewer", "GET", "/v1/schemas?kind=mail", "", 200))
	if list.Namespace != "default" || len(list.Kinds) != 1 || string(list.Kinds["mail"].Input) != mailSchema ||
		string(list.Kinds["mail"].Result) != `{"type":"integer"}` {
		t.Errorf("%+v", list)
	}

	a.as("producer", "POST", "/v1/executions", `{"kind":"mail","input":{"to":["a"]}}`, 201)
	a.as("producer", "POST", "/v1/executions", `{"kind":"other","input":{"to":[7]}}`, 201)
	bad := `{"kind":"mail","input":{"to":["a",7]}}`
	p := into[problem](t, a.as("producer", "POST", "/v1/executions", bad, 400))
	if p.Code != "input_does_not_fit" || p.Field != "/input/to/1" ||
		!strings.Contains(p.Detail, "it is a JSON number, want a string") {
		t.Errorf("%+v", p)
	}
	p = into[problem](t, a.as("producer", "POST", "/v1/executions", `{"kind":"mail"}`, 400))
	if p.Field != "/input" || !strings.Contains(p.Detail, "it is a JSON null, want an object") {
		t.Errorf("%+v", p)
	}
	batch := into[batchAnswer](t, a.as("producer", "POST", "/v1/executions:batch",
		`{"items":[{"kind":"mail","input":{"to":[]}},`+bad+`]}`, 200))
	if batch.Items[0].ID == "" || batch.Items[1].Problem == nil || batch.Items[1].Problem.Field != "/input/to/1" {
		t.Errorf("%+v", batch)
	}
	p = into[problem](t, a.as("producer", "POST", "/v1/flows",
		`{"kind":"f","nodes":[{"name":"one","kind":"mail","input":{}}]}`, 400))
	if p.Code != "input_does_not_fit" || p.Field != "" || !strings.Contains(p.Detail, `node "one": kind mail: /to`) {
		t.Errorf("%+v", p)
	}
	p = into[problem](t, a.as("operator", "PUT", "/v1/schedules/s",
		`{"every_ms":60000,"kind":"mail","input":{}}`, 400))
	if p.Code != "input_does_not_fit" {
		t.Errorf("%+v", p)
	}

	a.open("worker", `{"kinds":["mail","other"],"schemas":{"mail":{}}}`) // takes back what was said
	list = into[apiv1.Schemas](t, a.as("viewer", "GET", "/v1/schemas", "", 200))
	if _, known := list.Kinds["mail"]; known {
		t.Errorf("%+v", list)
	}
}

// A schema that is no schema, or beyond the bounds, is refused by its place, and opens no session.
func TestSchemasThatAreRefusedOverHTTP(t *testing.T) {
	a := newAPI(t)
	for schemas, want := range map[string]struct{ field, detail string }{
		`{"other":{}}`:                         {"/schemas/other", "it is none of the kinds"},
		`{"a/b":{"input":7}}`:                  {"/schemas/a~1b/input", "it is no JSON Schema"},
		`{"a/b":{"result":{"$ref":"x.json"}}}`: {"/schemas/a~1b/result", "leads to no place in it"},
		`{"a/b":{"input":{"title":"` + strings.Repeat("x", 70<<10) + `"}}}`: {"/schemas/a~1b/input",
			"want at most 65536"},
		`{"a/b":{"in":{}}}`: {"/schemas/a~1b/in", "there is no such member"},
	} {
		p := into[problem](t, a.as("worker", "POST", "/v1/workers", `{"kinds":["a/b"],"schemas":`+schemas+`}`, 400))
		if p.Field != want.field || !strings.Contains(p.Detail, want.detail) {
			t.Errorf("%.60s: %s %s", schemas, p.Field, p.Detail)
		}
	}
	if list := into[workerList](t, a.as("viewer", "GET", "/v1/workers", "", 200)); len(list.Items) > 0 {
		for _, w := range list.Items {
			if w.Pool == "http" {
				t.Errorf("%+v", w)
			}
		}
	}
}
