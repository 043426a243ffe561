package suspend

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestDecode(t *testing.T) {
	json, text, raw := StoredSignal{Encoding: "json", Payload: []byte(`"a"`)},
		StoredSignal{Encoding: "utf8", Payload: []byte("a")}, StoredSignal{Encoding: "bytes", Payload: []byte{0, 255}}
	if s, err := Decode[string](json); err != nil || s != "a" {
		t.Errorf("%q, %v", s, err)
	}
	if s, err := Decode[string](text); err != nil || s != "a" {
		t.Errorf("%q, %v", s, err)
	}
	if b, err := Decode[[]byte](raw); err != nil || string(b) != "\x00\xff" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := Decode[[]byte](json); err != nil || string(b) != `"a"` {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Decode[string](raw); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if _, err := Decode[int](text); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}

// A signal without payload is no answer where the type cannot say so.
func TestDecodeOfNothing(t *testing.T) {
	nothing := StoredSignal{Name: "go", Encoding: "json", Payload: []byte(" null ")}
	if v, err := Decode[Answer](nothing); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(),
		"no payload") {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := Decode[bool](nothing); err == nil {
		t.Errorf("%v", v)
	}
	if v, err := Decode[*Answer](nothing); v != nil || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}
