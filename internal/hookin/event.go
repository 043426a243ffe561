package hookin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/flowfabric/flowfabric-go/internal/signature"
)

// maxKey is how long an id may be to be a part of a key as it is; a longer one becomes its digest.
const maxKey = 200

// event is what a request tells.
type event struct {
	id    string
	types []string // a rule may name any of them; the first is the narrowest
	body  json.RawMessage
}

// source takes id and type of an event from a request.
type source func(h http.Header, raw []byte, e *event)

var sources = map[string]source{
	"standard": func(h http.Header, _ []byte, e *event) {
		e.id, e.types = h.Get(signature.HeaderID), e.texts("/type")
	},
	"stripe": func(_ http.Header, _ []byte, e *event) { e.id, e.types = e.text("/id"), e.texts("/type") },
	"github": func(h http.Header, _ []byte, e *event) {
		e.id = h.Get("X-GitHub-Delivery")
		if kind := h.Get("X-GitHub-Event"); kind != "" {
			if action := e.text("/action"); action != "" {
				e.types = append(e.types, kind+"."+action)
			}
			e.types = append(e.types, kind)
		}
	},
	// Commands and interactions have no id of their own, and no repeats either: what they send last is the body.
	"slack": func(h http.Header, raw []byte, e *event) {
		if e.id = e.text("/event_id"); e.id == "" {
			sum := sha256.Sum256(append([]byte(h.Get("X-Slack-Request-Timestamp")+":"), raw...))
			e.id = hex.EncodeToString(sum[:])
		}
		e.types = append(append(e.texts("/event/type"), e.texts("/type")...), e.texts("/command")...)
	},
}

// read takes an event from a request whose signature is right.
func (h *hook) read(header http.Header, raw []byte) (*event, error) {
	e := &event{body: raw}
	if media, _, _ := mime.ParseMediaType(header.Get("Content-Type")); media == "application/x-www-form-urlencoded" {
		body, err := fromForm(string(raw))
		if err != nil {
			return nil, err
		}
		e.body = body
	}
	if !json.Valid(e.body) {
		return nil, errors.New("the body is not JSON")
	}
	h.source(header, raw, e)
	if e.id == "" {
		return nil, errors.New("the event has no id")
	}
	return e, nil
}

// fromForm is the JSON of a form: its field payload, or an object of its fields.
func fromForm(text string) (json.RawMessage, error) {
	form, err := url.ParseQuery(text)
	if err != nil {
		return nil, errors.New("the body is no form")
	}
	if payload := form.Get("payload"); payload != "" {
		return json.RawMessage(payload), nil
	}
	fields := map[string]string{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	return json.Marshal(fields)
}

// at is the part of the body at a JSON Pointer.
func (e *event) at(pointer string) (json.RawMessage, error) {
	part := e.body
	for name := range jsontext.Pointer(pointer).Tokens() {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		found := false
		if json.Unmarshal(part, &object) == nil {
			part, found = object[name]
		} else if i, err := strconv.ParseUint(name, 10, 31); err == nil && json.Unmarshal(part, &array) == nil {
			if found = i < uint64(len(array)); found {
				part = array[i]
			}
		}
		if !found {
			return nil, fmt.Errorf("the body has nothing at %s", pointer)
		}
	}
	return part, nil
}

// value is what a text of the configuration stands for: a place in the body, or itself.
func (e *event) value(text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		return text, nil
	}
	part, err := e.at(text)
	if err != nil {
		return "", err
	}
	part = json.RawMessage(strings.TrimSpace(string(part)))
	switch part[0] {
	case '"':
		var s string
		err = json.Unmarshal(part, &s)
		return s, err
	case '{', '[', 'n':
		return "", fmt.Errorf("the body has no text at %s", text)
	}
	return string(part), nil
}

// text is the text at a place, "" if there is none.
func (e *event) text(pointer string) string {
	text, err := e.value(pointer)
	if err != nil {
		return ""
	}
	return text
}

// texts is that as a list.
func (e *event) texts(pointer string) []string {
	if text := e.text(pointer); text != "" {
		return []string{text}
	}
	return nil
}

// key is the idempotency key of what a hook does with the event.
func (h *hook) key(e *event) string {
	id := e.id
	if len(id) > maxKey {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return "webhook/" + h.name + "/" + id
}

// rule is the first that fits, or nil.
func (h *hook) rule(e *event) *Rule {
	for i, r := range h.Rules {
		if r.Event == "" || r.Event == "*" {
			return &h.Rules[i]
		}
		for _, t := range e.types {
			if t == r.Event {
				return &h.Rules[i]
			}
		}
	}
	return nil
}
