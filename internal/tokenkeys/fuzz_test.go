package tokenkeys

import (
	"errors"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// What is accepted signs, and neither ring nor error shows a secret.
func FuzzParseKeyring(f *testing.F) {
	for _, seed := range []string{"", "k1:" + secretA, "k1:" + secretA + ",k2:" + secretB, " k:" + secretA + " ",
		"k1:" + secretA + ",k1:" + secretA, "k:1:" + secretA, "k1:" + secretA[1:], "k1:+f" + secretA} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := Parse(text)
		shown := k.shown()
		if err != nil {
			shown = err.Error()
			if k != nil || !errors.Is(err, denied.Kid) && !errors.Is(err, denied.Secret) && !errors.Is(err,
				denied.KidConflict) {
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
			if key, ok := k.Key(kid); !ok || len(key.Fingerprint) != 16 || !waitwords.ValidKid(kid) {
				t.Errorf("kid %q: %+v", kid, key)
			}
		}
		if m, token, err := k.Mint(mint.ID(1), "x"); err != nil || m.Kid != k.Kids()[0] ||
			m.Digest != token.Digest() {
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
