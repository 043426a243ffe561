package suspend

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// What is accepted is the one text of its token; what is refused is not repeated.
func FuzzParseToken(f *testing.F) {
	good := aToken(f).Reveal()
	for _, seed := range []string{"", good, good[1:], strings.ToUpper(good), strings.Replace(good, ":", "", 1), "65536" + good[1:], "0" + good, good + "\x00", "1.2.3.k:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		switch {
		case err == nil && token.Reveal() != text:
			t.Errorf("%q reads as %q", text, token.Reveal())
		case err == nil && (token.IsZero() || token.Waitpoint() == [16]byte{} && !strings.Contains(text, "00000000-0000-0000-0000-000000000000")):
			t.Errorf("%q reads as nothing", text)
		case err != nil && err != flowfabric.ErrInvalidToken && err != flowfabric.ErrMissingToken:
			t.Errorf("%q: %v", text, err)
		}
		if again, err2 := ParseToken(token.Reveal()); err == nil && (err2 != nil || again != token) {
			t.Errorf("%q does not read back: %v", text, err2)
		}
	})
}

// What is accepted signs, and neither ring nor error shows a secret.
func FuzzParseKeyring(f *testing.F) {
	for _, seed := range []string{"", "k1:" + secretA, "k1:" + secretA + ",k2:" + secretB, " k:" + secretA + " ", "k1:" + secretA + ",k1:" + secretA, "k:1:" + secretA, "k1:" + secretA[1:], "k1:+f" + secretA} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKeyring(text)
		shown := k.shown()
		if err != nil {
			shown = err.Error()
			if k != nil || !errors.Is(err, flowfabric.ErrInvalidKid) && !errors.Is(err, flowfabric.ErrInvalidSecret) && !errors.Is(err, flowfabric.ErrKeyConflict) {
				t.Fatalf("%q: %v, %v", text, k, err)
			}
		}
		for _, part := range strings.Split(text, ",") {
			if _, secret, ok := strings.Cut(part, ":"); ok && len(secret) > 40 && strings.Contains(shown, secret) {
				t.Errorf("it shows %q: %s", secret, shown)
			}
		}
		if k == nil {
			return
		}
		for _, kid := range k.Kids() {
			if key, ok := k.Key(kid); !ok || len(key.Fingerprint) != 16 || !validKid(kid) {
				t.Errorf("kid %q: %+v", kid, key)
			}
		}
		if m, token, err := k.mint(flowfabric.NewExecutionID(1), "x"); err != nil || m.Kid != k.Kids()[0] || m.Digest != token.Digest() {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func (k *Keyring) shown() string {
	if k == nil {
		return ""
	}
	return k.String()
}

// A body is either refused, or says what a server can be asked.
func FuzzParseCallback(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", "{}{}", `{"token":"x","name":"go","payload":{"a":[1,2]}}`, `{"payload":1e999}`, `{"Name":"a","name":"b"}`, `{"name":"\u0000"}`,
		`{"payload":"\ud800"}`, `{"x":1}`, "{} ", " {\n}", strings.Repeat(`{"payload":[`, 50)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, ok := parseCallback(body)
		if !ok {
			return
		}
		if !json.Valid(body) || b.Payload != nil && !json.Valid(b.Payload) {
			t.Errorf("%q is accepted with payload %q", body, b.Payload)
		}
		s := b.signal()
		err := CheckSignal(s)
		if s.Name == "" || s.Encoding != "json" || err != nil && !errors.Is(err, flowfabric.ErrInvalidInput) && !errors.Is(err, flowfabric.ErrPayloadTooLarge) {
			t.Errorf("%q: %+v, %v", body, s, err)
		}
	})
}
