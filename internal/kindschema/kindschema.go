// Package kindschema is what workers say of a kind of work: JSON Schemas (2020-12) of its input and its result. A
// schema comes from a Go type ([Of]) or from a worker in another language. It is bounded ([Compile]), because every
// process that submits work compiles it and holds inputs against it ([Schema.Check]).
package kindschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/misfit"
)

// Pair are the schemas of a kind: 32 schemas deep at most, without references to other documents. The zero value says
// nothing.
type Pair = apiv1.KindSchemas

// Text is how a pair is stored: "" if it says nothing.
func Text(p Pair) string {
	if p.Input == nil && p.Result == nil {
		return ""
	}
	text, err := json.Marshal(p)
	if err != nil { // what is no JSON was refused before
		return ""
	}
	return string(text)
}

// Parse reads what Text wrote.
func Parse(text string) (p Pair, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, err
}

// FieldError is a schema that is refused; Field is input or result.
type FieldError struct {
	Field, Wrong string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Wrong }

// Compact checks both schemas, and drops white space and what is null or says nothing. The error is a [*FieldError].
func Compact(p Pair) (Pair, error) {
	for field, text := range map[string]*json.RawMessage{"input": &p.Input, "result": &p.Result} {
		if len(*text) == 0 || string(*text) == "null" {
			*text = nil
			continue
		}
		s, err := Compile(*text)
		if err != nil {
			return Pair{}, &FieldError{field, err.Error()}
		}
		var b bytes.Buffer
		if err := json.Compact(&b, *text); err != nil {
			return Pair{}, &FieldError{field, "it is not JSON"}
		}
		if *text = b.Bytes(); s == nil {
			*text = nil
		}
	}
	return p, nil
}

// Schema is one that was compiled. The nil schema takes everything. Safe for concurrent use.
type Schema struct{ resolved *jsonschema.Resolved }

// Compile checks a schema: at most 64 KiB, 32 schemas deep, without references to other documents, and quick to hold
// a value against. It is nil if it takes everything.
func Compile(text json.RawMessage) (*Schema, error) {
	if len(text) > limits.MaxSchema {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(text), limits.MaxSchema)
	}
	var value any
	if json.Unmarshal(text, &value) != nil {
		return nil, errors.New("it is not JSON")
	}
	switch v := value.(type) {
	case bool:
		if v {
			return nil, nil
		}
	case map[string]any:
		if len(v) == 0 {
			return nil, nil
		}
	default:
		return nil, errors.New("it is no JSON Schema, which is an object, true or false")
	}
	if err := cmp.Or(Bounded(value), typed(value)); err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %.256w", err)
	}
	if !slices.Contains(versions, s.Schema) {
		return nil, fmt.Errorf("its $schema is %.80q, want %s or none", s.Schema, versions[1])
	}
	if s.Comment == fromGo {
		loosen(s)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %w", err)
	}
	return &Schema{resolved}, nil
}

// typed refuses types that no value has, which jsonschema-go lets pass.
func typed(v any) error {
	members, _ := v.(map[string]any)
	for name, v := range members {
		switch {
		case slices.Contains([]string{"const", "enum", "default", "examples"}, name): // values
			continue
		case name == "type":
			words, several := v.([]any)
			if !several {
				words = []any{v}
			}
			for _, v := range words {
				if word, ok := v.(string); ok && !misfit.IsType(word) {
					return fmt.Errorf("its type %.40q is none of JSON Schema", word)
				}
			}
		}
		if err := typed(v); err != nil {
			return err
		}
	}
	list, _ := v.([]any)
	for _, v := range list {
		if err := typed(v); err != nil {
			return err
		}
	}
	return nil
}

// versions are those of JSON Schema that can be compiled.
var versions = []string{"", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#",
	"https://json-schema.org/draft-07/schema#"}

// Misfit is an input that does not fit the schema of its kind. It is of the code input_does_not_fit.
type Misfit struct {
	Kind    string
	Node    string // of a flow, or the name of a child; "" for what is submitted by itself
	Pointer string // JSON Pointer of the value that does not fit, "" for the input itself
	Wrong   string // what it is and what is wanted
}

func (m *Misfit) Error() string {
	node, at := "", ""
	if m.Node != "" {
		node = fmt.Sprintf("node %q: ", m.Node)
	}
	if m.Pointer != "" {
		at = fmt.Sprintf("%.256s: ", m.Pointer)
	}
	return fmt.Sprintf("%v: %skind %s: %s%s", denied.InputMisfit, node, m.Kind, at, m.Wrong)
}

func (m *Misfit) Unwrap() error { return denied.InputMisfit }

// offloaded begins what handler.Offloaded leaves in the place of a payload, which is not here to be checked.
var offloaded = []byte(`{"flowfabric_blob":"`)

// Check refuses an input of a kind that does not fit, with a [*Misfit].
func (s *Schema) Check(kind string, input []byte) error {
	if s == nil || bytes.HasPrefix(input, offloaded) {
		return nil
	}
	var value any
	if len(input) > 0 && json.Unmarshal(input, &value) != nil {
		return &Misfit{Kind: kind, Wrong: "it is not JSON"}
	}
	if pointer, wrong := Wrong(s.resolved, value); wrong != "" {
		return &Misfit{Kind: kind, Pointer: pointer, Wrong: wrong}
	}
	return nil
}
