package conformance

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

var functionsByName = sync.OnceValue(func() map[string]contract.Function {
	out := map[string]contract.Function{}
	for _, f := range contract.Functions() {
		out[f.Name] = f
	}
	return out
})

// shaped holds a call to the header of its function: every call that scenarios make by themselves is, so that a header
// cannot say what is not so. A batch answers for each of its items, which may be of a type that it refuses.
func (w *env) shaped(name string, args []string, a answer) {
	w.Helper()
	f := functionsByName()[name]
	if a.status == 0 {
		if !slices.Contains(f.Errors, a.code) {
			w.Errorf("%s refuses with %s, which is not among the errors of its header", name, a.code)
		}
		return
	}
	refused := slices.ContainsFunc(a.slots, func(slot string) bool {
		return strings.HasPrefix(slot, "-") || slot == "refused" // by a schedule that fires
	})
	plain := unnoted(args) // a note behind the protocol number is none of its arguments
	values, err := contract.Decode(f.Args, plain)
	if err != nil && !w.hostile && !refused {
		w.Errorf("the arguments of %s are not what its header says: %v", name, err)
	}
	if err == nil && !w.hostile { // -0 is a whole number, but nobody writes it
		w.written(name, plain, values)
	}
	if a.status != 1 {
		w.Errorf("%s answers %s with status %d", name, a.code, a.status)
	}
	slots, ok := f.Reply(a.code)
	if !ok {
		w.Errorf("%s answers %s, which its header does not say", name, a.code)
	}
	if values, err = contract.Decode(slots, a.slots); err != nil {
		w.Errorf("%s answers %s, but not what its header says: %v", name, a.code, err)
		return
	}
	w.answered(name, a, values)
}

// written holds what package wire writes to arguments of the suite.
func (w *env) written(name string, args []string, values []contract.Value) {
	w.Helper()
	q := wire.Calls[name]()
	first := args[:min(1, len(args))]
	if len(values) > 0 && values[0].Slot.Name == "protocol" {
		values = values[1:]
	} else {
		first = nil
	}
	if rest := fill(reflect.ValueOf(q).Elem(), values); len(rest) > 0 {
		w.Errorf("%T has no place for %v", q, rest)
	}
	if got := q.Append(slices.Clone(first)); !slices.EqualFunc(got, args, sameSlot) {
		w.Errorf("%T writes %q, want %q", q, got, args)
	}
}

// sameSlot tells whether two slots say the same: a number may be written as -0, and a time that is none as 0.
func sameSlot(a, b string) bool {
	zero := func(text string) bool { return text == "" || text == "0" || text == "-0" }
	return a == b || zero(a) && zero(b)
}

// answered holds what package wire reads to an answer of the suite.
func (w *env) answered(name string, a answer, values []contract.Value) {
	w.Helper()
	if wire.Replies[name] == nil { // by hand
		return
	}
	got, want := wire.Replies[name](), wire.Replies[name]()
	r := wire.NewReader(wire.Texts(a.slots), 0)
	r.Already = a.code == "ALREADY_SATISFIED"
	got.Read(&r)
	if rest := fill(reflect.ValueOf(want).Elem(), values); len(rest) > 0 {
		w.Errorf("%T has no place for %v", got, rest)
	}
	if r.Err != nil || r.More() || !reflect.DeepEqual(got, want) {
		w.Errorf("%T reads %q as %+v, %v, want %+v", got, a.slots, got, r.Err, want)
	}
}

// fill sets the fields of a call or an answer to the values that have their names, in order, and returns the others.
func fill(v reflect.Value, values []contract.Value) []contract.Value {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		switch {
		case field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[time.Time]():
			values = fill(field, values)
		case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct:
			if len(values) > 0 && begins(field.Type().Elem(), contract.GoName(values[0].Slot.Name)) {
				field.Set(reflect.New(field.Type().Elem()))
				values = fill(field.Elem(), values)
			}
		case name == "All" && field.Kind() == reflect.Slice:
			for before := -1; len(values) > 0 && len(values) != before; {
				one := reflect.New(field.Type().Elem()).Elem()
				before = len(values)
				values = fill(one, values)
				field.Set(reflect.Append(field, one))
			}
		case len(values) > 0 && contract.GoName(values[0].Slot.Name) == name:
			text := values[0].Text
			values = values[1:]
			switch field.Kind() {
			case reflect.Slice:
				n, _ := strconv.Atoi(text)
				field.Set(reflect.MakeSlice(field.Type(), n, n))
				for i := range n {
					if field.Type().Elem().Kind() == reflect.Struct {
						values = fill(field.Index(i), values)
						continue
					}
					set(field.Index(i), values[0].Text)
					values = values[1:]
				}
			case reflect.Map:
				n, _ := strconv.Atoi(text)
				for range n {
					if field.IsNil() {
						field.Set(reflect.MakeMap(field.Type()))
					}
					field.SetMapIndex(reflect.ValueOf(values[0].Text), reflect.ValueOf(values[1].Text))
					values = values[2:]
				}
			default:
				set(field, text)
			}
		}
	}
	return values
}

// begins tells whether a structure begins with a field.
func begins(t reflect.Type, name string) bool {
	first := t.Field(0)
	return first.Name == name || first.Type.Kind() == reflect.Struct && begins(first.Type, name)
}

// set sets a field to the text of a slot.
func set(v reflect.Value, text string) {
	if v.Kind() == reflect.Pointer {
		if text == "" {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		v.SetBool(text == "1")
	case v.Type() == reflect.TypeFor[[16]byte]():
		id, _ := uuid.Parse(text)
		v.Set(reflect.ValueOf([16]byte(id)))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(n * int64(time.Millisecond))
	case v.Kind() == reflect.Int:
		v.SetInt(n)
	case n != 0:
		v.Set(reflect.ValueOf(time.UnixMilli(n).UTC()))
	}
}
