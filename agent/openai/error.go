package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// Error is an error that the service reported, instead of an answer or within one.
type Error struct {
	Status    int    // of HTTP, or what the error within an answer amounts to; 0 if that is not known
	Type      string // as the service names it, for example invalid_request_error; may be ""
	Code      string // for example context_length_exceeded; may be ""
	Message   string // without the key, and at most about 1,000 bytes
	RequestID string // by which the service finds the request; may be ""
}

// Error implements error.
func (e *Error) Error() string {
	text := "openai: the service answers"
	if e.Status != 0 {
		text += " " + strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	for _, detail := range []struct{ name, value string }{{"type", e.Type}, {"code", e.Code},
		{"request", e.RequestID}} {
		if detail.value != "" {
			text += fmt.Sprintf(" (%s %s)", detail.name, detail.value)
		}
	}
	return text
}

// hide takes the keys out, and keeps the rest short.
func (e *Error) hide(secrets wire.Secrets) {
	for _, text := range []*string{&e.Type, &e.Code, &e.Message, &e.RequestID} {
		*text = wire.Excerpt(secrets.Hide(*text))
	}
}

// httpError reads an answer with a status of 400 or more.
func httpError(res *http.Response, secrets wire.Secrets) *Error {
	body, _ := io.ReadAll(res.Body) // what came is better than nothing, and the status is known
	e := parseError(body)
	e.Status, e.RequestID = res.StatusCode, res.Header.Get("X-Request-Id")
	e.hide(secrets)
	return e
}

// parseError reads an error in the shapes that services give it: an object or a text under "error", or a text under
// "message" or "detail". Its status is what its code or type amounts to.
func parseError(body []byte) *Error {
	var outer struct {
		Error, Message, Detail, Type, Code json.RawMessage
	}
	if json.Unmarshal(body, &outer) != nil {
		return &Error{Message: string(body)}
	}
	var inner struct {
		Message, Type, Code json.RawMessage
	}
	inner.Message, inner.Type, inner.Code = outer.Message, outer.Type, outer.Code
	if json.Unmarshal(outer.Error, &inner) != nil && outer.Error != nil {
		inner.Message = outer.Error
	}
	e := &Error{Type: text(inner.Type), Code: text(inner.Code), Message: text(inner.Message)}
	if e.Message == "" {
		e.Message = text(outer.Detail)
	}
	if e.Message == "" {
		e.Message = string(body)
	}
	e.Status = status(e.Code, e.Type)
	return e
}

// text is a JSON string without its quotes, and any other JSON as it is.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil || string(raw) == "null" {
		return s
	}
	return string(raw)
}

// statuses says which status an error within an answer amounts to. Services name these in both fields, and more than
// these mean an outage.
var statuses = map[string]int{
	"rate_limit_exceeded": 429, "rate_limit_error": 429, "insufficient_quota": 429, "too_many_requests": 429,
	"invalid_request_error": 400, "BadRequestError": 400, "context_length_exceeded": 400, "content_filter": 400,
	"authentication_error": 401, "invalid_api_key": 401, "permission_error": 403, "not_found_error": 404,
	"model_not_found": 404, "invalid_prompt": 400, "data_residency_mismatch": 400, "bio_policy": 400,
	"misalignment_policy_violation": 400,
}

func status(names ...string) int {
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 400 && n < 600 {
			return n
		}
		if n := statuses[name]; n != 0 {
			return n
		}
		if strings.Contains(name, "image") { // of Responses: one that the service cannot read
			return 400
		}
	}
	return 0
}
