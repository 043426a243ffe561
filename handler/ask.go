package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
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
	return answerOf(r.Signals[0]), nil
}

// AskAll asks several questions at once, 1..64 of them, and returns when each is answered or its time is over, with the
// answers in their order: Answer.Cause says which it was. Each question has a Key, the waitpoint that takes its
// answers, and may have a time limit of its own, Within; that of one ends no other. They are answered in any order, as
// those of [Task.Ask] are. A question that was answered takes no other answer: a later one is refused with
// flowfabric.ErrWaitpointClosed.
//
// Up to 16 questions, of at most 64 KiB as JSON, are open at once, in one suspension called name. The others follow
// in further suspensions, called name and a number from 2. An operator who resumes the execution ends the open ones;
// answers that came before count. Answers are kept by key, so a later version of the handler with more questions asks
// only the new ones.
//
// Errors: those of [Await], but for ErrNoSignal and ErrWaitTimeout; flowfabric.ErrInvalidInput for no questions or more
// than 64, for one that is out of bounds, has no key, or that of another, and for a name that is too long for the
// number behind it.
func (t *Task) AskAll(ctx context.Context, name string, questions []suspend.Question) ([]suspend.Answer, error) {
	return t.askAll(ctx, tasks.Asking{Name: name, Questions: questions})
}

func (t *Task) askAll(ctx context.Context, a tasks.Asking) (answers []suspend.Answer, err error) {
	defer func() { err = denied.Last(err) }()
	name, questions := a.Name, a.Questions
	all, err := checkAll(questions)
	if err == nil {
		err = all.named(name)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", name, err)
	}
	answers = make([]suspend.Answer, len(questions))
	for n := 1; ; n++ {
		open := all.open(answers)
		if len(open) == 0 {
			return answers, nil
		}
		wait := askingName(name, n)
		r, err := t.ownWaits().Ask(ctx, wait)
		switch {
		case err != nil:
			return nil, err
		case r != nil:
			if err := t.answered(*r, a, open, answers); err != nil {
				return nil, fmt.Errorf("ask %s: %w", wait, err)
			}
			continue
		case a.Quit != nil && a.Quit(open):
			for _, i := range open {
				answers[i].Cause = suspend.CauseOperator
			}
			continue
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		w, err := all.wanted(wait, open, a.Mailbox)
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", wait, err)
		}
		t.ownWaits().Want(wait)
		return nil, w
	}
}

// askings are questions with their default choices, and how many bytes each is as JSON.
type askings struct {
	questions []suspend.Question
	sizes     []int
}

func checkAll(questions []suspend.Question) (all askings, err error) {
	if len(questions) == 0 || len(questions) > limits.MaxAsked {
		return all, fmt.Errorf("%w: %d questions, want 1..%d", flowfabric.ErrInvalidInput, len(questions),
			limits.MaxAsked)
	}
	keys := map[string]bool{}
	for i, q := range questions {
		q, text, err := encodeQuestion(q)
		switch {
		case err != nil:
		case q.Key == "" || keys[q.Key]:
			err = fmt.Errorf("%w: the key %q is empty or comes twice", flowfabric.ErrInvalidInput, q.Key)
		case q.Within < 0 || q.Within > limits.MaxDelay:
			err = fmt.Errorf("%w: Within is %v, want 1ms to ten years, or 0 for ever", flowfabric.ErrInvalidInput,
				q.Within)
		default:
			_, _, err = suspend.Signal(q.Key).Compile()
		}
		if err != nil {
			return all, fmt.Errorf("question %d: %w", i, err)
		}
		keys[q.Key] = true
		all.questions, all.sizes = append(all.questions, q), append(all.sizes, len(text)+len(q.Key))
	}
	return all, nil
}

// askingName is the name of the nth wait.
func askingName(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + " " + strconv.Itoa(n)
}

// named checks the name of the last wait that the questions need before people are asked in the first.
func (a askings) named(name string) error {
	answers, n := make([]suspend.Answer, len(a.questions)), 1
	for {
		for _, i := range a.open(answers) {
			answers[i].Cause = suspend.CauseSignal
		}
		if len(a.open(answers)) == 0 {
			return waitwords.CheckName(askingName(name, n))
		}
		n++
	}
}

// open are the places of those that are asked next.
func (a askings) open(answers []suspend.Answer) (open []int) {
	size := 0
	for i, answer := range answers {
		if answer.Cause != "" {
			continue
		}
		if size += a.sizes[i]; len(open) == limits.MaxBoundWaitpoints || size > limits.MaxQuestions {
			break
		}
		open = append(open, i)
	}
	return open
}

// wanted is the wait for the answers to the questions at these places, or for a message to a mailbox.
func (a askings) wanted(name string, open []int, mailbox string) (*waitwords.Wanted, error) {
	var parts []suspend.Condition
	byKey, lives := map[string]suspend.Question{}, map[string]time.Duration{}
	for _, i := range open {
		q := a.questions[i]
		parts = append(parts, waits.Answered(q, q.Key))
		byKey[q.Key] = q
		if q.Within > 0 {
			lives[q.Key] = max(q.Within, time.Millisecond)
		}
	}
	until := suspend.AllOf(parts...)
	if mailbox != "" {
		until = suspend.AnyOf(until, suspend.Mailbox(mailbox))
	}
	w, err := waitOptionsOf([]suspend.Option{suspend.Because(suspend.ReasonApproval)}).wanted(name, until)
	if err != nil {
		return nil, err
	}
	w.Several, w.Lives = true, lives
	w.Question, err = engine.Questions(byKey)
	return w, err
}

// answered puts what a wait was answered into answers; open are the places of the questions that it would ask now.
func (t *Task) answered(r suspend.Result, a tasks.Asking, open []int, answers []suspend.Answer) error {
	for _, s := range r.Signals {
		i := slices.IndexFunc(a.Questions, func(q suspend.Question) bool { return q.Key == s.WaitpointKey })
		switch {
		case i < 0 || answers[i].Cause != "":
		case s.Effect == waitwords.EffectTimeout:
			answers[i].Cause = suspend.CauseTimeout
		default:
			if err := t.readable(s.Payload); err != nil {
				return fmt.Errorf("signal %s: %w", s.Name, err)
			}
			answers[i] = answerOf(s)
		}
	}
	for _, i := range open {
		switch {
		case answers[i].Cause != "":
		case r.Cause == suspend.CauseOperator:
			answers[i] = suspend.Answer{By: r.By, Comment: r.Reason, Cause: r.Cause}
		case a.Mailbox != "" && (r.Cause == suspend.CauseMessage || r.Cause == suspend.CauseAlreadySatisfied):
			answers[i].Cause = suspend.CauseMessage
		}
	}
	return nil
}

// answerOf is the answer in a signal. Its name says what was chosen.
func answerOf(s suspend.StoredSignal) suspend.Answer {
	answer, err := suspend.Decode[suspend.Answer](s)
	if err != nil {
		answer = suspend.Answer{}
	}
	answer.Choice, answer.By, answer.Cause = s.Name, cmp.Or(answer.By, s.Source), suspend.CauseSignal
	return answer
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
			strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(q.Text), limits.MaxQuestionText),
		checkEditable(q))
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

// checkEditable accepts objects as arguments and schema.
func checkEditable(q suspend.Question) error {
	for what, text := range map[string]json.RawMessage{"arguments": q.Arguments, "schema": q.Schema} {
		if text = bytes.TrimSpace(text); text != nil && (!json.Valid(text) || text[0] != '{') {
			return fmt.Errorf("%w: the %s of the question are no object of JSON", flowfabric.ErrInvalidInput, what)
		}
	}
	return nil
}

// checkLine accepts one line of text that survives JSON.
func checkLine(what, text string, limit int) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: the %s is not valid UTF-8", flowfabric.ErrInvalidInput, what)
	}
	return waitwords.CheckText(what, text, limit)
}
