package suspend

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// reply is an answer, for people and for programs.
type reply struct {
	status int
	body   jsonReply
	page   *view
}

// jsonReply is an answer for programs.
type jsonReply struct {
	Status  string       `json:"status"`            // question, delivered, duplicate, closed or error
	Error   string       `json:"error,omitempty"`   // a code
	Message string       `json:"message,omitempty"` // for whoever reads it
	Signal  string       `json:"signal,omitempty"`  // the id of the signal that stands
	Effect  string       `json:"effect,omitempty"`  // and what became of it
	Open    *bool        `json:"open,omitempty"`    // the waitpoint takes more signals
	Title   string       `json:"title,omitempty"`
	Text    string       `json:"text,omitempty"`
	Choices []jsonChoice `json:"choices,omitempty"`
}

type jsonChoice struct {
	Name  string `json:"name"`
	Label string `json:"label"`
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
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body.Bytes()) // who does not read it, does not get it
}

// refused is an answer that nothing was done, under a heading for people.
func refused(status int, code, heading, message string) *reply {
	return &reply{status: status, body: jsonReply{Status: "error", Error: code, Message: message}, page: &view{Heading: heading, Message: message}}
}

func invalid(message string) *reply {
	return refused(http.StatusBadRequest, flowfabric.CodeOf(flowfabric.ErrInvalidInput), "This does not work", message)
}

func tooLarge() *reply {
	return refused(http.StatusRequestEntityTooLarge, flowfabric.CodeOf(flowfabric.ErrPayloadTooLarge), "That is too much",
		"The payload has more than 65536 bytes.")
}

// unauthorized is the one answer for every token that opens nothing, also for none: who has no good token learns nothing.
func unauthorized() *reply {
	return refused(http.StatusUnauthorized, flowfabric.CodeOf(flowfabric.ErrInvalidToken), "This link does not work",
		"It may be incomplete, or a newer one has replaced it. Please ask whoever sent it for a new link.")
}

// delivered is the answer that a signal was taken, now or before.
func delivered(d Delivered, heading, message string) *reply {
	status := "delivered"
	if d.Duplicate {
		status = "duplicate"
	}
	return &reply{status: http.StatusOK, page: &view{Heading: heading, Message: message},
		body: jsonReply{Status: status, Signal: d.Signal.String(), Effect: d.Effect, Open: &d.Open}}
}

// question is the answer to a GET.
func question(p Page, t Token) *reply {
	a := &reply{status: http.StatusOK, body: jsonReply{Status: "question", Title: p.Title, Text: p.Text}, page: form(p, t)}
	for _, c := range p.Choices {
		a.body.Choices = append(a.body.Choices, jsonChoice{c.Name, p.label(c.Name)})
	}
	return a
}

// deliver brings a signal to the store.
func (h *callback) deliver(r *http.Request, t Token, s SentSignal) (Delivered, *reply) {
	d, err := h.cfg.Deliver.DeliverSignal(r.Context(), t.Execution(), t.Waitpoint(), t.Digest(), s)
	if err == nil {
		return d, nil
	}
	if errors.Is(err, flowfabric.ErrInvalidInput) {
		// The signal was checked before it was sent. So the server says what this waitpoint wants of it, or the caller in between
		// says that there is no such partition, which only a token that opens nothing can name.
		if answer, ok := errors.AsType[*flowfabric.Error](err); ok {
			h.log(t, http.StatusBadRequest, err)
			return d, invalid(answer.Slot(0))
		}
		err = flowfabric.ErrInvalidToken
	}
	return d, h.failed(t, err)
}

// failed answers an error. Neither error nor answer has the token in it.
func (h *callback) failed(t Token, err error) *reply {
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
	case is(flowfabric.ErrInvalidToken, flowfabric.ErrMissingToken):
		a = unauthorized()
	case is(flowfabric.ErrTokenExpired):
		a = refused(http.StatusUnauthorized, flowfabric.CodeOf(err), "This link has expired", "Please ask whoever sent it for a new link.")
	case is(flowfabric.ErrWaitpointClosed, flowfabric.ErrNotSignalable):
		a = &reply{status: h.cfg.ClosedStatus, body: jsonReply{Status: "closed"}, page: &view{Heading: "Already closed",
			Message: "This was already answered, or an answer is not needed any more. Nothing was recorded."}}
	case is(flowfabric.ErrSignalLimit):
		a = refused(http.StatusTooManyRequests, flowfabric.CodeOf(err), "Too many answers", "Nothing more is taken here.")
	case is(flowfabric.ErrPayloadTooLarge):
		a = tooLarge()
	case is(flowfabric.ErrInvalidInput):
		a = invalid(strings.TrimPrefix(err.Error(), flowfabric.ErrInvalidInput.Error()+": "))
	case flowfabric.ClassOf(err) == flowfabric.ClassBug:
		a = refused(http.StatusInternalServerError, "internal", "Something is wrong", "Please try again later.")
	default: // no token keys, no connection, no memory: it may pass, or an operator must repair it
		a = refused(http.StatusServiceUnavailable, "unavailable", "Not available at the moment", "Please try again later.")
	}
	h.log(t, a.status, err)
	return a
}

// log tells an operator what must be repaired, and who asks what was refused.
func (h *callback) log(t Token, status int, err error) {
	if status >= http.StatusInternalServerError {
		h.cfg.Logger.Error("flowfabric: a signal could not be delivered", "execution", t.Execution().String(), "waitpoint", t.Waitpoint().String(), "error", err)
		return
	}
	h.cfg.Logger.Debug("flowfabric: signal refused", "execution", t.Execution().String(), "waitpoint", t.Waitpoint().String(), "status", status, "error", err)
}
