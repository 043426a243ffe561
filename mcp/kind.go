package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Kind is a kind of work as a tool. Make it with [Tool] or [RawTool] and give it to [New], which reports what is
// wrong with it.
type Kind struct {
	kind, name, title, description string

	input   form // of the arguments
	output  *form
	tasks   TaskMode
	frames  []string
	hidden  bool // its questions are answered elsewhere
	hints   *sdk.ToolAnnotations
	forms   map[string]ask // of waitpoints, by key
	options []client.SubmitOption
	key     func(json.RawMessage) string
	keeps   bool         // the definition says how long its executions are kept
	turns   *agent.Place // of the agent that the handler runs; nil: none whose turns callers control

	submit func(ctx context.Context, c *client.Client, input json.RawMessage,
		opts []client.SubmitOption) (flowfabric.ExecutionID, error)
	decode func(result []byte) (any, error)
	err    error
}

// errArguments marks arguments that the schema allows and the Go type does not.
var errArguments = errors.New("arguments")

// Tool makes a tool of a definition. Its name is that of the kind, with "_" for what clients do not take in names;
// its schemas are those of the Go types. Arguments are always an object: an In that is none is the property "input"
// of it, and an Out that is none the property "result". description tells the model what the tool does, and when to
// use it.
func Tool[In, Out any](def *handler.Definition[In, Out], description string, opts ...ToolOption) Kind {
	k := newKind(def.Kind(), description)
	k.err = def.Err()
	k.keeps = def.Info().Policy.Retention != (flowfabric.Retentions{})
	if in, err := jsonschema.For[In](nil); err != nil {
		k.fail("input: %w", err)
	} else {
		k.input = newForm(in, "input")
	}
	if out, err := jsonschema.For[Out](nil); err != nil {
		k.fail("output: %w", err)
	} else {
		f := newForm(out, "result")
		k.output = &f
	}
	k.submit = func(ctx context.Context, c *client.Client, input json.RawMessage,
		opts []client.SubmitOption) (flowfabric.ExecutionID, error) {
		var in In
		if err := decode(input, &in); err != nil {
			return flowfabric.ExecutionID{}, fmt.Errorf("%w: %w", errArguments, err)
		}
		x, err := client.Submit(ctx, c, def, in, opts...)
		if err != nil {
			return flowfabric.ExecutionID{}, err
		}
		return x.ID(), nil
	}
	k.decode = func(result []byte) (any, error) { return def.Decode(result) }
	return k.with(opts)
}

// RawTool makes a tool of a kind whose Go types are not known here: input and output are JSON Schemas (2020-12), and
// what the handler reads and writes is JSON. A schema of another type than object is wrapped as [Tool] does. Without
// an output schema the result is only text.
func RawTool(def *handler.Definition[json.RawMessage, json.RawMessage], description string, input,
	output json.RawMessage, opts ...ToolOption) Kind {
	k := newKind(def.Kind(), description)
	k.err = def.Err()
	k.keeps = def.Info().Policy.Retention != (flowfabric.Retentions{})
	in, err := newRawForm(input, "input")
	if k.input = in; err != nil {
		k.fail("input: %w", err)
	}
	if len(output) > 0 {
		out, err := newRawForm(output, "result")
		if k.output = &out; err != nil {
			k.fail("output: %w", err)
		}
	}
	k.submit = func(ctx context.Context, c *client.Client, input json.RawMessage,
		opts []client.SubmitOption) (flowfabric.ExecutionID, error) {
		x, err := client.Submit(ctx, c, def, input, opts...)
		if err != nil {
			return flowfabric.ExecutionID{}, err
		}
		return x.ID(), nil
	}
	k.decode = func(result []byte) (any, error) {
		if !json.Valid(result) {
			return nil, errors.New("the result is not JSON")
		}
		return json.RawMessage(result), nil
	}
	return k.with(opts)
}

func newKind(kind, description string) Kind {
	return Kind{kind: kind, name: toolName(kind), description: description, frames: []string{"token", "progress"},
		forms: map[string]ask{}}
}

func (k Kind) with(opts []ToolOption) Kind {
	for _, o := range opts {
		o(&k)
	}
	return k
}

// fail keeps the first thing that is wrong.
func (k *Kind) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}

// check is what is wrong with the kind, or nil.
func (k *Kind) check() error {
	switch {
	case k.err != nil:
		return fmt.Errorf("tool %s: %w", k.kind, k.err)
	case k.name != toolName(k.name) || k.name == "" || len(k.name) > 64:
		return fmt.Errorf("tool %s: the name %q is not 1..64 of A-Z a-z 0-9 _ -", k.kind, k.name)
	case strings.TrimSpace(k.description) == "":
		return fmt.Errorf("tool %s: a description is missing; models choose tools by it", k.kind)
	}
	for _, key := range slices.Sorted(maps.Keys(k.forms)) {
		if err := k.forms[key].check(); err != nil {
			return fmt.Errorf("tool %s: waitpoint %s: %w", k.kind, key, err)
		}
	}
	return nil
}

// toolName is a name that all clients take. The protocol allows dots, and some models do not.
func toolName(kind string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, kind)
}

// TaskMode says when a call is answered with a task.
type TaskMode string

const (
	TasksOptional TaskMode = ""         // for clients that support tasks; others wait for the result
	TasksNever    TaskMode = "never"    // every call waits for the result
	TasksRequired TaskMode = "required" // clients that do not support tasks are refused
)

// ToolOption changes a tool.
type ToolOption func(*Kind)

// Name is the name of the tool: 1..64 of A-Z a-z 0-9 _ -. Default: made of the kind.
func Name(name string) ToolOption { return func(k *Kind) { k.name = name } }

// Title is shown to people instead of the name. Default none.
func Title(title string) ToolOption { return func(k *Kind) { k.title = title } }

// Tasks says when a call is answered with a task. Default [TasksOptional].
func Tasks(mode TaskMode) ToolOption {
	return func(k *Kind) {
		if mode != TasksOptional && mode != TasksNever && mode != TasksRequired {
			k.fail("tasks: %q is none of never, required and the empty default", string(mode))
		}
		k.tasks = mode
	}
}

// ProgressFrames says the frames of which types become progress notifications, for clients that ask for them. Default
// token and progress; none: no progress.
func ProgressFrames(types ...string) ToolOption { return func(k *Kind) { k.frames = types } }

// AnsweredElsewhere keeps the questions of the tool from its callers: others answer them, in the dashboard, over the
// HTTP API or by a link.
func AnsweredElsewhere() ToolOption { return func(k *Kind) { k.hidden = true } }

// Hints tells clients what the tool does to the world, such as that it only reads. Default none.
func Hints(hints sdk.ToolAnnotations) ToolOption { return func(k *Kind) { k.hints = &hints } }

// Submit adds options to the submissions of the tool. They win over the definition and over [Config.Retention]; the
// name and the namespace of the caller win over them. Callers who meet in a flowfabric.Key share the execution,
// each with a task of its own. With [Key] it is refused at each call: an execution has one key.
func Submit(opts ...client.SubmitOption) ToolOption {
	return func(k *Kind) { k.options = append(k.options, opts...) }
}

// keyMeta is where a client gives a call a key.
const keyMeta = "io.flowfabric/idempotency-key"

// keyOf is the key of a call, or "".
func (k *Kind) keyOf(p *sdk.CallToolParamsRaw) string {
	if k.key != nil {
		return k.key(p.Arguments)
	}
	given, _ := p.Meta[keyMeta].(string)
	if given == "" || len(given) > 256 || slices.ContainsFunc(k.options, isKey) {
		return ""
	}
	return keyMeta + "\x00" + given
}

func isKey(o client.SubmitOption) bool { _, ok := o.(flowfabric.Key); return ok }

// Key makes the text of a flowfabric.Key of the arguments: a repeated call is answered with the execution of the
// first. "" is no key. The key counts for the caller alone. Without Key, and without a flowfabric.Key in [Submit], a
// call has the key that its client gives it in _meta, under io.flowfabric/idempotency-key, if it does: a text of 1..256
// bytes. Agents with agent/mcptools do.
func Key(key func(arguments json.RawMessage) string) ToolOption {
	return func(k *Kind) { k.key = key }
}
