package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// ask is what a waitpoint asks that has no question of its own: a form with flat fields.
type ask struct {
	message string
	schema  *jsonschema.Schema
	value   bool // the payload is the field "value" alone
	err     error
}

func (a ask) check() error {
	switch {
	case a.err != nil:
		return a.err
	case a.message == "":
		return errors.New("a message is missing")
	case a.schema.Type != "object":
		return errors.New("a form is an object")
	}
	for _, name := range slices.Sorted(maps.Keys(a.schema.Properties)) {
		switch p := a.schema.Properties[name]; {
		case p.Type == "string", p.Type == "integer", p.Type == "number", p.Type == "boolean":
		case p.Type == "array" && p.Items != nil && len(p.Items.Enum) > 0:
		default:
			return fmt.Errorf("field %s: forms have text, numbers, booleans and choices only", name)
		}
	}
	return nil
}

// Waitpoint says what is asked where the handler waits without a question: with handler.Await or handler.Task.Wait, of
// which key is the key of the waitpoint, or with handler.Receive, of which it is the mailbox. Asked is message, with
// a form of the fields of T, which the payload becomes. T is a struct of texts, numbers and booleans, or one of these
// alone. Without this one text is asked for.
func Waitpoint[T any](key, message string) ToolOption {
	return func(k *Kind) {
		s, err := jsonschema.For[T](nil)
		if err != nil {
			k.fail("waitpoint %s: %w", key, err)
			return
		}
		k.forms[key] = newAsk(message, s)
	}
}

// RawWaitpoint is [Waitpoint] with a JSON Schema.
func RawWaitpoint(key, message string, schema json.RawMessage) ToolOption {
	return func(k *Kind) {
		s, err := parseSchema(schema)
		if err != nil {
			k.fail("waitpoint %s: %w", key, err)
			return
		}
		k.forms[key] = newAsk(message, s)
	}
}

func newAsk(message string, s *jsonschema.Schema) ask {
	if s.Type == "object" {
		plain := s.CloneSchemas()
		plain.AdditionalProperties = nil // clients know no such word in forms
		return ask{message: message, schema: plain}
	}
	return ask{message: message, value: true, schema: &jsonschema.Schema{Type: "object",
		Properties: map[string]*jsonschema.Schema{"value": s}, Required: []string{"value"}}}
}

var anyText = ask{value: true, schema: &jsonschema.Schema{Type: "object", Required: []string{"value"},
	Properties: map[string]*jsonschema.Schema{"value": {Type: "string", Title: "Answer"}}}}

// asked is one question that a caller may answer.
type asked struct {
	to       address
	question *suspend.Question // nil: form
	form     ask
}

// address is where an answer goes: a waitpoint, or a mailbox.
type address struct {
	waitpoint flowfabric.UUID
	mailbox   string
	once      string // recognises a repeated answer; "": each is delivered
}

// questions are what an execution waits for that this caller may answer now, by the key of the request, which is
// never used again: the id of the waitpoint, or that of the suspension that waits for a message. A caller answers
// each waitpoint once, whatever number of signals it takes.
func (k *Kind) questions(who caller, r suspend.Record) map[string]asked {
	open := map[string]asked{}
	if k.hidden || r.ID.IsZero() || !r.ClosedAt.IsZero() {
		return open
	}
	if mailbox := r.Mailbox(); mailbox != "" {
		key := r.ID.String()
		open[key] = asked{to: address{mailbox: mailbox, once: key}, question: r.Question,
			form: k.form(mailbox, "a message")}
	}
	if !who.answers() {
		return open
	}
	for _, w := range r.Waitpoints {
		if w.Open() && w.Suspension == r.ID && w.Matched == 0 {
			key := w.ID.String()
			open[key] = asked{to: address{waitpoint: w.ID, once: key}, question: cmp.Or(w.Question, r.Question),
				form: k.form(w.Key, "an answer")}
		}
	}
	return open
}

// form is what is asked where there is no question.
func (k *Kind) form(key, what string) ask {
	form, declared := k.forms[key]
	if !declared {
		form = anyText
		form.message = fmt.Sprintf("%s waits for %s (%s).", cmp.Or(k.title, k.name), what, key)
	}
	return form
}

// requests are the questions on the wire.
func requests(open map[string]asked) sdk.InputRequestMap {
	if len(open) == 0 {
		return nil
	}
	m := sdk.InputRequestMap{}
	for key, a := range open {
		m[key] = a.request()
	}
	return m
}

func (a asked) request() *sdk.ElicitParams {
	if a.question == nil {
		return &sdk.ElicitParams{Mode: "form", Message: a.form.message, RequestedSchema: a.form.schema}
	}
	message := a.question.Title
	if a.question.Text != "" {
		message += "\n\n" + a.question.Text
	}
	choice := &jsonschema.Schema{Type: "string", Title: "Decision"}
	var labels []any
	for _, c := range a.question.Choices {
		choice.Enum = append(choice.Enum, c.Name)
		labels = append(labels, cmp.Or(c.Label, c.Name))
	}
	choice.Extra = map[string]any{"enumNames": labels}
	form := &jsonschema.Schema{Type: "object", Required: []string{"choice"},
		PropertyOrder: []string{"choice", "comment"},
		Properties: map[string]*jsonschema.Schema{"choice": choice,
			"comment": {Type: "string", Title: "Comment"}}}
	if a.question.Arguments != nil {
		was, _ := json.Marshal(string(a.question.Arguments)) // texts always encode
		form.PropertyOrder = append(form.PropertyOrder, "arguments")
		form.Properties["arguments"] = &jsonschema.Schema{Type: "string", Title: "Arguments",
			Description: "JSON, which you may change", Default: was}
	}
	return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: form}
}

// delivery is an answer that was judged.
type delivery struct {
	to      address
	signal  string // "": the default
	payload any
}

// judge reads the answer to a question. ok is false for one that answers nothing: dismissed, or declined where
// nothing is to be rejected.
func (a asked) judge(answer *sdk.ElicitResult, by string) (d delivery, ok bool, err error) {
	d.to = a.to
	switch answer.Action {
	case "accept":
	case "cancel":
		return d, false, nil
	case "decline":
		if a.question == nil ||
			!slices.ContainsFunc(a.question.Choices, func(c suspend.Choice) bool { return c.Name == "reject" }) {
			return d, false, nil
		}
		d.signal, d.payload = "reject", suspend.Answer{Choice: "reject", By: by}
		return d, true, nil
	default:
		return d, false, fmt.Errorf("action is %.64q, want accept, decline or cancel", answer.Action)
	}
	if a.question == nil {
		if err := a.form.valid(answer.Content); err != nil {
			return d, false, err
		}
		d.payload = any(answer.Content)
		if a.form.value {
			d.payload = answer.Content["value"]
		}
		return d, true, nil
	}
	choice, _ := answer.Content["choice"].(string)
	comment, _ := answer.Content["comment"].(string)
	var names []string
	for _, c := range a.question.Choices {
		names = append(names, c.Name)
	}
	if !slices.Contains(names, choice) {
		return d, false, fmt.Errorf("choice is %.64q, want one of %q", choice, names)
	}
	changed, err := a.changed(answer.Content["arguments"])
	if err != nil {
		return d, false, err
	}
	d.signal = choice
	d.payload = suspend.Answer{Choice: choice, Comment: comment, By: by, Arguments: changed}
	return d, true, nil
}

// changed are the arguments of the question as the form has them; nil if they are as they were.
func (a asked) changed(typed any) (json.RawMessage, error) {
	text, _ := typed.(string)
	if text == "" || text == string(a.question.Arguments) {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("arguments are no JSON")
	}
	return json.RawMessage(text), nil
}

func (a ask) valid(content map[string]any) error {
	r, err := a.schema.CloneSchemas().Resolve(nil)
	if err != nil {
		return err
	}
	if content == nil {
		content = map[string]any{}
	}
	return validate(r, content)
}

// deliver sends answers. One that comes too late is ignored, as the protocol wants: the question is gone.
func (s *Server) deliver(ctx context.Context, who caller, id flowfabric.ExecutionID, all []delivery) error {
	for _, d := range all {
		payload, err := json.Marshal(d.payload)
		if err != nil {
			return err
		}
		if d.to.mailbox != "" {
			err = s.send(ctx, who, id, d.to, payload)
		} else {
			err = s.approve(ctx, who, id, d, payload)
		}
		switch {
		case err == nil, errors.Is(err, flowfabric.ErrWaitpointClosed), errors.Is(err, flowfabric.ErrTerminal),
			errors.Is(err, flowfabric.ErrNotFound):
		default:
			return err
		}
	}
	return nil
}

func (s *Server) send(ctx context.Context, who caller, id flowfabric.ExecutionID, to address,
	payload json.RawMessage) error {
	opts := []client.SendOption{who.by()}
	if to.once != "" {
		opts = append(opts, flowfabric.IdempotencyKey("mcp:"+to.once))
	}
	_, err := s.client.Execution(id).Send(ctx, to.mailbox, payload, opts...)
	return err
}

func (s *Server) approve(ctx context.Context, who caller, id flowfabric.ExecutionID, d delivery,
	payload json.RawMessage) error {
	opts := []client.ApproveOption{who.by(), flowfabric.IdempotencyKey("mcp:" + d.to.once)}
	if d.signal != "" {
		opts = append(opts, client.SignalName(d.signal))
	}
	_, err := s.client.Execution(id).Approve(ctx, d.to.waitpoint.String(), payload, opts...)
	return err
}
