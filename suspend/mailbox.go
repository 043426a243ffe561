package suspend

import (
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Message is a message of a mailbox as it was accepted.
type Message struct {
	Number   uint64             `json:"number" jsonschema:"its place among all messages of the execution, from 1"`
	Mailbox  string             `json:"mailbox"`
	SentAt   time.Time          `json:"sent_at,omitzero" jsonschema:"when the server accepted it"`
	By       string             `json:"by,omitempty" jsonschema:"sender, as the sender claims"`
	Encoding string             `json:"encoding,omitempty" jsonschema:"json, utf8 or bytes, of the payload"`
	Payload  flowfabric.Payload `json:"payload"`
}

// Mailbox is the mailbox of which the suspension waits, or waited, for a message; "" if it is none.
func (r Record) Mailbox() string {
	if mailbox, ok := strings.CutPrefix(r.Condition, "M"+unitSeparator); ok {
		return mailbox
	}
	return ""
}

// CheckMailbox accepts the name of a mailbox: 1..96 bytes of printable ASCII. The error wraps
// flowfabric.ErrInvalidInput.
func CheckMailbox(name string) error {
	if name == "" || len(name) > limits.MaxMailbox {
		return fmt.Errorf("%w: mailbox %.80q has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, name, len(name),
			limits.MaxMailbox)
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] > 0x7e {
			return fmt.Errorf("%w: mailbox %.80q has byte %#02x at %d, want printable ASCII",
				flowfabric.ErrInvalidInput, name, name[i], i)
		}
	}
	return nil
}
