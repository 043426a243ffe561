// Package integer writes whole numbers of JSON as Go reads them: 1.0 and 1e3 are integers to a JSON Schema, and no int
// takes them. Whatever decodes what others have written into Go types after a schema has judged it calls this.
package integer

import (
	"bytes"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Number is a JSON number as a whole one; false if it is none, or beyond 2^53.
func Number(v []byte) (int64, bool) {
	n, err := strconv.ParseFloat(string(v), 64)
	return int64(n), err == nil && n == math.Trunc(n) && math.Abs(n) <= 1<<53
}

// Numbers returns a JSON text with its whole numbers as Go writes them. All else stays as it is, digits of others too;
// so does a text that is no JSON.
func Numbers(text []byte) []byte {
	if !bytes.ContainsAny(text, ".eE") {
		return text
	}
	in, copied := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true)), 0
	var out []byte
	for {
		t, err := in.ReadToken()
		if err != nil { // the end, or no JSON
			break
		}
		if t.Kind() != '0' {
			continue
		}
		end := int(in.InputOffset())
		v := []byte(t.String())
		if n, ok := Number(v); ok && bytes.ContainsAny(v, ".eE") {
			out = strconv.AppendInt(append(out, text[copied:end-len(v)]...), n, 10)
			copied = end
		}
	}
	if out == nil {
		return text
	}
	return append(out, text[copied:]...)
}
