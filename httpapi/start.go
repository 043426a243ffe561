package httpapi

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/option"
)

// given is the input of what a body asks for.
type given struct {
	Input  json.RawMessage `json:"input,omitempty" jsonschema:"any JSON value, at most 1 MiB; the input of the handler. Default null"`
	Base64 []byte          `json:"input_base64,omitempty" jsonschema:"instead of input, bytes that are not JSON"`
}

// check refuses two inputs; at is where they are in the body.
func (g *given) check(at string) error {
	if g.Input != nil && g.Base64 != nil {
		return invalid(at+"/input_base64", "input is set, too; want one of the two")
	}
	return nil
}

// input is what the handler gets.
func (g *given) input() []byte {
	if g.Base64 != nil {
		return g.Base64
	}
	return value(g.Input)
}

// start judges what only a body can get wrong in what an execution starts with; at is where that is in the body.
func (c *call) start(s *flowfabric.Start, at string) error {
	switch {
	case s.Kind == "":
		return invalid(at+"/kind", "it is missing")
	case s.Delay != 0 && !s.DelayUntil.IsZero():
		return invalid(at+"/delay_until", "delay_ms is there, too")
	case s.Deadline != 0 && !s.DeadlineAt.IsZero():
		return invalid(at+"/deadline_at", "deadline_ms is there, too")
	}
	return nil
}

// whole is start for what is submitted by itself, which says who submits it where.
func (c *call) whole(s *flowfabric.Start, at string) (err error) {
	if err = c.start(s, at); err == nil {
		s.Creator = c.who.Name
		s.Namespace, err = c.namespace(s.Namespace)
	}
	return err
}

// fit drops from the schema of a type what does not belong where a word with the tag for is embedded, and requires what
// the tag required says.
func fit(s *jsonschema.Schema, t reflect.Type) {
	for s != nil && kinds[t] == nil && t.Kind() != reflect.Struct {
		switch t.Kind() {
		case reflect.Slice:
			s, t = s.Items, t.Elem()
		case reflect.Map:
			s, t = s.AdditionalProperties, t.Elem()
		case reflect.Pointer:
			t = t.Elem()
		default:
			return
		}
	}
	if s == nil || kinds[t] != nil {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		place, placed := f.Tag.Lookup("for")
		switch {
		case f.Anonymous && placed:
			s.Required = append(s.Required, strings.Fields(f.Tag.Get("required"))...)
			for _, m := range reflect.VisibleFields(f.Type) {
				if name, _, _ := strings.Cut(m.Tag.Get("json"), ","); name != "" && !option.Takes(m, place) {
					delete(s.Properties, name)
					s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
				}
			}
		case f.Anonymous && name == "":
			fit(s, f.Type)
		default:
			fit(s.Properties[name], f.Type)
		}
	}
}

func ms(n int64) time.Duration { return times(n, time.Millisecond) }

// times is n units, or the longest duration, which every bound refuses: a product that overflows could be a legal one.
func times(n int64, unit time.Duration) time.Duration {
	most := math.MaxInt64 / int64(unit)
	switch {
	case n > most:
		return math.MaxInt64
	case n < -most:
		return math.MinInt64
	}
	return time.Duration(n) * unit
}
