package mergepatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// anyValue parses a value that need not be an object.
func anyValue(t *testing.T, text string) *Value {
	t.Helper()
	var tight bytes.Buffer
	must.No(t, json.Compact(&tight, []byte(text)))
	p := parser{rest: tight.String()}
	v := p.value(0)
	if p.err != nil || p.rest != "" {
		t.Fatalf("%s: %v, %q is left", text, p.err, p.rest)
	}
	return v
}

// The table of RFC 7396, appendix A.
func TestMergePatchExamples(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		next := merged(anyValue(t, c[0]), anyValue(t, c[1]))
		if got := string(next.Append(nil)); got != c[2] || next.Size != len(c[2]) {
			t.Errorf("%s with %s: %s of %d bytes, want %s", c[0], c[1], got, next.Size, c[2])
		}
	}
}

func deep(levels int) string {
	return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
}

func TestMergeSummary(t *testing.T) {
	for name, c := range map[string][3]string{
		"nested delete":               {`{"a":{"b":1,"c":2},"d":3}`, `{"a":{"b":null}}`, `{"a":{"c":2},"d":3}`},
		"an empty object changes nil": {`{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":1}}`},
		"an empty patch":              {`{"a":1}`, ` { } `, `{"a":1}`},
		"no document yet":             {``, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`},
		"arrays are replaced whole":   {`{"a":[1,{"b":2}]}`, `{"a":[null,3]}`, `{"a":[null,3]}`},
		"an empty array stays":        {`{"a":1}`, `{"a":[]}`, `{"a":[]}`},
		"an object over a scalar":     {`{"a":1}`, `{"a":{"b":null,"c":[]}}`, `{"a":{"c":[]}}`},
		"exact integers": {`{}`, `{"ms":1713100800150123,"big":123456789012345678901234567890,"f":1.50}`,
			`{"big":123456789012345678901234567890,"f":1.50,"ms":1713100800150123}`},
		"kept beside a change": {`{"ms":1713100800150123}`, `{"a":1E+2}`, `{"a":1E+2,"ms":1713100800150123}`},
		"sentinel": {`{"a":1}`, `{"a":"__ff_null__","b":{"c":"__ff_null__"}}`,
			`{"a":null,"b":{"c":null}}`},
		"sentinel, escaped":        {`{}`, `{"a":"\u005f_ff_null__"}`, `{"a":null}`},
		"sentinel in an array":     {`{}`, `{"a":["__ff_null__"]}`, `{"a":["__ff_null__"]}`},
		"sentinel in the document": {`{"a":"__ff_null__"}`, `{"b":1}`, `{"a":"__ff_null__","b":1}`},
		"a stored null is deleted": {`{"a":null,"b":1}`, `{"a":null}`, `{"b":1}`},
		"the sentinel's own text": {`{}`,
			`{"a":"__ff_text____ff_null__","b":"__ff_text____ff_text__x","c":"x__ff_text__"}`,
			`{"a":"__ff_null__","b":"__ff_text__x","c":"x__ff_text__"}`},
		"keys spelled otherwise": {`{"é":1}`, `{"\u00e9":2}`, `{"é":2}`},
		"keys with quotes":       {`{"a\"}":1}`, `{"b\\":2}`, `{"a\"}":1,"b\\":2}`},
		"the last of equal keys": {`{}`, `{"a":1,"a":{"b":2},"\u0061":3}`, `{"a":3}`},
		"spaces":                 {"{\n\"a\" : 1 }", "{\t\"b\": [ 1 , 2 ] }", `{"a":1,"b":[1,2]}`},
		"16 levels":              {``, deep(16), deep(16)},
		"strings that look like JSON": {`{"a":"}"}`, `{"b":["]","\"","{"],"c":"[\\"}`,
			`{"a":"}","b":["]","\"","{"],"c":"[\\"}`},
		"literals": {``, `{"a":true,"b":false,"c":[null,true]}`,
			`{"a":true,"b":false,"c":[null,true]}`},
	} {
		got, err := Apply([]byte(c[0]), []byte(c[1]))
		if err != nil || string(got) != c[2] {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c[2])
		}
	}
	for name, text := range map[string]string{
		"root array": `[]`, "root string": `"x"`, "root number": `1`, "root null": `null`, "root boolean": `true`,
		"nothing": ``, "broken": `{"a":`,
		"two values": `{}{}`, "trailing comma": `{"a":1,}`, "17 levels": deep(17),
		"17 levels in an array": deep(15)[:75] + `[` + deep(2) + `]` + strings.Repeat("}", 15),
		"1e400":                 `{"a":1e400}`, "1e400 in an array": `{"a":[1,[-1e400]]}`,
		"1e400 in an object in an array": `{"a":[{"b":1e400,"c":1}]}`, "no UTF-8": "{\"a\":\"\xff\"}",
		"NaN": `{"a":NaN}`, "a leading zero": `{"a":01}`,
	} {
		if got, err := Apply(nil, []byte(text)); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestMergeSummaryLimit(t *testing.T) {
	document := []byte(`{"a":"` + strings.Repeat("x", limits.MaxSummary-len(`{"a":"","b":1}`)) + `"}`)
	next, err := Apply(document, []byte(`{"b":1}`))
	if err != nil || len(next) != limits.MaxSummary {
		t.Fatalf("%d bytes, %v", len(next), err)
	}
	_, err = Apply(document, []byte(`{"b":10}`))
	if !errors.Is(err, denied.SummaryTooLarge) || !strings.Contains(err.Error(), "262145") ||
		!strings.Contains(err.Error(), "262144") {
		t.Fatalf("one byte more: %v", err)
	}
}

func TestComposedPatches(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{`{"a":1}`, `{"a":2}`, `{"a":2}`},
		{`{"a":1}`, `{"a":null}`, `{"a":null}`},
		{`{"a":null}`, `{"a":2,"b":3}`, `{"a":2,"b":3}`},
		{`{"a":{"b":1}}`, `{"a":{"c":2}}`, `{"a":{"b":1,"c":2}}`},
		{`{"a":{"b":1}}`, `{"a":5}`, `{"a":5}`},
		{`{"a":null}`, `{"a":{"b":1}}`, ""}, // would have to replace the object, not be merged into it
		{`{"a":5}`, `{"a":{}}`, ""},
		{`{"a":{"b":[]}}`, `{"a":{"b":{}}}`, ""},
	} {
		got, ok := Compose(anyValue(t, c.first), anyValue(t, c.second))
		if ok != (c.want != "") || ok && string(got.Append(nil)) != c.want {
			t.Errorf("%s then %s: %s, %t", c.first, c.second, got.Append(nil), ok)
		}
	}
}

// FuzzMergeSummary: whatever is merged, the result is what RFC 7396 says of the decoded values, in canonical form and
// of the size that was computed; and two patches in one do what they do one after the other.
func FuzzMergeSummary(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null},"c":"__ff_null__"}`, `{"a":{"d":[1,{"e":null}]}}`)
	f.Add(`{"a":1}`, `{"a":null}`, `{"a":{"b":1}}`)
	f.Add(``, `{"\u00e9":1e308,"x":"__ff_text____ff_null__"}`, `{"é":[],"":{}}`)
	f.Add(`{}`, deep(16), deep(17))
	f.Fuzz(func(t *testing.T, document, first, second string) {
		target, err := ParseDocument([]byte(document))
		if err != nil {
			return
		}
		a, err := Parse([]byte(first))
		if (err == nil) != accepted(first) {
			t.Fatalf("%q: %v", first, err)
		}
		if err != nil {
			return
		}
		next := merged(target, a)
		text := next.Append(nil)
		if len(text) != next.Size || !json.Valid(text) {
			t.Fatalf("%s: %d bytes, computed %d", text, len(text), next.Size)
		}
		if want := reference(decode(t, target.Append(nil)),
			decode(t, a.Append(nil))); !reflect.DeepEqual(decode(t, text), want) {
			t.Fatalf("%s with %s: %s, want %v", document, first, text, want)
		}
		again, err := Parse(text)
		if err != nil || !bytes.Equal(again.Append(nil), text) {
			t.Fatalf("%s reads as %s, %v", text, again.Append(nil), err)
		}
		b, err := Parse([]byte(second))
		if err != nil {
			return
		}
		if both, ok := Compose(a, b); ok && !bytes.Equal(merged(target, both).Append(nil),
			merged(next, b).Append(nil)) {
			t.Fatalf("%s: %s then %s is not %s", document, first, second, both.Append(nil))
		}
	})
}

// accepted tells by other means whether a text is a delta.
func accepted(text string) bool {
	var v map[string]any // encoding/json knows the range of numbers
	return json.Unmarshal([]byte(text), &v) == nil && v != nil &&
		bytes.Equal(bytes.ToValidUTF8([]byte(text), nil), []byte(text)) && objects(v) <= limits.MaxSummaryDepth
}

func objects(v any) (levels int) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			levels = max(levels, objects(x))
		}
		return levels + 1
	case []any:
		for _, x := range v {
			levels = max(levels, objects(x))
		}
	}
	return levels
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// reference is the pseudocode of RFC 7396 on decoded values, with the sentinel of summaries.
func reference(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		if s, ok := patch.(string); ok {
			if s == Null {
				return nil
			}
			return strings.TrimPrefix(s, Text)
		}
		return patch
	}
	out := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		maps.Copy(out, old)
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = reference(out[k], v)
		}
	}
	return out
}
