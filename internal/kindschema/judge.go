package kindschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/misfit"
)

// Wrong says where a value of JSON does not fit a schema, as a JSON Pointer, and what is wrong there; "" if it fits.
// People and models who send JSON are told in its words: the errors of validators print values as Go does.
func Wrong(r *jsonschema.Resolved, value any) (pointer, wrong string) {
	if r.Validate(value) == nil {
		return "", ""
	}
	j := judge{defs: r.Schema().Defs}
	if j.value("", r.Schema(), value, 0); j.wrong != "" {
		return j.pointer, j.wrong
	}
	return "", "it does not fit the schema"
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
	if !j.among(pointer, s.AnyOf, value, depth) || !j.among(pointer, s.OneOf, value, depth) {
		return false
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

// among tells whether a value fits one of several schemas. If none fits and one of them is clearly meant, because the
// value has its type, it says what does not fit that one.
func (j *judge) among(pointer string, all []*jsonschema.Schema, value any, depth int) bool {
	var meant []*judge
	for _, s := range all {
		other := &judge{defs: j.defs}
		if other.value(pointer, s, value, depth+1) {
			return true
		}
		beside := len(all) == 2 && slices.ContainsFunc(all, nullOnly) && !nullOnly(s)
		if other.pointer != pointer || len(all) == 1 || beside {
			meant = append(meant, other)
		}
	}
	switch {
	case len(all) == 0:
		return true
	case len(meant) == 1:
		j.pointer, j.wrong = meant[0].pointer, meant[0].wrong
		return false
	}
	return j.say(pointer, "it fits none of the %d schemas that it may have", len(all))
}

func nullOnly(s *jsonschema.Schema) bool { return s.Type == "null" }

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
