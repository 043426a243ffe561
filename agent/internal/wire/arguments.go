package wire

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Arguments makes valid JSON, which a message can record, of the arguments that a model wrote: nothing is an empty
// object, JSON stays as it is, and anything else becomes a JSON string.
func Arguments(text string) json.RawMessage {
	switch {
	case strings.TrimSpace(text) == "":
		return json.RawMessage(`{}`)
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return quote(text)
}

// Object makes an object, as services demand it, of recorded arguments: nothing and null are an empty object, and
// what is no object goes into one, so that the model sees what it wrote.
func Object(arguments json.RawMessage) json.RawMessage {
	text := bytes.TrimSpace(arguments)
	if len(text) == 0 || string(text) == "null" {
		return json.RawMessage(`{}`)
	}
	if !json.Valid(text) {
		text = quote(string(text))
	}
	if text[0] == '{' {
		return json.RawMessage(text)
	}
	return json.RawMessage(`{"invalid_arguments":` + string(text) + `}`)
}

// quote is text as a JSON string.
func quote(text string) json.RawMessage {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return quoted
}
