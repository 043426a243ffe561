package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Message is what a sender says to a mailbox.
type Message struct {
	ID       flowfabric.UUID // makes a repeat harmless; nil mints one
	Mailbox  string          // 1..96 bytes of printable ASCII
	Key      string          // ≤ 256 bytes; a later message with the same key is answered like the first
	By       string          // ≤ 256 bytes, who sends it
	Encoding string          // json, utf8 or bytes
	Payload  []byte          // ≤ 64 KiB
}

// Sent answers that.
type Sent struct {
	Number  uint64 // the message's place among all that the execution got, from 1
	Waiting int    // how many nobody has received yet
	Already bool   // it was sent before
}

// SendMessage puts a message into a mailbox of an execution (lua/suspend/ff_send_message.lua). denied.NotSignalable
// (slot 0: the code) for one that has ended; denied.MailboxFull; denied.MailboxShut (slot 0:
// the mailbox); ErrNotFound.
func (e *Engine) SendMessage(ctx context.Context, id flowfabric.ExecutionID, m Message) (Sent, error) {
	if m.ID.IsZero() {
		m.ID = mint.UUID()
	}
	payload, err := e.seal("ff_send_message", m.Payload)
	if err != nil {
		return Sent{}, err
	}
	r, already, err := ask[wire.SendMessageReply](ctx, e, id.Partition(), wire.SendMessage{ID: ids.UUID(id).String(),
		Mailbox: m.Mailbox, Message: m.ID.String(), Key: m.Key, By: m.By, Encoding: m.Encoding,
		Payload: rueidis.BinaryString(payload)})
	return Sent{Number: uint64(r.Number), Waiting: r.Waiting, Already: already}, err
}

// Receipt is what a receipt took from a mailbox, or why it took nothing.
type Receipt struct {
	// why nothing came: Looked, or what ended the wait; "" if something did
	Why      suspend.Cause
	Messages []suspend.Message
}

// receiptMark is between mailbox and number in the name of a receipt; no name of a user has it.
const receiptMark = "·"

// ReceiptName is the name of the nth receipt of a mailbox in a run, from 1.
func ReceiptName(mailbox string, n int) string { return mailbox + receiptMark + strconv.Itoa(n) }

// ParseReceiptName reads what ReceiptName made; ok is false for any other name.
func ParseReceiptName(name string) (mailbox string, n int, ok bool) {
	mailbox, number, found := strings.Cut(name, receiptMark)
	n, err := strconv.Atoi(number)
	return mailbox, n, found && err == nil
}

// IsReceipt tells whether a wait of this name is for a message.
func IsReceipt(wait string) bool { return strings.Contains(wait, receiptMark) }

// Looked is why a receipt that did not wait has no message.
const Looked suspend.Cause = "looked"

// Receiving asks for messages of a mailbox.
type Receiving struct {
	Name    string // of the receipt: it is kept as the step StepReceipt + Name
	Mailbox string
	Limit   int           // 1..100 messages
	Why     suspend.Cause // recorded if there is none; "" records nothing then
	// Busy is what becomes from now on of messages to the mailbox while the run talks: BusyInterrupt, BusyRefuse or,
	// as before, nothing.
	Busy string
}

// What becomes of messages while a run talks, instead of waiting.
const (
	BusyInterrupt = "interrupt" // the holder is told of each
	BusyRefuse    = "refuse"    // they are refused: denied.MailboxShut
)

// ReceiveMessages takes messages and records that they were taken (lua/suspend/ff_receive_messages.lua). A receipt
// that was recorded is answered as it was; recorded is false if there was nothing to record. denied.StepLimit.
func (e *Engine) ReceiveMessages(ctx context.Context, f flowfabric.Fence,
	q Receiving) (receipt Receipt, recorded bool, err error) {
	r, _, err := ask[wire.ReceiveMessagesReply](ctx, e, f.Execution.Partition(), wire.ReceiveMessages{
		Fence: fenceOf(f), Name: q.Name, Mailbox: q.Mailbox, Max: q.Limit, Why: string(q.Why), Busy: q.Busy})
	if err != nil || r.Value == "" {
		return Receipt{}, false, err
	}
	receipt, err = DecodeReceipt([]byte(r.Value))
	OpenMessages(e.cfg.Box, receipt.Messages)
	return receipt, err == nil, err
}

// Mailboxes tells of the messages of an execution.
type Mailboxes struct {
	Total    uint64 // that came, so far
	Waiting  int    // that nobody has received
	Bytes    int    // of those, as they are stored
	Messages []suspend.Message
}

// ReadMessages lists messages that nobody has received yet, up to limit (1..100) behind a number, at most 128 KiB but
// for the first (lua/read/ff_read_messages.lua). ErrNotFound; ErrResultPurged while a tombstone is left.
func (e *Engine) ReadMessages(ctx context.Context, id flowfabric.ExecutionID, behind uint64,
	limit int) (Mailboxes, error) {
	r, _, err := ask[wire.ReadMessagesReply](ctx, e, id.Partition(),
		wire.ReadMessages{ID: ids.UUID(id).String(), Behind: int(behind), Max: limit})
	if err != nil {
		return Mailboxes{}, err
	}
	out := Mailboxes{Total: uint64(r.Last), Waiting: r.Waiting, Bytes: r.Bytes}
	out.Messages, err = decoded("ff_read_messages", r.Messages, decodeMessage)
	OpenMessages(e.cfg.Box, out.Messages)
	return out, err
}

// DecodeReceipt reads the step that keeps a receipt.
func DecodeReceipt(value []byte) (Receipt, error) {
	why, rest, more := strings.Cut(string(value), unit)
	out := Receipt{Why: suspend.Cause(why)}
	if more {
		var err error
		if out.Messages, err = packed(rest, decodeMessage); err != nil {
			return Receipt{}, err
		}
	}
	if more != (why == "") {
		return Receipt{}, fmt.Errorf("%w: a receipt of %d messages says %q", denied.Reply, len(out.Messages), clip(why))
	}
	return out, nil
}

// decodeMessage reads what lua/lib/mailbox.lua stores.
func decodeMessage(text string) (suspend.Message, error) {
	r := parts("message", strings.SplitN(text, unit, 6), 6)
	return suspend.Message{Number: r.unsigned(), Mailbox: r.Text(), SentAt: r.InstantOr0(), By: r.Text(),
		Encoding: r.Text(), Payload: []byte(r.Text())}, r.fail()
}
