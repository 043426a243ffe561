package waitwords

import (
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// CheckSignalName accepts the name of a signal: 1..128 bytes that do not begin with __.
func CheckSignalName(name string) error {
	if err := CheckText("signal name", name, limits.MaxSignalName); err != nil {
		return err
	}
	if name == "" || strings.HasPrefix(name, "__") {
		return fmt.Errorf("%w: signal name %q, want 1..%d bytes that do not begin with __", flowfabric.ErrInvalidInput,
			name, limits.MaxSignalName)
	}
	return nil
}

// CheckMailbox accepts the name of a mailbox: 1..96 bytes of printable ASCII. The error wraps
// flowfabric.ErrInvalidInput.
func CheckMailbox(name string) error { return valid.Printable("mailbox", name, limits.MaxMailbox) }

// CheckText refuses what is too long or has control characters, which the server's records are separated by.
func CheckText(what, text string, limit int) error {
	if len(text) > limit {
		return fmt.Errorf("%w: %s has %d bytes, want at most %d", flowfabric.ErrInvalidInput, what, len(text), limit)
	}
	for i := range len(text) {
		if text[i] < 0x20 || text[i] == 0x7f {
			return fmt.Errorf("%w: %s has control character %#02x at %d", flowfabric.ErrInvalidInput, what, text[i], i)
		}
	}
	return nil
}
