package clientmodels

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// Kinds are the declarations of the inputs and results of kinds, each behind those that it refers to, except where
// types refer to each other.
type Kinds struct {
	types []kindType
	kinds []kindNames
}

// kindType is an object with known members, or another type that has a name.
type kindType struct {
	name, doc string
	object    bool
	fields    []kindField
	open      bool // of an object: members are allowed whose names the schema does not say, but something of them
	is        kindShape
}

type kindField struct {
	name, doc string
	optional  bool
	is        kindShape
}

// kindNames are the names of what a kind takes and gives, "" for what is not known.
type kindNames struct{ kind, input, result string }

// kindShape is the type of a value.
type kindShape struct {
	sort  kindSort
	parts []kindShape // of a union, a tuple, or the only one of a list or dictionary
	name  string      // of what is declared; or the JSON of a literal
}

type kindSort int

const (
	kindAny kindSort = iota
	kindNever
	kindNull
	kindFlag
	kindInteger
	kindNumber
	kindText
	kindLiteral
	kindList
	kindTuple
	kindDict
	kindUnion
	kindNamed
)

// OfKinds makes the declarations of kinds, whose schemas were checked.
func OfKinds(all map[string]apiv1.KindSchemas) (k Kinds, err error) {
	names := map[string]bool{}
	for _, name := range append([]string{"Kinds"}, reserved...) {
		names[name] = true
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		made := kindNames{kind: kind}
		for _, half := range []struct {
			word   string
			schema json.RawMessage
			name   *string
		}{{"Input", all[kind].Input, &made.input}, {"Result", all[kind].Result, &made.result}} {
			if half.schema == nil {
				continue
			}
			var s jsonschema.Schema
			if err := json.Unmarshal(half.schema, &s); err != nil {
				return k, fmt.Errorf("kind %q: %s: %w", kind, strings.ToLower(half.word), err)
			}
			b := &kindBuilder{root: &s, base: typeName(kind), names: names, refs: map[string]*kindRef{},
				out: &k.types}
			*half.name = b.refer("#", &s, b.base+half.word).name
		}
		k.kinds = append(k.kinds, made)
	}
	return k, nil
}

// typeName is a text as a name of a type in both languages: its words, each with a capital letter.
func typeName(text string) string {
	var b strings.Builder
	begins := true
	for _, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		switch {
		case !letter && (r < '0' || r > '9'):
			begins = true
			continue
		case begins && letter:
			r = []rune(strings.ToUpper(string(r)))[0]
		}
		if b.Len() == 0 && !letter {
			b.WriteString("Kind")
		}
		b.WriteRune(r)
		begins = false
	}
	return cmp.Or(b.String(), "Kind")
}

// kindBuilder declares what one schema has in it.
type kindBuilder struct {
	root  *jsonschema.Schema
	base  string
	names map[string]bool // that are taken
	refs  map[string]*kindRef
	depth int // of the objects whose members are being looked at
	out   *[]kindType
}

// kindRef is what a reference leads to. depth is how many objects were around it when it was begun: a type may refer
// to itself only from inside an object.
type kindRef struct {
	name  string
	done  bool
	depth int
}

// unique claims a name.
func (b *kindBuilder) unique(name string) string {
	for n := 1; ; n++ {
		own := name
		if n > 1 {
			own += strconv.Itoa(n)
		}
		if !b.names[own] {
			b.names[own] = true
			return own
		}
	}
}

// refer is the type under a reference, which it declares.
func (b *kindBuilder) refer(ref string, s *jsonschema.Schema, name string) kindShape {
	if known := b.refs[ref]; known != nil {
		if !known.done && b.depth <= known.depth {
			return kindShape{}
		}
		return kindShape{sort: kindNamed, name: known.name}
	}
	known := &kindRef{name: b.unique(name), depth: b.depth}
	b.refs[ref] = known
	b.declare(known.name, s)
	known.done = true
	return kindShape{sort: kindNamed, name: known.name}
}

// declare adds the declaration of a schema behind those of its parts.
func (b *kindBuilder) declare(name string, s *jsonschema.Schema) {
	t := kindType{name: name, doc: docOf(s)}
	if whole := b.whole(s); isObject(whole) {
		t.object, t.fields, t.open = true, b.fields(whole, name), opens(whole)
	} else {
		t.is = b.shape(s, name)
	}
	*b.out = append(*b.out, t)
}

// isObject tells whether a schema is that of an object with known members, and of nothing else.
func isObject(s *jsonschema.Schema) bool {
	return (s.Type == "object" || s.Type == "" && s.Types == nil) && len(s.Properties) > 0 && s.Ref == "" &&
		s.AnyOf == nil && s.OneOf == nil && s.AllOf == nil && s.Enum == nil && s.Const == nil
}

func opens(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && !refuses(s.AdditionalProperties) || len(s.PatternProperties) > 0
}

// refuses tells whether a schema takes nothing.
func refuses(s *jsonschema.Schema) bool { return s.Not != nil && reflect.ValueOf(*s.Not).IsZero() }

// docOf is what a schema says of itself.
func docOf(s *jsonschema.Schema) string {
	doc := cmp.Or(s.Description, s.Title)
	if s.Format != "" {
		doc = strings.TrimSpace(doc + " Format: " + s.Format + ".")
	}
	if s.ContentEncoding != "" {
		doc = strings.TrimSpace(doc + " Encoding: " + s.ContentEncoding + ".")
	}
	return doc
}

func (b *kindBuilder) fields(s *jsonschema.Schema, name string) (all []kindField) {
	b.depth++
	defer func() { b.depth-- }()
	members := slices.Collect(maps.Keys(s.Properties))
	for _, member := range s.Required {
		if s.Properties[member] == nil {
			members = append(members, member)
		}
	}
	slices.Sort(members)
	for _, member := range slices.Compact(members) {
		f := kindField{name: member, optional: !slices.Contains(s.Required, member)}
		if p := s.Properties[member]; p != nil {
			f.doc, f.is = docOf(p), b.shape(p, name+typeName(member))
		}
		all = append(all, f)
	}
	return all
}

// whole is a schema with what its allOf says in it, as far as that can be put together.
func (b *kindBuilder) whole(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.AllOf) == 0 {
		return s
	}
	if len(s.AllOf) == 1 && bare(s) { // a reference with a description
		return s.AllOf[0]
	}
	out := *s
	out.AllOf = nil
	for _, part := range s.AllOf {
		out = *b.both(&out, b.whole(b.target(part)))
	}
	return &out
}

// bare tells whether a schema says nothing beside its allOf, anyOf or oneOf.
func bare(s *jsonschema.Schema) bool {
	return s.Type == "" && s.Types == nil && len(s.Properties) == 0 && len(s.Required) == 0
}

// target is what a reference leads to, or the schema itself.
func (b *kindBuilder) target(s *jsonschema.Schema) *jsonschema.Schema {
	for range 100 {
		if s.Ref == "" {
			return s
		}
		to := b.find(s.Ref)
		if to == nil {
			return &jsonschema.Schema{}
		}
		s = to
	}
	return &jsonschema.Schema{}
}

// both is a schema of what fits two. Of what they say about the same, the second counts.
func (b *kindBuilder) both(x, y *jsonschema.Schema) *jsonschema.Schema {
	out := *x
	if y.Type != "" || y.Types != nil {
		out.Type, out.Types = y.Type, y.Types
	}
	out.Properties = maps.Clone(x.Properties)
	for name, p := range y.Properties {
		if out.Properties == nil {
			out.Properties = map[string]*jsonschema.Schema{}
		}
		out.Properties[name] = p
	}
	out.Required = slices.Concat(x.Required, y.Required)
	for _, pair := range []struct{ to, from **jsonschema.Schema }{{&out.Items, &y.Items},
		{&out.AdditionalProperties, &y.AdditionalProperties}} {
		if *pair.from != nil {
			*pair.to = *pair.from
		}
	}
	for _, pair := range []struct{ to, from *[]*jsonschema.Schema }{{&out.AnyOf, &y.AnyOf}, {&out.OneOf, &y.OneOf},
		{&out.PrefixItems, &y.PrefixItems}} {
		if *pair.from != nil {
			*pair.to = *pair.from
		}
	}
	if y.Enum != nil {
		out.Enum = y.Enum
	}
	if y.Const != nil {
		out.Const = y.Const
	}
	out.Description, out.Format = cmp.Or(x.Description, y.Description), cmp.Or(x.Format, y.Format)
	return &out
}

// find follows a reference within the schema; nil if it leads nowhere.
func (b *kindBuilder) find(ref string) *jsonschema.Schema {
	if ref == "#" {
		return b.root
	}
	text, err := json.Marshal(b.root)
	var at any
	if err != nil || json.Unmarshal(text, &at) != nil {
		return nil
	}
	pointer, _ := strings.CutPrefix(ref, "#/")
	for _, name := range strings.Split(pointer, "/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(v) {
				return nil
			}
			at = v[n]
		default:
			return nil
		}
	}
	var s jsonschema.Schema
	if text, err = json.Marshal(at); err != nil || json.Unmarshal(text, &s) != nil {
		return nil
	}
	return &s
}

// What is put together of allOf has no end if a schema refers to itself there. Behind these bounds everything is any.
const (
	mostDeep  = 32
	mostTypes = 10_000
)
