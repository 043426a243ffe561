package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestFormsStandForValues(t *testing.T) {
	type inner struct {
		N int `json:"n"`
	}
	forms := map[string]form{}
	for name, schema := range map[string]func() (*jsonschema.Schema, error){
		"struct":  func() (*jsonschema.Schema, error) { return jsonschema.For[inner](nil) },
		"pointer": func() (*jsonschema.Schema, error) { return jsonschema.For[*inner](nil) },
		"list":    func() (*jsonschema.Schema, error) { return jsonschema.For[[]inner](nil) },
		"text":    func() (*jsonschema.Schema, error) { return jsonschema.For[string](nil) },
		"empty":   func() (*jsonschema.Schema, error) { return jsonschema.For[struct{}](nil) },
	} {
		s, err := schema()
		must.No(t, err)
		forms[name] = newForm(s, "input")
	}
	for name, text := range map[string]string{
		"referring": `{"$defs":{"a":{"type":"string"}},"type":"array","items":{"$ref":"#/$defs/a"}}`,
		"defaults":  `{"type":"object","properties":{"a":{"type":"integer","default":7}}}`,
	} {
		f, err := newRawForm(json.RawMessage(text), "input")
		must.No(t, err)
		forms[name] = f
	}
	for _, c := range []struct{ form, object, want string }{ // want "" is a refusal
		{"struct", `{"n":1}`, `{"n":1}`},
		{"struct", `{"n":12345678901234567890}`, `{"n":12345678901234567890}`}, // digits stay
		{"struct", `{"n":1.0}`, `{"n":1}`},                                     // an integer, which Go takes
		{"struct", `{"n":1.5}`, ``},
		{"list", `{"input":[{"n":2e1}]}`, `[{"n":20}]`},
		{"struct", `{"n":"1"}`, ``},
		{"struct", `{}`, ``},
		{"struct", `[1]`, ``},
		{"pointer", `{"n":1}`, `{"n":1}`},
		{"list", `{"input":[{"n":1}]}`, `[{"n":1}]`},
		{"list", `{"input":[{"n":1}],"x":1}`, ``},
		{"text", `{"input":"a"}`, `"a"`},
		{"text", ``, ``},
		{"empty", ``, `{}`},
		{"empty", `null`, `{}`},
		{"referring", `{"input":["a"]}`, `["a"]`},
		{"referring", `{"input":[1]}`, ``},
		{"defaults", `{}`, `{"a":7}`},
	} {
		f := forms[c.form]
		if f.err != nil {
			t.Errorf("%s: %v", c.form, f.err)
			continue
		}
		got, err := f.value(json.RawMessage(c.object))
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s of %s: %s, %v", c.form, c.object, got, err)
		}
	}
}

func TestNamesOfTools(t *testing.T) {
	for kind, want := range map[string]string{"write-article": "write-article", "mail.send": "mail_send",
		"a b/c": "a_b_c", "Ünï": "_n_"} {
		if got := toolName(kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

// What is signed for one purpose and one caller is good for nothing else.
func FuzzSignatures(f *testing.F) {
	key := taskKey(strings.Repeat("k", 32))
	id := mint.Join(3, uuid.MustParse("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"))
	task, round := key.seal(id, "ada"), key.sealRound(id, flowfabric.UUID{0x3b, 0x24}, "ada")
	for _, text := range []string{task, round, task + ".", id.String(), "", ".", id.String() + ".",
		strings.ToUpper(task)} {
		f.Add(text, "ada")
		f.Add(text, "grace")
	}
	f.Fuzz(func(t *testing.T, text, caller string) {
		if got, ok := key.open(text, caller); ok != (text == task && caller == "ada") || ok && got != id {
			t.Errorf("task %q of %q: %s, %v", text, caller, got, ok)
		}
		if got, ok := key.openRound(text, caller); ok != (text == round && caller == "ada") || ok && got != id {
			t.Errorf("round %q of %q: %s, %v", text, caller, got, ok)
		}
		if _, ok := (taskKey(strings.Repeat("x", 32))).open(text, caller); ok {
			t.Errorf("another key takes %q", text)
		}
	})
}
