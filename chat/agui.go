package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
)

// agui is one run of AG-UI. It takes the new messages of the client, and streams the events that follow, until it is
// the user's turn or people are asked. A run without new messages follows the answer in progress, for a page that was
// reloaded. A client that disconnects stops nothing.
func (h *Handler) agui(c *request) error {
	var in aguiInput
	if err := decodeBody(c, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	c.id = in.ThreadID
	history, err := in.fronts()
	if err != nil {
		return err
	}
	x := &aguiRun{h: h, c: c, in: &in, w: newAGUIWriter(h.linkOf(c), h.cfg.ShowError)}
	err = x.act(history)
	if p, ok := errors.AsType[*problem](err); ok && runErrors[p.Status] {
		x.start()
		x.send(aguiEvent{Type: aguiRunError, Message: p.Detail, Code: p.Code})
		x.flush()
		return nil
	}
	if err != nil {
		return err
	}
	x.start()
	if x.to.id == (flowfabric.ExecutionID{}) { // the conversation has not begun
		x.finish()
	} else if err := x.follow(); err != nil && c.ctx().Err() == nil {
		x.broken(err)
	}
	x.flush()
	return nil
}

// runErrors are the refusals that end a run as RUN_ERROR, as the protocol requires: the request was valid, but cannot
// be carried out.
var runErrors = map[int]bool{http.StatusConflict: true, http.StatusGone: true, http.StatusUnprocessableEntity: true,
	http.StatusNotFound: true}

// aguiRun is a run.
type aguiRun struct {
	h  *Handler
	c  *request
	in *aguiInput
	w  *aguiWriter
	o  bytes.Buffer

	to       heard
	said     string   // id of the user's message that the agent must get before the run can end
	answered []string // waitpoints that must be seen as answered

	had map[string]bool // reasoning messages of the client
	has map[string]bool // its last messages, which are the user's
}

// act carries out the request.
func (x *aguiRun) act(history []front) error {
	ends := len(history) > 0 && history[len(history)-1].role == agent.User
	if x.in.Props.Trigger == triggerRegenerate {
		to, err := x.h.again(x.c, x.in.Props.MessageID)
		x.to, x.said = to, to.at.answerTo
		return err
	}
	id, err := x.h.find(x.c)
	known := err == nil
	switch p, ok := errors.AsType[*problem](err); {
	case ok && p.Code == codeNoChat && len(x.in.Resume) == 0:
	case err != nil:
		return err
	}
	if known {
		x.to = heard{id: id}
		if err := x.answer(history, ends); err != nil {
			return err
		}
	}
	if !ends {
		return nil
	}
	to, err := x.h.tell(x.c, history, x.in.Props.MessageID)
	x.to, x.said = to, to.at.answerTo
	return err
}

// answer records the answers to open questions. While people are asked, other messages are refused.
func (x *aguiRun) answer(history []front, ends bool) error {
	room, err := x.h.enter(x.c.ctx(), x.c, x.to.id)
	if err != nil {
		return err
	}
	now := room.snapshot()
	if len(x.in.Resume) == 0 {
		if ends && now.doing == doingAsk && !truthOf(now.messages, false).has(history[len(history)-1].id) {
			_, err = x.in.decisions(now.asks)
		}
		return err
	}
	decisions, err := x.in.decisions(now.asks)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		x.answered = append(x.answered, d.ask)
	}
	for _, d := range decisions {
		if _, err := x.h.decide(x.c, x.to.id, d); err != nil {
			return err
		}
	}
	return nil
}

// start begins the stream.
func (x *aguiRun) start() {
	x.c.streams()
	x.had = map[string]bool{}
	x.has = map[string]bool{}
	for i, m := range slices.Backward(x.in.Messages) {
		switch {
		case m.Role == aguiRoleReasoning:
			x.had[m.ID] = true
		case m.Role == roleUser && (i == len(x.in.Messages)-1 || x.has[x.in.Messages[i+1].ID]):
			x.has[m.ID] = true
		}
	}
	x.send(aguiEvent{Type: aguiRunStarted, ThreadID: x.in.ThreadID, RunID: x.in.RunID, ParentRunID: x.in.ParentRunID,
		ProtocolVersion: aguiVersion})
}

func (x *aguiRun) send(e aguiEvent) { x.o.Write(aguiData(e)) }

// aguiJSON is an event as JSON.
func aguiJSON(e aguiEvent) []byte {
	data, err := json.Marshal(e)
	if err != nil { // of what the application gave
		data, _ = json.Marshal(aguiEvent{Type: aguiRunError, Message: masked, Code: codeInternal})
	}
	return data
}

// aguiData is an event as a server-sent one.
func aguiData(e aguiEvent) []byte {
	return slices.Concat([]byte("data: "), aguiJSON(e), []byte("\n\n"))
}

// flush sends what was written. It returns false if the reader has disconnected.
func (x *aguiRun) flush() bool {
	if x.o.Len() == 0 {
		return true
	}
	defer x.o.Reset()
	return send(x.c.w, x.o.Bytes())
}

// finish ends the run: people are asked, the answer was stopped, or it is complete.
func (x *aguiRun) finish() {
	o := &aguiOutcome{Type: aguiOutcomeSuccess}
	switch {
	case x.w.asking:
		o = &aguiOutcome{Type: aguiOutcomeAsked, Interrupts: x.w.asked}
	case x.w.stopped:
		o = &aguiOutcome{Type: aguiOutcomeStopped}
	}
	x.send(aguiEvent{Type: aguiRunFinished, ThreadID: x.in.ThreadID, RunID: x.in.RunID, Outcome: o, Usage: x.w.used()})
}

// follow sends the current conversation and the events that follow, until the run is over.
func (x *aguiRun) follow() error {
	room, err := x.h.enter(x.c.ctx(), x.c, x.to.id)
	if err != nil {
		return err
	}
	if err := room.settled(x.c.ctx(), x.to.at.attempt, x.answered...); err != nil {
		return err
	}
	f := x.look(room, true)
	for !x.ended() {
		if !x.flush() {
			return nil
		}
		events, err := x.next(f)
		if errors.Is(err, io.EOF) { // the handler is closed; a client that resumes gets the rest
			p := problemOf(client.ErrClosed)
			x.send(aguiEvent{Type: aguiRunError, Message: p.Detail, Code: p.Code})
			return nil
		}
		if err != nil {
			return err
		}
		for _, t := range events {
			x.w.write(t.event)
			x.share(t)
			if x.w.again || x.ended() {
				break
			}
		}
		if x.w.again {
			f = x.look(room, false)
		}
	}
	if !x.w.failed {
		x.w.close()
		x.forward()
		x.finish()
	}
	return nil
}

// next waits for events. A comment is sent when there was nothing for a while.
func (x *aguiRun) next(f *follower) ([]*told, error) {
	for {
		ctx, cancel := context.WithTimeout(x.c.ctx(), heartbeat)
		events, err := f.next(ctx)
		cancel()
		if err == nil || x.c.ctx().Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return events, err
		}
		send(x.c.w, []byte(": \n\n"))
	}
}

// look sends the part of the current conversation that the client lacks, and begins to follow behind it.
func (x *aguiRun) look(m *room, first bool) *follower {
	x.w.close()
	x.forward()
	before := x.w.document
	s, f := aguiLook(m)
	x.w.has = x.has
	told, beginning := x.w.snapshot(s, func(m []aguiMessage) bool { return first && aguiSame(m, x.in.Messages, x.has) })
	if !beginning {
		x.send(aguiEvent{Type: aguiMessages, Messages: emptied(append(told, x.unheard()...), x.had)})
	}
	maps.Copy(x.had, reasoningIDs(told))
	switch x.w.document = s.document; {
	case s.document == nil:
	case first && !sameJSON(s.document, x.in.State), !first && !sameJSON(s.document, before):
		x.send(aguiEvent{Type: aguiState, Snapshot: s.document})
	}
	x.forward()
	return f
}

// unheard are the client's last messages that the agent has not got yet.
func (x *aguiRun) unheard() (out []aguiMessage) {
	for _, m := range x.in.Messages {
		if x.has[m.ID] && !x.w.heard[m.ID] {
			out = append(out, aguiMessage{ID: m.ID, Role: agent.User, Content: m.Content})
		}
	}
	return out
}

// ended says that the run is over: nothing follows without another message or answer. The agent must have got the
// client's messages first.
func (x *aguiRun) ended() bool {
	heard := x.said == "" || x.w.heard[x.said]
	return x.w.over || heard && (x.w.idle || x.w.asking)
}

// forward sends the events of the writer.
func (x *aguiRun) forward() {
	for _, e := range x.w.taken() {
		if e.Type == aguiThoughtStart {
			x.had[e.MessageID] = true
		}
		x.send(e)
	}
}

// share sends the events of the writer. A piece, by far the most frequent one, is encoded once for all readers.
func (x *aguiRun) share(t *told) {
	if k := t.kind; len(x.w.out) == 1 && (k == kindText || k == kindThought || k == kindArguments) {
		e := x.w.taken()[0]
		x.o.Write(t.text("agui "+e.MessageID, func(event) []byte { return aguiData(e) }))
		return
	}
	x.forward()
}

// broken ends a stream that has begun and cannot continue.
func (x *aguiRun) broken(err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		x.h.cfg.Logger.ErrorContext(x.c.ctx(), "flowfabric: chat: a run of AG-UI broke off", "error", err)
	}
	x.send(aguiEvent{Type: aguiRunError, Message: p.Detail, Code: p.Code})
}

// aguiSame says that a client has the messages that it should. It ignores activities, which clients do not send, and
// the client's last messages, which the agent may not have got yet.
func aguiSame(told []aguiMessage, has []aguiSent, last map[string]bool) bool {
	n, newest := 0, 0
	for i, m := range told {
		if m.Role != aguiRoleActivity {
			n, newest = n+1, i
		}
	}
	if len(has) < n || n > 0 && !told[newest].same(has[n-1]) || slices.ContainsFunc(has[n:], func(m aguiSent) bool {
		return !last[m.ID]
	}) {
		return false
	}
	n = 0
	for _, m := range told {
		if m.Role == aguiRoleActivity {
			continue
		}
		if !m.same(has[n]) {
			return false
		}
		n++
	}
	return true
}

// same says that a client has a message.
func (m aguiMessage) same(s aguiSent) bool {
	if m.ID != s.ID || string(m.Role) != s.Role || m.ToolCallID != s.ToolCallID {
		return false
	}
	switch said := m.Content.(type) {
	case nil:
		if s.text != "" || !s.plain {
			return false
		}
	case string: // compared first as text: it may be long
		if said != s.text || !s.plain {
			return false
		}
	default:
		content, err := json.Marshal(said)
		if err != nil || !sameJSON(content, s.Content) {
			return false
		}
	}
	return slices.EqualFunc(m.ToolCalls, s.ToolCalls, func(a, b aguiCall) bool {
		return a.ID == b.ID && a.Function.Name == b.Function.Name &&
			compacted(a.Function.Arguments) == compacted(b.Function.Arguments)
	})
}

// aguiLook returns the current conversation, and a follower that begins behind it.
func aguiLook(m *room) (snapshot, *follower) {
	for {
		s := m.snapshot()
		f := m.follow(place{now: true})
		if m.glance().changed == s.changed { // no event came between
			return s, f
		}
	}
}
