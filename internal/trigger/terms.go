// Package trigger knows published events: what their data says to filters, and what triggers start because of them.
//
// A filter asks for values of fields, all of them. The server never looks into JSON. So a field with its value is a
// term, a digest of 128 bits: an event is sent with all terms of its data, a filter is stored as those that it asks
// for, and the server compares texts.
package trigger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// CheckSubject refuses what is no subject: 1..128 bytes of printable ASCII without braces. flowfabric.ErrInvalidInput.
func CheckSubject(subject string) error {
	err := valid.Printable("subject", subject, limits.MaxSubject)
	if err == nil && (strings.ContainsAny(subject, "{}") || subject == "." || subject == "..") {
		err = fmt.Errorf("%w: subject %q: want a name without braces that is no dot or two dots",
			flowfabric.ErrInvalidInput, subject)
	}
	return err
}

// CheckID refuses what is no id of an event: 1..256 bytes without control characters. flowfabric.ErrInvalidInput.
func CheckID(id string) error {
	if len(id) < 1 || len(id) > limits.MaxEventID || strings.ContainsFunc(id, func(r rune) bool {
		return r < ' ' || r == 0x7f
	}) {
		return fmt.Errorf("%w: id of an event: want 1..%d bytes without control characters", flowfabric.ErrInvalidInput,
			limits.MaxEventID)
	}
	return nil
}

// Filter is the terms of a filter: paths of fields, joined by dots, with the string, number, boolean or null that each
// must have. The terms are sorted. No path, no terms: every event has all of them. flowfabric.ErrInvalidInput for more
// than 8 paths, an empty path, one over 256 bytes, and for a value that is an array or an object.
func Filter(where map[string]any) ([]string, error) {
	if len(where) > limits.MaxFilter {
		return nil, fmt.Errorf("%w: where has %d fields, want at most %d", flowfabric.ErrInvalidInput, len(where),
			limits.MaxFilter)
	}
	terms := make([]string, 0, len(where))
	for path, value := range where {
		if len(path) < 1 || len(path) > limits.MaxEventID {
			return nil, fmt.Errorf("%w: where: the path of a field has %d bytes, want 1..%d", flowfabric.ErrInvalidInput,
				len(path), limits.MaxEventID)
		}
		text, err := json.Marshal(value)
		var scalar any
		if err == nil {
			scalar, err = decode(text)
		}
		term, ok := termOf(path, scalar)
		if err != nil || !ok {
			return nil, fmt.Errorf("%w: where: field %q: want a string, a number, true, false or null",
				flowfabric.ErrInvalidInput, path)
		}
		terms = append(terms, term)
	}
	slices.Sort(terms)
	return terms, nil
}

// Terms is the terms of an event's data, one for each field that has a string, a number, a boolean or null; what is
// inside of arrays is not looked at, nor what is deeper than 16 objects. flowfabric.ErrInvalidInput for data that is no
// JSON and for more than 1,024 such fields.
func Terms(data []byte) ([]string, error) {
	value, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w: data of an event is not JSON: %w", flowfabric.ErrInvalidInput, err)
	}
	var terms []string
	var walk func(path string, value any, depth int)
	walk = func(path string, value any, depth int) {
		object, ok := value.(map[string]any)
		if !ok {
			if term, ok := termOf(path, value); ok && depth > 0 {
				terms = append(terms, term)
			}
			return
		}
		for name, member := range object {
			if depth > 0 {
				name = path + "." + name
			}
			if depth < limits.MaxEventDepth {
				walk(name, member, depth+1)
			}
		}
	}
	walk("", value, 0)
	if len(terms) > limits.MaxEventFields {
		return nil, fmt.Errorf("%w: data of an event has %d fields with a value, want at most %d",
			flowfabric.ErrInvalidInput, len(terms), limits.MaxEventFields)
	}
	slices.Sort(terms)
	return slices.Compact(terms), nil
}

// decode reads one JSON text, numbers as they are written.
func decode(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&value); err != nil {
		return nil, err
	}
	if _, more := d.Token(); more != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return value, nil
}

// termOf is the term of a field; ok is false for a value that is an array or an object.
func termOf(path string, value any) (term string, ok bool) {
	kind := ""
	switch v := value.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = fmt.Sprint(v)
	case string:
		kind = "string " + v
	case json.Number:
		kind = "number " + canonical(v.String())
	default:
		return "", false
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d %s %s", len(path), path, kind)))
	return hex.EncodeToString(sum[:16]), true
}

// canonical writes equal numbers alike: 1, 1.0 and 1e0. One with an exponent of more than three digits stays as it is.
func canonical(number string) string {
	if at := strings.IndexAny(number, "eE"); at >= 0 && len(strings.TrimLeft(number[at+1:], "+-0")) > 3 {
		return number
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return number
	}
	return r.RatString()
}
