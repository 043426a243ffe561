package operations

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/kindschema"
)

// document is what is read of the OpenAPI document of the API.
type document struct {
	Paths map[string]map[string]struct {
		Name       string  `json:"operationId"`
		Summary    string  `json:"summary"`
		Parameters []param `json:"parameters"`
		Body       struct {
			Content map[string]struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"content"`
		} `json:"requestBody"`
		Responses map[string]struct {
			Description string `json:"description"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type param struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description"`
	Required    bool               `json:"required"`
	Schema      *jsonschema.Schema `json:"schema"`
}

// operation is one operation of the API as a tool.
type operation struct {
	name     string // of the operation
	tool     string // of the tool
	method   string
	path     string
	text     string // for models
	summary  string // for people
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	place    map[string]string // of each argument: path, query, body, or tool
}

// Arguments that are the tool's, not the operation's.
const (
	argConfirm = "confirm"
	argPart    = "part"
)

func (o *operation) changes() bool { return o.method != http.MethodGet }

// operationsOf are those of the table that the document has, in the order of the table.
func operationsOf(text []byte) ([]*operation, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the document of the API: %w", err)
	}
	found := map[string]*operation{}
	for path, methods := range d.Paths {
		for method, said := range methods {
			i := slices.IndexFunc(rows, func(r row) bool { return r.operation == said.Name })
			if i < 0 {
				continue
			}
			o := &operation{name: said.Name, tool: snake(said.Name), method: strings.ToUpper(method), path: path,
				summary: said.Summary, place: map[string]string{},
				schema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{},
					AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}}
			o.text = said.Summary + "."
			if answer := said.Responses["200"].Description; answer != "" {
				o.text += " Answers: " + answer
			}
			if hint := rows[i].hint; hint != "" {
				o.text += " " + hint
			}
			if err := o.take(said.Parameters, said.Body.Content["application/json"].Schema, d); err != nil {
				return nil, fmt.Errorf("operation %s: %w", said.Name, err)
			}
			found[said.Name] = o
		}
	}
	var all []*operation
	for _, r := range rows {
		if o := found[r.operation]; o != nil {
			all = append(all, o)
		}
	}
	return all, nil
}

// take makes the schema of the arguments.
func (o *operation) take(params []param, body json.RawMessage, d document) error {
	for _, p := range params {
		if p.In == "header" {
			continue
		}
		s := p.Schema
		s.Description = p.Description
		if p.Name == "limit" {
			s.Description += fmt.Sprintf("; here the default is %d", usualLimit)
		}
		if p.Required {
			s.MinLength = new(1)
		}
		if err := o.argument(p.Name, p.In, s, p.Required); err != nil {
			return err
		}
	}
	if len(body) > 0 {
		var ref struct {
			To string `json:"$ref"`
		}
		if json.Unmarshal(body, &ref) == nil && ref.To != "" {
			body = d.Components.Schemas[strings.TrimPrefix(ref.To, "#/components/schemas/")]
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(body, &s); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if err := o.argument(name, "body", s.Properties[name], slices.Contains(s.Required, name)); err != nil {
				return err
			}
		}
	}
	own, s := argPart, &jsonschema.Schema{Type: "integer", Minimum: new(1.0),
		Description: "of a long answer; the first is 1"}
	if o.changes() {
		own, s = argConfirm, &jsonschema.Schema{Type: "boolean",
			Description: "true: do it. Set it only after your user has agreed to exactly this change"}
	}
	if err := o.argument(own, "tool", s, false); err != nil {
		return err
	}
	var err error
	o.resolved, err = o.schema.Resolve(nil)
	return err
}

func (o *operation) argument(name, place string, s *jsonschema.Schema, required bool) error {
	if o.place[name] != "" {
		return fmt.Errorf("the argument %s is in the %s and in the %s", name, o.place[name], place)
	}
	o.place[name], o.schema.Properties[name] = place, s
	if required {
		o.schema.Required = append(o.schema.Required, name)
	}
	return nil
}

// request is a call of an operation: where its arguments go.
type request struct {
	*operation
	arguments map[string]any
	target    string // path
	query     url.Values
	body      map[string]any // nil: none
	part      int
	confirmed bool
}

// read takes the arguments of a call. wrong says which of them does not fit.
func (o *operation) read(text json.RawMessage) (q *request, wrong string) {
	q = &request{operation: o, target: o.path, query: url.Values{}, part: 1, arguments: map[string]any{}}
	if len(text) > 0 && json.Unmarshal(text, &q.arguments) != nil {
		return nil, "arguments: want a JSON object"
	}
	if q.arguments == nil { // null
		q.arguments = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(q.arguments)) {
		if q.arguments[name] == nil { // models send null for what they leave out, unless null can be meant
			if o.schema.Properties[name] != nil && o.schema.Properties[name].Type != "" {
				delete(q.arguments, name)
			}
		} else if o.place[name] == "" {
			return nil, fmt.Sprintf("there is no argument %.64q; the arguments are %s", name,
				strings.Join(slices.Sorted(maps.Keys(o.place)), ", "))
		}
	}
	if pointer, wrong := kindschema.Wrong(o.resolved, any(q.arguments)); wrong != "" {
		return nil, fmt.Sprintf("%.256s: %s", strings.TrimPrefix(pointer, "/"), wrong)
	}
	if o.changes() {
		q.body = map[string]any{}
	}
	for name, value := range q.arguments {
		switch o.place[name] {
		case "path":
			segment := value.(string)
			if segment == "." || segment == ".." {
				return nil, fmt.Sprintf("%s: it is %q, want a name", name, segment)
			}
			q.target = strings.ReplaceAll(q.target, "{"+name+"}", url.PathEscape(segment))
		case "query":
			list, several := value.([]any)
			if !several {
				list = []any{value}
			}
			for _, v := range list {
				q.query.Add(name, textOf(v))
			}
		case "body":
			q.body[name] = value
		default:
			if n, ok := value.(float64); ok {
				q.part = int(min(n, 1<<20))
			}
			q.confirmed = value == true
		}
	}
	if o.place["limit"] == "query" && !q.query.Has("limit") && o.place["cursor"] == "query" {
		q.query.Set("limit", fmt.Sprint(usualLimit))
	}
	return q, ""
}

// harmless tells whether a change only says what it would do.
func (q *request) harmless() bool { return q.body["dry_run"] == true }

func textOf(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, _ := json.Marshal(v) // numbers and booleans always encode
	return string(text)
}

var hump = regexp.MustCompile(`[A-Z]+`)

// snake is a name as tools have it: listExecutions is list_executions.
func snake(name string) string {
	return hump.ReplaceAllStringFunc(name, func(s string) string { return "_" + strings.ToLower(s) })
}
