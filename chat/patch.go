package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// operation is one of RFC 6902. Of the six there are, those three do for any change.
type operation struct {
	Op    string `json:"op"` // add, remove or replace
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MarshalJSON writes null as a value, and leaves the value out where there is none.
func (o operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
}

// patchBetween is the JSON Patch from one document to another. It is nil if they are equal, if no patch is shorter than
// the new document, or if a careful client would refuse it. If the documents differ and the patch is nil, send the new
// one.
func patchBetween(before, after []byte) ([]operation, error) {
	old, err := documentOf(before)
	if err != nil {
		return nil, err
	}
	now, err := documentOf(after)
	if err != nil {
		return nil, err
	}
	var d difference
	d.between("", old, now)
	if len(d.out) == 0 {
		return nil, nil
	}
	if text, err := json.Marshal(d.out); err != nil || len(text) >= len(after) {
		return nil, err
	}
	if slices.ContainsFunc(d.out, suspicious) {
		return nil, nil
	}
	return d.out, nil
}

// suspicious is an operation that libraries refuse, because it looks like one on an object's prototype.
func suspicious(o operation) bool {
	return strings.Contains(o.Path, "__proto__") || strings.Contains(o.Path, "/constructor/prototype")
}

func documentOf(text []byte) (v any, err error) {
	if len(text) == 0 {
		return map[string]any{}, nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber() // a number keeps its digits
	if err := in.Decode(&v); err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	return v, nil
}

// difference are the operations between two values so far.
type difference struct{ out []operation }

func (d *difference) between(path string, old, now any) {
	switch now := now.(type) {
	case map[string]any:
		if old, ok := old.(map[string]any); ok {
			d.objects(path, old, now)
			return
		}
	case []any:
		if old, ok := old.([]any); ok {
			d.arrays(path, old, now)
			return
		}
	default:
		if old == now { // the same nothing, boolean, number or text; another type is never the same
			return
		}
	}
	d.out = append(d.out, operation{"replace", path, now})
}

func (d *difference) objects(path string, old, now map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, stays := now[key]; !stays {
			d.out = append(d.out, operation{"remove", path + "/" + escaped(key), nil})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		below := path + "/" + escaped(key)
		if before, known := old[key]; known {
			d.between(below, before, now[key])
			continue
		}
		d.out = append(d.out, operation{"add", below, now[key]})
	}
}

// arrays leaves alone what is the same at both ends, and changes what is between in place.
func (d *difference) arrays(path string, old, now []any) {
	first := 0
	for first < min(len(old), len(now)) && same(old[first], now[first]) {
		first++
	}
	old, now = old[first:], now[first:]
	for len(old) > 0 && len(now) > 0 && same(old[len(old)-1], now[len(now)-1]) {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	both := min(len(old), len(now))
	for i := range both {
		d.between(path+"/"+strconv.Itoa(first+i), old[i], now[i])
	}
	at := path + "/" + strconv.Itoa(first+both)
	for range old[both:] {
		d.out = append(d.out, operation{"remove", at, nil})
	}
	for i, v := range now[both:] {
		d.out = append(d.out, operation{"add", path + "/" + strconv.Itoa(first+both+i), v})
	}
}

func same(a, b any) bool {
	var d difference
	d.between("", a, b)
	return len(d.out) == 0
}

// escaped is a key in a JSON Pointer.
func escaped(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
