package mcptools

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The bounds of a schema whose arguments are checked. One that is beyond them would take too long, or never end: a
// schema that refers to itself without looking at a smaller value ends the process.
const (
	maxDepth = 64
	maxWork  = 10_000
)

// schemaOf is the schema of a tool's arguments. One that cannot be checked becomes that of any object, with the words
// of the server as descriptions.
func schemaOf(text json.RawMessage) *jsonschema.Schema {
	var value any
	if json.Unmarshal(text, &value) != nil {
		value = nil
	}
	members, ok := value.(map[string]any)
	if !ok {
		return &jsonschema.Schema{Type: "object"}
	}
	if _, ok := members["type"]; !ok { // clients take only objects, so some servers leave it out
		members["type"] = "object"
		text, _ = json.Marshal(members)
	}
	s := new(jsonschema.Schema)
	if quick(value) && json.Unmarshal(text, s) == nil && s.Type == "object" && resolves(s) {
		return s
	}
	return described(members)
}

func resolves(s *jsonschema.Schema) bool {
	if _, err := s.Resolve(nil); err != nil {
		return false
	}
	_, err := json.Marshal(s)
	return err == nil
}

// described is a schema that checks nothing below the object.
func described(members map[string]any) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object"}
	text := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return "JSON Schema, as far as it can be told: " + string(text)
	}
	properties, ok := members["properties"].(map[string]any)
	if !ok {
		s.Description = text(members)
		return s
	}
	s.Properties = map[string]*jsonschema.Schema{}
	rest := map[string]any{}
	for name, v := range members {
		if !slices.Contains([]string{"properties", "type", "$schema"}, name) {
			rest[name] = v
		}
	}
	if len(rest) > 0 {
		s.Description = text(rest)
	}
	for name, v := range properties {
		s.Properties[name] = &jsonschema.Schema{Description: text(v)}
	}
	return s
}

// quick says that checking arguments takes a bounded time: a schema is followed through everything that looks at the
// same value.
func quick(root any) bool {
	w := &walk{root: root, left: 100 * maxWork}
	return w.all(root, 0)
}

type walk struct {
	root any
	left int // of the work for all schemas
}

// all looks at each schema in a document, and at some values that are none.
func (w *walk) all(v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	var below []any
	switch v := v.(type) {
	case map[string]any:
		work := min(maxWork, w.left)
		left := work
		if !w.same(v, &left) {
			return false
		}
		w.left -= work - left
		for _, member := range v {
			below = append(below, member)
		}
	case []any:
		below = v
	}
	return !slices.ContainsFunc(below, func(v any) bool { return !w.all(v, depth+1) })
}

// same follows what is applied to the same value.
func (w *walk) same(v any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	members, ok := v.(map[string]any)
	if !ok {
		return true
	}
	for name, v := range members {
		var next []any
		switch name {
		case "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$id":
			if _, ok := v.(string); ok {
				return false // where it leads is not known here
			}
		case "$ref":
			if to, ok := v.(string); ok {
				target, found := w.find(to)
				if !found {
					return false
				}
				next = []any{target}
			}
		case "allOf", "anyOf", "oneOf":
			next, _ = v.([]any)
		case "not", "if", "then", "else":
			next = []any{v}
		case "dependentSchemas", "dependencies":
			schemas, _ := v.(map[string]any)
			for _, v := range schemas {
				next = append(next, v)
			}
		}
		for _, v := range next {
			if !w.same(v, left) {
				return false
			}
		}
	}
	return true
}

// find follows a reference within the document.
func (w *walk) find(ref string) (v any, ok bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.Contains(pointer, "%") {
		return nil, false
	}
	v = w.root
	for i, name := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch at := v.(type) {
		case map[string]any:
			if v, ok = at[name]; !ok {
				return nil, false
			}
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(at) {
				return nil, false
			}
			v = at[n]
		default:
			return nil, false
		}
	}
	return v, true
}
