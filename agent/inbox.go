package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// hear takes the messages that have come. What it gets is recorded, so a later run of the handler gets the same.
func (r *run) hear(ctx context.Context) error {
	if r.cfg.Mailbox == "" {
		return nil
	}
	r.steps++
	messages, err := r.task.Drain(ctx, r.cfg.Mailbox)
	for _, m := range messages {
		r.says = append(r.says, said(m))
	}
	return err
}

// receive waits for a message. The run does not go on if none comes in time, or if an operator ends the wait.
func (r *run) receive(ctx context.Context) (goOn bool, err error) {
	r.steps++
	m, err := handler.Receive[suspend.Message](ctx, r.task, r.cfg.Mailbox, suspend.Within(r.cfg.Idle),
		suspend.OnTimeout(suspend.Resume))
	switch {
	case errors.Is(err, flowfabric.ErrWaitTimeout), errors.Is(err, flowfabric.ErrNoSignal):
		return false, nil
	case err != nil:
		return false, err
	}
	r.says = append(r.says, said(m))
	return true, nil
}

// said is a message of the user by what was sent: a string, an object with a text, or whatever else as it is.
func said(sent suspend.Message) Message {
	m := Message{Role: User, From: sent.By, Text: string(sent.Payload)}
	var text string
	var object struct {
		Text *string `json:"text"`
	}
	if sent.Encoding != "json" {
		// as it is
	} else if json.Unmarshal(sent.Payload, &text) == nil {
		m.Text = text
	} else if json.Unmarshal(sent.Payload, &object) == nil && object.Text != nil {
		m.Text = *object.Text
	}
	m.Text, m.From = strings.ToValidUTF8(m.Text, "\ufffd"), strings.ToValidUTF8(m.From, "\ufffd")
	return m
}
