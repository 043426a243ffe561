package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
)

// problem is a refusal as a problem document (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`
	Field  string `json:"field,omitempty"` // of the body, or the name of a parameter
}

func (p *problem) Error() string { return p.Code + ": " + p.Detail }

// The codes that are not those of errors of package flowfabric.
const (
	codeUnauthorized = "unauthorized"         // Config.Who refused
	codeCrossOrigin  = "cross_origin"         // a page of another origin
	codeNoRoute      = "not_found"            // there is no such path
	codeNoMethod     = "method_not_allowed"   //
	codeNoChat       = "conversation_unknown" // it has not begun, or belongs to another owner
	codeEnded        = "conversation_ended"   // it was deleted or cancelled, or cannot be brought back
	codeHistory      = "history_differs"      // the front end's history is not the server's
	codeTooOld       = "answer_too_old"       // it lies before the current link, or was made of what is not kept
	codeBusy         = "answer_not_ready"     // it is being made, or waits for a worker
	codeAnswered     = "already_answered"     // another person has decided differently
	codeArguments    = "arguments_refused"    // they do not fit the tool
	codeUnanswered   = "interrupts_pending"   // people are asked, and a message would wait for them
	codeInvalid      = "invalid_input"
	codeTooLarge     = "payload_too_large"
	codeInternal     = "internal"
)

func refuse(status int, code, format string, args ...any) *problem {
	return &problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// bad refuses a request for an invalid field.
func bad(field, format string, args ...any) *problem {
	p := refuse(http.StatusBadRequest, codeInvalid, format, args...)
	p.Field = field
	return p
}

// large refuses something that is too large.
func large(field, format string, args ...any) *problem {
	p := refuse(http.StatusRequestEntityTooLarge, codeTooLarge, format, args...)
	p.Field = field
	return p
}

// statusOf is the status of an error of package flowfabric, 0 for one that has none.
func statusOf(err error) int {
	switch {
	case errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrResultPurged):
		return http.StatusNotFound
	case errors.Is(err, flowfabric.ErrPayloadTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, flowfabric.ErrLimit):
		return http.StatusTooManyRequests
	case errors.Is(err, flowfabric.ErrInvalidInput):
		return http.StatusBadRequest
	case errors.Is(err, flowfabric.ErrConflict), errors.Is(err, flowfabric.ErrTerminal),
		errors.Is(err, flowfabric.ErrState), errors.Is(err, flowfabric.ErrWaitpointClosed):
		return http.StatusConflict
	case errors.Is(err, flowfabric.ErrTransport), errors.Is(err, client.ErrClosed),
		errors.Is(err, flowfabric.ErrOutOfMemory), errors.Is(err, flowfabric.ErrLaneClosed),
		errors.Is(err, flowfabric.ErrPartitionFrozen), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return 0
}

// problemOf is the problem document of an error. Internal errors are not for people in a browser.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return large("", "the body has more than %d bytes", tooLarge.Limit)
	}
	switch status := statusOf(err); status {
	case 0:
	case http.StatusServiceUnavailable:
		return refuse(status, cmp.Or(flowfabric.CodeOf(err), flowfabric.CodeOf(flowfabric.ErrTransport)),
			"the server of conversations does not answer at the moment; try again")
	case http.StatusNotFound:
		return refuse(status, codeNoChat, "there is no such conversation")
	default:
		return refuse(status, flowfabric.CodeOf(err), "%v", err)
	}
	return refuse(http.StatusInternalServerError, codeInternal, "an error occurred; the log of the server has it")
}

// fail answers with a problem document.
func (h *Handler) fail(w http.ResponseWriter, q *http.Request, err error) {
	p := *problemOf(err)
	if p.Status >= http.StatusInternalServerError && q.Context().Err() == nil {
		h.cfg.Logger.ErrorContext(q.Context(), "flowfabric: chat: a request failed", "method", q.Method,
			"path", q.URL.Path, "error", err)
	}
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	header := w.Header()
	if p.Status == http.StatusServiceUnavailable || p.Code == codeBusy {
		header.Set("Retry-After", "1")
	}
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// answerJSON answers with a value as JSON.
func answerJSON(w http.ResponseWriter, status int, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("the answer does not encode: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err = w.Write(append(data, '\n'))
	_ = err // the reader has gone
	return nil
}
