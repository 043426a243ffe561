package client

import (
	"cmp"
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// mailer is the part of the engine behind mailboxes. Each call may be repeated.
type mailer interface {
	SendMessage(ctx context.Context, id flowfabric.ExecutionID, m engine.Message) (engine.Sent, error)
	ReadMessages(ctx context.Context, id flowfabric.ExecutionID, behind uint64, limit int) (engine.Mailboxes, error)
}

// SendOption is an option of [Execution.Send]: flowfabric.By and flowfabric.Key.
type SendOption interface{ SendOption() }

// Sent answers an [Execution.Send].
type Sent struct {
	Number uint64 `json:"number" jsonschema:"its place among all messages of the execution, from 1"`
	// Waiting are messages of the execution that nobody has received yet, this one included if it is one.
	Waiting   int  `json:"waiting" jsonschema:"messages of the execution that nobody has received yet"`
	Duplicate bool `json:"duplicate" jsonschema:"a message with this key came before; number is that one's"`
}

// Send puts a message into a mailbox of an execution, for handler.Receive there. It may be sent from when the
// execution was submitted until it ends: one that nobody waits for yet is kept. Messages are received once, in the
// order in which they were accepted. It needs no token: who may call it may send. mailbox is 1..96 bytes of printable
// ASCII. payload is encoded as JSON; a json.RawMessage is sent as it is, and a []byte, too, as bytes that are not
// JSON; at most 64 KiB. By says who sends it (default Config.Creator, and
// nobody without it).
//
// An execution keeps up to 1,000 messages, and 1 MiB of them, that nobody has received. The call's own repeats are
// harmless. A caller that repeats it after ErrTransport gives it a flowfabric.Key, by which a message is
// known again as long as it is one of the last 1,000.
//
// Errors: flowfabric.ErrLimit; ErrTerminal when the execution has ended; ErrNotFound; ErrResultPurged;
// ErrPayloadTooLarge above 64 KiB; ErrInvalidInput for mailbox, payload and options.
func (e *Execution[Out]) Send(ctx context.Context, mailbox string, payload any,
	opts ...SendOption) (Sent, error) {
	c, id := e.client, e.id
	m, err := newMessage(c, mailbox, payload, opts)
	if err != nil {
		return Sent{}, c.refuse("send to", id, err)
	}
	if err := c.admit("send to", id); err != nil {
		return Sent{}, err
	}
	ctx, span := c.tracer.Signal(ctx, "send", tracing.Work{Execution: id})
	s, err := c.store.SendMessage(ctx, id, m)
	if err != nil {
		err = link.Signalled("send to", id, err)
	}
	span.Ended(err)
	return Sent{Number: s.Number, Waiting: s.Waiting, Duplicate: s.Already}, err
}

func newMessage(c *Client, mailbox string, payload any, opts []SendOption) (engine.Message, error) {
	m := engine.Message{Mailbox: mailbox, By: c.cfg.Creator}
	var said flowfabric.Start
	for i, o := range opts {
		if by, ok := link.Who(o); ok {
			m.By = cmp.Or(by, m.By)
		} else if err := option.Apply(&said, i, o); err != nil {
			return m, err
		}
	}
	if said.Key != nil {
		m.Key = said.Key.Text
		if err := valid.TextKey(*said.Key, "a message"); err != nil {
			return m, err
		}
	}
	if err := waitwords.CheckMailbox(mailbox); err != nil {
		return m, err
	}
	var err error
	if m.By != "" {
		err = link.CheckNamed(m.By, limits.MaxSignalSource)
	}
	if err != nil {
		return m, err
	}
	if m.Encoding, m.Payload, err = encoded(payload); err == nil && len(m.Payload) > limits.MaxMessage {
		err = fmt.Errorf("%w: a message of %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(m.Payload),
			limits.MaxMessage)
	}
	return m, err
}

// Mailboxes tells of the messages of an execution.
type Mailboxes struct {
	Total   uint64 `json:"total" jsonschema:"messages that came so far"`
	Waiting int    `json:"waiting" jsonschema:"those that nobody has received yet"`
	Bytes   int    `json:"bytes" jsonschema:"stored size of these messages"`
	// Messages are a page of those.
	Messages []suspend.Message `json:"items" jsonschema:"the oldest of these messages; at most 100 and 128 KiB"`
}

// Messages lists messages that were sent to an execution and that nobody has received yet, whatever the mailbox, the
// first that came first: those behind the number after (0: from the first), up to 100 and 128 KiB. What was received
// is kept in steps of the handler ([Execution.Steps]).
//
// Errors: flowfabric.ErrNotFound, ErrResultPurged.
func (e *Execution[Out]) Messages(ctx context.Context, after uint64) (Mailboxes, error) {
	c, id := e.client, e.id
	if err := c.admit("messages of", id); err != nil {
		return Mailboxes{}, err
	}
	if after > maxNumber {
		return Mailboxes{}, fmt.Errorf("messages of %s: %w: after is %d, want 0..%d", id, flowfabric.ErrInvalidInput,
			after, uint64(maxNumber))
	}
	m, err := c.store.ReadMessages(ctx, id, after, limits.MaxReceived)
	if err != nil {
		return Mailboxes{}, link.Operated("messages of", id, err)
	}
	if m.Messages == nil {
		m.Messages = []suspend.Message{}
	}
	return Mailboxes(m), nil
}

// maxNumber is the largest number of a message.
const maxNumber = 1<<53 - 1
