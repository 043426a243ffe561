// Package option applies what the options of the root package say.
package option

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Apply lets s say what an option of the root package says; index is its place among the options of the call.
// flowfabric.ErrInvalidInput for nil, for anything that the root package did not make, and for a second key.
func Apply(s *flowfabric.Start, index int, option any) error {
	before := s.Key
	switch o := option.(type) {
	case flowfabric.Key:
		s.Key = &o
	case interface{ Set(s *flowfabric.Start) }:
		o.Set(s)
	default:
		return fmt.Errorf("%w: option %d is nil or not an option of flowfabric", flowfabric.ErrInvalidInput, index)
	}
	if before != nil && s.Key != before {
		return ErrTwoKeys
	}
	return nil
}

// ErrTwoKeys refuses a second key.
var ErrTwoKeys = fmt.Errorf("%w: there are two keys, want one key", flowfabric.ErrInvalidInput)

// Over lets options say something over the defaults that s has: limits of keys add up among the options, and then
// replace those of the defaults.
func Over(s *flowfabric.Start, say func() error) error {
	defaults := s.Limits
	s.Limits = nil
	err := say()
	if s.Limits == nil {
		s.Limits = defaults
	}
	return err
}

// Chosen is an option by which a test chooses the id of an execution.
type Chosen interface{ ChosenID() uuid.UUID }

// Foreign refuses what s says that belongs to none of some places, as the tag for of [flowfabric.Start] has them.
// flowfabric.ErrInvalidInput with the JSON members and whose they are not.
func Foreign(s *flowfabric.Start, places, whose string) error {
	var names []string
	v := reflect.ValueOf(s).Elem()
	for _, f := range foreign(places) {
		if !v.FieldByIndex(f.Index).IsZero() {
			names = append(names, member(f))
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: no member of %s", flowfabric.ErrInvalidInput, strings.Join(names, ", "), whose)
}

// strange are the members that belong to none of some places, by these.
var strange sync.Map

func foreign(places string) []reflect.StructField {
	if known, ok := strange.Load(places); ok {
		return known.([]reflect.StructField)
	}
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[flowfabric.Start]()) {
		if _, placed := f.Tag.Lookup("for"); placed && !Takes(f, places) {
			out = append(out, f)
		}
	}
	strange.Store(places, out)
	return out
}

func member(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
		return name
	}
	return f.Name
}

// Takes reports whether a member of [flowfabric.Start] belongs to one of some places, as the tag for has them.
func Takes(f reflect.StructField, places string) bool {
	return slices.ContainsFunc(strings.Fields(f.Tag.Get("for")), func(place string) bool {
		return slices.Contains(strings.Fields(places), place)
	})
}
