package agent

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type fuzzed struct {
	Text   string         `json:"text"`
	Number int            `json:"number,omitempty"`
	More   map[string]any `json:"more,omitempty"`
}

// Whatever a model writes as arguments: it is checked without a panic, what passes decodes, what people are asked
// about it is a valid question, and the call survives being stored.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"text":"x"}`, `{"text":`, "", "null", "{}",
		`{"text":"\u202e\u0000","number":1e400}`, `{"text":"` + strings.Repeat(`\"<`, 9000) + `"}`, "\xff\xfe",
		`{"text":"x","more":{"a":[1,{"b":null}]}}`} {
		f.Add(seed, "refund")
	}
	called := false
	tool := NewTool("refund", "", func(context.Context, fuzzed) (string, error) { called = true; return "", nil },
		Needs(func(fuzzed) Decision { return Decision{Ask: true, Assignee: "anna", Always: true} }))
	f.Fuzz(func(t *testing.T, arguments, name string) {
		called = false
		err := tool.d.check([]byte(arguments))
		if _, failed := tool.d.call(t.Context(), []byte(arguments)); err == nil && (failed != nil || !called) {
			t.Errorf("arguments passed, but the call failed: %v", failed)
		}
		j := &job{ToolCall: ToolCall{Name: "refund", Arguments: json.RawMessage(arguments)}, tool: tool.d}
		if j.bad() == nil {
			q, err := j.question()
			must.No(t, err)
			if wanted := handler.On(suspend.Signal("x"), suspend.Asking(q)); !handler.IsWait(wanted) {
				t.Errorf("not a question: %v", wanted)
			}
		}
		a := turn{Message: Message{Calls: []ToolCall{{Name: name, Arguments: json.RawMessage(arguments)}}}}
		must.No(t, a.settle(1))
		data, err := json.Marshal(a)
		must.No(t, err)
		var again turn
		if err := json.Unmarshal(data, &again); err != nil || !reflect.DeepEqual(a, again) {
			t.Errorf("stored %+v, read %+v: %v", a, again, err)
		}
		if kept := a.Message.Calls[0].Arguments; json.Valid(kept) !=
			json.Valid([]byte(strings.ToValidUTF8(arguments, "\ufffd"))) && strings.TrimSpace(arguments) != "" {
			t.Errorf("%q became %q", arguments, kept)
		}
		if word := stepWord(name); len(word) > limits.MaxToolName ||
			strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("step word %q", word)
		}
	})
}

// A cut text and a shortened message keep their bounds, are valid, and a text that fits is left alone.
func FuzzCut(f *testing.F) {
	f.Add("hello", 3, 100, 100)
	f.Add(strings.Repeat("é\"<\x00\u2028\xff", 50), 4, 200, 900)
	f.Fuzz(func(t *testing.T, text string, times, bytes, encoded int) {
		text = strings.Repeat(text, max(1, min(times, 200)))
		bytes, encoded = max(maxNote, min(bytes, 1<<20)), max(maxNote, min(encoded, 1<<20))
		got := cut(text, bytes, encoded)
		if len(got) > bytes || encodedText(got) > encoded || !utf8.ValidString(got) {
			t.Errorf("%d bytes, %d encoded, want at most %d, %d: %q", len(got), encodedText(got), bytes, encoded, got)
		}
		if data, _ := json.Marshal(got); len(data) > encodedText(got)+2 {
			t.Errorf("%d bytes of JSON, reckoned %d: %q", len(data), encodedText(got)+2, got)
		}
		if whole := strings.ToValidUTF8(text, "\ufffd"); len(whole) <= bytes && encodedText(whole) <= encoded &&
			got != whole {
			t.Errorf("%q became %q", whole, got)
		}
		limit := max(1<<10, min(bytes, limits.MaxFrame))
		m := shortened(Message{ID: strings.Repeat("<", maxMessageID), Role: Assistant, Parts: []Part{
			{Type: PartReasoning, Text: text}, {Type: PartText, Text: text},
			{Type: PartImage, Data: []byte(text)}}, Calls: []ToolCall{
			{ID: "1", Name: "a", Arguments: json.RawMessage(text)},
			{ID: text[:min(len(text), maxCallID)], Name: text}}}, limit)
		if n := messageLen(m); n > limit || n == 0 {
			t.Errorf("a message of %d bytes, want at most %d", n, limit)
		}
		if seen := visible(text); !utf8.ValidString(seen) || strings.ContainsAny(seen, "\x00\x1b\r\x7f\u202e\u2028") {
			t.Errorf("%q is not safe to show", seen)
		}
	})
}

// Whatever a transcript holds is read or refused. What was read says the same once it is written.
func FuzzTranscript(f *testing.F) {
	for _, seed := range []string{`{"id":"1","name":"refund","arguments":{"a":1}}`, `{"id":"1","written":"{"}`, "null",
		`{"parts":[{"type":"text","text":"a"},{"type":"image","data":"iVBORw0KGgo="},{"type":"file","name":"\ud800",` +
			`"blob":"sha256:` + strings.Repeat("a", 64) + `","size":3}]}`,
		`{"written":"\ud800"}`, `{"arguments":1e999}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c, again ToolCall
		if json.Unmarshal(text, &c) != nil {
			return
		}
		written, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%q is read and not written: %v", text, err)
		}
		if err := json.Unmarshal(written, &again); err != nil || again.ID != c.ID || again.Name != c.Name {
			t.Errorf("%q is written as %s and read as %+v, %v", text, written, again, err)
		}
		var m, same Message
		if json.Unmarshal(text, &m) != nil || checkParts(m.Parts) != nil {
			return
		}
		m.Parts = cleaned(m.Parts)
		written, err = json.Marshal(m)
		if err != nil {
			t.Fatalf("%q is read and not written: %v", text, err)
		}
		if err := json.Unmarshal(written, &same); err != nil || !reflect.DeepEqual(same.Parts, m.Parts) {
			t.Errorf("%q is written as %s and read as %+v, %v", text, written, same.Parts, err)
		}
		for _, p := range m.Parts {
			if p.hasBytes() && len(p.Data) > 0 && (p.Media == "" || p.Size != int64(len(p.Data))) ||
				!utf8.ValidString(p.Text+p.Name+p.Media) || len(p.Name) > maxPartName {
				t.Errorf("%q has the part %+v", text, p)
			}
		}
	})
}
