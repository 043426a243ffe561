// Package clientmodels writes the bodies of the HTTP API as types of other languages, for the clients of this
// repository. It is given what the OpenAPI document is made of, the Go types and their schemas, so that the document
// and the clients cannot disagree. Only a test of package httpapi uses that. From the JSON Schemas of kinds it makes
// the types that `flowfabric types` writes ([OfKinds]).
package clientmodels

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Root is a type that the API takes or answers, with what the document says of it.
type Root struct {
	Name   string // of its schema in the document
	Doc    string
	Type   reflect.Type
	Schema *jsonschema.Schema
}

// Models are the declarations of a client, each behind those that it refers to.
type Models struct {
	enums   []enum
	objects []object
}

// enum is a text with a known set of values.
type enum struct {
	name, doc string
	values    []string
	open      bool // others may come
}

// object is a JSON object with known members.
type object struct {
	name, doc string
	fields    []field
}

type field struct {
	name, doc string
	optional  bool
	is        shape
}

// shape is the type of a value: one of kind, or a list or a dictionary of elem, or what is declared under name.
type shape struct {
	kind kind
	elem *shape
	name string
}

type kind int

const (
	anything kind = iota
	text
	timestamp
	base64
	integer
	number
	flag
	list
	dict
	declared
)

// collector finds what there is to declare.
type collector struct {
	constants Constants
	names     map[string]reflect.Type
	enums     map[reflect.Type]bool
	made      map[reflect.Type]bool
	out       Models
}

// reserved are names that the languages, or the files, give to something else.
var reserved = []string{"Any", "Array", "Base64", "Date", "Error", "Event", "Literal", "Map", "NotRequired", "Object",
	"Promise", "Record", "Request", "Response", "Set", "String", "Timestamp", "TypeAlias", "TypedDict"}

// Collect makes the models of roots and of all that they refer to. Go types with constants, which are texts, are enums.
func Collect(roots []Root, constants Constants) (m Models, err error) {
	c := collector{constants: constants, names: map[string]reflect.Type{}, enums: map[reflect.Type]bool{},
		made: map[reflect.Type]bool{}}
	for _, name := range reserved {
		c.names[name] = reflect.TypeFor[Models]()
	}
	for _, r := range roots { // the document's names come first
		c.names[pascal(r.Name)] = r.Type
	}
	for _, r := range roots {
		if _, err := c.shape(r.Schema, r.Type, r); err != nil {
			return m, err
		}
	}
	slices.SortFunc(c.out.enums, func(a, b enum) int { return cmp.Compare(a.name, b.name) })
	return c.out, nil
}

// pascal is a name as both languages write types.
func pascal(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// named claims a name for a type: its own, or with its package where another type has that.
func (c *collector) named(t reflect.Type) (string, error) {
	_, pkg, _ := strings.Cut(t.PkgPath(), "flowfabric-go")
	pkg = pkg[strings.LastIndex(pkg, "/")+1:]
	for _, name := range []string{pascal(t.Name()), pascal(cmp.Or(pkg, "flowfabric")) + pascal(t.Name())} {
		if known := c.names[name]; known == nil || known == t {
			c.names[name] = t
			return name, nil
		}
	}
	return "", fmt.Errorf("there are several types that could be called %s", t)
}

// shape is what a schema and its Go type, nil if that is not known, are in other languages.
func (c *collector) shape(s *jsonschema.Schema, t reflect.Type, root Root) (shape, error) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case s == nil || s.Type == "" && s.Types == nil:
		return shape{kind: anything}, nil
	case s.Type == "string":
		return c.text(s, t)
	case s.Type == "integer":
		return shape{kind: integer}, nil
	case s.Type == "number":
		return shape{kind: number}, nil
	case s.Type == "boolean":
		return shape{kind: flag}, nil
	case s.Type == "array":
		return c.of(list, s.Items, t)
	case s.Type == "object" && len(s.Properties) > 0:
		return c.object(s, t, root)
	case s.Type == "object":
		return c.of(dict, s.AdditionalProperties, t)
	}
	return shape{}, fmt.Errorf("%v has a schema of types %q %q, of which no model is made", t, s.Type, s.Types)
}

// of is a list or a dictionary.
func (c *collector) of(k kind, s *jsonschema.Schema, t reflect.Type) (shape, error) {
	if t != nil {
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default: // it has a schema of its own
			t = nil
		}
	}
	elem, err := c.shape(s, t, Root{})
	return shape{kind: k, elem: &elem}, err
}

func (c *collector) text(s *jsonschema.Schema, t reflect.Type) (shape, error) {
	switch {
	case s.Format == "date-time":
		return shape{kind: timestamp}, nil
	case s.ContentEncoding == "base64":
		return shape{kind: base64}, nil
	case t == nil || t.Kind() != reflect.String || t.PkgPath() == "":
		return shape{kind: text}, nil
	}
	known, err := c.constants.Of(t)
	if err != nil || len(known.Values) == 0 {
		return shape{kind: text}, err
	}
	name, err := c.named(t)
	if err == nil && !c.enums[t] {
		c.enums[t] = true
		c.out.enums = append(c.out.enums, enum{name, known.Doc, known.Values, known.Open})
	}
	return shape{kind: declared, name: name}, err
}

func (c *collector) object(s *jsonschema.Schema, t reflect.Type, root Root) (shape, error) {
	if t == nil || t.Name() == "" || strings.Contains(t.Name(), "[") {
		return shape{}, fmt.Errorf("%v has no name: a model needs one", t)
	}
	name, err := c.named(t)
	out := shape{kind: declared, name: name}
	if err != nil || c.made[t] {
		return out, err
	}
	c.made[t] = true
	o := object{name: name, doc: root.Doc}
	types := members(t)
	names := slices.Collect(maps.Keys(s.Properties))
	order(names, s.PropertyOrder)
	for _, member := range names {
		p := s.Properties[member]
		is, err := c.shape(p, types[member], Root{})
		if err != nil {
			return out, fmt.Errorf("%s.%s: %w", name, member, err)
		}
		o.fields = append(o.fields, field{member, p.Description, !slices.Contains(s.Required, member), is})
	}
	c.out.objects = append(c.out.objects, o)
	return out, nil
}

// order sorts names as first has them, and those behind it by the alphabet.
func order(names, first []string) {
	place := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
}

// members are the types of the members of a struct, by their names in JSON.
func members(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return out
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if !f.Anonymous && name != "-" {
			out[name] = f.Type
		}
	}
	return out
}
