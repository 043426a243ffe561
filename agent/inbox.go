package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric-go/handler"
)

// inbox is where messages of the user come from while an agent runs. What it returns is recorded: a later run of the handler gets the same.
type inbox interface {
	// drain takes what has come, without waiting.
	drain(ctx context.Context) ([]Message, error)
	// receive waits for one message; ok is false if none came within Config.Idle.
	receive(ctx context.Context) (m Message, ok bool, err error)
}

// userMessage is a message of the user by what was sent: text, a string of JSON, or an object with a text.
func userMessage(by, encoding string, payload []byte) Message {
	m := Message{Role: User, From: by, Text: string(payload)}
	var text string
	var object struct {
		Text *string `json:"text"`
	}
	if encoding != "json" {
		// the text as it is
	} else if json.Unmarshal(payload, &text) == nil {
		m.Text = text
	} else if json.Unmarshal(payload, &object) == nil && object.Text != nil {
		m.Text = *object.Text
	}
	m.Text = strings.ToValidUTF8(m.Text, "\ufffd")
	return m
}

type noInbox struct{}

func newInbox(*handler.Task, Config) inbox { return noInbox{} }

func (noInbox) drain(context.Context) ([]Message, error) { return nil, errors.New("no mailbox") }
func (noInbox) receive(context.Context) (Message, bool, error) {
	return Message{}, false, errors.New("no mailbox")
}
