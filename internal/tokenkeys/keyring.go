// Package tokenkeys holds the keys that waitpoint tokens are signed with, and makes the tokens.
package tokenkeys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const (
	minSecret, maxSecret = 32, 64 // bytes
	tokenVersion         = 1
)

// Keyring holds the keys that tokens are signed with. Secrets stay in configuration; the server knows ids and
// fingerprints only. It prints without secrets. Safe for concurrent use. The nil keyring has no keys.
type Keyring struct {
	keys  []tokenKey // the first signs where nothing else is known
	mu    sync.Mutex
	using map[uint16]string // the key that a partition said it uses now
}

type tokenKey struct {
	kid    string
	secret []byte
}

// Parse reads "kid:hex,kid:hex…": ids of 1..32 bytes of A-Z a-z 0-9 . _ -, secrets of 32 to 64 bytes. The first is
// the one to sign with; the others are there to sign where it is not in use yet, and to make earlier tokens again. An
// empty text is no keyring (nil). Errors: denied.Kid, denied.Secret, denied.KidConflict for a kid that is there
// twice. They name a refused key by its place only: whatever stands in the place of a kid may be the secret.
func Parse(text string) (*Keyring, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	k := &Keyring{using: map[uint16]string{}}
	for i, part := range strings.Split(text, ",") {
		key, err := parseKey(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("token key %d: %w", i+1, err)
		}
		if at := slices.IndexFunc(k.keys, func(other tokenKey) bool { return other.kid == key.kid }); at >= 0 {
			return nil, fmt.Errorf("token key %d: %w: token key %d has the same id", i+1, denied.KidConflict, at+1)
		}
		k.keys = append(k.keys, key)
	}
	return k, nil
}

func parseKey(text string) (tokenKey, error) {
	kid, secret, ok := strings.Cut(text, ":")
	switch {
	case text == "":
		return tokenKey{}, fmt.Errorf("%w: the key is empty; keys are separated by one comma each", denied.Kid)
	case !ok:
		return tokenKey{}, fmt.Errorf(
			"%w: the key has no id; write it as kid:hex, for example k1:$(openssl rand -hex 32)", denied.Kid)
	case !waitwords.ValidKid(kid):
		return tokenKey{}, fmt.Errorf("%w: the text before the colon is not a key id", denied.Kid)
	case strings.Trim(secret, "0123456789abcdefABCDEF") != "" || len(secret)%2 != 0:
		return tokenKey{}, fmt.Errorf("%w: the text behind the colon is not an even number of hex digits",
			denied.Secret)
	}
	raw, _ := hex.DecodeString(secret) // just checked
	if len(raw) < minSecret || len(raw) > maxSecret {
		return tokenKey{}, fmt.Errorf("%w: it has %d bytes, want %d..%d", denied.Secret, len(raw), minSecret, maxSecret)
	}
	return tokenKey{kid, raw}, nil
}

// Development is a keyring with a random key that every caller in this process shares; for embedded servers, which
// live no longer than the process.
var Development = sync.OnceValue(func() *Keyring {
	var secret [minSecret]byte
	_, _ = rand.Read(secret[:]) // never fails
	return &Keyring{using: map[uint16]string{},
		keys: []tokenKey{{"dev-" + hex.EncodeToString(secret[:4]), secretOf(secret)}}}
})

func secretOf(seed [minSecret]byte) []byte {
	sum := sha256.Sum256(seed[:])
	return sum[:]
}

// Kids lists the ids, the first one first.
func (k *Keyring) Kids() []string {
	if k == nil {
		return nil
	}
	kids := make([]string, len(k.keys))
	for i, key := range k.keys {
		kids[i] = key.kid
	}
	return kids
}

// Key is a key by its id as the server knows it; ok is false if it is not in the ring.
func (k *Keyring) Key(kid string) (key suspend.TokenKey, ok bool) {
	found := k.find(kid)
	if found == nil {
		return suspend.TokenKey{}, false
	}
	return suspend.TokenKey{Kid: kid, Fingerprint: found.fingerprint()}, true
}

// First is the key to sign with. The nil keyring has none.
func (k *Keyring) First() (key suspend.TokenKey, ok bool) {
	if k == nil || len(k.keys) == 0 {
		return suspend.TokenKey{}, false
	}
	return k.Key(k.keys[0].kid)
}

// Use notes which key signs in a partition, as the server said. A key that is not in the ring is not used.
func (k *Keyring) Use(partition uint16, kid string) {
	if k.find(kid) == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.using[partition] = kid
}

// String shows ids only.
func (k *Keyring) String() string { return "keyring " + strings.Join(k.Kids(), ",") }

// GoString shows ids only.
func (k *Keyring) GoString() string { return k.String() }

// Format implements fmt.Formatter: ids only, whatever the verb.
func (k *Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// Has tells whether a key is in the ring.
func (k *Keyring) Has(kid string) bool { return k.find(kid) != nil }

func (k *Keyring) find(kid string) *tokenKey {
	if k == nil {
		return nil
	}
	i := slices.IndexFunc(k.keys, func(key tokenKey) bool { return key.kid == kid })
	if i < 0 {
		return nil
	}
	return &k.keys[i]
}

// fingerprint tells two secrets apart without telling either.
func (key *tokenKey) fingerprint() string {
	sum := sha256.Sum256(append([]byte("flowfabric token key\x00"), key.secret...))
	return hex.EncodeToString(sum[:8])
}

// signer is the key to sign with in a partition.
func (k *Keyring) signer(partition uint16) *tokenKey {
	if k == nil || len(k.keys) == 0 {
		return nil
	}
	k.mu.Lock()
	kid := k.using[partition]
	k.mu.Unlock()
	if key := k.find(kid); key != nil {
		return key
	}
	return &k.keys[0]
}

// Mint makes the identity of a new waitpoint and its token. ErrNoTokenKeys without a key.
func (k *Keyring) Mint(execution flowfabric.ExecutionID, key string) (engine.Minted, suspend.Token, error) {
	signer := k.signer(execution.Partition())
	if signer == nil {
		return engine.Minted{}, suspend.Token{}, fmt.Errorf("waitpoint %q: %w", key, flowfabric.ErrNoTokenKeys)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	m := engine.Minted{ID: mint.UUID(), Key: key, Kid: signer.kid, Nonce: hex.EncodeToString(nonce[:])}
	token := makeToken(execution, m.ID, signer.kid+":"+signer.mac(execution, m.ID, key, nonce[:]))
	m.Digest = token.Digest()
	return m, token, nil
}

// Reissue makes a new token for a waitpoint, to be stored with engine.ReissueToken.
func (k *Keyring) Reissue(execution flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	key string) (engine.Minted, suspend.Token, error) {
	m, token, err := k.Mint(execution, key)
	if err != nil {
		return m, token, err
	}
	signer := k.find(m.Kid)
	nonce, _ := hex.DecodeString(m.Nonce)
	token = makeToken(execution, waitpoint, m.Kid+":"+signer.mac(execution, waitpoint, key, nonce))
	m.ID, m.Digest = waitpoint, token.Digest()
	return m, token, nil
}

// Token makes the token of a stored waitpoint again; whoever has the keys can. flowfabric.ErrNoTokenKeys when the
// waitpoint's key is not in the ring; ErrCorrupt for a nonce that is not 16 bytes of hex.
func (k *Keyring) Token(execution flowfabric.ExecutionID, w engine.Opened) (suspend.Token, error) {
	key := k.find(w.Kid)
	if key == nil {
		return suspend.Token{}, fmt.Errorf("waitpoint %q: %w (it was signed with kid %q, which is not configured)",
			w.Key, flowfabric.ErrNoTokenKeys, w.Kid)
	}
	nonce, err := hex.DecodeString(w.Nonce)
	if err != nil || len(nonce) != 16 {
		return suspend.Token{}, fmt.Errorf("waitpoint %q: %w: its nonce is not 16 bytes of hex", w.Key,
			flowfabric.ErrCorrupt)
	}
	return makeToken(execution, w.ID, w.Kid+":"+key.mac(execution, w.ID, w.Key, nonce)), nil
}

// mac binds a token to everything that identifies its waitpoint. Each part has its length in front, so that no two
// sets of parts are the same bytes.
func (key *tokenKey) mac(execution flowfabric.ExecutionID, waitpoint flowfabric.UUID, waitpointKey string,
	nonce []byte) string {
	h := hmac.New(sha256.New, key.secret)
	id := ids.UUID(execution)
	partition := binary.BigEndian.AppendUint16(nil, execution.Partition())
	h.Write([]byte{tokenVersion})
	for _, part := range [][]byte{partition, id[:], waitpoint[:], []byte(waitpointKey), nonce} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// makeToken is the token of a waitpoint with this secret part.
func makeToken(execution flowfabric.ExecutionID, waitpoint flowfabric.UUID, secret string) suspend.Token {
	token, err := suspend.ParseToken(fmt.Sprintf("%d.%s.%s.%s", execution.Partition(), ids.UUID(execution), waitpoint,
		secret))
	if err != nil {
		panic("tokenkeys: a token that was just made is not one: " + err.Error()) // without the token
	}
	return token
}
