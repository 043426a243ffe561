// Package digest is what stores of blobs have in common: references, and the errors about them. See package blob.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

const scheme = "sha256:"

// Max is how many bytes a blob has at most.
const Max = 64 << 20

// Ref is the reference of bytes.
func Ref(data []byte) string {
	sum := sha256.Sum256(data)
	return scheme + hex.EncodeToString(sum[:])
}

// Of is the 64 hex digits of a reference. Error: flowfabric.ErrInvalidInput if ref is none.
func Of(ref string) (string, error) {
	digits, ok := strings.CutPrefix(ref, scheme)
	if !ok || len(digits) != 2*sha256.Size || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fmt.Errorf("blob: %w: %.80q is not a reference, want %s and %d hex digits",
			flowfabric.ErrInvalidInput, ref, scheme, 2*sha256.Size)
	}
	return digits, nil
}

// Check returns the bytes that a store has for a reference, or an error that wraps flowfabric.ErrCorrupt if they do
// not fit.
func Check(ref string, data []byte) ([]byte, error) {
	if got := Ref(data); got != ref {
		return nil, fmt.Errorf("blob %s: %w: its %d bytes are those of %s", ref, denied.BlobDamaged, len(data), got)
	}
	return data, nil
}

// Missing is the error of a store that does not have the bytes of ref. It wraps flowfabric.ErrNotFound.
func Missing(ref string) error { return fmt.Errorf("blob %s: %w", ref, denied.NoBlob) }

// Fits refuses more than Max bytes. The error wraps flowfabric.ErrPayloadTooLarge.
func Fits(size int) error {
	if size <= Max {
		return nil
	}
	return fmt.Errorf("blob: %w: %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, size, Max)
}

// Final says that no later call of a store mends what an error is about.
func Final(err error) bool {
	return errors.Is(err, flowfabric.ErrNotFound) || errors.Is(err, flowfabric.ErrCorrupt) ||
		errors.Is(err, flowfabric.ErrInvalidInput) || errors.Is(err, flowfabric.ErrPayloadTooLarge)
}
