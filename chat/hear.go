package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
)

// heard says which execution got a message, and where its answer begins.
type heard struct {
	id flowfabric.ExecutionID
	at place
}

// tell sends the new messages of a front end's history to the conversation. The last one is the user's; replaces is the
// id of the message that the front end has changed, "" for none.
func (h *Handler) tell(c *request, history []front, replaces string) (heard, error) {
	if len(history) == 0 || history[len(history)-1].role != agent.User {
		return heard{}, bad("messages", "messages do not end with one of the user")
	}
	last := history[len(history)-1]
	id, err := h.attach(c.ctx(), keyOf(c.owner, c.id))
	if errors.Is(err, flowfabric.ErrNotFound) {
		id, err = h.open(c, titled(last.text, titleWords), func(in Conversation) error {
			t := truth{cut: in.Dropped > 0}
			t.said = map[string]front{}
			for _, m := range in.Messages {
				if m.Role == agent.User {
					t.add(m.ID, m)
				}
			}
			p, err := t.compare(history, replaces, h.cfg.EditHistory)
			if err == nil && p.edit != nil {
				err = t.differs(last.id)
			}
			return err
		})
	}
	if err != nil {
		return heard{}, err
	}
	room, err := h.enter(c.ctx(), c, id)
	if err != nil {
		return heard{}, err
	}
	cut, err := h.cut(c.ctx(), id)
	if err != nil {
		return heard{}, err
	}
	var now snapshot
	var p plan
	err = room.retold(c.ctx(), func(s snapshot) (err error) {
		now = s
		p, err = truthOf(now.messages, cut).compare(history, replaces, h.cfg.EditHistory)
		return err
	})
	switch {
	case err != nil:
		return heard{}, err
	case p.edit != nil:
		return h.edit(c, room, p)
	case p.follow != "":
		return heard{id, place{answerTo: groupOf(now.messages, p.follow)}}, nil
	case now.doing == doingAsk:
		if err := h.mayInterrupt(c.ctx(), id); err != nil {
			return heard{}, err
		}
	}
	return h.send(c, id, p.send, now, replaces != "")
}

// mayInterrupt refuses a message while people are asked, unless it ends that wait (agent.Interrupt): the agent would
// not get it before they have answered.
func (h *Handler) mayInterrupt(ctx context.Context, id flowfabric.ExecutionID) error {
	r, err := h.client.Execution(id).Suspension(ctx)
	if err != nil || r.State != flowfabric.Suspended {
		return err
	}
	for line := range strings.SplitSeq(r.Condition, "\x1e") { // as suspend.Condition.Compile writes it
		if line == "M\x1f"+mailbox {
			return nil
		}
	}
	return refuse(http.StatusConflict, codeUnanswered, "a question is open: answer it before you say something else")
}

// cut says that there were messages before the first one of the current link.
func (h *Handler) cut(ctx context.Context, id flowfabric.ExecutionID) (bool, error) {
	in, err := h.input(ctx, id)
	return in.Dropped > 0 || len(in.Messages) > 0 && in.Messages[0].From == fromSummary, err
}

// input is the input of the current link of a conversation.
func (h *Handler) input(ctx context.Context, id flowfabric.ExecutionID) (in Conversation, err error) {
	data, err := h.client.Execution(id).Input(ctx)
	if err == nil && len(data) > 0 {
		err = h.codec.Decode(data, &in)
	}
	return in, err
}

// begin reads the input of the current link of an execution, for its room.
func (h *Handler) begin(ctx context.Context, id flowfabric.ExecutionID) (begin, error) {
	x := h.client.Execution(id)
	before, err := x.Get(ctx)
	for err == nil {
		var in Conversation
		if in, err = h.input(ctx, id); err != nil {
			break
		}
		var after flowfabric.Snapshot
		if after, err = x.Get(ctx); err == nil && after.Continues == before.Continues {
			return begin{named(in.Messages), after.Continues}, nil
		}
		before = after // another link has begun meanwhile
	}
	return begin{}, err
}

// groupOf is the id of the last of the messages of the user that are answered together with this one.
func groupOf(messages []message, id string) string {
	found := false
	for _, m := range messages {
		switch {
		case m.id == id && m.role == agent.User:
			found = true
		case found && m.role == agent.User:
			id = m.id
		case found:
			return id
		}
	}
	return id
}

// send sends messages, each once, to a conversation that may have ended.
func (h *Handler) send(c *request, id flowfabric.ExecutionID, messages []front, now snapshot,
	replaces bool) (heard, error) {
	out := heard{id: id}
	for i, m := range messages {
		data, err := h.payload(c.ctx(), "messages", m, func(ref string) bool { return refers(now.messages, ref) })
		if err != nil {
			return out, err
		}
		sent, err := h.deliver(c, id, data, "message "+m.id)
		if err != nil {
			return out, err
		}
		if sent.Duplicate && !replaces {
			if err := h.repeat(c, id, data, m.id, sent.Number); err != nil {
				return out, err
			}
		}
		if replaces && sent.Duplicate && i == len(messages)-1 {
			if err := h.revive(c.ctx(), id, c.owner); err != nil { // it may have ended before it heard the message
				return out, err
			}
			return out, refuse(http.StatusConflict, codeBusy,
				"the message that is changed was not heard yet; try again in a moment")
		}
		out.at.answerTo = m.id
	}
	return out, nil
}

// repeat sends a message again whose key is known, if a rewind has dropped it since: it is neither in the mailbox nor
// in the history. During an answer this cannot be known, and the message is left where it is.
func (h *Handler) repeat(c *request, id flowfabric.ExecutionID, data json.RawMessage, message string,
	number uint64) error {
	x := h.client.Execution(id)
	s, err := x.Get(c.ctx())
	if err != nil || stateOf(s.State) != doingIdle {
		return err
	}
	waiting, err := x.Messages(c.ctx(), number-1)
	if err != nil || len(waiting.Messages) > 0 && waiting.Messages[0].Number == number {
		return err
	}
	r, err := agent.ReadTranscript(c.ctx(), h.client, id, agent.TranscriptOptions{Codec: h.codec})
	if err != nil {
		return err
	}
	room, err := h.enter(c.ctx(), c, id)
	if err != nil {
		return err
	}
	if truthOf(room.snapshot().messages, false).has(message) ||
		slices.ContainsFunc(r.Messages, func(m agent.Message) bool { return people(m) && m.ID == message }) {
		return nil
	}
	_, err = h.deliver(c, id, data, fmt.Sprint("again ", s.Attempt, " ", message))
	return err
}

// revivals bounds how often one message replays a conversation, which another request may end in between.
const revivals = 3

// deliver puts a message into the mailbox of a conversation. It replays a conversation that has ended.
func (h *Handler) deliver(c *request, id flowfabric.ExecutionID, data json.RawMessage,
	key string) (client.Sent, error) {
	for try := 0; ; try++ {
		sent, err := h.client.Execution(id).Send(c.ctx(), mailbox, data, flowfabric.By(c.owner),
			flowfabric.IdempotencyKey(key))
		switch {
		case !errors.Is(err, flowfabric.ErrTerminal):
			return sent, err
		case try == revivals:
			return sent, refuse(http.StatusGone, codeEnded, "the conversation ends as soon as it is brought back")
		}
		if err := h.revive(c.ctx(), id, c.owner); err != nil {
			return sent, err
		}
	}
}

// patience is how long a request waits until an answer in progress is recorded, so that it can be dropped.
const patience = 15 * time.Second

// edit replaces a message of the user.
func (h *Handler) edit(c *request, room *room, p plan) (heard, error) {
	now := room.snapshot()
	data, err := h.payload(c.ctx(), "messages", *p.edit, func(ref string) bool { return refers(now.messages, ref) })
	if err != nil {
		return heard{}, err
	}
	return h.rewind(c, room, p.instead, func(ctx context.Context, at agent.Place) (agent.Rewound, string, error) {
		if at.Turn == 0 {
			return agent.Rewound{}, "", errNotRecorded
		}
		r, err := agent.Edit(ctx, h.client, room.id, at, data, flowfabric.By(c.owner))
		return r, p.edit.id, err
	})
}

// again regenerates an answer. Message is the id of a message of the user, or of the assistant; "" is the last answer.
func (h *Handler) again(c *request, message string) (heard, error) {
	room, err := h.visit(c)
	if err != nil {
		return heard{}, err
	}
	var of string
	err = room.retold(c.ctx(), func(s snapshot) (err error) {
		of, err = answered(s.messages, message)
		return err
	})
	if err != nil {
		return heard{}, err
	}
	return h.rewind(c, room, of, func(ctx context.Context, at agent.Place) (agent.Rewound, string, error) {
		if at.Turn == 0 { // it is in progress, maybe for another tab or the same request, or it has failed
			if err := h.revive(ctx, room.id, c.owner); err != nil {
				return agent.Rewound{}, "", err
			}
			s, err := h.client.Execution(room.id).Get(ctx)
			return agent.Rewound{Rewound: client.Rewound{Attempt: s.Attempt}}, of, err
		}
		r, err := agent.Regenerate(ctx, h.client, room.id, at, flowfabric.By(c.owner))
		return r, of, err
	})
}

// answered is the id of the message of the user that a message of the assistant answers.
func answered(messages []message, id string) (of string, err error) {
	user := ""
	for _, m := range messages {
		if m.role == agent.User {
			user = m.id
			if m.id == id {
				return groupOf(messages, id), nil
			}
			if replyTo(m.id) == id { // also while it is dropped, and made again
				return m.id, nil
			}
			continue
		}
		if of = user; id != "" && m.id == id {
			break
		}
		of = ""
	}
	if id == "" {
		of = user
	}
	if of == "" {
		return "", refuse(http.StatusNotFound, "message_unknown",
			"the conversation has no message %.40q that could be answered again", id)
	}
	return of, nil
}

// rewind calls drop, which drops the answer to a message of the user and everything after it. The turn is 0 while the
// answer is not recorded. If drop then returns errNotRecorded, rewind stops the answer and waits for its record. Drop
// returns the message whose answer is to be followed.
func (h *Handler) rewind(c *request, room *room, of string,
	drop func(context.Context, agent.Place) (agent.Rewound, string, error)) (heard, error) {
	ctx, stop := context.WithTimeout(c.ctx(), patience)
	defer stop()
	id := room.id
	for revived, missed := 0, 0; ; {
		changes := room.glance().changed
		turn, err := h.turnOf(ctx, id, of)
		if err != nil {
			return heard{}, err
		}
		r, from, err := drop(ctx, agent.Place{Codec: h.codec, Turn: turn})
		switch {
		case err == nil:
			return heard{id, place{answerTo: from, attempt: r.Attempt}}, nil
		case errors.Is(err, flowfabric.ErrConflict): // another request has dropped an answer, or a worker was lost
			continue
		case errors.Is(err, flowfabric.ErrNotFound) && missed < revivals: // another request has just dropped it
			missed++
			continue
		case !errors.Is(err, errNotRecorded) && !errors.Is(err, flowfabric.ErrNotFound):
			return heard{}, err
		}
		_, err = h.client.Execution(id).Stop(ctx, flowfabric.By(c.owner), flowfabric.Reason("another answer is wanted"))
		switch {
		case errors.Is(err, flowfabric.ErrTerminal) && revived < revivals: // it failed, and is to be recorded first
			revived++
			if err := h.revive(ctx, id, c.owner); err != nil {
				return heard{}, err
			}
			if room, err = h.enter(ctx, c, id); err != nil {
				return heard{}, err
			}
			continue
		case errors.Is(err, flowfabric.ErrTerminal):
			return heard{}, refuse(http.StatusGone, codeEnded, "the conversation fails as soon as it is brought back")
		case err != nil && !errors.Is(err, flowfabric.ErrState):
			return heard{}, err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			if c.ctx().Err() != nil {
				return heard{}, context.Cause(c.ctx())
			}
			return heard{}, refuse(http.StatusConflict, codeBusy,
				"the answer is not recorded yet: no worker has heeded the stop within %v", patience)
		}
	}
}

// errNotRecorded says that an answer cannot be dropped yet.
var errNotRecorded = errors.New("the answer is not recorded yet")

// turnOf is the number of the first answer to a message of the user, 0 if none is recorded yet. Answers before the
// current link cannot be regenerated.
func (h *Handler) turnOf(ctx context.Context, id flowfabric.ExecutionID, of string) (int, error) {
	r, err := agent.ReadTranscript(ctx, h.client, id, agent.TranscriptOptions{Codec: h.codec})
	if err != nil {
		return 0, err
	}
	answers := 0
	for _, m := range r.Messages {
		if m.Role == agent.Assistant {
			answers++
		}
	}
	turn, waiting := r.Turns-answers, false // the answers of before have numbers below 1
	for _, m := range r.Messages {
		switch {
		case m.Role == agent.Assistant:
			if turn++; waiting && turn > 0 {
				return turn, nil
			}
			if waiting {
				return 0, tooOld(of)
			}
		case m.Role == agent.User && m.ID == of:
			waiting = true
		}
	}
	if waiting {
		return 0, nil
	}
	in, err := h.input(ctx, id)
	if err != nil {
		return 0, err
	}
	before := false
	for _, m := range named(in.Messages) {
		switch {
		case m.Role == agent.User && m.ID == of:
			before = true
		case m.Role == agent.Assistant && before:
			return 0, tooOld(of)
		}
	}
	return 0, nil
}

func tooOld(of string) error {
	return refuse(http.StatusConflict, codeTooOld,
		"the answer to message %.40q cannot be made again: the conversation has gone on in another link since", of)
}

// refers says that a message has this file.
func refers(messages []message, ref string) bool {
	_, ok := fileOf(messages, ref)
	return ok
}

// fileOf is the part of a conversation that has a blob.
func fileOf(messages []message, ref string) (agent.Part, bool) {
	of := func(parts []agent.Part) (agent.Part, bool) {
		for _, p := range parts {
			if p.Blob == ref && ref != "" {
				return p, true
			}
		}
		return agent.Part{}, false
	}
	for _, m := range messages {
		if p, ok := of(m.said.Parts); ok {
			return p, true
		}
		for _, e := range m.events {
			if p, ok := of(append([]agent.Part{e.file}, e.said.Parts...)); ok {
				return p, true
			}
		}
	}
	return agent.Part{}, false
}
