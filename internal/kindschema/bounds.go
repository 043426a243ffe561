package kindschema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The bounds of a schema that values are held against. One that is beyond them would take too long, or never end: a
// schema that refers to itself without looking at a smaller value ends the process.
const (
	maxDepth = 32
	maxWork  = 10_000
)

// Bounded refuses a schema, as json.Unmarshal reads it, that is more than 32 schemas deep, refers to other documents,
// or takes too long: a schema is followed through everything that looks at the same value.
func Bounded(root any) error {
	w := &walk{root: root, left: 100 * maxWork}
	return w.all(root, 0)
}

type walk struct {
	root any
	left int // of the work for all schemas
}

// all looks at each schema in a document, and at some values that are none. A schema inside another one is two levels
// below it: behind the name of a member, or the place in a list.
func (w *walk) all(v any, depth int) error {
	if depth > 2*maxDepth {
		return fmt.Errorf("it is nested more deeply than %d schemas", maxDepth)
	}
	var below []any
	switch v := v.(type) {
	case map[string]any:
		work := min(maxWork, w.left)
		left := work
		if err := w.same(v, &left); err != nil {
			return err
		}
		w.left -= work - left
		for _, member := range v {
			below = append(below, member)
		}
	case []any:
		below = v
	}
	for _, v := range below {
		if err := w.all(v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

var errWork = errors.New(
	"a value would take too long to check: it refers to itself for the same value, or has too many alternatives")

// same follows what is applied to the same value.
func (w *walk) same(v any, left *int) error {
	if *left--; *left < 0 {
		return errWork
	}
	members, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for name, v := range members {
		var next []any
		switch name {
		case "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$id":
			if _, ok := v.(string); ok { // where it leads is not known here
				return fmt.Errorf("it has %s, want $ref to a place in it, such as #/$defs/node", name)
			}
		case "$ref":
			if to, ok := v.(string); ok {
				target, found := w.find(to)
				if !found {
					return fmt.Errorf("$ref %.80q leads to no place in it, want one such as #/$defs/node", to)
				}
				next = []any{target}
			}
		case "allOf", "anyOf", "oneOf":
			next, _ = v.([]any)
		case "not", "if", "then", "else":
			next = []any{v}
		case "dependentSchemas", "dependencies":
			schemas, _ := v.(map[string]any)
			for _, v := range schemas {
				next = append(next, v)
			}
		}
		for _, v := range next {
			if err := w.same(v, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// find follows a reference within the document.
func (w *walk) find(ref string) (v any, ok bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.Contains(pointer, "%") {
		return nil, false
	}
	v = w.root
	for i, name := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch at := v.(type) {
		case map[string]any:
			if v, ok = at[name]; !ok {
				return nil, false
			}
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(at) {
				return nil, false
			}
			v = at[n]
		default:
			return nil, false
		}
	}
	return v, true
}
