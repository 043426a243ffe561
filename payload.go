package flowfabric

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// Payload is a value that a program stored or sent. In JSON it is an object: a value that is JSON is in its member
// value, and bytes that are not are in base64. A member
// encrypted is true for what is still encrypted, as whoever read it had no key.
type Payload []byte

// written is a payload in JSON.
type written struct {
	Value  json.RawMessage `json:"value,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
	// Encrypted: Base64 is as it is stored.
	Encrypted bool `json:"encrypted,omitempty"`
}

// MarshalJSON writes the object.
func (p Payload) MarshalJSON() ([]byte, error) {
	if len(p) > 0 && utf8.Valid(p) && json.Valid(p) {
		return json.Marshal(written{Value: json.RawMessage(p)})
	}
	return json.Marshal(written{Base64: p, Encrypted: sealed.Is(p)})
}

// UnmarshalJSON reads the object.
func (p *Payload) UnmarshalJSON(text []byte) error {
	var w written
	err := json.Unmarshal(text, &w)
	if *p = Payload(w.Value); w.Value == nil {
		*p = w.Base64
	}
	return err
}
