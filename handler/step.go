package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

const (
	// recordGrace is how long a step that has run may still be recorded after its context ended: its effect has
	// happened, and a worker that drains still holds the lease.
	recordGrace = 3 * time.Second
)

// Step runs fn once and remembers its value: a later run of the handler, after a crash, a retry, a delay or a
// suspension, gets the recorded value and fn does not run. Put every effect that must not be repeated into a step.
//
//	charge, err := handler.Step(ctx, t, "charge", func(ctx context.Context) (Charge, error) { … })
//
// The order is: fn, flush of all frames appended so far, record. So a recorded step implies that its frames are
// stored, and fn is repeated if the process dies before the record is: at least once, recorded at most once.
// An error of fn is not recorded; it is returned with the step's name, and the next run runs fn again. A context
// that ends while fn runs does not keep a value that fn returned from being recorded.
//
// Frames sent inside a recorded step stay in the stream of the attempt that ran it; later attempts do not send them
// again. See package stream, "Runs", for how to show them as one text.
//
// name is 1..128 bytes of printable ASCII, unique within a run: loops number theirs ("page-3"), and what should be
// tried again is tried again inside fn. The value must survive the definition's codec, with at most 256 KiB; an
// execution has at most 1,000 steps and 8 MiB of them. Steps may run concurrently in goroutines of the handler,
// under different names, but not inside one another.
//
// Errors: flowfabric.ErrInvalidInput (name, duplicate, step inside a step); ErrPayloadTooLarge, ErrLimit,
// which are permanent failures if the handler returns them, as is a value that does not encode; ErrConflict; code
// unflushed; ErrLeaseLost; ErrTransport (not known to be recorded); code task_consumed after the handler returned;
// the context's cause when it has ended before fn. A recorded value that does not decode into T is a permanent
// failure of category extractor_payload_decode.
func Step[T any](ctx context.Context, t *Task, name string, fn func(ctx context.Context) (T, error)) (T, error) {
	var none T
	recorded, found, err := t.ask(ctx, name)
	if err != nil {
		return none, denied.Last(err)
	}
	if found {
		value, err := recall[T](t, recorded)
		if err != nil {
			return none, fmt.Errorf("step %s: %w", name, err)
		}
		return value, nil
	}
	if err := t.mayRun(ctx); err != nil {
		return none, fmt.Errorf("step %s: %w", name, err)
	}
	began := time.Now()
	value, err := fn(context.WithValue(ctx, stepKey{}, running{t, name}))
	took := time.Since(began)
	if err != nil {
		return none, &stepError{name, took, err}
	}
	err = t.record(ctx, name, value, took)
	if s, ok := any(value).(tasks.Stoppable[T]); ok && errors.Is(err, denied.TurnStopped) {
		if value, err = s.Heed(context.WithValue(ctx, stepKey{}, running{t, name})); err == nil {
			err = t.record(ctx, name, value, took)
		}
	}
	if err != nil {
		return none, fmt.Errorf("step %s: %w", name, err)
	}
	return value, nil
}

// Recorded says whether a step of this name is recorded, so that [Step] would not run its function. Safe for
// concurrent use.
func (t *Task) Recorded(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.steps[name]
	return found
}

// stepError is what the function of a step returned. The failure of an attempt that ends with it names the step.
type stepError struct {
	name string
	took time.Duration
	err  error
}

func (e *stepError) Error() string { return "step " + e.name + ": " + e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

// unusedSteps lists, sorted, the recorded steps, answered waits (those for children too) and pending waitpoints that
// this run has not asked for so far. After a handler has completed it should be empty: if not, the handler was
// changed or chose another path than an earlier run, and the effects of those steps may have been repeated under
// another name. [Binding.Run] warns of it then. What begins with the name of a recorded step and a space led to that
// step's value: it is done with.
func (t *Task) unusedSteps() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var unused []string
	for name := range t.steps {
		if _, ok := t.asked[name]; !ok && !strings.HasPrefix(name, raised+waitwords.OverBudget) &&
			!strings.HasPrefix(name, streamed) { // no run asks for it again once the wait was answered
			unused = append(unused, name)
		}
	}
	if t.waits != nil {
		unused = append(unused, t.waits.Unused()...)
	}
	unused = append(unused, t.kids.unused()...)
	unused = slices.DeleteFunc(unused, t.ledToStep)
	slices.Sort(unused)
	return unused
}

// ledToStep says of a step or wait that it is below a step that was recorded before this run and asked for by it.
func (t *Task) ledToStep(name string) bool {
	name = strings.TrimPrefix(name, "wait ")
	for i := range len(name) {
		if _, asked := t.asked[name[:i]]; asked && name[i] == ' ' {
			if _, recorded := t.steps[name[:i]]; recorded {
				return true
			}
		}
	}
	return false
}

// stepKey marks the context of a running step; its value is a running.
type stepKey struct{}

type running struct {
	task *Task
	name string
}

// insideStep names the running step that ctx belongs to, or "".
func (t *Task) insideStep(ctx context.Context) string {
	if outer, ok := ctx.Value(stepKey{}).(running); ok && outer.task == t {
		return outer.name
	}
	return ""
}

// ask takes a name for this run and returns what is recorded under it.
func (t *Task) ask(ctx context.Context, name string) (recorded []byte, found bool, err error) {
	if err := valid.Printable("step name", name, limits.MaxStepName); err != nil {
		return nil, false, err
	}
	if outer := t.insideStep(ctx); outer != "" {
		return nil, false, fmt.Errorf("%w: step %s runs inside step %s; steps cannot be nested",
			flowfabric.ErrInvalidInput, name, outer)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return nil, false, fmt.Errorf("step %s: %w: the handler has returned", name, denied.TaskConsumed)
	case t.barred != nil:
		return nil, false, fmt.Errorf("step %s: %w", name, t.barred)
	}
	if _, twice := t.asked[name]; twice {
		return nil, false, fmt.Errorf(
			"%w: step %s was already used in this run; names are unique (number those of a loop)",
			flowfabric.ErrInvalidInput, name)
	}
	if t.asked == nil {
		t.asked = map[string]struct{}{}
	}
	t.asked[name] = struct{}{}
	recorded, found = t.steps[name]
	return recorded, found, nil
}

// recall decodes a recorded value. It will not decode next time either, unless only a key was missing.
func recall[T any](t *Task, recorded []byte) (T, error) {
	var value T
	plain, err := t.cfg.Box.Open(recorded)
	if err == nil {
		err = t.valueCodec().Decode(plain, &value)
	}
	if err != nil {
		return *new(T), undecodable(fmt.Errorf("recorded value does not decode into %T: %w", value, err))
	}
	return value, nil
}

// mayRun refuses to start an effect that cannot be recorded.
func (t *Task) mayRun(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.held()
}

// record makes value durable: frames first, then the value.
func (t *Task) record(ctx context.Context, name string, value any, took time.Duration) error {
	data, err := t.valueCodec().Encode(value)
	if err == nil {
		data, err = t.cfg.Box.Seal(data)
	}
	if err != nil {
		return final(fmt.Errorf("encode value: %w", err))
	}
	if len(data) > limits.MaxStepBytes {
		return denied.Last(fmt.Errorf("%w: value has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge,
			len(data), limits.MaxStepBytes))
	}
	if err := t.lost(ctx); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	ctx, cancel := outlive(ctx, recordGrace)
	defer cancel()
	if err := t.Flush(ctx); err != nil {
		return fmt.Errorf("flush frames: %w", err)
	}
	if t.cfg.Steps != nil {
		s := engine.Step{Name: name, Value: data, Took: took}
		if said, ok := value.(tasks.Said); ok {
			s.Turn = said.Turn()
		}
		r, err := t.cfg.Steps.RecordTurn(ctx, t.Fence(), s)
		if err != nil {
			return fmt.Errorf("record: %w", denied.Last(t.refuse(err)))
		}
		t.spoke(s.Turn, r.Stop)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steps == nil {
		t.steps = map[string][]byte{}
	}
	t.steps[name] = data
	return nil
}

// refuse notes an answer that says the execution is another's, and ends the handler's context.
func (t *Task) refuse(err error) error {
	gone := false
	for _, sentinel := range []error{
		flowfabric.ErrLeaseLost, denied.LeaseExpired, denied.LeaseRevoked, denied.StaleLease,
		denied.NotActive, denied.NoExecution,
	} {
		gone = gone || errors.Is(err, sentinel)
	}
	if !gone {
		return err
	}
	if !errors.Is(err, flowfabric.ErrLeaseLost) {
		err = fmt.Errorf("%w: %w", flowfabric.ErrLeaseLost, err)
	}
	t.mu.Lock()
	t.refused = err
	t.mu.Unlock()
	if t.cfg.Cancel != nil {
		t.cfg.Cancel(err)
	}
	return err
}

func (t *Task) valueCodec() Codec {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.codec
}

// outlive returns a context that ends a grace after ctx does, with the same cause.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel(nil) }
}
