// Package misfit says in JSON's words what is wrong with a value that others have written: no reader of such a message
// knows our Go types.
package misfit

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wants is what a type of a JSON Schema wants.
var wants = map[string]string{"null": "null", "boolean": "true or false", "string": "a string",
	"integer": "a whole number", "number": "a number", "object": "an object", "array": "an array"}

// IsType tells whether a word is a type of a JSON Schema.
func IsType(word string) bool { return wants[word] != "" }

// Type says what a value of another type than a schema wants is.
func Type(is, want string) string { return fmt.Sprintf("it is a JSON %s, want %s", is, wants[want]) }

// Missing and Unknown are members that a schema requires, and that it does not have.
const (
	Missing = "it is missing"
	Unknown = "there is no such member"
)

// Format is what a value of the right type of JSON still has to be for a type of Go.
func Format(t reflect.Type) string {
	switch {
	case t == nil:
		return "value that is wanted here"
	case t == reflect.TypeFor[time.Time]():
		return "time like 2026-01-31T17:00:00Z"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "base64"
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return fmt.Sprintf("whole number from 0 to %d", uint64(math.MaxUint64)>>(64-t.Bits()))
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		most := int64(math.MaxInt64) >> (64 - t.Bits())
		return fmt.Sprintf("whole number from %d to %d", -most-1, most)
	}
	return "value that is wanted here"
}

// typeOf is the type of JSON that values of a type of Go have, "" if that is open.
func typeOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return typeOf(t.Elem())
	case k == reflect.Bool:
		return "boolean"
	case k == reflect.String:
		return "string"
	case k >= reflect.Int && k <= reflect.Uintptr:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "string"
	case k == reflect.Slice || k == reflect.Array:
		return "array"
	case k == reflect.Map || k == reflect.Struct && t != reflect.TypeFor[time.Time]():
		return "object"
	}
	return ""
}

// kinds are the types of values in JSON.
var kinds = map[jsontext.Kind]string{'n': "null", 't': "boolean", 'f': "boolean", '"': "string", '0': "number",
	'{': "object", '[': "array"}

// Decoding says why a JSON text cannot be decoded into what a pointer leads to: the place, as a JSON Pointer, and what
// is wrong with it. It changes that value, and is for a text that was refused.
func Decoding(text []byte, into any) (pointer, wrong string) {
	err := json.Unmarshal(text, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return string(syntax.JSONPointer), "it is not JSON"
	}
	bad, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return "", "it is no value that is wanted here"
	}
	is := kinds[bad.JSONKind]
	if bad.GoType != nil && is != "" {
		want := typeOf(bad.GoType)
		if want != "" && want != is && !(want == "integer" && is == "number") {
			return string(bad.JSONPointer), Type(is, want)
		}
	}
	return string(bad.JSONPointer), "it is no " + Format(bad.GoType)
}
