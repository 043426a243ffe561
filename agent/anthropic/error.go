package anthropic

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
	Status    int    // of HTTP, or what the type of an error within an answer amounts to; 0 if that is not known
	Type      string // as the service names it, for example overloaded_error; may be ""
	Message   string // without the key, and at most about 1,000 bytes
	RequestID string // by which the service finds the request; may be ""
}

// Error implements error.
func (e *Error) Error() string {
	text := "anthropic: message: the service answers"
	if e.Status != 0 {
		text += " " + strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	for _, detail := range []struct{ name, value string }{{"type", e.Type}, {"request", e.RequestID}} {
		if detail.value != "" {
			text += fmt.Sprintf(" (%s %s)", detail.name, detail.value)
		}
	}
	return text
}

// hide takes the keys out, and keeps the rest short.
func (e *Error) hide(secrets wire.Secrets) {
	for _, text := range []*string{&e.Type, &e.Message, &e.RequestID} {
		*text = wire.Excerpt(secrets.Hide(*text))
	}
}

// httpError reads an answer with a status of 400 or more.
func httpError(res *http.Response, secrets wire.Secrets) *Error {
	body, _ := io.ReadAll(res.Body) // what came is better than nothing, and the status is known
	e := parseError(body)
	e.Status, e.RequestID = res.StatusCode, res.Header.Get("Request-Id")
	e.hide(secrets)
	return e
}

// statuses says which status the type of an error amounts to. Types that are not here mean an outage.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
	"overloaded_error": 529,
}

// parseError reads an error; its status is what its type amounts to.
func parseError(body []byte) *Error {
	var outer struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal(body, &outer) != nil || outer.Error.Type == "" && outer.Error.Message == "" {
		return &Error{Message: string(body)}
	}
	e := outer.Error
	return &Error{Status: statuses[e.Type], Type: e.Type, Message: e.Message}
}
