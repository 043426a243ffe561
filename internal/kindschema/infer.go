package kindschema

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// anything takes each value. It names all types because jsonschema-go makes null of a pointer to what names none.
var anything = &jsonschema.Schema{Types: []string{"null", "boolean", "object", "array", "number", "string"}}

// fixed are types that do not speak for themselves.
var fixed = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[json.RawMessage](): anything,
	reflect.TypeFor[json.Number]():     {Types: []string{"number", "string"}},
}

// fromGo is the comment of schemas of inputs of Go types. encoding/json leaves a field as it is whose member is absent or null, so
// an input that has no such member is a good one: a field that is new in a worker must not refuse producers that do not
// know it yet. The schema says all the same what producers ought to send, for the types that are made of it.
const fromGo = "from a Go type: absent members and null are read as zero values"

// loosen lets members be absent, and everything be null.
func loosen(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Required, s.MinItems, s.MaxItems = nil, nil, nil
	if s.Type != "" {
		s.Types, s.Type = []string{s.Type}, ""
	}
	if len(s.Types) > 0 && !slices.Contains(s.Types, "null") {
		s.Types = append(s.Types, "null")
	}
	loosen(s.AdditionalProperties)
	loosen(s.Items)
	for _, p := range s.Properties {
		loosen(p)
	}
}

// Of is the schema of what encoding/json makes of a type, and reads into it; nil for a type that takes anything, and
// for one that no schema of it describes exactly: it says nothing rather than refuse a good input. Objects may have
// more members than the type, as encoding/json allows.
func Of(t reflect.Type) json.RawMessage {
	if t == nil || t == reflect.TypeFor[[]byte]() || t == reflect.TypeFor[struct{}]() {
		return nil // raw, or nothing
	}
	w := &types{schemas: maps.Clone(fixed), on: map[reflect.Type]bool{}}
	if !w.plain(t) {
		return nil
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: w.schemas})
	if err != nil {
		return nil
	}
	open(s)
	if s.Type == "object" && len(s.Required) == 0 { // nothing is what no input is
		s.Types, s.Type = []string{"null", "object"}, ""
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	if compiled, err := Compile(text); err != nil || compiled == nil {
		return nil
	}
	return text
}

// inputs are the schemas that Input has made, by type: a submit asks for one.
var inputs sync.Map

// Input is Of for the input of a handler. Callers must not change it.
func Input(t reflect.Type) json.RawMessage {
	if made, ok := inputs.Load(t); ok {
		return made.(json.RawMessage)
	}
	made := input(t)
	inputs.Store(t, made)
	return made
}

func input(t reflect.Type) json.RawMessage {
	text := Of(t)
	if text == nil {
		return nil
	}
	out := append(json.RawMessage(`{"$comment":"`+fromGo+`",`), text[1:]...)
	if len(out) > limits.MaxSchema {
		return nil
	}
	return out
}

// open lets objects have more members, and maps be null, which a nil map is. It drops the types of what takes anything.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == len(anything.Types) {
		s.Types = nil
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil {
		s.AdditionalProperties = nil
	}
	if s.Type == "object" && s.AdditionalProperties != nil {
		s.Types, s.Type = []string{"null", "object"}, ""
	}
	open(s.AdditionalProperties)
	open(s.Items)
	for _, p := range s.Properties {
		open(p)
	}
}

// types walks the types below one.
type types struct {
	schemas map[reflect.Type]*jsonschema.Schema
	on      map[reflect.Type]bool // that the walk is inside of
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// has tells whether a type, or a pointer to it, has the methods of an interface.
func has(t, methods reflect.Type) bool {
	return t.Implements(methods) || reflect.PointerTo(t).Implements(methods)
}

// plain tells whether the types below one are what they look like in JSON. Those with methods of their own get schemas
// that take what such methods may write.
func (w *types) plain(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case w.schemas[t] != nil:
		return true
	case has(t, marshaler) || has(t, unmarshaler):
		w.schemas[t] = anything
		return true
	case has(t, textMarshaler):
		w.schemas[t] = &jsonschema.Schema{Type: "string"}
		return true
	case w.on[t]:
		return false
	}
	w.on[t] = true
	defer delete(w.on, t)
	switch t.Kind() {
	case reflect.Slice:
		if e := t.Elem(); e.Kind() == reflect.Uint8 && !has(e, marshaler) && !has(e, textMarshaler) {
			w.schemas[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
			return true
		}
		return w.plain(t.Elem())
	case reflect.Array:
		return w.plain(t.Elem())
	case reflect.Map:
		return t.Key().Kind() == reflect.String && w.plain(t.Elem())
	case reflect.Struct:
		return w.fields(t)
	}
	return true
}

// fields tells it of the members of a struct: jsonschema-go looks neither at options of tags that change what a member
// is nor at names of embedded structs, and of two fields of one name it takes both.
func (w *types) fields(t reflect.Type) bool {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := f.Type.Kind()
		switch {
		case name == "-" && options == "":
			continue
		case f.Anonymous && (name != "" || kind != reflect.Struct || w.schemas[f.Type] != nil):
			return false
		case f.Anonymous:
			if has(f.Type, marshaler) || has(f.Type, unmarshaler) || has(f.Type, textMarshaler) {
				return false
			}
			continue
		case !f.IsExported():
			continue
		case strings.Contains(","+options+",", ",string,"):
			return false
		}
		if name == "" {
			name = f.Name
		}
		if names[name] || !w.plain(f.Type) {
			return false
		}
		names[name] = true
	}
	return true
}
