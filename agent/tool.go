package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/integer"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// Tool is a function, or a kind of work, that a model may call. Build it with [NewTool], [ToolOf] or [Child], once:
// that works out a schema. Immutable, and safe for concurrent use.
type Tool struct{ d *definition }

// definition is what makes a tool.
type definition struct {
	spec     ToolSpec
	check    func(arguments []byte) error
	call     func(ctx context.Context, arguments []byte) ([]Part, error)
	decide   func(arguments []byte) (Decision, error) // nil: every call runs
	asks     reflect.Type                             // what decide is about
	endsRun  bool
	suspends bool
	// child adds the child of a call to a set, instead of call; starts are its options.
	child  func(set *flow.ChildSet, node string, arguments []byte, kin tasks.Kin) (offspring, error)
	starts []flow.NodeOption
	bad    error
}

func (t Tool) err() error {
	if t.d == nil {
		return errors.New("the tool is empty; build it with agent.NewTool")
	}
	return t.d.bad
}

// ToolOption changes a tool.
type ToolOption func(*definition)

// EndsRun makes an error of the tool end the run instead of going to the model: [Run] returns it, nothing is
// recorded, and the retry policy decides about another attempt, which runs the tool again.
func EndsRun() ToolOption { return func(d *definition) { d.endsRun = true } }

// MaySuspend is for a tool that waits, or has steps of its own, for example one whose work takes hours: its function
// may use the task ([Call].Task) as a handler does, with names that begin with Call.Step. It runs in the handler, not
// in a step: in each run from the top, until its result is recorded. So what must not be repeated belongs into steps.
// If it waits, it returns that error, and the run goes on when the answer is there. Calls of such tools come after the
// others of a turn, one after the other.
func MaySuspend() ToolOption { return func(d *definition) { d.suspends = true } }

// NewTool makes a tool of a function. In is a struct, or a map with string keys; its JSON Schema is what the model is
// told: fields are required unless they are omitempty or omitzero, and the tag jsonschema describes one. name is
// 1..64 of A-Z a-z 0-9 _ -. A string that fn returns is passed to the model as it is, a []Part as texts, images and
// files, of a [Result] the text, everything else as JSON.
//
// fn runs as a step, so it is not repeated once its result is recorded; before that it may be, see [CallFrom].
// Several calls of a turn run at once, also of one tool. Arguments that do not fit the schema never reach fn: the
// model is told. An error goes to the model as a failed result, recorded like any other, and so does a result of more
// than 240 KiB. Images and files do not count there with Config.Blobs, up to 64 MiB each; without it those that have
// no room in a step end the run with flowfabric.ErrPayloadTooLarge. These errors end the run, too, unrecorded: those
// of a tool with [EndsRun]; those marked with handler.Permanent, RetryAfter, Category, Delay or Cancel; and all errors
// once ctx has ended. fn must return soon after ctx has ended. It should not append frames: those of tools that run at
// once would be told apart by nobody.
//
// What is wrong with the definition is reported by [Run].
func NewTool[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error),
	opts ...ToolOption) Tool {
	d := &definition{spec: ToolSpec{Name: name, Description: description}}
	for _, opt := range opts {
		opt(d)
	}
	d.bad = define[In](d, fn == nil)
	if d.bad != nil {
		d.bad = fmt.Errorf("tool %.80q: %w", name, d.bad)
		return Tool{d}
	}
	d.call = func(ctx context.Context, arguments []byte) ([]Part, error) {
		var in In
		if err := json.Unmarshal(integer.Numbers(arguments), &in); err != nil {
			return nil, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return partsOf(out)
	}
	return Tool{d}
}

// define works out the schema, and says what is wrong.
func define[In any](d *definition, noFunc bool) error {
	in := reflect.TypeFor[In]()
	switch {
	case !named(d.spec.Name, limits.MaxToolName, "_-"):
		return fmt.Errorf("the name is not valid, want 1..%d of A-Z a-z 0-9 _ -", limits.MaxToolName)
	case noFunc:
		return errors.New("the function is nil")
	case in.Kind() != reflect.Struct && in.Kind() != reflect.Map:
		return fmt.Errorf("the arguments are a %v, want a struct or a map with string keys", in)
	case d.asks != nil && d.asks != in:
		return fmt.Errorf("the option Needs is about a %v, want one about a %v", d.asks, in)
	case d.asks != nil && d.decide == nil:
		return errors.New("the function of the option Needs is nil")
	}
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return fmt.Errorf("schema of the arguments: %w", err)
	}
	if schema.Type != "object" {
		return fmt.Errorf("the arguments, a %v, are no object as JSON", in)
	}
	return settle[In](d, schema)
}

// settle gives a tool the schema of its arguments.
func settle[In any](d *definition, schema *jsonschema.Schema) error {
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return fmt.Errorf("schema of the arguments: %w", err)
	}
	d.spec.Schema = schema
	d.check = func(arguments []byte) error {
		_, err := decode[In](resolved, "the arguments", arguments)
		return err
	}
	if d.child == nil && len(d.starts) > 0 {
		return errors.New("the option ChildOptions is for Child")
	}
	return nil
}

// ToolOf makes a tool of a function whose arguments no Go type describes, for example one that another process offers:
// spec.Schema, of an object, says what they are. fn gets them as the model wrote them, after they were checked. The
// rules of [NewTool] hold. The option [Needs] is refused for any type but json.RawMessage.
func ToolOf(spec ToolSpec, fn func(ctx context.Context, arguments json.RawMessage) ([]Part, error),
	opts ...ToolOption) Tool {
	d := &definition{spec: spec}
	for _, opt := range opts {
		opt(d)
	}
	in := reflect.TypeFor[json.RawMessage]()
	switch {
	case !named(spec.Name, limits.MaxToolName, "_-"):
		d.bad = fmt.Errorf("the name is not valid, want 1..%d of A-Z a-z 0-9 _ -", limits.MaxToolName)
	case fn == nil:
		d.bad = errors.New("the function is nil")
	case d.asks != nil && d.asks != in:
		d.bad = fmt.Errorf("the option Needs is about a %v, want one about a %v", d.asks, in)
	case d.asks != nil && d.decide == nil:
		d.bad = errors.New("the function of the option Needs is nil")
	case spec.Schema == nil || spec.Schema.Type != "object":
		d.bad = errors.New("the schema is not of an object")
	default:
		d.bad = settle[json.RawMessage](d, spec.Schema)
	}
	if d.bad != nil {
		d.bad = fmt.Errorf("tool %.80q: %w", spec.Name, d.bad)
		return Tool{d}
	}
	d.call = func(ctx context.Context, arguments []byte) ([]Part, error) {
		parts, err := fn(ctx, arguments)
		if err != nil {
			return nil, err
		}
		return partsOf(parts)
	}
	return Tool{d}
}

// decode reads JSON that fits a schema. Its errors are in words for the model.
func decode[T any](schema *jsonschema.Resolved, what string, data []byte) (out T, err error) {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return out, fmt.Errorf("%s are not JSON: %w", what, err)
	}
	if err := schema.Validate(value); err != nil {
		return out, fmt.Errorf("%s do not fit the schema: %w", what, err)
	}
	if err := json.Unmarshal(integer.Numbers(data), &out); err != nil {
		return out, fmt.Errorf("%s do not decode: %w", what, err)
	}
	return out, nil
}

// partsOf is a tool's result as the model gets it.
func partsOf(out any) ([]Part, error) {
	switch out := out.(type) {
	case string:
		return Text(out), nil
	case []Part:
		if err := checkParts(out); err != nil {
			return nil, fmt.Errorf("the result is not valid: %w", err)
		}
		return out, nil
	case Result:
		return Text(out.Text), nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil, fmt.Errorf("the result of type %T does not encode: %w", out, err)
	}
	return Text(strings.TrimSuffix(b.String(), "\n")), nil
}

// Call is the tool call that a tool's function works for.
type Call struct {
	Execution flowfabric.ExecutionID
	Step      string // under which the result is recorded
	ID        string // that the model gave the call
	// Key is the same whenever this call is repeated, with the arguments that run, and for no other call: an
	// idempotency key for systems outside, 36 bytes. A replay of the execution that keeps the
	// model's answer and makes the call again has the same key. An answer that is made again has keys of its own.
	Key string
	// Task is the handler's, for example to spend. Steps and waits are for tools with [MaySuspend] only.
	Task *handler.Task
}

type callKey struct{}

// CallFrom is the call that the context of a tool's function belongs to; ok is false for every other context.
func CallFrom(ctx context.Context) (call Call, ok bool) {
	call, ok = ctx.Value(callKey{}).(Call)
	return call, ok
}

// callSpace keeps calls apart that an execution makes for different inputs (handler.Continue), and in different takes.
func callSpace(t *handler.Task, take int) (space string) {
	if n := t.Continues(); n > 0 {
		space = strconv.Itoa(n) + "\n"
	}
	if take > 0 {
		space += taken(take) + "\n"
	}
	return space
}

// taken names a take but the first.
func taken(take int) string { return "t" + strconv.Itoa(take) }

// callOf makes the call of a step.
func callOf(t *handler.Task, step string, j *job) Call {
	id := t.ID()
	key := uuid.NewSHA1(ids.UUID(id), []byte(callSpace(t, j.take)+step+"\n"+j.ID+"\n"+string(j.Arguments)))
	return Call{Execution: id, Step: step, ID: j.ID, Key: key.String(), Task: t}
}
