package mergepatch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Value is a JSON value as far as a merge needs it: an object with its members in order of their keys, or any other
// value as its own text, so that numbers keep every digit. It never changes: a merge shares what it leaves alone.
type Value struct {
	text    string   // no object: the value without spaces
	members []member // an object
	object  bool
	Size    int // bytes of its text
}

type member struct {
	key   string // as it reads
	name  string // as it is written, with quotes: one spelling for each key
	value *Value
}

var null = leaf("null")

func leaf(text string) *Value { return &Value{text: text, Size: len(text)} }

func object(members []member) *Value {
	v := &Value{members: members, object: true, Size: len("{}") + max(len(members)-1, 0)}
	for _, m := range members {
		v.Size += len(m.name) + len(":") + m.value.Size
	}
	return v
}

// Append writes the value's text.
func (v *Value) Append(b []byte) []byte {
	if !v.object {
		return append(b, v.text...)
	}
	b = append(b, '{')
	for i, m := range v.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, m.name...), ':')
		b = m.value.Append(b)
	}
	return append(b, '}')
}

// Parse reads one JSON object of at most 16 levels of objects, those within arrays included. Of a key that occurs
// twice the last counts. The error wraps [flowfabric.ErrInvalidInput].
func Parse(text []byte) (*Value, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: not valid UTF-8", flowfabric.ErrInvalidInput)
	}
	var tight bytes.Buffer
	if err := json.Compact(&tight, text); err != nil {
		return nil, fmt.Errorf("%w: %w", flowfabric.ErrInvalidInput, err)
	}
	p := parser{rest: tight.String()}
	if p.rest[0] != '{' {
		return nil, fmt.Errorf("%w: %s, want an object", flowfabric.ErrInvalidInput, kindOf(p.rest[0]))
	}
	v := p.value(0)
	return v, p.err
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// parser walks over valid JSON without spaces; what it can find wrong is what JSON allows and a summary does not.
type parser struct {
	rest string
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", flowfabric.ErrInvalidInput, fmt.Sprintf(format, args...))
	}
}

// value takes one value that stands within level objects.
func (p *parser) value(level int) *Value {
	if p.rest[0] == '{' {
		return p.object(level + 1)
	}
	whole := p.rest
	p.skip(level)
	return leaf(whole[:len(whole)-len(p.rest)])
}

func (p *parser) object(level int) *Value {
	if level > limits.MaxSummaryDepth {
		p.fail("over %d levels of objects", limits.MaxSummaryDepth)
		p.rest = ""
		return null
	}
	var members []member
	for p.rest = p.rest[1:]; p.rest[0] != '}'; {
		name := p.string()
		p.rest = p.rest[1:] // the colon
		key := unquote(name)
		members = append(members, member{key: key, name: quote(key), value: p.value(level)})
		if p.err != nil {
			p.rest = ""
			return null
		}
		if p.rest[0] == ',' {
			p.rest = p.rest[1:]
		}
	}
	p.rest = p.rest[1:]
	slices.SortStableFunc(members, byKey)
	last := members[:0]
	for i, m := range members {
		if i+1 == len(members) || members[i+1].key != m.key {
			last = append(last, m)
		}
	}
	return object(last)
}

func byKey(a, b member) int { return strings.Compare(a.key, b.key) }

// skip passes over one value that is not taken apart, and looks at the numbers and objects in it.
func (p *parser) skip(level int) {
	switch p.rest[0] {
	case '{':
		p.object(level + 1)
	case '"':
		p.string()
	case '[':
		p.array(level)
	default:
		n := strings.IndexAny(p.rest, ",]}")
		if n < 0 {
			n = len(p.rest)
		}
		word := p.rest[:n]
		p.rest = p.rest[n:]
		if c := word[0]; c == '-' || c >= '0' && c <= '9' {
			p.number(word)
		}
	}
}

func (p *parser) array(level int) {
	p.rest = p.rest[1:]
	for p.rest[0] != ']' {
		p.skip(level)
		if p.err != nil {
			p.rest = "]"
			break
		}
		if p.rest[0] == ',' {
			p.rest = p.rest[1:]
		}
	}
	p.rest = p.rest[1:]
}

// number refuses what no reader's number can hold; every other one keeps its digits.
func (p *parser) number(text string) {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		p.fail("the number %.40s is out of range", text)
	}
}

// string takes a string with its quotes.
func (p *parser) string() string {
	for i := 1; ; i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '"':
			text := p.rest[:i+1]
			p.rest = p.rest[i+1:]
			return text
		}
	}
}

func unquote(text string) string {
	if !strings.ContainsRune(text, '\\') {
		return text[1 : len(text)-1]
	}
	var out string
	_ = json.Unmarshal([]byte(text), &out) // it is valid
	return out
}

// quote escapes what JSON demands and nothing else.
func quote(text string) string {
	b := append(make([]byte, 0, len(text)+2), '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// merged is target with a patch applied (RFC 7396). A nil target is one that does not exist.
func merged(target, patch *Value) *Value {
	if !patch.object {
		return patch.stored()
	}
	var old []member
	if target != nil && target.object {
		old = target.members
	}
	out := make([]member, 0, len(old)+len(patch.members))
	pair(old, patch.members, func(was, change *member) {
		switch {
		case change == nil:
			out = append(out, *was)
		case change.value.isNull():
		case was == nil:
			out = append(out, member{change.key, change.name, merged(nil, change.value)})
		default:
			out = append(out, member{was.key, was.name, merged(was.value, change.value)})
		}
	})
	return object(out)
}

// Compose is the patch that does what first and then second do. ok is false when there is none: a patch cannot say
// that an object takes the place of another instead of being merged into it.
func Compose(first, second *Value) (patch *Value, ok bool) {
	ok = true
	out := make([]member, 0, len(first.members)+len(second.members))
	pair(first.members, second.members, func(a, b *member) {
		switch {
		case b == nil:
			out = append(out, *a)
		case a == nil || !b.value.object:
			out = append(out, *b)
		case !a.value.object:
			ok = false
		default:
			inner, fits := Compose(a.value, b.value)
			ok = ok && fits
			out = append(out, member{a.key, a.name, inner})
		}
	})
	return object(out), ok
}

// pair visits the members of two objects in order of their keys, those of the same key together.
func pair(a, b []member, visit func(a, b *member)) {
	for len(a) > 0 || len(b) > 0 {
		order := cmp.Compare(len(b), 0) - cmp.Compare(len(a), 0) // the one that is left
		if len(a) > 0 && len(b) > 0 {
			order = byKey(a[0], b[0])
		}
		switch {
		case order < 0:
			visit(&a[0], nil)
			a = a[1:]
		case order > 0:
			visit(nil, &b[0])
			b = b[1:]
		default:
			visit(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
}

func (v *Value) isNull() bool { return !v.object && v.text == "null" }

// stored is what a patch's value that is no object becomes in the document.
func (v *Value) stored() *Value {
	if v.text[0] != '"' {
		return v
	}
	text := unquote(v.text)
	if text == Null {
		return null
	}
	if rest, escaped := strings.CutPrefix(text, Text); escaped {
		return leaf(quote(rest))
	}
	return v
}
