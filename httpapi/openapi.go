package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/stream"
)

// object is a JSON object of the document, whose members come out in order of their names.
type object = map[string]any

// document is the OpenAPI document, made of the table of routes and of the types of their bodies.
var document = sync.OnceValue(func() []byte {
	text, err := json.MarshalIndent(describe(), "", " ")
	if err != nil {
		panic(err) // of types that are fixed here: a test has made it
	}
	return append(text, '\n')
})

// describe makes the document.
func describe() object {
	paths, schemas := object{}, object{"problem": schemaOf(of[problem](), false)}
	for _, r := range routes {
		template := strings.Replace(r.path, "...}", "}", 1)
		path, _ := paths[template].(object)
		if path == nil {
			path = object{}
			paths[template] = path
		}
		path[strings.ToLower(r.method)] = operation(r, schemas)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "FlowFabric", "version": "1",
			"description": "Everything outside of Go: submit work, follow it, answer it, operate it. Every refusal is a " +
				"problem document (RFC 9457) whose code is one of our errors. Times are RFC 3339. What a definition in Go says of its kind is not known here: " +
				"what a submission does not say is FlowFabric's default. A program that a language model drives " +
				"says its name in the header X-Assistant (64 bytes): the trail keeps it."},
		"paths": paths,
		"components": object{"schemas": schemas, "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer",
				"description": "A token that flowfabric token new has made"},
			"stream": object{"type": "apiKey", "in": "query", "name": "access_token",
				"description": "A token of createStreamToken, for the execution of the path. It is here because a " +
					"browser's EventSource sends no headers; bearer takes it, too. x-browser-token says which one: " +
					"any (read), or one that was made with write"}}},
	}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

func operation(r *route, schemas object) object {
	op := object{"operationId": r.name, "summary": r.summary, "security": []object{}}
	if len(r.need) > 0 {
		op["security"] = []object{{"bearer": []string{}}}
		if r.browser != noBrowser {
			op["security"] = []object{{"bearer": []string{}}, {"stream": []string{}}}
			op["x-browser-token"] = r.browser
		}
		op["x-roles"] = r.need
		if r.global() {
			op["x-bound"] = "refused for a token that is bound to namespaces"
		}
	}
	var params []object
	for _, name := range parameter.FindAllStringSubmatch(strings.Replace(r.path, "...}", "}", 1), -1) {
		params = append(params,
			object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for place, list := range map[string][]param{"query": r.query} {
		for _, p := range list {
			params = append(params, describeParam(p, place))
		}
	}
	for _, p := range r.headers {
		params = append(params, describeParam(p, "header"))
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = object{"required": len(bodySchema(r.body).Required) > 0,
			"content": object{"application/json": object{"schema": reference(r.body, schemas, true)}}}
	}
	answers := object{}
	for _, a := range r.answers {
		reply := object{"description": a.text}
		if a.body != nil {
			media := a.media
			if media == "" {
				media = "application/json"
			}
			content := object{media: object{"schema": reference(a.body, schemas, false)}}
			for _, other := range a.also {
				content[other] = object{"schema": object{"type": "string"}}
			}
			reply["content"] = content
		} else if r.name == "getOpenAPI" {
			reply["content"] = object{"application/json": object{"schema": object{"type": "object"}}}
		}
		answers[strconv.Itoa(a.status)] = reply
	}
	answers["default"] = object{"description": "A problem.",
		"content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/problem"}}}}
	op["responses"] = answers
	return op
}

func describeParam(p param, place string) object {
	schema := object{"type": p.kind}
	if p.list {
		schema = object{"type": "array", "items": schema}
	}
	out := object{"name": p.name, "in": place, "schema": schema}
	if p.text != "" {
		out["description"] = p.text
	}
	return out
}

// reference names the schema of a type, which it adds. What is sent to us may have no other members; what we send may
// have more some day.
func reference(t reflect.Type, schemas object, closed bool) object {
	name := t.Name()
	if name == "" { // of a change that needs no body
		return object{"type": "object", "additionalProperties": false}
	}
	name = strings.ToLower(name[:1]) + name[1:]
	if known, there := schemaTypes.LoadOrStore(name, t); there && known != t {
		panic(fmt.Sprintf("%v and %v are both called %s", known, t, name)) // a test has made it
	}
	if schemas[name] == nil {
		schemas[name] = schemaOf(t, closed)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// schemaTypes are the types that have a schema, by its name.
var schemaTypes sync.Map

// kinds are types that do not speak for themselves.
var kinds = map[reflect.Type]*jsonschema.Schema{
	of[json.RawMessage]():        {Description: "any JSON value"},
	of[[]byte]():                 {Type: "string", ContentEncoding: "base64"},
	of[time.Time]():              {Type: "string", Format: "date-time"},
	of[flowfabric.Millis]():      {Type: "integer", Description: "milliseconds"},
	of[flowfabric.Retentions]():  {Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer"}},
	of[admin.RetentionChange]():  {Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer"}},
	of[flowfabric.ExecutionID](): {Type: "string"},
	of[flowfabric.FlowID]():      {Type: "string"},
	of[stream.Cursor]():          {Type: "string"},
	of[stream.FrameMode]():       {Type: "string"},
	of[flowfabric.UUID]():        {Type: "string", Format: "uuid"},
	of[flowfabric.Payload](): {Type: "object", Description: "what a program stored or sent",
		Properties: map[string]*jsonschema.Schema{"value": {Description: "if it is JSON: any JSON value"},
			"base64":    {Type: "string", ContentEncoding: "base64", Description: "if it is not"},
			"encrypted": {Type: "boolean", Description: "base64 is as it is stored: the server has no key for it"}}},
}

// The payload of a frame is in one member of three.
func init() {
	s, err := jsonschema.For[stream.Frame](&jsonschema.ForOptions{TypeSchemas: kinds})
	if err != nil {
		panic(err) // a test has made it
	}
	s.Properties["text"] = &jsonschema.Schema{Type: "string", Description: "what it has, if that is a text"}
	s.Properties["value"] = &jsonschema.Schema{Description: "if it is JSON: any JSON value"}
	s.Properties["base64"] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64",
		Description: "if it is neither"}
	kinds[of[stream.Frame]()] = s
}

// schemaOf is the schema of a type; closed: it has no other members.
func schemaOf(t reflect.Type, closed bool) *jsonschema.Schema {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: kinds})
	if err != nil {
		panic(err) // a test has made it
	}
	tidy(s, closed)
	fit(s, t)
	if closed {
		needText(s, false)
	}
	return s
}

// needText has the texts of a body that choose something not be empty, which would be taken for absent: keys, and a
// scope, which would be everything.
func needText(s *jsonschema.Schema, scope bool) {
	if s == nil {
		return
	}
	for name, p := range s.Properties {
		if p.Type == "string" && (scope || strings.HasSuffix(name, "_key")) {
			p.MinLength = new(1)
		}
		needText(p, name == "scope")
	}
	needText(s.Items, false)
	needText(s.AdditionalProperties, false)
}

// tidy drops null, which is never sent, and opens objects unless they are closed.
func tidy(s *jsonschema.Schema, closed bool) {
	if s == nil {
		return
	}
	var types []string
	for _, t := range s.Types {
		if t != "null" {
			types = append(types, t)
		}
	}
	if s.Types != nil {
		s.Types = nil
		if len(types) == 1 {
			s.Type = types[0]
		} else {
			s.Types = types
		}
	}
	if s.Properties != nil && !closed {
		s.AdditionalProperties = nil
	}
	for p := range maps.Values(s.Properties) {
		tidy(p, closed)
	}
	tidy(s.Items, closed)
	if s.Properties == nil && s.AdditionalProperties != nil {
		tidy(s.AdditionalProperties, closed)
	}
}
