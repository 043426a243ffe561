package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// asked is what a suspension asks, as it is stored: one question, or several by the keys of their waitpoints; sealed,
// with nothing else but the names of the choices, if payloads are.
type asked struct {
	suspend.Question
	Several   map[string]suspend.Question `json:"several,omitempty"`
	Encrypted []byte                      `json:"encrypted,omitempty"`
	there     bool
}

// Questions writes several questions for a [Suspension], by the keys of their waitpoints.
func Questions(byKey map[string]suspend.Question) (string, error) {
	return encodeAsked(struct {
		Several map[string]suspend.Question `json:"several"`
	}{byKey})
}

func encodeAsked(what any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(what); err != nil {
		return "", fmt.Errorf("%w: the question does not encode: %w", flowfabric.ErrInvalidInput, err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// bare is a question of which nothing is left but the names of its choices, which the condition has anyway.
func bare(q suspend.Question) (out suspend.Question) {
	for _, c := range q.Choices {
		out.Choices = append(out.Choices, suspend.Choice{Name: c.Name})
	}
	return out
}

// sealQuestion is what is asked as it is stored.
func (e *Engine) sealQuestion(text string) (string, error) {
	if e.cfg.Box == nil || text == "" {
		return text, nil
	}
	var q, shown asked
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return "", fmt.Errorf("ff_suspend_execution: %w: question: %w", flowfabric.ErrInvalidInput, err)
	}
	shown.Question = bare(q.Question)
	for key, one := range q.Several {
		if shown.Several == nil {
			shown.Several = map[string]suspend.Question{}
		}
		shown.Several[key] = bare(one)
	}
	var err error
	if shown.Encrypted, err = e.seal("ff_suspend_execution", []byte(text)); err != nil {
		return "", err
	}
	out, err := encodeAsked(shown)
	if err == nil && len(out) > limits.MaxStoredAsk {
		err = fmt.Errorf("ff_suspend_execution: %w: the encrypted question has %d bytes as JSON, want at most %d",
			flowfabric.ErrInvalidInput, len(out), limits.MaxStoredAsk)
	}
	return out, err
}

// openQuestion is what sealQuestion has sealed; without the key each question has a title that says so, and its
// choices.
func (e *Engine) openQuestion(text string) string {
	var q asked
	if !strings.Contains(text, `"encrypted"`) || json.Unmarshal([]byte(text), &q) != nil || !sealed.Is(q.Encrypted) {
		return text
	}
	if own, err := e.cfg.Box.Open(q.Encrypted); err == nil {
		return string(own)
	}
	q.Title, q.Encrypted = sealed.Hidden, nil
	for key, one := range q.Several {
		one.Title = sealed.Hidden
		q.Several[key] = one
	}
	out, err := encodeAsked(q)
	if err != nil {
		return text
	}
	return out
}

// questions reads what is stored. Choices without a label are labelled with their names.
func (r *reader) questions(text string) (q asked) {
	if text == "" {
		return q
	}
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		r.Stop("question %q: %w", clip(text), err)
		return asked{}
	}
	q.there = true
	label := func(choices []suspend.Choice) {
		for i, c := range choices {
			choices[i].Label = cmp.Or(c.Label, c.Name)
		}
	}
	label(q.Choices)
	for _, one := range q.Several {
		label(one.Choices)
	}
	return q
}

// of is the question of the waitpoint of a key, nil if there is none; that of the whole wait, if there is only one.
func (q asked) of(key string) *suspend.Question {
	if q.Several == nil && q.there {
		return &q.Question
	}
	one, ok := q.Several[key]
	if !ok {
		return nil
	}
	one.Key = key
	return &one
}
