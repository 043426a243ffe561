package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// hear takes the messages that have come while the agent works.
func (r *run) hear(ctx context.Context) error {
	if r.cfg.Mailbox == "" || r.cfg.OneByOne {
		return nil
	}
	return r.drain(ctx, limits.MaxReceived)
}

// turnTo takes what is to be answered next, when the model has ended: all messages that have come, or one.
func (r *run) turnTo(ctx context.Context) error {
	switch {
	case !r.cfg.OneByOne:
		return r.hear(ctx)
	case r.cfg.Conversation: // receive takes one, and the others wait in the mailbox
		return nil
	}
	return r.drain(ctx, 1)
}

// drain takes what is in the mailbox. What it gets is recorded, so a later run of the handler gets the same.
func (r *run) drain(ctx context.Context, most int) error {
	r.steps++
	messages, err := r.halts.turn.Drain(ctx, r.cfg.Mailbox, most)
	for _, m := range messages {
		r.says = append(r.says, r.blobs.hold(r.said(m)))
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
	r.says = append(r.says, r.blobs.hold(r.said(m)))
	return true, nil
}

// reworded says something else in the place of what the user said before the next answer, if a person has edited that.
// Of several messages those before the one with the ID of the edit stay.
func (r *run) reworded() error {
	m, edited, err := r.task.Kin().Edited(r.modelStep())
	if err != nil || !edited {
		return err
	}
	n := len(r.says)
	for n > 0 && r.says[n-1].Role == User {
		n--
	}
	said := r.said(m)
	unnamed, from := said.ID == "", n
	for i, old := range r.says[n:] {
		switch {
		case unnamed && old.ID != "":
			said.ID = old.ID
		case !unnamed && old.ID == said.ID:
			from = n + i
		}
	}
	n = from
	r.says = append(slices.Clone(r.says[:n]), r.blobs.hold(said))
	r.seen = min(r.seen, len(r.tells)+n)
	return nil
}

// said is a message of the user by what was sent: a string, parts, an object with parts or a text, or whatever else as
// it is.
func (r *run) said(sent suspend.Message) Message {
	r.tookMessage(sent.Number)
	m := Message{Role: User, From: strings.ToValidUTF8(sent.By, "\ufffd"), Parts: Text(string(sent.Payload))}
	var text string
	var parts []Part
	if sent.Number > 0 { // an edit has none
		m.ID = "m" + strconv.FormatUint(sent.Number, 10)
	}
	var object struct {
		ID    any     `json:"id"`
		Text  *string `json:"text"`
		Parts []Part  `json:"parts"`
	}
	name := func() {
		if id, ok := object.ID.(string); ok && id != "" && checkID(id) == nil {
			m.ID = id
		}
	}
	switch {
	case sent.Encoding != "json": // as it is
	case json.Unmarshal(sent.Payload, &text) == nil:
		m.Parts = Text(text)
	case json.Unmarshal(sent.Payload, &parts) == nil && r.hears(parts):
		m.Parts = parts
	case json.Unmarshal(sent.Payload, &object) == nil && r.hears(object.Parts):
		m.Parts = object.Parts
		name()
	case object.Text != nil && len(object.Parts) == 0:
		m.Parts = Text(*object.Text)
		name()
	}
	return m
}

const maxMessageID = 128 // bytes

// checkID says what is wrong with the name of a message.
func checkID(id string) error {
	if len(id) > maxMessageID || !utf8.ValidString(id) || strings.ContainsFunc(id, func(c rune) bool {
		return !unicode.IsPrint(c)
	}) {
		return fmt.Errorf("ID %.40q is not valid, want at most %d bytes of printable text", id, maxMessageID)
	}
	return nil
}

// hears says that these parts can be what the user says.
func (r *run) hears(parts []Part) bool {
	thinks := slices.ContainsFunc(parts, func(p Part) bool { return p.Type == PartReasoning })
	return len(parts) > 0 && !thinks && r.cfg.checkMessage(Message{Parts: parts}) == nil
}
