package suspend

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
)

// Question is what a person is asked, in plain text, and the answers to choose from. It is stored with the wait, as
// JSON of at most 8 KiB.
type Question struct {
	Title string `json:"title" jsonschema:"1..200 bytes, one line of plain text"`
	Text  string `json:"text,omitempty" jsonschema:"at most 4 KiB of plain text; line breaks are kept"`
	// Choices are 2..8 answers with different names. Names have 1..128 bytes, labels up to 128. Default Approve and
	// Reject, which are named approve and reject.
	Choices []Choice `json:"choices,omitempty" jsonschema:"2..8; default approve and reject"`
	// ≤ 128 bytes: who should answer. It is for lists to filter by, and keeps nobody from answering
	Assignee string `json:"assignee,omitempty" jsonschema:"at most 128 bytes: who should answer, for lists"`
}

// Choice is one answer to choose: the name of the signal that it sends (1..128 bytes, not beginning with "__") and
// what the button says.
type Choice struct {
	Name  string `json:"name" jsonschema:"1..128 bytes; an answer is a signal of this name"`
	Label string `json:"label,omitempty" jsonschema:"at most 128 bytes; default the name"`
}

// Answer is what a person chose: the payload, as JSON, of a signal that is named like the choice. A handler gets it
// from [Ask], or reads it with Await[Answer].
type Answer struct {
	Choice  string `json:"choice"`
	Comment string `json:"comment,omitempty"` // ≤ 8 KiB from the page for links
	By      string `json:"by,omitempty"`      // who they say they are, ≤ 256 bytes
}

// Asked is what the holder of a waitpoint's token may know of it.
type Asked struct {
	// Question of the wait that the waitpoint belongs to; nil without [Ask], before anything waits for the waitpoint,
	// and once the execution waits for something else.
	Question *Question
	Open     bool // it takes signals
	// Answer is the signal that stands as its answer, nil if there is none yet. While the waitpoint is open only a
	// decision on the page for links counts. The payload is missing where the store has forgotten it, for
	// example after a replay from scratch.
	Answer *StoredSignal
}

// Asking gives a wait of [Wait] or [On] a question. Which signals answer is for the condition to say; others are
// refused. [Ask] is the usual way.
func Asking(q Question) Option { return func(o *options) { o.question = &q } }

// Ask asks a person and returns the answer. It waits on the waitpoint called name, as [Await] does: on one that
// [Pending] opened before, or on a fresh one. Operators see the question in their lists (admin.Admin.Approvals, GET
// /v1/approvals), and the holder of the token on the page of package approval. [At] names another waitpoint. The default
// of [Because] is [ReasonApproval].
//
// A signal answers if its name is one of the choices, which is how the page, client.Approve and the HTTP API send an
// [Answer]. Signals of other names are refused; those that came before the question have no effect. Answer.Choice is
// that name, whatever the payload says; comment and sender are those of the payload if it is an Answer, and Answer.By
// is the source of the signal otherwise.
//
// Errors: those of [Await]; flowfabric.ErrInvalidInput for a question out of bounds, and for the option [Named].
func Ask(ctx context.Context, t Task, name string, q Question, opts ...Option) (answer Answer, err error) {
	defer func() { err = denied.Last(err) }()
	o := applied(append([]Option{Because(ReasonApproval), Asking(q)}, opts...))
	q, _, err = o.question.encode()
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s: %w", name, err)
	}
	if o.named != "" {
		return Answer{}, fmt.Errorf("ask %s: %w: the option Named is for Await; choices name the signals of a question",
			name, flowfabric.ErrInvalidInput)
	}
	key := cmp.Or(o.key, name)
	o.key = ""
	r, err := wait(ctx, t, name, q.answered(key), o)
	if err != nil {
		return Answer{}, err
	}
	if len(r.Signals) == 0 {
		return Answer{}, fmt.Errorf("ask %s: %w%s", name, flowfabric.ErrNoSignal, who(r))
	}
	s := r.Signals[0]
	answer, err = Decode[Answer](s)
	if err != nil {
		answer = Answer{} // the name of the signal says what was chosen
	}
	answer.Choice, answer.By = s.Name, cmp.Or(answer.By, s.Source)
	return answer, nil
}

// answered is the condition that one of the choices comes to a waitpoint.
func (q Question) answered(key string) Condition {
	names := make([]string, len(q.Choices))
	for i, c := range q.Choices {
		names[i] = c.Name
	}
	return Signals(key, 1, names...)
}

// complete fills in the default choices.
func (q Question) complete() Question {
	if len(q.Choices) == 0 {
		q.Choices = defaultChoices()
	}
	return q
}

// defaultChoices are those of a question, and of a page, that names none.
func defaultChoices() []Choice { return []Choice{{"approve", "Approve"}, {"reject", "Reject"}} }

// encode checks a question and returns it with its default choices, and as it is stored.
func (q Question) encode() (Question, string, error) {
	q = q.complete()
	if err := q.check(); err != nil {
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

func (q Question) check() error {
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
		err = errors.Join(err, checkSignalName(c.Name), checkLine("name of a choice", c.Name, limits.MaxSignalName),
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
	return checkText(what, text, limit)
}

// asked is the question of the options, as it is stored; "" if there is none.
func (o options) asked() (string, error) {
	if o.question == nil {
		return "", nil
	}
	_, text, err := o.question.encode()
	return text, err
}
