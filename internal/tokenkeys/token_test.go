package tokenkeys

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Every part that identifies a waitpoint is bound, and no two sets of parts are the same bytes.
func TestTokensBindEverything(t *testing.T) {
	ring := keyring(t, "k1:"+secretA+",k2:"+secretB)
	execution, waitpoint, nonce := mint.ID(1), mint.UUID(), make([]byte, 16)
	other := mint.Join(2, ids.UUID(execution))
	key := ring.find("k1")
	seen := map[string]string{}
	for what, mac := range map[string]string{
		"base":                  key.mac(execution, waitpoint, "approve", nonce),
		"secret":                ring.find("k2").mac(execution, waitpoint, "approve", nonce),
		"partition":             key.mac(other, waitpoint, "approve", nonce),
		"execution":             key.mac(mint.ID(1), waitpoint, "approve", nonce),
		"waitpoint":             key.mac(execution, mint.UUID(), "approve", nonce),
		"key":                   key.mac(execution, waitpoint, "approvf", nonce),
		"nonce":                 key.mac(execution, waitpoint, "approve", append(make([]byte, 15), 1)),
		"a byte moves over":     key.mac(execution, waitpoint, "approve\x00", nonce[1:]),
		"a byte moves back":     key.mac(execution, waitpoint, "approv", append([]byte("e"), nonce...)),
		"empty key, long nonce": key.mac(execution, waitpoint, "", append([]byte("approve"), nonce...)),
	} {
		if twin, ok := seen[mac]; ok || len(mac) != 64 {
			t.Errorf("%s: %d digits, the same as %q", what, len(mac), twin)
		}
		seen[mac] = what
	}
	if again := key.mac(execution, waitpoint, "approve", nonce); seen[again] != "base" {
		t.Error("the same parts give another token")
	}
}

// A token must be the same in every release, or waits that are open across an upgrade could not be answered.
func TestTheTokenOfKnownParts(t *testing.T) {
	id := mint.Join(7, uuid.MustParse("01900000-0000-7000-8000-000000000001"))
	nonce := strings.Repeat("0f", 16)
	token, err := keyring(t, "k1:"+secretA).Token(id, engine.Opened{
		ID: flowfabric.UUID(uuid.MustParse("11111111-2222-4333-8444-555555555555")), Key: "approve", Kid: "k1",
		Nonce: nonce})
	must.No(t, err)
	const want = "7.01900000-0000-7000-8000-000000000001.11111111-2222-4333-8444-555555555555.k1:34ec68cfe8d085a61460702ba1ecf783a5ded633ec3c500298ce6fef9cb0258e"
	if token.Reveal() != want {
		t.Errorf("%s, want %s", token.Reveal(), want)
	}
}

// The same waitpoint, made again from what the server stores, has the same token; a reissued one has another.
func TestTokensAreMadeAgain(t *testing.T) {
	ring := keyring(t, "k1:"+secretA)
	id := mint.ID(1)
	m, token, err := ring.Mint(id, "approve")
	if err != nil || m.Digest != token.Digest() || m.Kid != "k1" || m.Key != "approve" {
		t.Fatalf("%+v, %v", m, err)
	}
	again, err := ring.Token(id, engine.Opened{ID: m.ID, Key: m.Key, Kid: m.Kid, Nonce: m.Nonce})
	if err != nil || again != token {
		t.Errorf("%v, %v", again, err)
	}
	r, fresh, err := ring.Reissue(id, m.ID, "approve")
	if err != nil || r.ID != m.ID || r.Nonce == m.Nonce || fresh == token || r.Digest != fresh.Digest() ||
		fresh.Waitpoint() != m.ID {
		t.Errorf("reissued %+v, %v", r, err)
	}
	for what, w := range map[string]engine.Opened{
		"another nonce": {ID: m.ID, Key: m.Key, Kid: m.Kid, Nonce: strings.Repeat("0", 32)},
		"another key":   {ID: m.ID, Key: "x", Kid: m.Kid, Nonce: m.Nonce},
	} {
		if other, err := ring.Token(id, w); err != nil || other == token {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ring.Token(id, engine.Opened{ID: m.ID, Key: m.Key, Kid: "gone", Nonce: m.Nonce}); !errors.Is(err,
		flowfabric.ErrNoTokenKeys) || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("a key that is not configured: %v", err)
	}
	for _, nonce := range []string{"", "zz", strings.Repeat("0", 30), strings.Repeat("0", 34)} {
		if _, err := ring.Token(id, engine.Opened{ID: m.ID, Kid: "k1", Nonce: nonce}); !errors.Is(err,
			flowfabric.ErrCorrupt) {
			t.Errorf("nonce %q: %v", nonce, err)
		}
	}
	if _, _, err := (*Keyring)(nil).Mint(id, "approve"); !errors.Is(err, flowfabric.ErrNoTokenKeys) {
		t.Errorf("no keyring: %v", err)
	}
	if _, _, err := (*Keyring)(nil).Reissue(id, m.ID, "approve"); !errors.Is(err, flowfabric.ErrNoTokenKeys) {
		t.Errorf("no keyring: %v", err)
	}
}

// Whatever prints a token or a keyring shows no secret.
func TestNothingPrintsASecret(t *testing.T) {
	ring, token := keyring(t, "k1:"+secretA), aToken(t)
	held := struct { // printers cannot call the methods of what is in here
		token   suspend.Token
		pointer *suspend.Token
		ring    *Keyring
		List    []suspend.Token
		Map     map[string]suspend.Token
	}{token, &token, ring, []suspend.Token{token}, map[string]suspend.Token{"t": token}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t", "%10.3s", "% x", "%T"} {
		for _, value := range []any{token, &token, ring, held, &held, []any{token, ring},
			fmt.Errorf("failed: %w: %v", flowfabric.ErrInvalidToken, token)} {
			hides(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value), token)
		}
	}
	if text := fmt.Sprintf("%v|%s|%#v|%x", token, &token, token, token); text != strings.Repeat("k1:<REDACTED:len=64>|",
		3)+"k1:<REDACTED:len=64>" {
		t.Errorf("redacted as %s", text)
	}
	if text := fmt.Sprintf("%v|%#v|%s|%x", ring, ring, ring, ring); text != strings.Repeat("keyring k1|", 3)+
		"keyring k1" {
		t.Errorf("redacted as %s", text)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("a token", "token", token, "pointer", &token, "ring", ring, "held", held, "list",
			[]suspend.Token{token}, slog.Group("g", "t", token))
	}
	hides(t, "slog", log.String(), token)
	if strings.Count(log.String(), "k1:<REDACTED:len=64>") < 6 {
		t.Errorf("the log does not name the key: %s", log.String())
	}
	for _, value := range []any{token, &token, held, ring, map[suspend.Token]string{token: "key"}} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Errorf("%T: %v", value, err)
		}
		hides(t, "JSON", string(text), token)
	}
}

// hides is what no output may contain: the MAC, the digest, and the secret of the key.
func hides(t *testing.T, what, output string, token suspend.Token) {
	t.Helper()
	_, mac, _ := strings.Cut(token.Reveal(), ":")
	for name, secret := range map[string]string{"MAC": mac, "digest": token.Digest(),
		"MAC in hex": hex.EncodeToString([]byte(mac)), "secret": secretA} {
		if strings.Contains(strings.ToLower(output), secret) {
			t.Errorf("%s shows the %s: %s", what, name, output)
		}
	}
}
