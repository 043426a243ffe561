package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Env is the environment variable with the keys of a process that is given no cipher.
const Env = "FLOWFABRIC_CIPHER_KEYS"

const (
	secretBytes, saltBytes, nonceBytes = 32, 16, 12

	maxKid = 32
	// uses is how many messages are sealed with one derived key, far below where random nonces could meet.
	uses = 1 << 30
	// derivedKept is how many derived keys are kept to open with: one of each process that sealed.
	derivedKept = 1024
)

// Keys is a cipher: AES-256-GCM, with a key of its own for each process, which is derived from a secret and a random
// salt. What it seals is the length of the key id, the id, the salt, the nonce, and the encrypted bytes. It prints
// without secrets. Safe for concurrent use.
type Keys struct {
	keys  []secret // the first seals
	using atomic.Pointer[derived]

	mu   sync.Mutex
	open map[string]cipher.AEAD // by key id and salt
}

type secret struct {
	kid   string
	bytes []byte
}

// derived is the key that this process seals with.
type derived struct {
	header []byte // what comes before the nonce
	aead   cipher.AEAD
	used   atomic.Int64
}

// Parse reads "kid:hex,kid:hex…": ids of 1..32 bytes of A-Z a-z 0-9 . _ -, secrets of 32 bytes. An error names a key
// by its place only.
func Parse(text string) (*Keys, error) {
	k := &Keys{open: map[string]cipher.AEAD{}}
	for i, part := range strings.Split(text, ",") {
		kid, hexed, ok := strings.Cut(strings.TrimSpace(part), ":")
		bytes, err := hex.DecodeString(hexed)
		switch {
		case !ok || !validKid(kid):
			return nil, fmt.Errorf("cipher key %d: want kid:hex, the kid 1..%d bytes of A-Z a-z 0-9 . _ -", i+1,
				maxKid)
		case err != nil || len(bytes) != secretBytes:
			return nil, fmt.Errorf("cipher key %d: want %d bytes in hexadecimal (openssl rand -hex %d)", i+1,
				secretBytes, secretBytes)
		case slices.ContainsFunc(k.keys, func(other secret) bool { return other.kid == kid }):
			return nil, fmt.Errorf("cipher key %d: an earlier key has the same id", i+1)
		}
		k.keys = append(k.keys, secret{kid, bytes})
	}
	return k, nil
}

func validKid(kid string) bool {
	return kid != "" && len(kid) <= maxKid && !strings.ContainsFunc(kid, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r))
	})
}

// Configured is the cipher that a process was given, else one of the keys in the environment, else nil.
func Configured(c Cipher) (Cipher, error) {
	text := os.Getenv(Env)
	if c != nil || strings.TrimSpace(text) == "" {
		return c, nil
	}
	k, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Env, err)
	}
	return k, nil
}

func (k *Keys) String() string {
	ids := make([]string, len(k.keys))
	for i := range k.keys {
		ids[i] = k.keys[i].kid
	}
	return "cipher keys " + strings.Join(ids, ", ")
}

// GoString is String: %#v shows no secret either.
func (k *Keys) GoString() string { return k.String() }

func (s secret) derive(salt []byte) (cipher.AEAD, error) {
	mac := hmac.New(sha256.New, s.bytes)
	mac.Write([]byte("flowfabric payload\x00"))
	mac.Write(salt)
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal encrypts with the first key.
func (k *Keys) Seal(plain []byte) ([]byte, error) {
	d := k.using.Load()
	if d == nil || d.used.Add(1) > uses {
		salt := make([]byte, saltBytes)
		_, _ = rand.Read(salt) // never fails
		aead, err := k.keys[0].derive(salt)
		if err != nil {
			return nil, err
		}
		kid := k.keys[0].kid
		d = &derived{header: append(append([]byte{byte(len(kid))}, kid...), salt...), aead: aead}
		k.using.Store(d) // of two that do so at once either may stay
	}
	out := make([]byte, len(d.header)+nonceBytes, len(d.header)+nonceBytes+len(plain)+d.aead.Overhead())
	copy(out, d.header)
	nonce := out[len(d.header):]
	_, _ = rand.Read(nonce)
	return d.aead.Seal(out, nonce, plain, nil), nil
}

var errShort = errors.New("it is cut short")

// Open decrypts what any of the keys has sealed. ErrNoKey for another key; else ErrDamaged.
func (k *Keys) Open(sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || len(sealed) < 1+int(sealed[0])+saltBytes+nonceBytes {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, errShort)
	}
	n := 1 + int(sealed[0])
	kid, header := string(sealed[1:n]), sealed[:n+saltBytes]
	if !validKid(kid) {
		return nil, fmt.Errorf("%w: it names no key", ErrDamaged)
	}
	at := slices.IndexFunc(k.keys, func(s secret) bool { return s.kid == kid })
	if at < 0 {
		return nil, fmt.Errorf("%w: it was encrypted with key %s, here are %s", ErrNoKey, kid, k)
	}
	aead, err := k.opener(k.keys[at], header)
	if err != nil {
		return nil, err
	}
	nonce := sealed[len(header) : len(header)+nonceBytes]
	plain, err := aead.Open(nil, nonce, sealed[len(header)+nonceBytes:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w (key %s)", ErrDamaged, kid)
	}
	return plain, nil
}

// opener is the derived key that a header names.
func (k *Keys) opener(s secret, header []byte) (cipher.AEAD, error) {
	if d := k.using.Load(); d != nil && string(d.header) == string(header) {
		return d.aead, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.open[string(header)]; known != nil {
		return known, nil
	}
	aead, err := s.derive(header[len(header)-saltBytes:])
	if err != nil {
		return nil, err
	}
	if len(k.open) >= derivedKept {
		clear(k.open)
	}
	k.open[string(header)] = aead
	return aead, nil
}
