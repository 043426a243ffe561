package clientmodels

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// shape is the type of what fits a schema; name is for objects in it.
func (b *kindBuilder) shape(s *jsonschema.Schema, name string) kindShape {
	if b.depth > mostDeep || len(*b.out) > mostTypes {
		return kindShape{}
	}
	switch s = b.whole(s); {
	case refuses(s):
		return kindShape{sort: kindNever}
	case s.Ref != "":
		to := b.find(s.Ref)
		if to == nil {
			return kindShape{}
		}
		last := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return b.refer(s.Ref, to, b.base+typeName(last))
	case s.Const != nil:
		return literals([]any{*s.Const})
	case s.Enum != nil:
		return literals(s.Enum)
	}
	if variants := slices.Concat(s.AnyOf, s.OneOf); len(variants) > 0 {
		return b.union(s, variants, name)
	}
	if s.Types != nil {
		var parts []kindShape
		for _, t := range s.Types {
			one := *s
			one.Type, one.Types = t, nil
			parts = append(parts, b.shape(&one, name))
		}
		return united(parts)
	}
	switch typeOf(s) {
	case "null":
		return kindShape{sort: kindNull}
	case "boolean":
		return kindShape{sort: kindFlag}
	case "integer":
		return kindShape{sort: kindInteger}
	case "number":
		return kindShape{sort: kindNumber}
	case "string":
		return kindShape{sort: kindText}
	case "array":
		return b.array(s, name)
	case "object":
		return b.object(s, name)
	}
	return kindShape{}
}

// typeOf is the type of a schema, which what it says of members or items tells where it does not.
func typeOf(s *jsonschema.Schema) string {
	switch {
	case s.Type != "":
		return s.Type
	case len(s.Properties) > 0 || s.AdditionalProperties != nil:
		return "object"
	case s.Items != nil || s.PrefixItems != nil:
		return "array"
	}
	return ""
}

// union is what fits one of several schemas, with what is said beside them in each.
func (b *kindBuilder) union(s *jsonschema.Schema, variants []*jsonschema.Schema, name string) kindShape {
	rest := *s
	rest.AnyOf, rest.OneOf = nil, nil
	var parts []kindShape
	for i, v := range variants {
		own := name + strconv.Itoa(i+1)
		if v.Title != "" {
			own = name + typeName(v.Title)
		}
		if !bare(&rest) {
			v = b.both(&rest, b.whole(b.target(v)))
		}
		parts = append(parts, b.shape(v, own))
	}
	return united(parts)
}

// united is the union of types, without those that are there twice.
func united(parts []kindShape) kindShape {
	var all []kindShape
	for _, p := range parts {
		list := []kindShape{p}
		if p.sort == kindUnion {
			list = p.parts
		}
		for _, one := range list {
			if one.sort == kindAny {
				return kindShape{}
			}
			if one.sort != kindNever && !slices.ContainsFunc(all, func(x kindShape) bool {
				return reflect.DeepEqual(x, one)
			}) {
				all = append(all, one)
			}
		}
	}
	switch len(all) {
	case 0:
		return kindShape{sort: kindNever}
	case 1:
		return all[0]
	}
	slices.SortStableFunc(all, func(x, y kindShape) int { // null comes last
		return cmp.Compare(ifNull(x), ifNull(y))
	})
	return kindShape{sort: kindUnion, parts: all}
}
func ifNull(s kindShape) int {
	if s.sort == kindNull {
		return 1
	}
	return 0
}

// literals is the union of values.
func literals(values []any) kindShape {
	var parts []kindShape
	for _, v := range values {
		switch x := v.(type) {
		case nil:
			parts = append(parts, kindShape{sort: kindNull})
		case bool, string:
			text, _ := json.Marshal(x)
			parts = append(parts, kindShape{sort: kindLiteral, name: string(text)})
		case float64:
			if x != math.Trunc(x) || math.Abs(x) >= 1<<53 {
				parts = append(parts, kindShape{sort: kindNumber})
				continue
			}
			parts = append(parts, kindShape{sort: kindLiteral, name: strconv.FormatFloat(x, 'f', -1, 64)})
		default: // an object or a list
			parts = append(parts, kindShape{})
		}
	}
	return united(parts)
}
func (b *kindBuilder) array(s *jsonschema.Schema, name string) kindShape {
	first := slices.Concat(s.PrefixItems, s.ItemsArray)
	if len(first) == 0 {
		elem := kindShape{}
		if s.Items != nil {
			elem = b.shape(s.Items, name+"Item")
		}
		return kindShape{sort: kindList, parts: []kindShape{elem}}
	}
	t := kindShape{sort: kindTuple}
	for i, item := range first {
		t.parts = append(t.parts, b.shape(item, name+"Item"+strconv.Itoa(i+1)))
	}
	rest := s.Items
	if len(s.ItemsArray) > 0 {
		rest = s.AdditionalItems
	}
	last := kindShape{}
	if rest != nil {
		last = b.shape(rest, name+"Item")
	}
	t.parts = append(t.parts, last) // of further items
	return t
}
func (b *kindBuilder) object(s *jsonschema.Schema, name string) kindShape {
	if len(s.Properties) == 0 && len(s.Required) == 0 {
		value := kindShape{}
		if s.AdditionalProperties != nil {
			value = b.shape(s.AdditionalProperties, name+"Value")
		}
		return kindShape{sort: kindDict, parts: []kindShape{value}}
	}
	name = b.unique(name)
	t := kindType{name: name, doc: docOf(s), object: true, fields: b.fields(s, name), open: opens(s)}
	*b.out = append(*b.out, t)
	return kindShape{sort: kindNamed, name: name}
}
