package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/internal/misfit"
)

// What is wrong with a value is told to models and to people who write clients: by the member of the JSON that they
// sent and by what it may be. The errors of decoders and validators name Go types and print values as Go does, so
// they only say that something is wrong.

// validate holds a value against a schema, and says where it does not fit.
func validate(r *jsonschema.Resolved, value any) error {
	if r.Validate(value) == nil {
		return nil
	}
	j := judge{defs: r.Schema().Defs}
	if j.value("", r.Schema(), value, 0); j.wrong != "" {
		return at(j.pointer, j.wrong)
	}
	return errors.New("it does not fit the schema")
}

// decode is json.Unmarshal, and says where the text does not fit.
func decode(text []byte, into any) error {
	if json.Unmarshal(text, into) == nil {
		return nil
	}
	return at(misfit.Decoding(text, reflect.New(reflect.TypeOf(into).Elem()).Interface()))
}

func at(pointer, wrong string) error {
	if pointer == "" {
		return errors.New(wrong)
	}
	return fmt.Errorf("%.256s: %s", pointer, wrong)
}

// judge finds the first value that does not fit a schema. It knows the words that schemas of Go types and most others
// are made of; what they leave open does fit.
type judge struct {
	defs           map[string]*jsonschema.Schema
	pointer, wrong string
}

func (j *judge) say(pointer, format string, args ...any) bool {
	j.pointer, j.wrong = pointer, fmt.Sprintf(format, args...)
	return false
}

// typeOf is the type of a value that was decoded from JSON.
func typeOf(value any) string {
	switch x := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if x == math.Trunc(x) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// value tells whether one fits.
func (j *judge) value(pointer string, s *jsonschema.Schema, value any, depth int) bool {
	if s == nil || depth > 100 {
		return true
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok && !j.value(pointer, j.defs[name], value, depth+1) {
		return false
	}
	for _, all := range s.AllOf {
		if !j.value(pointer, all, value, depth+1) {
			return false
		}
	}
	is, types := typeOf(value), s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) > 0 && !slices.Contains(types, is) && (is != "integer" || !slices.Contains(types, "number")) {
		want := types[0]
		if want == "null" && len(types) > 1 {
			want = types[1]
		}
		if is == "number" && want == "integer" {
			return j.say(pointer, "it is %v, want a whole number", value)
		}
		if is == "integer" {
			is = "number"
		}
		return j.say(pointer, "%s", misfit.Type(is, want))
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return text(e) == text(value) }) {
		return j.say(pointer, "it is %.64s, want one of %.256s", text(value), text(s.Enum))
	}
	if s.Const != nil && text(*s.Const) != text(value) {
		return j.say(pointer, "it is %.64s, want %.64s", text(value), text(*s.Const))
	}
	switch x := value.(type) {
	case float64:
		return j.number(pointer, s, x)
	case string:
		return j.text(pointer, s, x)
	case []any:
		return j.array(pointer, s, x, depth)
	case map[string]any:
		return j.object(pointer, s, x, depth)
	}
	return true
}

// text is a value as JSON.
func text(value any) string {
	t, _ := json.Marshal(value)
	return string(t)
}

func (j *judge) number(pointer string, s *jsonschema.Schema, x float64) bool {
	for _, bound := range []struct {
		limit *float64
		bad   func(limit float64) bool
		want  string
	}{
		{s.Minimum, func(l float64) bool { return x < l }, "%v or more"},
		{s.Maximum, func(l float64) bool { return x > l }, "%v or less"},
		{s.ExclusiveMinimum, func(l float64) bool { return x <= l }, "more than %v"},
		{s.ExclusiveMaximum, func(l float64) bool { return x >= l }, "less than %v"},
		{s.MultipleOf, func(l float64) bool { return math.Mod(x, l) != 0 }, "a multiple of %v"},
	} {
		if bound.limit != nil && bound.bad(*bound.limit) {
			return j.say(pointer, "it is %s, want "+bound.want, text(x), text(*bound.limit))
		}
	}
	return true
}

func (j *judge) text(pointer string, s *jsonschema.Schema, x string) bool {
	switch n := utf8.RuneCountInString(x); {
	case s.MinLength != nil && n < *s.MinLength:
		return j.say(pointer, "it has %d characters, want %d or more", n, *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		return j.say(pointer, "it has %d characters, want %d or less", n, *s.MaxLength)
	case s.Pattern != "":
		if r, err := (&jsonschema.Schema{Pattern: s.Pattern}).Resolve(nil); err == nil && r.Validate(x) != nil {
			return j.say(pointer, "it does not match the pattern %.128s", s.Pattern)
		}
	}
	return true
}

func (j *judge) array(pointer string, s *jsonschema.Schema, x []any, depth int) bool {
	switch {
	case s.MinItems != nil && len(x) < *s.MinItems:
		return j.say(pointer, "it has %d items, want %d or more", len(x), *s.MinItems)
	case s.MaxItems != nil && len(x) > *s.MaxItems:
		return j.say(pointer, "it has %d items, want %d or less", len(x), *s.MaxItems)
	}
	for i, one := range x {
		if !j.value(pointer+"/"+strconv.Itoa(i), s.Items, one, depth+1) {
			return false
		}
	}
	return true
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1")

func (j *judge) object(pointer string, s *jsonschema.Schema, x map[string]any, depth int) bool {
	for _, name := range s.Required {
		if _, ok := x[name]; !ok {
			return j.say(pointer+"/"+escaped.Replace(name), misfit.Missing)
		}
	}
	rest := s.AdditionalProperties
	closed := rest != nil && rest.Not != nil && reflect.ValueOf(*rest.Not).IsZero() && len(s.PatternProperties) == 0
	for _, name := range slices.Sorted(maps.Keys(x)) {
		member, known := s.Properties[name]
		if place := pointer + "/" + escaped.Replace(name); !known && closed {
			return j.say(place, misfit.Unknown)
		} else if !known && len(s.PatternProperties) == 0 {
			member = rest
		}
		if !j.value(pointer+"/"+escaped.Replace(name), member, x[name], depth+1) {
			return false
		}
	}
	return true
}

// methods have the types that the SDK decodes parameters into, before anything of ours sees them, but for
// logging/setLevel, which the protocol deprecates.
var methods = map[string]reflect.Type{
	"initialize": reflect.TypeFor[sdk.InitializeParams](), "ping": reflect.TypeFor[sdk.PingParams](),
	"tools/call": reflect.TypeFor[sdk.CallToolParamsRaw](), "tools/list": reflect.TypeFor[sdk.ListToolsParams](),
	"tasks/get": reflect.TypeFor[taskParams](), "tasks/update": reflect.TypeFor[updateParams](),
	"tasks/cancel":             reflect.TypeFor[taskParams](),
	"prompts/get":              reflect.TypeFor[sdk.GetPromptParams](),
	"prompts/list":             reflect.TypeFor[sdk.ListPromptsParams](),
	"resources/list":           reflect.TypeFor[sdk.ListResourcesParams](),
	"resources/templates/list": reflect.TypeFor[sdk.ListResourceTemplatesParams](),
	"resources/read":           reflect.TypeFor[sdk.ReadResourceParams](),
	"resources/subscribe":      reflect.TypeFor[sdk.SubscribeParams](),
	"resources/unsubscribe":    reflect.TypeFor[sdk.UnsubscribeParams](),
	"completion/complete":      reflect.TypeFor[sdk.CompleteParams](),
}

// wrongParams refuses parameters that the SDK cannot decode; nil: it can.
func wrongParams(method string, params json.RawMessage) *jsonrpc.Error {
	t, ok := methods[method]
	if !ok || len(params) == 0 {
		return nil
	}
	if err := decode(params, reflect.New(t).Interface()); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: " + err.Error()}
	}
	return nil
}
