// Package edit judges arguments that a person has changed in an answer, before anything is written.
package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/integer"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// In tells whether a payload is an answer that changes arguments, and to what.
func In(s suspend.SentSignal) (arguments json.RawMessage, ok bool) {
	if s.Encoding == "bytes" || !bytes.Contains(s.Payload, []byte("rguments")) {
		return nil, false
	}
	var answer struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(s.Payload, &answer) != nil || answer.Arguments == nil {
		return nil, false
	}
	return answer.Arguments, string(answer.Arguments) != "null"
}

// Check refuses arguments that a question does not take: flowfabric.ErrInvalidInput, with the field.
func Check(q suspend.Question, arguments json.RawMessage) error {
	if q.Arguments == nil {
		return refuse("the question takes no changed ones")
	}
	if len(arguments) > limits.MaxEdit {
		return refuse(fmt.Sprintf("%d bytes, want at most %d", len(arguments), limits.MaxEdit))
	}
	value := map[string]any{}
	if json.Unmarshal(arguments, &value) != nil {
		return refuse("not an object of JSON")
	}
	if q.Schema == nil {
		return nil
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(q.Schema, &schema)
	if err == nil {
		var resolved *jsonschema.Resolved
		if resolved, err = schema.Resolve(nil); err == nil {
			err = resolved.Validate(value)
		}
	}
	if err != nil {
		return refuse("they do not fit: " + misfit(err.Error()))
	}
	return nil
}

// misfit says what does not fit a schema, with the member before it: "cents: type: …" for "validating root: validating
// /properties/cents: type: …". A text of people in it is cut.
func misfit(why string) string {
	path := ""
	for {
		rest, ok := strings.CutPrefix(why, "validating ")
		at, rest, found := strings.Cut(rest, ": ")
		if !ok || !found {
			break
		}
		if _, member, ok := strings.Cut(at, "/properties/"); ok && !strings.HasPrefix(at, "/$defs") {
			path = strings.ReplaceAll(member, "/properties/", ".") + ": "
		}
		why = rest
	}
	if len(why) > maxWhy {
		head, tail := why[:maxWhy*3/4], why[len(why)-maxWhy/4:]
		why = strings.ToValidUTF8(head, "") + " … " + strings.ToValidUTF8(tail, "")
	}
	return path + why
}

// maxWhy is how many bytes are told of what does not fit. Its end says what is wanted.
const maxWhy = 400

func refuse(why string) error {
	return denied.New("signal", flowfabric.CodeOf(flowfabric.ErrInvalidInput), "arguments: "+why)
}

// Changed tells whether arguments are others than those of before, and returns them as Go reads and writes them.
func Changed(before, after json.RawMessage) (json.RawMessage, bool) {
	var old, now bytes.Buffer
	before, after = Plain(before), Plain(integer.Numbers(after))
	if json.Compact(&now, after) != nil {
		return after, true
	}
	if json.Compact(&old, before) == nil && bytes.Equal(old.Bytes(), now.Bytes()) {
		return before, false
	}
	return now.Bytes(), true
}

// Plain is JSON in which <, > and & stand for themselves, which Go writes as escapes.
func Plain(text json.RawMessage) json.RawMessage {
	if !bytes.Contains(text, []byte(`\u00`)) {
		return text
	}
	out := make(json.RawMessage, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		rest := strings.ToLower(string(text[i:min(i+6, len(text))]))
		if at := slices.Index([]string{`\u003c`, `\u003e`, `\u0026`}, rest); at >= 0 {
			out = append(out, "<>&"[at])
			i += 5
			continue
		}
		out = append(out, text[i], text[i+1])
		i++
	}
	return out
}
