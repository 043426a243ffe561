package mcptools

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/kindschema"
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
	if kindschema.Bounded(value) == nil && json.Unmarshal(text, s) == nil && s.Type == "object" && resolves(s) {
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
