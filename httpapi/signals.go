package httpapi

import (
	"encoding/json"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type waitpointList admin.Page[suspend.Waitpoint]

func (c *call) waitpoints(id flowfabric.ExecutionID) (waitpointList, error) {
	list, err := c.h.client.Execution(id).Waitpoints(c.ctx())
	return waitpointList{Items: append([]suspend.Waitpoint{}, list...)}, err
}

// reply is an answer to a waitpoint.
type reply struct {
	suspend.SentSignal `for:"reply"`
	Payload            json.RawMessage `json:"payload,omitempty" jsonschema:"any JSON value, at most 64 KiB; default null. To a question: choice, and maybe comment, by, and arguments, if those of the question are changed"`
}

func (b *reply) value() json.RawMessage { return value(b.Payload) }

func (b *reply) options() (opts []client.SignalOption) {
	if b.Name != "" {
		opts = append(opts, client.SignalName(b.Name))
	}
	if b.IdempotencyKey != "" {
		opts = append(opts, flowfabric.IdempotencyKey(b.IdempotencyKey))
	}
	if b.Category != "" || b.Correlation != "" {
		opts = append(opts, client.SignalDetails(suspend.SentSignal{Category: b.Category, Correlation: b.Correlation}))
	}
	return opts
}

func (c *call) answer(b *reply) (none suspend.Delivered, err error) {
	if err := c.keyed(&b.IdempotencyKey); err != nil {
		return none, err
	}
	id, err := c.id()
	if err != nil {
		return none, err
	}
	which := c.r.PathValue("key")
	opts := []client.ApproveOption{c.by()}
	for _, o := range b.options() {
		opts = append(opts, o)
	}
	d, err := c.h.client.Execution(id).Approve(c.ctx(), which, b.value(), opts...)
	return d, chosen(c.answered(id, which, err))
}

// signal is one with a token, which is all that its sender needs.
type signal struct {
	Token string `json:"token"`
	reply
}

func (c *call) signal(b *signal) (none suspend.Delivered, err error) {
	if err := c.keyed(&b.IdempotencyKey); err != nil {
		return none, err
	}
	token, err := suspend.ParseToken(b.Token)
	if err != nil {
		return none, err
	}
	d, err := c.h.client.Signal(c.ctx(), token, b.value(),
		append(b.options(), client.SignalSource("api", c.who.Name))...)
	return d, chosen(err)
}
