package handler

import (
	"encoding/json"

	onepass "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Codec turns inputs, results and step values into bytes and back. It must be safe for concurrent use, and what
// Encode wrote, Decode must read for as long as executions are retained: a rolling deploy mixes both versions.
//
// An error of Decode on an input is a permanent failure of category extractor_payload_decode, since the same
// bytes will not decode tomorrow. What a codec wrote is encrypted after it and decrypted before it, see the Cipher of
// runtime.Config and client.Config.
type Codec interface {
	// Encode returns the bytes of v. The caller does not change them; they may share memory with v.
	Encode(v any) ([]byte, error)
	// Decode reads data into the value that v points to, which may keep data's memory.
	Decode(data []byte, v any) error
}

// JSON is the default codec: encoding/json, except that a []byte passes through untouched in both directions (raw
// payloads, byte exact, shared and not copied) and that an empty payload decodes into a struct{}.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

// encoding/json goes over a payload twice. The library that will take its place goes over it once, and with these
// options decodes the same; of json.Number it knows only its own.
var asEncodingJSON = onepass.JoinOptions(jsonv1.DefaultOptionsV1(), onepass.WithUnmarshalers(onepass.UnmarshalFunc(
	func(data []byte, n *json.Number) error { return json.Unmarshal(data, n) })))

func (jsonCodec) Encode(v any) ([]byte, error) {
	if raw, ok := v.([]byte); ok {
		return raw, nil
	}
	return json.Marshal(v)
}

func (jsonCodec) Decode(data []byte, v any) error {
	switch p := v.(type) {
	case *[]byte:
		*p = data
		return nil
	case *struct{}:
		if len(data) == 0 {
			return nil
		}
	}
	if onepass.Unmarshal(data, v, asEncodingJSON) == nil {
		return nil
	}
	return json.Unmarshal(data, v) // whose errors applications know
}
