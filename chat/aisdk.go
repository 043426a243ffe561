package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/stream"
)

// smallFile is up to how many bytes a file is within its URL.
const smallFile = 1 << 10

// linkOf says where a front end gets the bytes of the files of a conversation: below the path under which it asked.
func (h *Handler) linkOf(c *request) func(agent.Part) string {
	below := c.below()
	return func(p agent.Part) string {
		if p.Blob != "" && len(p.Data) > smallFile || p.Blob != "" && p.Data == nil {
			return below + "/files/" + url.PathEscape(p.Blob)
		}
		return inline(p)
	}
}

// below is the path of a conversation, as the front end has it.
func (c *request) below() string {
	mount := ""
	if u, err := url.ParseRequestURI(c.q.RequestURI); err == nil {
		mount = strings.TrimSuffix(u.EscapedPath(), c.q.URL.EscapedPath())
	}
	return strings.TrimSuffix(mount, "/") + "/" + url.PathEscape(c.id)
}

// chunker makes chunks for a request.
func (h *Handler) chunker(c *request) chunker { return chunker{h.linkOf(c), h.cfg.ShowError} }

// stream answers with the answer to what a front end said. More says that it has the beginning of the message.
func (h *Handler) stream(c *request, out heard, more bool) error {
	s := newUIStream(h, c)
	s.returns = 1
	for first := true; ; first = false {
		room, err := h.enter(c.ctx(), c, out.id)
		if err != nil {
			if first {
				return err
			}
			return nil
		}
		f := room.follow(out.at)
		if f == nil { // there is nothing to wait for
			f = room.follow(place{now: true})
		}
		if !s.follow(f) {
			return nil
		}
		// It ended before it got the message.
		if err := h.revive(c.ctx(), out.id, c.owner); err != nil {
			s.returns = 0
		}
	}
}

// resume streams the answer in progress, from its beginning or from behind an event that the front end has seen. A
// start chunk says that it begins at the beginning. Without an answer in progress the response is 204, also if the
// conversation has not begun: stock front ends resume before the first message, and would show people an error.
func (h *Handler) resume(c *request) error {
	text, field := c.q.URL.Query().Get("after"), "after"
	if last := c.q.Header.Get("Last-Event-ID"); last != "" {
		text, field = last, "Last-Event-ID"
	}
	behind, err := stream.ParsePosition(text)
	if err != nil {
		return bad(field, "%s is no id of an event", field)
	}
	id, err := h.attach(c.ctx(), keyOf(c.owner, c.id))
	if errors.Is(err, flowfabric.ErrNotFound) {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	room, err := h.enter(c.ctx(), c, id)
	if err != nil {
		return err
	}
	f := room.follow(place{behind: behind})
	if f == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	s := newUIStream(h, c)
	if f.found { // no start: the client has the events before, and must tell this from a replay
		s.begun, s.message = true, f.tape.id
	}
	s.follow(f)
	return nil
}

// show answers with a conversation as it stands.
func (h *Handler) show(c *request) error {
	room, err := h.visit(c)
	if err != nil {
		return err
	}
	s, err := h.client.Execution(room.id).Get(c.ctx())
	if err != nil {
		return err
	}
	now := room.snapshot()
	return answerJSON(c.w, http.StatusOK, struct {
		ID       string         `json:"id"`
		Title    string         `json:"title"`
		State    doing          `json:"state"`
		Messages []shownMessage `json:"messages"`
		At       string         `json:"at,omitempty"` // for ?after= of the stream
	}{c.id, h.opened(s.Tags[tagTitle]), now.doing, h.chunker(c).history(now.messages), string(now.at)})
}

// uiStream writes a UI message stream of the AI SDK, for one message of the assistant.
type uiStream struct {
	c       *request
	chunker chunker
	form    string // of what all readers share
	message string // the current message, "" before it begins
	stop    agent.StopReason
	begun   bool
	out     bytes.Buffer
	sent    bool // the header
	returns int  // how often an execution that ended before it heard the message may be brought back
}

func newUIStream(h *Handler, c *request) *uiStream {
	c.streams()
	c.w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	return &uiStream{c: c, chunker: h.chunker(c), form: "ui " + c.below()}
}

// follow writes until the message is complete. A reader that is too slow ends the stream. Unheard is true if the
// execution ended before it got the message whose answer is expected, and must be replayed.
func (s *uiStream) follow(f *follower) (unheard bool) {
	if !s.sent {
		s.sent = true
		s.c.w.WriteHeader(http.StatusOK)
		if s.c.q.Method == http.MethodHead || !send(s.c.w, []byte(": follow\n\n")) {
			return false
		}
	}
	for {
		ctx, stop := context.WithTimeout(s.c.ctx(), heartbeat)
		events, err := f.next(ctx)
		stop()
		if errors.Is(err, context.DeadlineExceeded) && s.c.ctx().Err() == nil {
			if !send(s.c.w, []byte(": \n\n")) {
				return false
			}
			continue
		}
		over := false
		if errors.Is(err, io.EOF) { // a client that resumes gets the rest
			s.write(chunk{Type: "abort", Reason: "the server ends the stream"})
			over = true
		} else if err != nil {
			return false
		}
		if f.unheard && s.returns > 0 {
			s.returns--
			return true
		}
		for n, e := range events {
			if over = s.add(e, events[n+1:]); over {
				break
			}
		}
		if over {
			s.out.WriteString("data: [DONE]\n\n")
		}
		if s.out.Len() > 0 && !send(s.c.w, s.out.Bytes()) || over {
			return false
		}
		s.out.Reset()
	}
}

// add writes an event; more are the known events behind it. It returns true when the message is complete.
func (s *uiStream) add(e *told, more []*told) (over bool) {
	switch {
	case e.kind == kindSaid || e.kind == kindBegan || e.kind == kindDropped && !s.begun:
		if s.begun && e.message != s.message { // the user has said more
			s.write(finish(s.stop))
			return true
		}
		if e.kind != kindBegan {
			return false
		}
		s.begin(e.message)
		return false
	case !s.begun && e.message != "":
		s.begin(e.message)
	}
	s.out.Write(e.text(s.form, s.texts))
	if e.kind == kindAnswer {
		s.stop = e.stop
	}
	switch e.kind {
	case kindDropped, kindIdle, kindEnded:
		return true
	case kindAsked, kindQuestion:
		s.stop = agent.StopTools
		if !e.last || slices.ContainsFunc(more, func(m *told) bool { // it was answered
			return m.kind == kindAnswered && m.ask.ID == e.ask.ID
		}) {
			return false
		}
		s.write(finish(s.stop))
		return true
	}
	return false
}

func (s *uiStream) begin(message string) {
	s.begun, s.message = true, message
	s.write(chunk{Type: "start", MessageID: message})
}

func (s *uiStream) write(c chunk) { s.out.Write(frame(c, "")) }

// texts encodes an event. The id of its last chunk is the position behind the event, for clients that resume.
func (s *uiStream) texts(e event) (text []byte) {
	chunks := s.chunker.chunks(e)
	for i, c := range chunks {
		id := ""
		if i == len(chunks)-1 && e.last {
			id = string(e.at)
		}
		text = append(text, frame(c, id)...)
	}
	return text
}

// frame is a chunk as a server-sent event.
func frame(c chunk, id string) []byte {
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("data: ")
	b.Write(encoded(c))
	b.WriteString("\n\n")
	return b.Bytes()
}
