package mcp

import (
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/integer"
)

// form is a schema of an object, which stands for a value that may be none: then the value is one property of it.
type form struct {
	schema   *jsonschema.Schema
	shown    any // the schema as clients see it: what was given byte for byte, where that is possible
	resolved *jsonschema.Resolved
	property string // "": the object is the value
	err      error
}

// newForm wraps a schema whose value is no object. A struct behind a pointer, which may be null, counts as an object.
func newForm(s *jsonschema.Schema, property string) form {
	f := form{schema: s}
	switch {
	case s.Type == "object":
	case len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "object":
		plain := s.CloneSchemas()
		plain.Types, plain.Type = nil, "object"
		f.schema = plain
	default:
		f.property = property
		f.schema = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{property: s},
			Required: []string{property}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
			Defs: s.Defs}
		if s.Defs != nil { // references inside lead to the root
			inner := s.CloneSchemas()
			inner.Defs = nil
			f.schema.Properties[property] = inner
		}
	}
	f.shown = f.schema
	f.resolved, f.err = f.schema.Resolve(nil)
	return f
}

// newRawForm is newForm for a schema that somebody wrote.
func newRawForm(text json.RawMessage, property string) (form, error) {
	s, err := parseSchema(text)
	if err != nil {
		return form{}, err
	}
	f := newForm(s, property)
	if s.Type == "object" {
		f.shown = text
	}
	return f, nil
}

// errDefaults does not tell more, as the arguments are not its cause.
var errDefaults = errors.New("the defaults of the input schema do not fit it")

// value checks an object and returns the value that it stands for.
func (f *form) value(object json.RawMessage) (json.RawMessage, error) {
	if len(object) == 0 || string(object) == "null" {
		object = json.RawMessage("{}")
	}
	var instance map[string]any
	if err := decode(object, &instance); err != nil {
		return nil, err
	}
	if err := f.resolved.ApplyDefaults(&instance); err != nil {
		return nil, errDefaults
	}
	if err := validate(f.resolved, instance); err != nil {
		return nil, err
	}
	var filled any = instance
	if f.property != "" {
		filled = instance[f.property]
	}
	object = integer.Numbers(object)
	if !hasDefaults(f.schema) { // byte for byte as it came but for that: numbers keep their digits
		if f.property == "" {
			return object, nil
		}
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(object, &raw); err != nil {
			return nil, err
		}
		return raw[f.property], nil
	}
	return json.Marshal(filled)
}

// wrap is the object that stands for a value.
func (f *form) wrap(value any) any {
	if f.property == "" {
		return value
	}
	return map[string]any{f.property: value}
}

func hasDefaults(s *jsonschema.Schema) bool {
	for _, p := range s.Properties {
		if p.Default != nil || hasDefaults(p) {
			return true
		}
	}
	return s.Default != nil
}

func parseSchema(text json.RawMessage) (*jsonschema.Schema, error) {
	if len(text) == 0 {
		return nil, errors.New("a schema is missing")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	if _, err := s.CloneSchemas().Resolve(nil); err != nil {
		return nil, err
	}
	return &s, nil
}
