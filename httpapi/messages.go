package httpapi

import (
	"context"
	"encoding/json"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// messageBody is what somebody sends to a mailbox.
type messageBody struct {
	Mailbox        string          `json:"mailbox" jsonschema:"1..96 bytes of printable ASCII; it needs no opening"`
	Payload        json.RawMessage `json:"payload,omitempty" jsonschema:"any JSON value, at most 64 KiB; default null"`
	Base64         []byte          `json:"base64,omitempty" jsonschema:"instead of payload, bytes that are not JSON"`
	IdempotencyKey string          `json:"idempotency_key,omitempty" jsonschema:"1..256 bytes: a repeat is recognised among the last 1,000 messages of the execution"`
}

func (c *call) sendMessage(b *messageBody) (none client.Sent, err error) {
	if err := c.keyed(&b.IdempotencyKey); err != nil {
		return none, err
	}
	id, err := c.id()
	if err != nil {
		return none, err
	}
	var content any = json.RawMessage(value(b.Payload))
	if b.Base64 != nil {
		if b.Payload != nil {
			return none, invalid("/base64", "payload is set, too; want one of the two")
		}
		content = b.Base64
	}
	if err := waitwords.CheckMailbox(b.Mailbox); err != nil {
		return none, invalid("/mailbox", "%v", err)
	}
	opts := []client.SendOption{c.by()}
	if b.IdempotencyKey != "" {
		opts = append(opts, flowfabric.IdempotencyKey(b.IdempotencyKey))
	}
	return c.h.client.Execution(id).Send(c.ctx(), b.Mailbox, content, opts...)
}

func (c *call) messages(id flowfabric.ExecutionID) (m client.Mailboxes, err error) {
	q := c.query()
	after := q.number("after", 0, 1<<53-1, 0)
	if q.err != nil {
		return m, q.err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return m, err
	}
	m, err = c.h.client.Execution(id).Messages(c.ctx(), after)
	for i := range m.Messages {
		m.Messages[i].Payload = shown.payload("message", m.Messages[i].Payload)
	}
	return m, err
}

type receiveBody struct {
	leased
	Mailbox string `json:"mailbox" jsonschema:"1..96 bytes of printable ASCII"`
	Number  int    `json:"number" jsonschema:"of the receipt: 1, 2, … for each mailbox, from 1 in every run of the handler. What a receipt took before is answered again"`
	Max     int    `json:"max,omitempty" jsonschema:"messages, 1..100, default 1; at most 128 KiB of them"`
	Look    bool   `json:"look,omitempty" jsonschema:"do not wait: that there was nothing is recorded, and later runs get the same"`
}

// receipt is what a receipt took, or why it took nothing.
type receipt struct {
	Messages []suspend.Message `json:"messages"`
	Nothing  suspend.Cause     `json:"nothing,omitempty" jsonschema:"why there is none, and will be none: looked, or how the wait for one ended, timeout or operator"`
}

type receiveAnswer struct {
	receipt
	Wait bool `json:"wait" jsonschema:"there is none yet, and nothing was recorded: suspend until this mailbox and number"`
}

func newReceipt(r engine.Receipt) receipt {
	if r.Messages == nil {
		r.Messages = []suspend.Message{}
	}
	return receipt{r.Messages, r.Why}
}

// receipted checks which receipt is meant, and returns its name.
func receipted(place, mailbox string, number int) (string, error) {
	if err := waitwords.CheckMailbox(mailbox); err != nil {
		return "", invalid(place+"/mailbox", "%v", err)
	}
	if number < 1 || number > limits.MaxSteps {
		return "", invalid(place+"/number", "it is %d, want 1..%d: count the receipts of each mailbox in a run", number,
			limits.MaxSteps)
	}
	return engine.ReceiptName(mailbox, number), nil
}

// receive takes messages. If there is none, a worker waits for one with suspend, and comes back with the same number
// when that has ended.
func (c *call) receive(f flowfabric.Fence, b *receiveBody) (*receiveAnswer, error) {
	name, err := receipted("", b.Mailbox, b.Number)
	if err != nil {
		return nil, err
	}
	if b.Max == 0 {
		b.Max = 1
	}
	if b.Max < 1 || b.Max > limits.MaxReceived {
		return nil, invalid("/max", "it is %d, want 1..%d", b.Max, limits.MaxReceived)
	}
	q := engine.Receiving{Name: name, Mailbox: b.Mailbox, Limit: b.Max}
	if b.Look {
		q.Why = engine.Looked
	}
	r, recorded, err := c.h.conn.Engine.ReceiveMessages(c.ctx(), f, q)
	if err == nil && !recorded {
		if q.Why, err = c.unanswered(c.ctx(), f, name); err == nil && q.Why != "" {
			r, recorded, err = c.h.conn.Engine.ReceiveMessages(c.ctx(), f, q)
		}
	}
	if err != nil {
		return nil, err
	}
	return &receiveAnswer{newReceipt(r), !recorded}, nil
}

// unanswered is how the wait of a receipt ended without a message, "" if it did not.
func (c *call) unanswered(ctx context.Context, f flowfabric.Fence, name string) (suspend.Cause, error) {
	r, err := c.h.conn.Engine.ReadSuspension(ctx, f.Execution)
	if err != nil || r.Result == nil || r.Result.Name != name ||
		r.Result.Cause != suspend.CauseTimeout && r.Result.Cause != suspend.CauseOperator {
		return "", err
	}
	return r.Result.Cause, nil
}

// received adds a receipt of an earlier run to a claim.
func (out *claimed) received(c *call, name string, value []byte) error {
	mailbox, number, ok := engine.ParseReceiptName(name)
	r, err := engine.DecodeReceipt(value)
	if err != nil || !ok {
		return err
	}
	engine.OpenMessages(c.h.conn.Engine.Box(), r.Messages)
	if out.Receipts == nil {
		out.Receipts = map[string]map[string]receipt{}
	}
	if out.Receipts[mailbox] == nil {
		out.Receipts[mailbox] = map[string]receipt{}
	}
	out.Receipts[mailbox][strconv.Itoa(number)] = newReceipt(r)
	return nil
}
