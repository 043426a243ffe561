package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// Binding is a definition together with the function that runs it, without the types, so that bindings of all
// kinds fit into one worker. Build it with [Bind] or [BindBatch]. The zero value is invalid. Safe for concurrent use.
type Binding struct {
	info  flowfabric.Start
	codec Codec
	run   Handler
	takes func(any) bool // tells whether a value is an input
	batch Batch
	in    reflect.Type
	out   reflect.Type
	mute  bool // nothing is said of its types
	logs  string
	err   error
}

// Bind joins a definition and the function that runs its executions. fn is called concurrently. It is called again
// from the top after a retry, a crash, a delay or a suspension; put whatever must not be repeated in a [Step].
// It must return soon after ctx ends; context.Cause(ctx) tells why: flowfabric.ErrCancelled, ErrLeaseLost,
// ErrAttemptTimeout, ErrDeadline, ErrOverBudget or ErrDraining.
//
// Its goroutine runs other executions afterwards: a function that calls runtime.LockOSThread or sets labels must undo
// that.
//
// A nil def or fn, or an invalid definition, is reported by [Binding.Err] and runtime.New.
func Bind[In, Out any](def *Definition[In, Out], fn func(ctx context.Context, t *Task, in In) (Out, error)) Binding {
	switch {
	case def == nil:
		return Binding{err: fmt.Errorf("%w: Bind: the definition is nil", flowfabric.ErrInvalidInput)}
	case def.err != nil:
		return Binding{info: def.Info(), err: def.err}
	case fn == nil:
		return Binding{info: def.Info(),
			err: fmt.Errorf("%w: Bind: the function for kind %s is nil", flowfabric.ErrInvalidInput, def.Kind())}
	}
	b := typed(def)
	b.takes = func(input any) bool {
		var zero In
		_, ok := input.(In)
		return ok || input == nil && any(zero) == nil
	}
	b.run = func(ctx context.Context, t *Task) (out Outcome) {
		defer t.rescue(ctx, &out)
		var in In
		if err := t.decodeInput(b.codec, &in); err != nil {
			return b.undecodable(ctx, t, err)
		}
		value, err := fn(ctx, t, in)
		if err != nil {
			return Classify(ctx, t, err)
		}
		return b.complete(ctx, t, value)
	}
	return b
}

// typed is a binding that knows what its definition says.
func typed[In, Out any](def *Definition[In, Out]) Binding {
	return Binding{info: def.Info(), codec: def.codec, mute: def.mute, logs: def.logs, in: reflect.TypeFor[In](),
		out: reflect.TypeFor[Out]()}
}

// Plain adapts a function that needs nothing durable.
func Plain[In, Out any](fn func(ctx context.Context, in In) (Out, error)) func(ctx context.Context, t *Task,
	in In) (Out, error) {
	if fn == nil {
		return nil // reported by Bind
	}
	return func(ctx context.Context, _ *Task, in In) (Out, error) { return fn(ctx, in) }
}

// Info returns the settings of the definition, as a copy.
func (b Binding) Info() flowfabric.Start { return clone(b.info) }

// Schemas are JSON Schemas (2020-12) of input and result, which a worker publishes when it starts. Inputs that do not
// fit are refused from then on, see flowfabric.ErrInvalidInput, code input_does_not_fit. They say what encoding/json
// makes of the types. A field without omitempty or omitzero is required in the types that clients make of them, but no
// input is refused because a member is absent, null, or one that the type does not have. nil: nothing is said, because
// of [NoSchema] or another codec than [JSON] (also [Offloaded]), or because the type takes anything or is not described
// exactly by a schema, as one that contains itself.
func (b Binding) Schemas() (input, result json.RawMessage) {
	if b.mute || b.in == nil || !isJSON(b.codec) {
		return nil, nil
	}
	return kindschema.Input(b.in), kindschema.Of(b.out)
}

// KeptLogs is the level of [KeepLogs], "" if the definition says none.
func (b Binding) KeptLogs() string { return b.logs }

func isJSON(c Codec) bool {
	if o, ok := c.(offloaded); ok {
		return isJSON(o.codec)
	}
	_, ok := c.(jsonCodec)
	return ok
}

// Err returns what is wrong with the binding, or nil.
func (b Binding) Err() error {
	if b.err == nil && b.run == nil {
		return fmt.Errorf("%w: the binding is empty; build it with handler.Bind or BindBatch",
			flowfabric.ErrInvalidInput)
	}
	return b.err
}

// Run makes one run: it decodes the input, calls the function, and encodes the result or classifies the error
// (see [Classify]). It never panics. It does not flush frames: who made the task's writer closes it before it
// settles. A run that a gate has stopped fails, or is put aside, whatever the function returned, see
// [Task.SpendUsage]. A completed pass that left recorded steps unasked is logged as a warning.
func (b Binding) Run(ctx context.Context, t *Task) Outcome {
	if t == nil {
		t = newTask(tasks.Config{})
	}
	if err := b.Err(); err != nil {
		return plainFailure(causes.NoHandler, err)
	}
	t.begin(b.codec, b.takes)
	defer t.end()
	out := t.charged(ctx, b.run(ctx, t))
	if wait := t.wanted(); wait != "" && out.Kind == codes.OutcomeComplete {
		return failed(causes.AwaitIgnored, Permanent(fmt.Errorf(
			"the handler returned a result although %s had asked to suspend: return the error of a wait", wait)))
	}
	b.explain(ctx, t, &out)
	if out.Kind == codes.OutcomeComplete {
		if unused := t.unusedSteps(); len(unused) > 0 {
			t.Logger().WarnContext(ctx,
				"flowfabric: the handler completed without using recorded steps; was the handler changed?", "steps",
				unused)
		}
	}
	return out
}

// explain says what a handler that waits seems to have done wrong, where it does not show.
func (b Binding) explain(ctx context.Context, t *Task, out *Outcome) {
	if wait := t.wanted(); wait != "" && out.Kind == codes.OutcomeFail &&
		out.Failure.Category == causes.HandlerError {
		out.Failure.Reason = cut(out.Failure.Reason + " (" + wait +
			" had asked to suspend: return its error as it is, or wrapped with %w)")
	}
	waits := t.knownWaits()
	if waits == nil || out.Kind != codes.OutcomeFail && out.Kind != codes.OutcomeSuspend &&
		out.Kind != codes.OutcomeChildren {
		return
	}
	if wait := waits.Unasked(); wait != "" {
		t.Logger().WarnContext(ctx,
			"flowfabric: the handler did not ask for a wait that was answered; was the wait renamed?",
			"wait", wait)
	}
}

// undecodable fails for good: the bytes stay what they are. Only a cipher may do better next time.
func (b Binding) undecodable(ctx context.Context, t *Task, err error) Outcome {
	return Classify(ctx, t, undecodable(fmt.Errorf("decode input of kind %s: %w", b.info.Kind, err)))
}

// complete encodes a result. It stands even if the context has ended meanwhile, unless the execution is no longer
// ours: the work is done, and the fence of the settling call decides.
func (b Binding) complete(ctx context.Context, t *Task, value any) Outcome {
	if lost := t.lost(ctx); lost != nil {
		return Outcome{Kind: codes.OutcomeAbandon, Err: lost}
	}
	result, err := b.codec.Encode(value)
	if err == nil {
		result, err = t.cfg.Box.Seal(result)
	}
	if err != nil {
		return Classify(ctx, t, final(fmt.Errorf("encode result of kind %s: %w", b.info.Kind, err)))
	}
	if len(result) > limits.MaxPayload {
		return Classify(ctx, t, Permanent(fmt.Errorf("%w: result of kind %s has %d bytes, want at most %d",
			flowfabric.ErrPayloadTooLarge, b.info.Kind, len(result), limits.MaxPayload)))
	}
	return Outcome{Kind: codes.OutcomeComplete, Result: result}
}
