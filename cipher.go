package flowfabric

import (
	"fmt"

	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// Cipher encrypts and authenticates what programs store: it is the Cipher of client.Config and runtime.Config, and
// [CipherKeys] makes one. It must be safe for concurrent use, and must not change or keep what it is given. Seal adds
// at most 251 bytes and may answer other bytes for the same plain text each time, which it should. Open must refuse
// what was not sealed by a key it knows, and should know retired keys for as long as what they have sealed is
// retained.
//
// An error of either counts as one that passes, since a key service may be away: what needs it is tried again, by the
// policy of the execution where a handler does. handler.Permanent makes one of Open final.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// CipherKeys is a [Cipher] with keys of its own: "kid:hex,kid:hex…", ids of 1..32 bytes of A-Z a-z 0-9 . _ -, secrets
// of 32 bytes (openssl rand -hex 32). The first key encrypts, all decrypt; so a new key is added behind the first
// everywhere, then moved to the front, and an old one goes when nothing that it encrypted is retained any more. It is
// AES-256-GCM under a key that each process derives from the secret and a random salt; it adds 50 bytes and the id. It
// prints without secrets.
//
// Errors: [ErrConfig], which names a refused key by its place alone.
func CipherKeys(text string) (Cipher, error) {
	k, err := sealed.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return k, nil
}
