// Package jsonplan decodes JSON into structs in one pass, where encoding/json makes two and allocates for each: payloads of jobs are decoded once
// a job, and that was a fifth of what a job costs its worker.
//
// It knows what encoding/json writes for plain data: structs, strings, numbers, booleans and slices of them. A field of another type
// (a pointer, a map, a time) is left to encoding/json, alone. Whatever is out of the ordinary (a null, a name that is unknown or in
// other letter case, a repeated one, text that is not UTF-8, an error) makes [Decode] give up without a trace, and then encoding/json decides.
// So the result is always that of encoding/json; a fuzz test holds the two together.
package jsonplan

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// maxFields of a struct that has a plan: their names that were seen are the bits of one word.
const maxFields = 64

// plan is how values of one type are decoded.
type plan struct {
	kind   reflect.Kind // Invalid: by encoding/json
	bits   int          // of a number
	fields []field      // of a struct
	elem   *plan        // of a slice
}

type field struct {
	name  string
	index int
	plan  *plan
}

// foreign is the plan of what is left to encoding/json.
var foreign = &plan{}

var plans sync.Map // of reflect.Type: *plan

// Decode decodes data into the value that v points to, and tells whether it did. If not, or if that value is not its type's zero, nothing has
// changed.
func Decode(data []byte, v any) bool {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return false
	}
	target = target.Elem()
	p := of(target.Type())
	if p == foreign || !target.IsZero() {
		return false
	}
	d := decoder{data: data}
	if d.value(p, target) && d.end() {
		return true
	}
	target.SetZero()
	return false
}

// of is the plan of a type.
func of(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := build(t, nil)
	plans.Store(t, p)
	return p
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// build makes a plan; within are the types that it is a part of, which have none yet.
func build(t reflect.Type, within []reflect.Type) *plan {
	ptr := reflect.PointerTo(t)
	if ptr.Implements(unmarshaler) || ptr.Implements(textUnmarshaler) || t == reflect.TypeFor[json.Number]() || slices.Contains(within, t) {
		return foreign
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool:
		return &plan{kind: t.Kind()}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &plan{kind: reflect.Int64, bits: t.Bits()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &plan{kind: reflect.Uint64, bits: t.Bits()}
	case reflect.Float32, reflect.Float64:
		return &plan{kind: reflect.Float64, bits: t.Bits()}
	case reflect.Slice:
		if elem := build(t.Elem(), append(within, t)); elem != foreign && t.Elem().Kind() != reflect.Uint8 { // bytes are base64
			return &plan{kind: reflect.Slice, elem: elem}
		}
	case reflect.Struct:
		return structure(t, append(within, t))
	}
	return foreign
}

func structure(t reflect.Type, within []reflect.Type) *plan {
	p := &plan{kind: reflect.Struct}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if !f.IsExported() && !f.Anonymous || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		repeated := slices.ContainsFunc(p.fields, func(x field) bool { return x.name == name })
		if f.Anonymous || repeated || !plain(name) || slices.Contains(strings.Split(options, ","), "string") || len(p.fields) == maxFields {
			return foreign
		}
		p.fields = append(p.fields, field{name, i, build(f.Type, within)})
	}
	return p
}

// plain tells of names that mean to encoding/json what they say.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
	})
}

// decoder walks the data. Every method returns false where it gives up.
type decoder struct {
	data []byte
	at   int
}

// space skips white space and tells what follows; 0 is the end.
func (d *decoder) space() byte {
	for ; d.at < len(d.data); d.at++ {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take takes c, after white space.
func (d *decoder) take(c byte) bool {
	if d.space() != c || d.at == len(d.data) {
		return false
	}
	d.at++
	return true
}

func (d *decoder) end() bool {
	d.space()
	return d.at == len(d.data)
}

func (d *decoder) value(p *plan, v reflect.Value) bool {
	switch p.kind {
	case reflect.Struct:
		return d.object(p, v)
	case reflect.Slice:
		return d.array(p, v)
	case reflect.String:
		s, ok := d.text()
		if ok {
			v.SetString(s)
		}
		return ok
	case reflect.Bool:
		return d.boolean(v)
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		return d.number(p, v)
	}
	return d.other(v)
}

func (d *decoder) object(p *plan, v reflect.Value) bool {
	if !d.take('{') {
		return false
	}
	if d.take('}') {
		return true
	}
	var seen uint64
	for next := 0; ; next++ {
		i := d.name(p, next)
		if i < 0 || seen&(1<<i) != 0 || !d.take(':') || !d.value(p.fields[i].plan, v.Field(p.fields[i].index)) {
			return false
		}
		seen |= 1 << i
		next = i
		if d.take('}') {
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

// name reads the name of a field and returns its place, -1 if there is none. guess is where it usually is.
func (d *decoder) name(p *plan, guess int) int {
	if !d.take('"') {
		return -1
	}
	rest := d.data[d.at:]
	is := func(i int) bool {
		n := len(p.fields[i].name)
		return len(rest) > n && rest[n] == '"' && string(rest[:n]) == p.fields[i].name
	}
	for n := range p.fields {
		i := guess + n
		if i >= len(p.fields) {
			i -= len(p.fields)
		}
		if is(i) {
			d.at += len(p.fields[i].name) + 1
			return i
		}
	}
	return -1
}

func (d *decoder) array(p *plan, v reflect.Value) bool {
	if !d.take('[') {
		return false
	}
	if d.take(']') {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return true
	}
	for n := 0; ; n++ {
		v.Grow(1)
		v.SetLen(n + 1)
		if !d.value(p.elem, v.Index(n)) {
			return false
		}
		if d.take(']') {
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

// text reads a string.
func (d *decoder) text() (string, bool) {
	if !d.take('"') {
		return "", false
	}
	begin, ascii := d.at, true
	for ; d.at < len(d.data); d.at++ {
		switch c := d.data[d.at]; {
		case c == '"':
			raw := d.data[begin:d.at]
			d.at++
			return string(raw), ascii || utf8.Valid(raw)
		case c == '\\':
			return d.escaped(begin)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// escaped reads on where the first escape of a string is.
func (d *decoder) escaped(begin int) (string, bool) {
	out := append(make([]byte, 0, d.at-begin+64), d.data[begin:d.at]...)
	for d.at < len(d.data) {
		c := d.data[d.at]
		d.at++
		switch {
		case c == '"':
			return unsafe.String(unsafe.SliceData(out), len(out)), utf8.Valid(out)
		case c < ' ':
			return "", false
		case c != '\\':
			out = append(out, c)
			continue
		}
		if d.at == len(d.data) {
			return "", false
		}
		c = d.data[d.at]
		d.at++
		if c == 'u' {
			if len(d.data)-d.at < 4 {
				return "", false
			}
			r, err := strconv.ParseUint(string(d.data[d.at:d.at+4]), 16, 16)
			if err != nil || 0xD800 <= r && r < 0xE000 { // halves of what is outside the first plane
				return "", false
			}
			d.at += 4
			out = utf8.AppendRune(out, rune(r))
			continue
		}
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return "", false
		}
		out = append(out, "\"\\/\b\f\n\r\t"[i])
	}
	return "", false
}

func (d *decoder) boolean(v reflect.Value) bool {
	d.space()
	rest := d.data[d.at:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		v.SetBool(true)
		d.at += 4
	case len(rest) >= 5 && string(rest[:5]) == "false":
		d.at += 5
	default:
		return false
	}
	return true
}

// number reads what JSON calls a number.
func (d *decoder) number(p *plan, v reflect.Value) bool {
	d.space()
	begin, whole := d.at, true
	digits := func() bool {
		from := d.at
		for d.at < len(d.data) && '0' <= d.data[d.at] && d.data[d.at] <= '9' {
			d.at++
		}
		return d.at > from
	}
	next := func(set string) bool {
		if d.at < len(d.data) && strings.IndexByte(set, d.data[d.at]) >= 0 {
			d.at++
			return true
		}
		return false
	}
	next("-")
	if !next("0") && !digits() {
		return false
	}
	if next(".") {
		if whole = false; !digits() {
			return false
		}
	}
	if next("eE") {
		next("+-")
		if whole = false; !digits() {
			return false
		}
	}
	text := unsafe.String(unsafe.SliceData(d.data[begin:d.at]), d.at-begin)
	switch p.kind {
	case reflect.Int64:
		n, err := strconv.ParseInt(text, 10, p.bits)
		v.SetInt(n)
		return whole && err == nil
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, p.bits)
		v.SetUint(n)
		return whole && err == nil
	}
	f, err := strconv.ParseFloat(text, p.bits)
	v.SetFloat(f)
	return err == nil
}

// other leaves a value to encoding/json, which checks it as well: here it is only found out where it ends.
func (d *decoder) other(v reflect.Value) bool {
	d.space()
	begin := d.at
	for depth := 0; d.at < len(d.data); d.at++ {
		switch d.data[d.at] {
		case '{', '[':
			depth++
			continue
		case '"':
			if !d.skip() {
				return false
			}
			continue
		case '}', ']':
			if depth--; depth > 0 {
				continue
			} else if depth == 0 {
				d.at++
			}
		case ',':
			if depth > 0 {
				continue
			}
		default:
			continue
		}
		return json.Unmarshal(d.data[begin:d.at], v.Addr().Interface()) == nil
	}
	return false
}

// skip goes to the quote that ends a string.
func (d *decoder) skip() bool {
	for d.at++; d.at < len(d.data); d.at++ {
		switch d.data[d.at] {
		case '"':
			return true
		case '\\':
			d.at++
		}
	}
	return false
}
