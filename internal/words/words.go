// Package words reads what is said in the tags of the types that people meet: who may see a field. A word is one
// exported struct, whose JSON is the same at every door; a door that shows it to somebody who may see less blanks
// fields by their tag see.
package words

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Shown is v for a reader: f is called with each field under v that has the tag see, and with what it says: a class
// of readers, such as operator, and behind a comma what else is known of it. It may set the field. v itself is not
// changed, whoever else has it. Fields of interfaces and values of maps are not looked into.
func Shown[T any](v T, f func(class, about string, field reflect.Value)) T {
	from := reflect.ValueOf(v)
	if !from.IsValid() || !tagged(from.Type()) {
		return v
	}
	to := reflect.New(from.Type()).Elem()
	to.Set(from)
	show(to, f)
	return to.Interface().(T)
}

// Blanked is v without the fields that only readers of these classes may see.
func Blanked[T any](v T, classes ...string) T {
	return Shown(v, func(class, _ string, field reflect.Value) {
		if slices.Contains(classes, class) {
			field.SetZero()
		}
	})
}

// show calls f with what is under v, having put copies in the place of what v shares with others.
func show(v reflect.Value, f func(class, about string, field reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			if see := field.Tag.Get("see"); see != "" {
				class, about, _ := strings.Cut(see, ",")
				f(class, about, v.Field(i))
			} else if tagged(field.Type) {
				show(v.Field(i), f)
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			show(own.Index(i), f)
		}
		v.Set(own)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		show(own.Elem(), f)
		v.Set(own)
	}
}

// known tells of each type whether a field with the tag is under it.
var known sync.Map

func tagged(t reflect.Type) bool {
	if has, ok := known.Load(t); ok {
		return has.(bool)
	}
	has := look(t, map[reflect.Type]bool{})
	known.Store(t, has)
	return has
}

func look(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() && (f.Tag.Get("see") != "" || look(f.Type, seen)) {
				return true
			}
		}
	case reflect.Slice, reflect.Pointer:
		return look(t.Elem(), seen)
	}
	return false
}
