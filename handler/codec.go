package handler

import (
	"encoding/json"
	"fmt"

	onepass "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Codec turns inputs, results and step values into bytes and back. It must be safe for concurrent use, and what
// Encode wrote, Decode must read for as long as executions are retained: a rolling deploy mixes both versions.
//
// An error of Decode on an input is a permanent failure of category extractor_payload_decode, since the same
// bytes will not decode tomorrow.
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

// Cipher encrypts and authenticates what a codec wrote. It must be safe for concurrent use. Seal may answer other
// bytes for the same plain text each time. Open must refuse what was not sealed by a key it knows, and should
// know retired keys for as long as executions sealed with them are retained.
//
// An error of either is retried by policy, since a key service may be away; wrap it in [Permanent] if it is final.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// Encrypted seals what codec encodes, so that the store sees inputs, results and step values only as cipher text.
// Frames, tags, names and error texts are not covered. The limits of 1 MiB and 256 KiB apply to the sealed bytes.
//
// Of [Offloaded] and Encrypted either may be inside: what is offloaded is always sealed.
//
// The digest of an input, which recognises repeated submissions, is a SHA-256 of the plain bytes: an input that
// can be guessed can be confirmed by who reads the store. Add a random field to inputs where that matters.
func Encrypted(codec Codec, cipher Cipher) Codec {
	if o, ok := codec.(offloaded); ok {
		o.codec = Encrypted(o.codec, cipher)
		return o
	}
	return encrypted{codec, cipher}
}

type encrypted struct {
	codec  Codec
	cipher Cipher
}

func (e encrypted) Encode(v any) ([]byte, error) {
	_, sealed, err := e.both(v)
	return sealed, err
}

func (e encrypted) both(v any) (plain, sealed []byte, err error) {
	plain, inner, err := encodeBoth(e.codec, v)
	if err != nil {
		return nil, nil, err
	}
	if sealed, err = e.cipher.Seal(inner); err != nil {
		return nil, nil, &cipherError{"seal", err}
	}
	return plain, sealed, nil
}

func (e encrypted) Decode(data []byte, v any) error {
	plain, err := e.cipher.Open(data)
	if err != nil {
		return &cipherError{"open", err}
	}
	return e.codec.Decode(plain, v)
}

// twofold is a codec around another one.
type twofold interface {
	both(v any) (plain, outer []byte, err error)
}

// encodeBoth returns what v is before and after all encryption and offloading.
func encodeBoth(c Codec, v any) (plain, outer []byte, err error) {
	if t, ok := c.(twofold); ok {
		return t.both(v)
	}
	plain, err = c.Encode(v)
	return plain, plain, err
}

// cipherError tells a key that is missing today, or a store that is away, from bytes that will never decode.
type cipherError struct {
	verb string
	err  error
}

func (e *cipherError) Error() string { return fmt.Sprintf("%s payload: %v", e.verb, e.err) }
func (e *cipherError) Unwrap() error { return e.err }
