package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Ask asks a person and returns the answer. It waits on the waitpoint called name, as [Await] does: on one that
// [Task.Pending] opened before, or on a fresh one. Operators see the question in their lists (admin.Admin.Approvals,
// GET /v1/approvals), and the holder of the token on the page for links. suspend.At names another waitpoint. The
// default of suspend.Because is suspend.ReasonApproval.
//
// A signal answers if its name is one of the choices, which is how the page, client.Approve and the HTTP API send a
// suspend.Answer. Signals of other names are refused; those that came before the question have no effect.
// Answer.Choice is that name, whatever the payload says. Comment and sender are those of the payload if it is a
// suspend.Answer, and Answer.By is the source of the signal otherwise.
//
// Errors: those of [Await]; flowfabric.ErrInvalidInput for a question out of bounds, and for the option suspend.Named.
func (t *Task) Ask(ctx context.Context, name string, q suspend.Question,
	opts ...suspend.Option) (answer suspend.Answer, err error) {
	defer func() { err = denied.Last(err) }()
	o := waitOptionsOf(append([]suspend.Option{suspend.Because(suspend.ReasonApproval), suspend.Asking(q)}, opts...))
	q, _, err = encodeQuestion(*o.question)
	if err != nil {
		return suspend.Answer{}, fmt.Errorf("ask %s: %w", name, err)
	}
	if o.named != "" {
		return suspend.Answer{}, fmt.Errorf(
			"ask %s: %w: the option Named is for Await; choices name the signals of a question", name,
			flowfabric.ErrInvalidInput)
	}
	key := cmp.Or(o.key, name)
	o.key = ""
	r, err := t.wait(ctx, name, waits.Answered(q, key), o)
	if err != nil {
		return suspend.Answer{}, err
	}
	if len(r.Signals) == 0 {
		return suspend.Answer{}, fmt.Errorf("ask %s: %w%s", name, flowfabric.ErrNoSignal, who(r))
	}
	s := r.Signals[0]
	answer, err = suspend.Decode[suspend.Answer](s)
	if err != nil {
		answer = suspend.Answer{} // the name of the signal says what was chosen
	}
	answer.Choice, answer.By = s.Name, cmp.Or(answer.By, s.Source)
	return answer, nil
}

// encodeQuestion checks a question and returns it with its default choices, and as it is stored.
func encodeQuestion(q suspend.Question) (suspend.Question, string, error) {
	q.Choices = waits.Choices(q)
	if err := checkQuestion(q); err != nil {
		return q, "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(q); err != nil {
		return q, "", fmt.Errorf("%w: the question does not encode: %w", flowfabric.ErrInvalidInput, err)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if len(text) > limits.MaxQuestion {
		return q, "", fmt.Errorf("%w: the question has %d bytes as JSON, want at most %d", flowfabric.ErrInvalidInput,
			len(text), limits.MaxQuestion)
	}
	return q, text, nil
}

func checkQuestion(q suspend.Question) error {
	switch {
	case q.Title == "":
		return fmt.Errorf("%w: the title of the question is empty, want 1..%d bytes", flowfabric.ErrInvalidInput,
			limits.MaxQuestionTitle)
	case len(q.Text) > limits.MaxQuestionText:
		return fmt.Errorf("%w: the text of the question has %d bytes, want at most %d", flowfabric.ErrInvalidInput,
			len(q.Text), limits.MaxQuestionText)
	case len(q.Choices) < 2 || len(q.Choices) > limits.MaxChoices:
		return fmt.Errorf("%w: the question has %d choices, want 2..%d", flowfabric.ErrInvalidInput, len(q.Choices),
			limits.MaxChoices)
	}
	err := errors.Join(checkLine("title of the question", q.Title, limits.MaxQuestionTitle),
		checkLine("assignee of the question", q.Assignee, limits.MaxAssignee), checkLine("text of the question",
			strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(q.Text), limits.MaxQuestionText))
	names := map[string]bool{}
	for _, c := range q.Choices {
		err = errors.Join(err, waitwords.CheckSignalName(c.Name), checkLine("name of a choice", c.Name,
			limits.MaxSignalName),
			checkLine("label of a choice", c.Label, limits.MaxChoiceLabel))
		if names[c.Name] {
			err = errors.Join(err,
				fmt.Errorf("%w: two choices of the question are named %q", flowfabric.ErrInvalidInput, c.Name))
		}
		names[c.Name] = true
	}
	return err
}

// checkLine accepts one line of text that survives JSON.
func checkLine(what, text string, limit int) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: the %s is not valid UTF-8", flowfabric.ErrInvalidInput, what)
	}
	return waitwords.CheckText(what, text, limit)
}
