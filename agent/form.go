package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

const (
	categoryAnswer = "agent_answer" // of an execution whose agent gave no answer of the form that was asked for
	answerTool     = "final_answer"
	maxRepairs     = 2       // answers that do not fit and are asked for again
	maxShown       = 2 << 10 // bytes of an answer in an error
)

// ErrAnswer is wrapped by the error of [RunAs] when the model has not given an answer of the type.
var ErrAnswer = errors.New("the answer does not fit")

// Structured is a [Model] whose service holds answers to a schema. TakesSchema says if it does so for this one, which
// is that of a struct or a map, and must answer alike for the same schema; then [Request].Schema is set in a [RunAs].
// It may be called concurrently. A model without it, or that does not take the schema, gets a tool in its place.
type Structured interface {
	TakesSchema(schema *jsonschema.Schema) bool
}

// form is what an answer is to be, and the answer.
type form struct {
	tool    Tool // that takes the answer of a model that takes no schema
	read    func(text []byte) error
	bySpec  bool // the model takes the schema
	refused int  // answers that did not fit
	ended   bool // an answer was read
}

// RunAs is [Run] for an answer of a type, a struct or a map with string keys. Its JSON Schema is made as for the
// arguments of a tool ([NewTool]), and the service holds the model to it if it can ([Structured]); else the model gets
// a tool, final_answer, that takes the answer, and Config.Tools must have none of that name.
//
// An answer that does not fit goes back to the model, with what is wrong, as a message of the user: twice in a run,
// each a turn like others, so that it is recorded, shown, paid and counted by MaxTurns. After that, and at once if the
// model refuses or somebody stops the answer, RunAs fails for good, category agent_answer, with an error that wraps
// [ErrAnswer] and shows the last answer, up to 2 KiB; Result.Text has the whole.
//
// Errors are otherwise those of Run, flowfabric.ErrInvalidInput also for a type that has no such schema and for
// Config.Conversation. As there, the Result is what there is so far. Result.Text is the JSON of the answer.
func RunAs[T any](ctx context.Context, t *handler.Task, cfg Config) (T, Result, error) {
	var answer, none T
	f := &form{tool: NewTool(answerTool, "Takes the final answer. Call it alone, once, when you know the answer.",
		func(context.Context, T) (string, error) { return "accepted", nil })}
	if f.tool.d.bad == nil {
		resolved, err := f.tool.d.spec.Schema.Resolve(nil)
		if err != nil {
			return none, Result{}, handler.Permanent(fmt.Errorf("agent: %w: %w", flowfabric.ErrInvalidInput, err))
		}
		f.read = func(text []byte) (err error) {
			answer, err = decode[T](resolved, "the contents of the answer", text)
			return err
		}
	}
	r, err := work(ctx, t, cfg, f)
	if err == nil && !f.ended { // nobody asked anything
		err = f.fail("there is none", r.Text)
	}
	if err != nil {
		return none, r, err
	}
	return answer, r, nil
}

// native is the schema for a model that takes it.
func (f *form) native() *jsonschema.Schema {
	if f == nil || !f.bySpec {
		return nil
	}
	return f.tool.d.spec.Schema
}

// join makes an agent one that gives answers of the form.
func (f *form) join(cfg *Config) error {
	if f == nil {
		return nil
	}
	if err := f.tool.err(); err != nil {
		return handler.Permanent(fmt.Errorf("agent: %w: the type of the answer: %w", flowfabric.ErrInvalidInput, err))
	}
	if cfg.Conversation {
		return invalid("Conversation has no end for an answer of a type; use Run")
	}
	if slices.ContainsFunc(cfg.Tools, func(t Tool) bool { return t.d.spec.Name == answerTool }) {
		return invalid("Tools has %s, which is the tool that takes the answer", answerTool)
	}
	if s, ok := cfg.Model.(Structured); ok && s.TakesSchema(f.tool.d.spec.Schema) {
		f.bySpec = true
		return nil
	}
	cfg.Tools = append(slices.Clone(cfg.Tools), f.tool)
	return nil
}

// fits reads the answer with which the model has ended. One that does not fit goes back to it.
func (r *run) fits() (goOn bool, err error) {
	f := r.form
	if f == nil {
		return false, nil
	}
	text := unfenced(r.done.Text)
	bad := f.read([]byte(text))
	switch {
	case r.done.Stop == StopStopped:
		return false, f.fail("somebody has stopped it", r.done.Text)
	case r.done.Stop == StopRefusal:
		return false, f.fail("the model refuses", r.done.Text)
	case bad == nil:
		f.ended, r.done.Text = true, text
		return false, nil
	}
	if err := f.again(bad.Error(), r.done.Text); err != nil {
		return false, err
	}
	how := "Answer again, with nothing but JSON that fits the schema."
	if !f.bySpec {
		how = "Call the tool " + answerTool + " with the answer."
	}
	if r.done.Stop == StopLength {
		how += " The answer was cut; make it shorter."
	}
	r.says = append(r.says, Message{Role: User, From: limits.FromForm,
		Parts: Text(cut("The answer is not accepted: "+bad.Error(), maxFailure, maxFailure) + "\n" + how)})
	return true, nil
}

// handedIn says if one of the calls has given the answer, and nobody has said anything since. The first one that fits
// counts.
func (r *run) handedIn(calls []ToolCall) (ended bool, err error) {
	f := r.form
	if f == nil || f.bySpec {
		return false, nil
	}
	for i, c := range calls {
		switch told := r.tells[i]; {
		case c.Name != answerTool || r.halts.unmade[c.ID]:
		case told.Failed:
			if err := f.again(told.Text(), string(c.Arguments)); err != nil {
				return false, err
			}
		case len(r.says) == 0 && f.read(c.Arguments) == nil:
			f.ended, r.done.Text = true, string(c.Arguments)
			r.done.Messages = slices.Concat(r.done.Messages, r.tells)
			r.tells = nil
			return true, nil
		}
	}
	return false, nil
}

// again is the error of one answer too many that does not fit.
func (f *form) again(bad, answer string) error {
	if f.refused++; f.refused > maxRepairs {
		return f.fail(fmt.Sprintf("%s (after %d answers)", bad, f.refused), answer)
	}
	return nil
}

func (f *form) fail(why, answer string) error {
	return handler.Category(categoryAnswer, handler.Permanent(
		fmt.Errorf("agent: %w: %s; the last answer: %s", ErrAnswer, why, cut(answer, maxShown, 2*maxShown))))
}

// unfenced is what a model has put between lines of ```, as many do, if that is all it has said.
func unfenced(text string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "```")
	inner, closed := strings.CutSuffix(inner, "```")
	_, inner, lines := strings.Cut(inner, "\n")
	if inner = strings.TrimSpace(inner); ok && closed && lines && json.Valid([]byte(inner)) {
		return inner
	}
	return text
}
