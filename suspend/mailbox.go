package suspend

import (
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
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
