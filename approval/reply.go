package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// reply is an answer, for people and for programs.
type reply struct {
	status int
	body   jsonReply
	page   *view
}

// jsonReply is an answer for programs.
type jsonReply struct {
	Status  string         `json:"status"`              // question, answered, delivered, duplicate, closed or error
	Error   string         `json:"error,omitempty"`     // a code
	Message string         `json:"message,omitempty"`   // for whoever reads it
	Signal  string         `json:"signal,omitempty"`    // the id of the signal that stands
	Effect  suspend.Effect `json:"effect,omitempty"`    // and what became of it
	Open    *bool          `json:"open,omitempty"`      // the waitpoint takes more signals
	Until   time.Time      `json:"expires_at,omitzero"` // answers end
	Title   string         `json:"title,omitempty"`
	Text    string         `json:"text,omitempty"`
	Choices []jsonChoice   `json:"choices,omitempty"`
	// that an answer may change, and the JSON Schema of what they may become
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Schema    json.RawMessage `json:"schema,omitempty"`
	Answer    *jsonAnswer     `json:"answer,omitempty"` // that stands
}

type jsonChoice struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

type jsonAnswer struct {
	Choice  string    `json:"choice"`
	Label   string    `json:"label"`
	Comment string    `json:"comment,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

func (a reply) write(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	kind := "text/html; charset=utf-8"
	if wantsJSON(r) {
		kind = typeJSON
		encoder := json.NewEncoder(&body)
		_ = encoder.Encode(a.body) // strings and a bool always encode
	} else if err := pageTemplate.Execute(&body, a.page); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	switch a.status {
	case http.StatusUnauthorized:
		if a.body.Error != codeSignIn {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body.Bytes()) // who does not read it, does not get it
}

// refused is an answer that nothing was done; say gives the heading for people, and the message, which programs get
// in English.
func (x *exchange) refused(status int, code string, say func(Texts) (heading, message string)) *reply {
	_, message := say(english)
	return &reply{status: status, body: jsonReply{Status: "error", Error: code, Message: message},
		page: x.says(say(x.texts))}
}

// says is a page with a heading and a message.
func (x *exchange) says(heading, message string) *view {
	return &view{T: x.texts, Heading: heading, Message: message}
}

func (x *exchange) invalid(message string) *reply {
	return x.refused(http.StatusBadRequest, flowfabric.CodeOf(flowfabric.ErrInvalidInput),
		func(t Texts) (string, string) { return t.DoesNotWork, message })
}

func (x *exchange) tooLarge() *reply {
	return x.refused(http.StatusRequestEntityTooLarge, flowfabric.CodeOf(flowfabric.ErrPayloadTooLarge),
		func(t Texts) (string, string) { return t.TooMuch, t.TooLarge })
}

// unauthorized is the one answer for every token that opens nothing, also for none: who has no good token learns
// nothing.
func (x *exchange) unauthorized() *reply {
	return x.refused(http.StatusUnauthorized, flowfabric.CodeOf(flowfabric.ErrInvalidToken),
		func(t Texts) (string, string) { return t.BadLink, t.AskForAnother })
}

// closed is the answer that nothing is taken any more.
func (x *exchange) closed(status int) *reply {
	return &reply{status: status, body: jsonReply{Status: "closed"}, page: x.says(x.texts.Closed, x.texts.NotNeeded)}
}

// delivered is the answer that a signal was taken, now or before.
func (x *exchange) delivered(d suspend.Delivered, heading, message string) *reply {
	status := "delivered"
	if d.Duplicate {
		status = "duplicate"
	}
	return &reply{status: http.StatusOK, page: x.says(heading, message),
		body: jsonReply{Status: status, Signal: d.Signal.String(), Effect: d.Effect, Open: &d.Open}}
}

// question is the answer to a GET.
func (x *exchange) question(p page, t suspend.Token, known *suspend.Asked) *reply {
	a := &reply{status: http.StatusOK, body: p.json("question"), page: x.form(p, t)}
	if known != nil && !known.ExpiresAt.IsZero() {
		a.body.Until, a.page.Until = known.ExpiresAt.UTC(), x.texts.Time(known.ExpiresAt)
	}
	return a
}

// json is a page for programs.
func (p page) json(status string) jsonReply {
	body := jsonReply{Status: status, Title: p.Title, Text: p.Text, Arguments: p.Arguments, Schema: p.Schema}
	for _, c := range p.Choices {
		body.Choices = append(body.Choices, jsonChoice{c.Name, p.label(c.Name)})
	}
	return body
}

// answered is the answer to a GET of a link that was used.
func (x *exchange) answered(p page, s *suspend.StoredSignal) *reply {
	var a suspend.Answer
	if err := json.Unmarshal(s.Payload, &a); err != nil {
		a = suspend.Answer{} // of a sender who says it in another way
	}
	stands := jsonAnswer{Choice: s.Name, Label: p.label(s.Name), Comment: a.Comment, By: cmp.Or(a.By, s.Source),
		At: s.AcceptedAt.UTC()}
	body := p.json("answered")
	body.Answer = &stands
	return &reply{status: http.StatusOK, body: body,
		page: &view{T: x.texts, page: p, Stands: &stands, When: x.texts.Time(stands.At)}}
}

// deliver brings a signal to the store.
func (x *exchange) deliver(t suspend.Token, s suspend.SentSignal) (suspend.Delivered, *reply) {
	d, err := x.h.cfg.Deliver.DeliverSignal(x.r.Context(), t.Execution(), t.Waitpoint(), t.Digest(), s)
	if err == nil {
		return d, nil
	}
	if errors.Is(err, denied.Input) {
		// The signal was checked before it was sent. So the server says what this waitpoint wants of it, or the
		// caller in between says that there is no such partition, which only a token that opens nothing can name.
		if answer, ok := errors.AsType[*flowfabric.Error](err); ok {
			x.h.log(t, http.StatusBadRequest, err)
			return d, x.invalid(denied.Slot(answer, 0))
		}
		err = flowfabric.ErrInvalidToken
	}
	return d, x.failed(t, err)
}

// failed answers an error. Neither error nor answer has the token in it.
func (x *exchange) failed(t suspend.Token, err error) *reply {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	var a *reply
	switch {
	case is(denied.Token, denied.NoToken):
		a = x.unauthorized()
	case is(flowfabric.ErrTokenExpired):
		a = x.refused(http.StatusUnauthorized, flowfabric.CodeOf(err), func(t Texts) (string, string) {
			return t.ExpiredLink, t.AskForNew
		})
	case is(denied.WaitpointClosed, denied.NotSignalable):
		a = x.closed(x.h.cfg.ClosedStatus)
	case is(denied.SignalLimit):
		a = x.refused(http.StatusTooManyRequests, flowfabric.CodeOf(err), func(t Texts) (string, string) {
			return t.TooManyAnswers, t.NothingMore
		})
	case is(denied.PayloadTooLarge):
		a = x.tooLarge()
	case is(denied.Input):
		a = x.invalid(strings.TrimPrefix(err.Error(), flowfabric.ErrInvalidInput.Error()+": "))
	case denied.ClassOf(err) == fault.Bug:
		a = x.refused(http.StatusInternalServerError, "internal", func(t Texts) (string, string) {
			return t.Wrong, t.TryLater
		})
	default: // no token keys, no connection, no memory: it may pass, or an operator must repair it
		a = x.refused(http.StatusServiceUnavailable, "unavailable", func(t Texts) (string, string) {
			return t.NotAvailable, t.TryLater
		})
	}
	x.h.log(t, a.status, err)
	return a
}

// log tells an operator what must be repaired, and who asks what was refused.
func (h *callback) log(t suspend.Token, status int, err error) {
	if status >= http.StatusInternalServerError {
		h.cfg.Logger.Error("flowfabric: a signal could not be delivered", "execution", t.Execution().String(),
			"waitpoint", t.Waitpoint().String(), "error", err)
		return
	}
	h.cfg.Logger.Debug("flowfabric: signal refused", "execution", t.Execution().String(), "waitpoint",
		t.Waitpoint().String(), "status", status, "error", err)
}
