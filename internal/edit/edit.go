// Package edit judges arguments that a person has changed in an answer, before anything is written.
package edit

import (
	"bytes"
	"encoding/json"
	"fmt"

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
	if err := json.Unmarshal(arguments, &value); err != nil {
		return refuse("not an object of JSON: " + err.Error())
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
		return refuse("they do not fit: " + err.Error())
	}
	return nil
}

func refuse(why string) error {
	return denied.New("signal", flowfabric.CodeOf(flowfabric.ErrInvalidInput), "arguments: "+why)
}

// Changed tells whether arguments are others than those of before, and returns them as Go reads and writes them.
func Changed(before, after json.RawMessage) (json.RawMessage, bool) {
	var old, now bytes.Buffer
	after = integer.Numbers(after)
	if json.Compact(&now, after) != nil {
		return after, true
	}
	if json.Compact(&old, before) == nil && bytes.Equal(old.Bytes(), now.Bytes()) {
		return before, false
	}
	return now.Bytes(), true
}
