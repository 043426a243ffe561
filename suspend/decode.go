package suspend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Decode reads the payload of a signal or a message: JSON into T; a []byte as it is; a string as it is from encoding
// utf8. As its own type it is the whole signal or message. One without payload (null) decodes into pointers,
// interfaces, maps and slices only. The error wraps flowfabric.ErrInvalidInput. The answer of a wait is kept, so a
// handler that returns the error fails for good.
func Decode[T any, From StoredSignal | Message](from From) (T, error) {
	var s StoredSignal
	switch from := any(from).(type) {
	case StoredSignal:
		s = from
	case Message:
		s = StoredSignal{Name: from.Mailbox, Encoding: from.Encoding, Payload: from.Payload}
	}
	var value T
	switch p := any(&value).(type) {
	case *[]byte:
		*p = s.Payload
		return value, nil
	case *From:
		*p = from
		return value, nil
	case *string:
		if s.Encoding == "utf8" {
			*p = string(s.Payload)
			return value, nil
		}
	}
	if s.Encoding != "json" {
		return value, &waitwords.Undecodable{Err: fmt.Errorf("signal %q has encoding %s, which does not decode into %T",
			s.Name, s.Encoding, value)}
	}
	if string(bytes.TrimSpace(s.Payload)) == "null" && !nullable[T]() {
		return value, &waitwords.Undecodable{Err: fmt.Errorf("signal %q has no payload (null), want %T", s.Name, value)}
	}
	if err := json.Unmarshal(s.Payload, &value); err != nil {
		return value, &waitwords.Undecodable{Err: fmt.Errorf("payload of signal %q does not decode into %T: %w", s.Name,
			value, err)}
	}
	return value, nil
}

// nullable reports a type in which null differs from a value: a silent zero value would be an answer that nobody gave.
func nullable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return false
}
