package suspend

import (
	"context"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
)

// Message is a message of a mailbox as it was accepted.
type Message struct {
	Number   uint64             `json:"number" jsonschema:"its place among all messages of the execution, from 1"`
	Mailbox  string             `json:"mailbox"`
	SentAt   time.Time          `json:"sent_at,omitzero" jsonschema:"when the server accepted it"`
	By       string             `json:"by,omitempty" jsonschema:"who sent it, as the sender says"`
	Encoding string             `json:"encoding,omitempty" jsonschema:"json, utf8 or bytes, of the payload"`
	Payload  flowfabric.Payload `json:"payload"`
}

// Receive takes the next message of a mailbox and returns its payload, decoded as [Await] decodes that of a signal.
// If there is none, the execution waits for one, as it does in Await: the first run gets an error that the handler
// must return, and holds nothing while it waits.
//
// A mailbox is a name, 1..96 bytes of printable ASCII; it needs no opening. client.Send puts messages into it from
// when the execution was submitted until it ends, also while it runs or waits for something else. Messages are
// received in the order in which they came, each once: what a Receive returned is kept like a step, so that after a
// crash the same Receive returns the same message, and a replay that keeps the steps gets it, too. The receipts of a
// mailbox are numbered by the run itself, so a loop needs no names. Those of one mailbox must come in the same order
// in every run: do not call them from several goroutines.
//
// Each receipt is a step of the 1,000 that an execution may have. A replay from scratch gets what nobody has received
// yet.
//
// Errors: those of Await. ErrNoSignal is the answer when an operator resumed the execution and no message was there;
// flowfabric.ErrWaitTimeout after [Within] with OnTimeout([Resume]), if none has come meanwhile.
func Receive[T any](ctx context.Context, t Task, mailbox string, opts ...Option) (T, error) {
	var none T
	m, err := ReceiveMessage(ctx, t, mailbox, opts...)
	if err != nil {
		return none, err
	}
	value, err := Decode[T](m)
	if err != nil {
		return none, fmt.Errorf("receive from %s: %w", mailbox, err)
	}
	return value, nil
}

// ReceiveMessage is [Receive] for who wants to know the sender and the time, too.
func ReceiveMessage(ctx context.Context, t Task, mailbox string, opts ...Option) (Message, error) {
	m, err := receive(ctx, t, mailbox, applied(opts))
	if err != nil && !IsWanted(err) {
		err = fmt.Errorf("receive from %s: %w", mailbox, err)
	}
	return m, err
}

func receive(ctx context.Context, t Task, mailbox string, o options) (m Message, err error) {
	defer func() { err = denied.Last(err) }()
	p, name, answer, err := receipt(ctx, t, mailbox)
	if err != nil {
		return Message{}, err
	}
	why := ""
	if answer != nil && (answer.Cause == waithook.CauseTimeout || answer.Cause == waithook.CauseOperator) {
		why = answer.Cause
	}
	messages, why, err := p.Take(ctx, name, mailbox, 1, why)
	switch {
	case err != nil:
		return Message{}, err
	case len(messages) > 0:
		return messages[0], nil
	case why == waithook.CauseTimeout:
		return Message{}, flowfabric.ErrWaitTimeout
	case why == waithook.CauseOperator && answer != nil:
		return Message{}, fmt.Errorf("%w%s", flowfabric.ErrNoSignal, who(*answer))
	case why != "":
		return Message{}, flowfabric.ErrNoSignal
	case ctx.Err() != nil:
		return Message{}, context.Cause(ctx)
	}
	w, err := want(name, Mailbox(mailbox), o)
	if err != nil {
		return Message{}, err
	}
	p.Want(name)
	return Message{}, w
}

// Drain takes what is in a mailbox now, up to 100 messages and 128 KiB of them, the first that came first, without
// waiting; none is no error. It is a receipt like [Receive], and what it returned is kept, also that there was
// nothing: later runs get the same.
//
// Errors: flowfabric.ErrInvalidInput for the mailbox, or inside a step; ErrLimit; code unflushed; ErrLeaseLost;
// ErrTransport; code task_consumed after the handler returned; the context's cause.
func Drain(ctx context.Context, t Task, mailbox string) (messages []Message, err error) {
	defer func() { err = denied.Last(err) }()
	p, name, _, err := receipt(ctx, t, mailbox)
	if err == nil {
		messages, _, err = p.Take(ctx, name, mailbox, limits.MaxReceived, waithook.WhyLooked)
	}
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", mailbox, err)
	}
	return messages, nil
}

// receipt begins one.
func receipt(ctx context.Context, t Task, mailbox string) (p waits, name string, answer *Result, err error) {
	if p, err = waitsOf(t); err != nil {
		return nil, "", nil, err
	}
	if err := CheckMailbox(mailbox); err != nil {
		return nil, "", nil, err
	}
	name, answer, err = p.Receipt(ctx, mailbox)
	return p, name, answer, err
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
