package kindschema_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
)

type base struct {
	ID string `json:"id"`
}

type color int

func (c color) MarshalText() ([]byte, error) { return []byte("red"), nil }
func (c *color) UnmarshalText([]byte) error  { return nil }

type odd struct{}

func (o odd) MarshalJSON() ([]byte, error)  { return []byte(`[1]`), nil }
func (o *odd) UnmarshalJSON(b []byte) error { return nil }

type line struct {
	SKU   string            `json:"sku"`
	Count uint8             `json:"count,omitempty"`
	Attrs map[string]string `json:"attrs"`
}

type order struct {
	base
	Lines   []line          `json:"lines"`
	Paid    *bool           `json:"paid"`
	At      time.Time       `json:"at"`
	Ends    *time.Time      `json:"ends"`
	For     time.Duration   `json:"for"`
	Blob    []byte          `json:"blob"`
	Raw     json.RawMessage `json:"raw"`
	RawP    *json.RawMessage
	Color   color          `json:"color"`
	ColorP  *color         `json:"color_p"`
	Odd     odd            `json:"odd"`
	OddP    *odd           `json:"odd_p"`
	Any     any            `json:"any"`
	Big     *big.Int       `json:"big"`
	Price   json.Number    `json:"price"`
	Grid    [2]int         `json:"grid"`
	More    map[string]any `json:"more"`
	Skipped string         `json:"-"`
	hidden  int
}

// What Go makes of a value of a type, the zero value among them, fits the schema of the type.
func TestGoValuesFitTheirSchemas(t *testing.T) {
	now, yes, n, raw := time.Now(), true, color(1), json.RawMessage(`{"a":1}`)
	full := order{base: base{"x"}, Lines: []line{{SKU: "a", Count: 3, Attrs: map[string]string{"k": "v"}}}, Paid: &yes,
		At: now, Ends: &now, For: time.Hour, Blob: []byte{1}, Raw: raw, RawP: &raw, ColorP: &n, OddP: &odd{},
		Any: []int{1}, Big: big.NewInt(9), Price: "1.5", More: map[string]any{"x": nil}}
	for _, v := range []any{order{}, full, &full, []order{full}, map[string]line{"a": {}}, "text", 3, 2.5, true,
		[]string(nil), map[string]int(nil), line{}, struct{ N *int }{}} {
		text := kindschema.Of(reflect.TypeOf(v))
		if text == nil {
			t.Errorf("%T has no schema", v)
			continue
		}
		s, err := kindschema.Compile(text)
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		payload, err := json.Marshal(v)
		if err == nil {
			err = s.Check("k", payload)
		}
		if err != nil {
			t.Errorf("%T: %v\n%s\n%s", v, err, payload, text)
		}
	}
	_ = full.hidden
}

type recursive struct{ Next *recursive }

type named struct {
	base `json:"base"`
}

type pointed struct{ *base }

type quoted struct {
	N int `json:"n,string"`
}

type twice struct {
	base
	Other int `json:"id"`
}

// A type that jsonschema-go would describe wrongly has no schema: good inputs would be refused.
func TestTypesWithoutSchema(t *testing.T) {
	for _, v := range []any{recursive{}, named{}, pointed{}, quoted{}, twice{}, map[int]string{}, json.RawMessage{},
		[]byte{}, struct{}{}, odd{}, make(chan int), nil} {
		if text := kindschema.Of(reflect.TypeOf(v)); text != nil {
			t.Errorf("%T: %s", v, text)
		}
	}
	if text := kindschema.Of(reflect.TypeFor[any]()); text != nil {
		t.Errorf("any: %s", text)
	}
}

// An input that does not fit is told by the place of what is wrong, and what is wanted there.
func TestMisfits(t *testing.T) {
	const schema = `{"type":"object","required":["id","lines"],"additionalProperties":false,
		"properties":{"id":{"type":"string","minLength":1},"paid":{"anyOf":[{"type":"boolean"},{"type":"null"}]},
		"state":{"enum":["new","old"]},"tree":{"$ref":"#/$defs/node"},
		"pay":{"oneOf":[{"type":"object","required":["card"],"properties":{"card":{"type":"string"}}},
			{"type":"object","required":["iban"],"properties":{"iban":{"type":"string"}}}]},
		"lines":{"type":"array","items":{"type":"object","required":["sku"],
			"properties":{"sku":{"type":"string"},"n/m":{"type":"integer","minimum":0}}}}},
		"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"n":{"type":"number"}}}}}`
	s, err := kindschema.Compile(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		`{"id":"a","lines":[]}`: "",
		`{"id":"a","lines":[{"sku":"x","n/m":2}],"paid":null,"state":"new","tree":{"next":{"next":{}}}}`: "",
		`{"id":"a","lines":[],"pay":{"iban":"x"}}`:                                                       "",
		`{"flowfabric_blob":"sha256:ab","size":70000}`:                                                   "",
		`{"id":"a"}`:                  "/lines: it is missing",
		`{"id":"","lines":[]}`:        "/id: it has 0 characters, want 1 or more",
		`{"id":7,"lines":[]}`:         "/id: it is a JSON number, want a string",
		`{"id":"a","lines":[],"x":1}`: "/x: there is no such member",
		`{"id":"a","lines":[{"sku":"a"},{"sku":"b","n/m":-1}]}`:       "/lines/1/n~1m: it is -1, want 0 or more",
		`{"id":"a","lines":[{"sku":"a","n/m":1.5}]}`:                  "/lines/0/n~1m: it is 1.5, want a whole number",
		`{"id":"a","lines":[],"paid":3}`:                              "/paid: it is a JSON number, want true or false",
		`{"id":"a","lines":[],"state":"gone"}`:                        `/state: it is "gone", want one of ["new"`,
		`{"id":"a","lines":[],"tree":{"next":{"next":{"n":"deep"}}}}`: "/tree/next/next/n: it is a JSON string",
		`{"id":"a","lines":[],"pay":{}}`:                              "/pay: it fits none of the 2 schemas",
		`[]`:                                                          "kind k: it is a JSON array, want an object",
		`null`:                                                        "kind k: it is a JSON null, want an object",
		``:                                                            "kind k: it is a JSON null, want an object",
		"\x00":                                                        "kind k: it is not JSON",
	} {
		err := s.Check("k", []byte(input))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", input, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, denied.InputMisfit) ||
			!errors.Is(err, flowfabric.ErrInvalidInput) || flowfabric.CodeOf(err) != "input_does_not_fit" {
			t.Errorf("%s: %v, want %s", input, err, want)
		}
	}
}

// What no process could compile, or hold values against in a bounded time, is refused by the field it stands in.
func TestSchemasThatAreRefused(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 70) + `{}` + strings.Repeat("}", 70)
	for text, want := range map[string]string{
		`{`:                "it is not JSON",
		`7`:                "it is no JSON Schema, which is an object",
		`"x"`:              "it is no JSON Schema, which is an object",
		`{"type":7}`:       "it is no JSON Schema",
		`{"type":"strin"}`: `its type "strin" is none of JSON Schema`,
		`{"properties":{"a":{"type":["string","int"]}}}`: `its type "int" is none`,
		`{"pattern":"("}`: "it is no JSON Schema",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`: "leads to no place in it",
		`{"$ref":"other.json"}`:           "leads to no place in it",
		`{"$ref":"#/$defs/gone"}`:         "leads to no place in it",
		`{"$ref":"#"}`:                    "would take too long",
		`{"$id":"https://example.com/x"}`: "it has $id",
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`: "its $schema is",
		deep: "nested more deeply than 32 schemas",
		`{"description":"` + strings.Repeat("x", 64<<10) + `"}`: "bytes, want at most 65536",
	} {
		_, err := kindschema.Compact(kindschema.Pair{Result: json.RawMessage(text)})
		var field *kindschema.FieldError
		if !errors.As(err, &field) || field.Field != "result" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	deepest := strings.Repeat(`{"properties":{"a":`, 31) + `{}` + strings.Repeat("}}", 31)
	p, err := kindschema.Compact(kindschema.Pair{Input: json.RawMessage(` {"type": "string"} `),
		Result: json.RawMessage(deepest)})
	if err != nil || string(p.Input) != `{"type":"string"}` {
		t.Errorf("%s, %v", p.Input, err)
	}
	p, err = kindschema.Compact(kindschema.Pair{Input: json.RawMessage(` {} `), Result: json.RawMessage(`true`)})
	if err != nil || kindschema.Text(p) != "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// What encoding/json reads into a Go type fits the schema of the type: members may be absent, and null.
func TestGoTypesTakeWhatTheyRead(t *testing.T) {
	text := kindschema.Input(reflect.TypeFor[order]())
	s, err := kindschema.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{`{}`, `null`, `{"lines":null}`, `{"lines":[null]}`, `{"lines":[{}]}`, `{"new":1}`} {
		if err := s.Check("k", []byte(input)); err != nil {
			t.Errorf("%s: %v", input, err)
		}
	}
	if !strings.Contains(string(text), `"required":[`) {
		t.Errorf("nothing tells producers what to send: %s", text)
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := kindschema.Compile(kindschema.Of(reflect.TypeFor[order]()))
	if err != nil {
		b.Fatal(err)
	}
	payload, _ := json.Marshal(order{Lines: []line{{SKU: "a"}, {SKU: "b"}}})
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if err := s.Check("k", payload); err != nil {
			b.Fatal(err)
		}
	}
}
