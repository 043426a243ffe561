package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// posted is the body of a POST of the AI SDK.
type posted struct {
	ID        string      `json:"id"`
	Messages  []uiMessage `json:"messages"`
	Message   *uiMessage  `json:"message"` // the newest one alone, of applications that send no history
	Trigger   string      `json:"trigger"`
	MessageID string      `json:"messageId"`
}

// The triggers of a POST of the AI SDK.
const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// post takes a request of a front end of the AI SDK, and responds with the stream of the answer.
func (h *Handler) post(c *request) error {
	var in posted
	if err := decodeBody(c, &in); err != nil {
		return err
	}
	if err := checkID("id", in.ID); err != nil {
		return err
	}
	c.id = in.ID
	out, more, err := h.do(c, in)
	if err != nil {
		return err
	}
	return h.stream(c, out, more)
}

// do carries out a POST. More says that the front end has the beginning of the answer.
func (h *Handler) do(c *request, in posted) (out heard, more bool, err error) {
	if in.Trigger == triggerRegenerate {
		out, err = h.again(c, in.MessageID)
		return out, false, err
	}
	if in.Trigger != "" && in.Trigger != triggerSubmit {
		return out, false, bad("trigger", "trigger is %.40q, want %s or %s", in.Trigger, triggerSubmit,
			triggerRegenerate)
	}
	if in.Message != nil {
		in.Messages = append(in.Messages, *in.Message)
	}
	if len(in.Messages) == 0 {
		return out, false, bad("messages", "messages is empty, want at least one")
	}
	history := make([]front, len(in.Messages))
	for i, m := range in.Messages {
		if history[i], err = m.front(fmt.Sprintf("messages[%d]", i)); err != nil {
			return out, false, err
		}
	}
	if last := history[len(history)-1]; last.role != roleUser {
		if len(last.answers) == 0 {
			return out, false, bad("messages", "the last message is the assistant's, and answers no question")
		}
		out, err = h.answers(c, last.answers)
		return out, true, err
	}
	out, err = h.tell(c, history, in.MessageID)
	return out, false, err
}

// answers records decisions about the questions of a conversation.
func (h *Handler) answers(c *request, decisions []decision) (heard, error) {
	room, err := h.visit(c)
	if err != nil {
		return heard{}, err
	}
	out := heard{id: room.id}
	out.at.behind = asked(room.snapshot(), decisions)
	for _, d := range decisions {
		if _, err := h.decide(c, room.id, d); err != nil {
			return out, err
		}
	}
	return out, nil
}

// asked is the place behind the questions that were decided. The front end already has the events before them.
func asked(now snapshot, decisions []decision) (behind stream.Position) {
	behind = now.at
	for _, m := range slices.Backward(now.messages) {
		for _, e := range slices.Backward(m.events) {
			of := func(d decision) bool { return d.ask == e.ask.ID || d.ask == e.ask.Key }
			if e.kind == kindAsked && slices.ContainsFunc(decisions, of) {
				return e.at
			}
		}
	}
	return behind
}

// decide records one decision. The same decision about a question that was decided before is no error.
func (h *Handler) decide(c *request, id flowfabric.ExecutionID, d decision) (by string, err error) {
	x := h.client.Execution(id)
	if d.ask == "" || len(d.ask) > limits.MaxWaitpointKey {
		return "", bad("approvalId", "approvalId has %d bytes, want 1..%d", len(d.ask), limits.MaxWaitpointKey)
	}
	opts := []client.ApproveOption{flowfabric.By(c.owner)}
	if d.arguments != nil {
		opts = append(opts, flowfabric.IdempotencyKey(d.key()))
	}
	_, err = x.Approve(c.ctx(), d.ask, suspend.Answer{Choice: d.choice, Comment: d.comment, By: c.owner,
		Arguments: d.arguments}, opts...)
	switch {
	case err == nil:
		return c.owner, nil
	case errors.Is(err, flowfabric.ErrInvalidInput):
		p := refuse(http.StatusUnprocessableEntity, codeArguments, "%s", wrong(err))
		if d.arguments != nil {
			p.Field = "arguments"
		}
		return "", p
	case errors.Is(err, flowfabric.ErrNotFound):
		return "", refuse(http.StatusNotFound, "question_unknown", "the conversation has no question %.80q", d.ask)
	case errors.Is(err, flowfabric.ErrWaitpointClosed), errors.Is(err, flowfabric.ErrTerminal):
		return h.decided(c, id, d)
	}
	return "", err
}

// wrong says why an answer was refused.
func wrong(err error) string {
	if refusal, ok := errors.AsType[*flowfabric.Error](err); ok {
		if why := denied.Slot(refusal, 0); why != "" {
			return strings.TrimPrefix(why, "arguments: ")
		}
	}
	return err.Error()
}

// decided says how a question was decided before.
func (h *Handler) decided(c *request, id flowfabric.ExecutionID, d decision) (by string, err error) {
	x := h.client.Execution(id)
	record, err := x.Suspension(c.ctx())
	if err != nil {
		return "", err
	}
	var found suspend.Waitpoint
	for _, w := range record.Waitpoints {
		if w.ID.String() == d.ask || w.Key == d.ask && w.ClosedAt.After(found.ClosedAt) {
			found = w
		}
	}
	if found.Key == "" {
		return "", refuse(http.StatusNotFound, "question_unknown", "the conversation has no question %.80q", d.ask)
	}
	log, _, err := x.SignalLog(c.ctx(), found.ID, 0)
	if err != nil {
		return "", err
	}
	if len(log) > 0 {
		first := log[0]
		if first.Name != d.choice {
			return first.Source, refuse(http.StatusConflict, codeAnswered, "%s has decided otherwise: %s", first.Source,
				first.Name)
		}
		if d.arguments != nil && first.IdempotencyKey != d.key() {
			return first.Source, refuse(http.StatusConflict, codeAnswered, "%s has decided it with other arguments",
				first.Source)
		}
		return first.Source, nil
	}
	return "", refuse(http.StatusConflict, codeAnswered, "the question is over: nobody has answered it in time")
}

// stop stops the answer in progress.
func (h *Handler) stop(c *request) error {
	var in struct {
		Reason string `json:"reason"`
	}
	if err := optionalBody(c, &in); err != nil {
		return err
	}
	id, err := h.find(c)
	if err != nil {
		return err
	}
	s, err := h.client.Execution(id).Stop(c.ctx(), flowfabric.By(c.owner), flowfabric.Reason(in.Reason))
	stopped := err == nil
	if err != nil && !errors.Is(err, flowfabric.ErrState) && !errors.Is(err, flowfabric.ErrTerminal) {
		return err
	}
	return answerJSON(c.w, http.StatusOK, struct {
		Stopped bool   `json:"stopped"`
		Already bool   `json:"already,omitempty"`
		By      string `json:"by,omitempty"`
	}{stopped, s.Already, s.By})
}

// optionalBody reads a body, if there is one.
func optionalBody(c *request, into any) error {
	if c.q.ContentLength == 0 {
		return nil
	}
	return decodeBody(c, into)
}

// answer records the decision of a person about a call or another question.
func (h *Handler) answer(c *request) error {
	var in struct {
		Approval  string          `json:"approvalId"`
		ID        string          `json:"id"`
		Approved  *bool           `json:"approved"`
		Choice    string          `json:"choice"`
		Reason    string          `json:"reason"`
		Comment   string          `json:"comment"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := decodeBody(c, &in); err != nil {
		return err
	}
	d := decision{ask: in.Approval + in.ID, choice: in.Choice, comment: in.Reason + in.Comment, arguments: in.Arguments}
	switch {
	case in.Approval != "" && in.ID != "":
		return bad("id", "approvalId and id are both there, want one of them")
	case in.Approved != nil && in.Choice != "":
		return bad("choice", "approved and choice are both there, want one of them")
	case in.Approved == nil && in.Choice == "":
		return bad("approved", "neither approved nor choice is there, want one of them")
	case in.Approved != nil:
		d = decide(d.ask, *in.Approved, d.comment, in.Arguments)
	}
	id, err := h.find(c)
	if err != nil {
		return err
	}
	by, err := h.decide(c, id, d)
	if err != nil {
		return err
	}
	if err := h.seen(c, id, d.ask); err != nil {
		return err
	}
	return answerJSON(c.w, http.StatusOK, struct {
		Choice string `json:"choice"`
		By     string `json:"by"`
	}{d.choice, by})
}

// seen waits until this process has seen that a question is over, so that a page that reads the conversation next does
// not find it open. It stops waiting after a while. Of several questions, none is over before all are answered.
func (h *Handler) seen(c *request, id flowfabric.ExecutionID, ask string) error {
	wait, err := h.client.Execution(id).Suspension(c.ctx())
	if err != nil {
		return err
	}
	if wait.ClosedAt.IsZero() && slices.ContainsFunc(wait.Waitpoints, func(w suspend.Waitpoint) bool {
		return w.Suspension == wait.ID && (w.ID.String() == ask || w.Key == ask)
	}) {
		return nil
	}
	room, err := h.enter(c.ctx(), c, id)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(c.ctx(), patience)
	defer stop()
	_ = room.settled(ctx, 0, ask) // the decision is recorded in any case
	return nil
}

// shown is an entry of the list of conversations.
type shown struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	State     string    `json:"state"` // idle, answering, asking or ended
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// stateOf derives the state of a conversation from the state of its execution alone.
func stateOf(s flowfabric.State) doing {
	switch {
	case s.Terminal():
		return doingEnded
	case s.Public != flowfabric.Suspended:
		return doingAnswer
	case s.BlockingReason == "waiting_for_approval":
		return doingAsk
	}
	return doingIdle
}

// list lists the conversations of the owner.
func (h *Handler) list(c *request) error {
	query := c.q.URL.Query()
	limit := limits.DefaultListPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > limits.MaxListPage {
			return bad("limit", "limit is %.40q, want 1..%d", text, limits.MaxListPage)
		}
		limit = n
	}
	page, err := h.admin.ListPage(c.ctx(), admin.Filter{Kind: h.kind, Tags: map[string]string{tagOwner: c.owner},
		Newest: true, WithTags: true}, query.Get("cursor"), limit)
	if err != nil {
		return err
	}
	out := struct {
		Conversations []shown `json:"conversations"`
		Next          string  `json:"next,omitempty"`
	}{[]shown{}, page.Cursor}
	for _, l := range page.Items {
		if l.Tags[tagID] == "" || l.Public == flowfabric.Cancelled {
			continue
		}
		latest := l.CreatedAt
		for _, at := range []time.Time{l.ClaimedAt, l.Since, l.EndedAt} {
			if at.After(latest) {
				latest = at
			}
		}
		out.Conversations = append(out.Conversations, shown{l.Tags[tagID], h.opened(l.Tags[tagTitle]),
			string(stateOf(l.State)), l.CreatedAt.UTC(), latest.UTC()})
	}
	slices.SortStableFunc(out.Conversations, func(a, b shown) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return answerJSON(c.w, http.StatusOK, out)
}

// rename gives a conversation another title.
func (h *Handler) rename(c *request) error {
	var in struct {
		Title *string `json:"title"`
	}
	if err := decodeBody(c, &in); err != nil {
		return err
	}
	if in.Title == nil || len(*in.Title) > maxTitle {
		return bad("title", "title is missing or has more than %d bytes", maxTitle)
	}
	id, err := h.find(c)
	if err != nil {
		return err
	}
	set, remove := map[string]string{}, []string{tagTitle}
	title := titled(*in.Title, maxTitle)
	if title != "" {
		set[tagTitle], remove = h.sealed(title), nil
	}
	if err := h.admin.SetTags(c.ctx(), id, set, remove, flowfabric.By(c.owner)); err != nil {
		return err
	}
	return answerJSON(c.w, http.StatusOK, struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}{c.id, title})
}

// remove deletes a conversation. It is idempotent.
func (h *Handler) remove(c *request) error {
	id, err := h.find(c)
	if p, ok := errors.AsType[*problem](err); ok && p.Code == codeNoChat {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err != nil {
		return err
	}
	err = h.client.Execution(id).Cancel(c.ctx(), flowfabric.By(c.owner),
		flowfabric.Reason("the conversation was deleted"))
	if err != nil && !errors.Is(err, flowfabric.ErrTerminal) && !errors.Is(err, flowfabric.ErrNotFound) {
		return err
	}
	err = h.admin.Purge(c.ctx(), id, 0, flowfabric.By(c.owner))
	if err != nil && !errors.Is(err, flowfabric.ErrNotFound) {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// file answers with the bytes of a file that a message of the conversation has.
func (h *Handler) file(c *request) error {
	none := refuse(http.StatusNotFound, "file_unknown", "the conversation has no such file")
	id, err := h.find(c)
	if err != nil {
		return err
	}
	if h.cfg.Blobs == nil {
		return none
	}
	room, err := h.enter(c.ctx(), c, id)
	if err != nil {
		return err
	}
	part, ok := fileOf(room.snapshot().messages, c.ref)
	if !ok {
		return none
	}
	data, err := h.cfg.Blobs.Get(c.ctx(), c.ref)
	if errors.Is(err, flowfabric.ErrNotFound) {
		return none
	}
	if err != nil {
		return fmt.Errorf("chat: read a file: %w", err)
	}
	serveFile(c, part.Media, part.Name, data)
	return nil
}

// seen lists the media types that a browser shows inline: those that carry no script. Others are downloads.
var seen = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav", "video/mp4",
	"text/plain"}

// serveFile sends a file, with headers that keep it from acting with the rights of the page. A file never changes.
func serveFile(c *request, media, name string, data []byte) {
	header := c.w.Header()
	how := "attachment"
	if base, _, _ := strings.Cut(strings.ToLower(media), ";"); slices.Contains(seen, base) {
		how = "inline"
	} else {
		media = "application/octet-stream"
	}
	header.Set("Content-Type", media)
	header.Set("Content-Disposition", disposition(how, name))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cache-Control", "private, max-age=86400, immutable")
	http.ServeContent(c.w, c.q, "", time.Time{}, strings.NewReader(string(data)))
}

// disposition tells a browser whether to show or to save a file, and its name if a header can have it.
func disposition(how, name string) string {
	if name == "" {
		return how
	}
	if text := mime.FormatMediaType(how, map[string]string{"filename": name}); text != "" {
		return text
	}
	return how
}
