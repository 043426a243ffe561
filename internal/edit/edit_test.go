package edit_test

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/edit"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Only an answer with arguments is an edit, whatever case its members are written in.
func TestIn(t *testing.T) {
	for payload, want := range map[string]string{
		`{"choice":"approve"}`:                     "",
		`{"choice":"approve","arguments":null}`:    "",
		`{"choice":"approve","arguments":{"a":1}}`: `{"a":1}`,
		`{"Arguments":[1]}`:                        "[1]",
		`["arguments"]`:                            "",
		`{"arguments":`:                            "",
	} {
		got, ok := edit.In(suspend.SentSignal{Encoding: "json", Payload: []byte(payload)})
		if ok != (want != "") || ok && string(got) != want {
			t.Errorf("%s: %s, %v", payload, got, ok)
		}
	}
	if _, ok := edit.In(suspend.SentSignal{Encoding: "bytes", Payload: []byte(`{"arguments":{}}`)}); ok {
		t.Error("bytes are an edit")
	}
}

// Arguments that a question does not take are refused, with the field.
func TestCheck(t *testing.T) {
	schema := `{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"],` +
		`"additionalProperties":false}`
	for _, tc := range []struct{ arguments, schema, edited, want string }{
		{`{"cents":1}`, schema, `{"cents":2}`, ""},
		{`{"cents":1}`, schema, `{"cents":2.0}`, ""},
		{`{"cents":1}`, "", `{"anything":[]}`, ""},
		{"", "", `{}`, "takes no changed ones"},
		{`{"cents":1}`, schema, `{"cents":"2"}`, `do not fit: cents: type: 2 has type "string", want "integer"`},
		{`{"cents":1}`, schema, `{"cents":"` + strings.Repeat("2", 9999) + `"}`, `22 … 22222`},
		{`{"a":{}}`, `{"properties":{"a":{"properties":{"b":{"type":"null"}}}}}`, `{"a":{"b":1}}`, "fit: a.b: type"},
		{`{"cents":1}`, schema, `{}`, "cents"},
		{`{"cents":1}`, schema, `{"cents":1,"to":"me"}`, "to"},
		{`{"cents":1}`, "", `[]`, "not an object"},
		{`{"cents":1}`, "", `{`, "not an object"},
		{`{"cents":1}`, "", `{"a":"` + strings.Repeat("x", 16<<10) + `"}`, "16392 bytes, want at most 16384"},
		{`{"cents":1}`, `{"type":7}`, `{}`, "do not fit"},
	} {
		q := suspend.Question{Arguments: []byte(tc.arguments), Schema: []byte(tc.schema)}
		if tc.arguments == "" {
			q.Arguments = nil
		}
		if tc.schema == "" {
			q.Schema = nil
		}
		err := edit.Check(q, []byte(tc.edited))
		if (err == nil) != (tc.want == "") || err != nil && (!errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// What says the same is no change.
func TestChanged(t *testing.T) {
	if _, changed := edit.Changed([]byte(`{"a":"\u003cb\u003E \u0026"}`), []byte(`{"a":"<b> &"}`)); changed {
		t.Error("an escape is a change")
	}
	if got := edit.Plain([]byte(`"\\u003c \u003c \u00e9 \`)); string(got) != `"\\u003c < \u00e9 \` {
		t.Errorf("%s", got)
	}
	for after, want := range map[string]bool{`{"a": 5}`: false, `{"a":5.0}`: false, `{"a":6}`: true, `{`: true} {
		if _, changed := edit.Changed([]byte(`{"a":5}`), []byte(after)); changed != want {
			t.Errorf("%s: %v", after, changed)
		}
	}
}
