package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// Error is an error that the service reported, instead of an answer or within one.
type Error struct {
	Status  int    // of HTTP; 0 if that is not known
	Code    string // for example RESOURCE_EXHAUSTED; may be ""
	Message string // without the key, and at most about 1,000 bytes
	header  http.Header
}

// Error implements error.
func (e *Error) Error() string {
	text := "gemini: the service answers"
	if e.Status != 0 {
		text += " " + strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Code != "" {
		text += fmt.Sprintf(" (code %s)", e.Code)
	}
	return text
}

// httpError reads an answer with a status of 400 or more.
func httpError(res *http.Response) *Error {
	body, _ := io.ReadAll(res.Body) // what came is better than nothing, and the status is known
	e := parseError(body)
	e.Status = res.StatusCode
	if pause := e.header.Get("Retry-After"); pause == "" || res.Header.Get("Retry-After") != "" {
		e.header = res.Header
	}
	return e
}

// parseError reads an error as the service gives it, also in a list. The pause that it asks for is in its details.
func parseError(body []byte) *Error {
	type outer struct {
		Error struct {
			Code    int
			Message string
			Status  string
			Details []struct {
				RetryDelay string
			}
		}
	}
	var one outer
	list := []outer{}
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		one = list[0]
	} else if json.Unmarshal(body, &one) != nil || one.Error.Message == "" {
		one.Error.Message = string(bytes.TrimSpace(body))
	}
	e := &Error{Status: one.Error.Code, Code: one.Error.Status, Message: one.Error.Message, header: http.Header{}}
	for _, d := range one.Error.Details {
		if pause, err := time.ParseDuration(d.RetryDelay); err == nil && pause > 0 {
			e.header.Set("Retry-After", strconv.FormatFloat(pause.Seconds(), 'f', -1, 64))
		}
	}
	return e
}

// hide takes the keys out, and keeps the rest short.
func (e *Error) hide(secrets wire.Secrets) *Error {
	for _, text := range []*string{&e.Code, &e.Message} {
		*text = wire.Excerpt(secrets.Hide(*text))
	}
	return e
}
