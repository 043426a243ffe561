package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// callbackBody is what a program posts.
type callbackBody struct {
	Token string `json:"token"`
	suspend.SentSignal
	Payload json.RawMessage `json:"payload"`
}

// What a signal is called that a program posts without saying so.
const (
	postedName = "signal"
	postedType = "webhook"
)

// badBody is one text for everything that is wrong with a body, which may contain a token.
const badBody = `The body must be one JSON object with fields among token, name, payload, idempotency_key, source, source_type, correlation and category; all but payload are strings, and idempotency_key is not empty.`

// parseCallback reads a body; a payload that is missing stays nil. A field that nobody knows is refused: it would be
// a mistake that nobody notices.
func parseCallback(body []byte) (b callbackBody, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return b, false
	}
	for name, value := range members { // null would pass for none, and so would an empty key
		isKey := strings.EqualFold(name, "idempotency_key") && string(value) == `""`
		if isKey || string(value) == "null" && !strings.EqualFold(name, "payload") {
			return b, false
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return callbackBody{}, false
	}
	return b, true
}

// signal is what the body says, to be checked.
func (b callbackBody) signal() suspend.SentSignal {
	s := b.SentSignal
	s.Name, s.SourceType = cmp.Or(s.Name, postedName), cmp.Or(s.SourceType, postedType)
	s.Encoding, s.Payload = "json", b.Payload
	return s
}

// problem says what is wrong with a signal that a program posts, "" for nothing. A page of the waitpoint's own is a
// question, and only its answers are taken. Without one a program may also report anything else. Whatever is taken is
// used up, so what the handler could not read is refused here, while the waitpoint is open.
func (p page) problem(own bool, s suspend.SentSignal) string {
	var shape struct{ Choice json.RawMessage }
	isAnswer := json.Unmarshal(s.Payload, &shape) == nil && shape.Choice != nil
	var a suspend.Answer
	switch {
	case s.Payload == nil:
		return "The field payload is missing."
	case !own && !p.offers(s.Name) && !isAnswer:
		return ""
	case !p.offers(s.Name):
		return fmt.Sprintf("The field name must be one of the choices: %s.", p.names())
	case json.Unmarshal(s.Payload, &a) != nil || a.Choice != s.Name:
		return fmt.Sprintf(
			`The payload must be an object with "choice": %q, like the field name, and maybe the strings comment and by.`,
			s.Name)
	}
	if wrong := textProblem(a); wrong != nil {
		return wrong(english)
	}
	return ""
}

// signed makes an identified sender the source of a signal, and of the answer in its payload.
func signed(s suspend.SentSignal, name string) suspend.SentSignal {
	s.Source, s.SourceType = name, pageType
	var fields map[string]json.RawMessage
	if json.Unmarshal(s.Payload, &fields) != nil || fields["choice"] == nil {
		return s
	}
	for field := range fields {
		if strings.EqualFold(field, "by") {
			delete(fields, field)
		}
	}
	by, err1 := json.Marshal(name)
	fields["by"] = by
	payload, err2 := json.Marshal(fields)
	if err1 == nil && err2 == nil { // maps of what was decoded always encode
		s.Payload = payload
	}
	return s
}

// actJSON delivers what a program posts.
func (x *exchange) actJSON(body []byte) *reply {
	b, ok := parseCallback(body)
	if !ok {
		return x.invalid(badBody)
	}
	t, a := x.onlyToken([]string{string(b.Token)}, bearerTokens(x.r), queryTokens(x.r))
	if a != nil {
		return a
	}
	s := b.signal()
	p, own := x.posted(t)
	if problem := p.problem(own, s); problem != "" {
		return x.invalid(problem)
	}
	for _, key := range x.r.Header.Values("Idempotency-Key") {
		if key == "" {
			return x.invalid("The header Idempotency-Key is empty.")
		}
		if s.IdempotencyKey != "" && key != s.IdempotencyKey {
			return x.invalid("The request has two different idempotency keys.")
		}
		s.IdempotencyKey = key
	}
	if x.name != "" {
		s = signed(s, x.name)
	}
	if err := s.Validate(); err != nil {
		return x.failed(t, err)
	}
	d, a := x.deliver(t, s)
	if a != nil {
		return a
	}
	return x.delivered(d, x.texts.ThankYou, x.texts.SignalSent)
}
