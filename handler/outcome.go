package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Outcome is the result of one run of a handler. Only the fields of its Kind are set, and Err.
type Outcome struct {
	// Kind is one of these; a worker settles a run of any other kind as a failure:
	//
	//	complete       ends the execution as completed with Result
	//	fail           ends the attempt with Failure; the stored policy decides between retry and dead letter
	//	delay          puts the attempt aside for Delay
	//	cancel         ends the execution as cancelled with Reason
	//	release        returns the execution to its queue at once, no attempt consumed: the worker drains
	//	abandon        settles nothing: the execution is no longer this worker's, or its deadline has passed and the
	//	               server ends it by itself; a worker that still holds it should release it
	//	suspend        gives up the lease until the wait of the run is answered; the attempt goes on then
	//	wait_children  makes the children of the run and suspends it until enough of them have ended
	//	block          puts the attempt back into its queue, which a gate closes: Err is its [*OverBudgetError]
	//	continue       restarts the execution with Input
	Kind   string
	Result []byte // complete: encoded, at most 1 MiB
	Input  []byte // continue: encoded, at most 1 MiB
	// delay: whole milliseconds, 0..10 years; block: for how long its queue is closed at most
	Delay   time.Duration
	Service string  // delay: the service for whose turn it waits ([Task.Acquire]); "" for none
	Failure Failure // fail: within the bounds the server checks
	Reason  string  // cancel: at most 1 KiB
	Err     error   // what the handler returned, or why the execution is not its own; nil if complete
}

// Failure is how an attempt ends that failed.
type Failure struct {
	// Category is 1..64 bytes: one of the handler's own (see [Category]), or one that a worker gives: package
	// flowfabric lists them.
	Category   flowfabric.Category
	Reason     string         // cut to 1 KiB
	Permanent  bool           // no retry whatever the policy says
	RetryAfter *time.Duration // replaces the policy's pause, not its count
	Step       string         // the [Step] whose function returned the error; "" if it was none
	StepTook   time.Duration  // how long that function ran
}

// Classify decides what an error of a handler means; a nil error is not one, and is reported as a failure. A nil task
// is one that always holds its execution, and cannot wait. [Binding.Run] calls it, and middleware that makes up an
// error of its own may. What a wait is for is kept with the task, so only the task's latest outcome can wait. In order:
//
//  1. The execution is not this worker's any more: abandon, whatever the error says.
//  2. The context has ended with one of the root package's causes, and the error comes from that or is not one of
//     [Cancel], [Permanent], [Continue], [Delay] and a wait: ErrDraining is release, ErrDeadline abandon,
//     ErrAttemptTimeout and ErrOverBudget are failures of their own category. Errors that wrap context.Canceled
//     while the context has not ended are ordinary.
//  3. The error says what is to follow: [Cancel], [Permanent], [Continue], [Delay], a wait of package suspend or for
//     children, [RetryAfter], [Category].
//  4. fail, category handler_error; budget_exceeded if the error wraps ErrOverBudget;
//     extractor_payload_decode, for good, if a signal's payload did not decode. Errors of a task's methods about what
//     they were given (too large, not well formed) are permanent.
func Classify(ctx context.Context, t *Task, err error) Outcome {
	if err == nil {
		err = errors.New("the handler failed without an error")
	}
	if t == nil {
		t = newTask(tasks.Config{})
	}
	if lost := t.lost(ctx); lost != nil {
		return Outcome{Kind: codes.OutcomeAbandon, Err: lost}
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if !deliberate(err) || fromContext(err, cause) {
			if out, ok := interrupted(cause, err); ok {
				return out
			}
		}
	}
	if cancel, ok := errors.AsType[*cancelError](err); ok {
		return Outcome{Kind: codes.OutcomeCancel, Reason: cut(cancel.reason), Err: err}
	}
	if next, ok := errors.AsType[*continueError](err); ok && !is[*permanentError](err) {
		return t.continued(next.input, err)
	}
	if delay, ok := errors.AsType[*delayError](err); ok && !is[*permanentError](err) {
		return Outcome{Kind: codes.OutcomeDelay, Delay: wholeMillis(delay.after, limits.MaxDelay),
			Service: delay.service, Err: err}
	}
	if wanted, ok := errors.AsType[*waitwords.Wanted](err); ok && !is[*permanentError](err) {
		return suspended(t, wanted, err)
	}
	if wanted, ok := errors.AsType[*childWait](err); ok && !is[*permanentError](err) {
		return waitsForChildren(t, wanted, err)
	}
	if is[*waitwords.Undecodable](err) {
		return failed(causes.Decode, Permanent(err))
	}
	if errors.Is(err, flowfabric.ErrOverBudget) {
		return failed(causes.OverBudget, err)
	}
	return failed(causes.HandlerError, err)
}

// continued is the outcome of a handler that goes on with another input.
func (t *Task) continued(input any, err error) Outcome {
	t.mu.Lock()
	codec, takes := t.codec, t.takes
	t.mu.Unlock()
	if takes != nil && !takes(input) {
		return failed(causes.HandlerError,
			Permanent(fmt.Errorf("continue: %w: the input is a %T, which is not the definition's input type",
				flowfabric.ErrInvalidInput, input)))
	}
	data, bad := codec.Encode(input)
	if bad == nil {
		data, bad = t.cfg.Box.Seal(data)
	}
	if bad == nil && len(data) > limits.MaxPayload {
		bad = fmt.Errorf("%w: the input has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(data),
			limits.MaxPayload)
	}
	if bad != nil {
		return failed(causes.HandlerError, final(fmt.Errorf("continue: %w", bad)))
	}
	return Outcome{Kind: codes.OutcomeContinue, Input: data, Err: err}
}

// suspended is the outcome of a handler that waits.
func suspended(t *Task, wanted *waitwords.Wanted, err error) Outcome {
	q, bad := t.ownWaits().Suspension(wanted)
	if bad != nil {
		return failed(causes.Suspend, denied.Last(fmt.Errorf("wait %s: %w", wanted.Name, bad)))
	}
	t.asksFor(waiting{suspension: &q})
	return Outcome{Kind: codes.OutcomeSuspend, Err: err}
}

// waitsForChildren is the outcome of a handler that waits for children.
func waitsForChildren(t *Task, wanted *childWait, err error) Outcome {
	q, out := wanted.wait, suspended(t, wanted.until, err)
	if out.Kind != codes.OutcomeSuspend {
		return out
	}
	q.Until = (*taskWaits)(t).Suspension()
	t.asksFor(waiting{children: &q})
	return Outcome{Kind: codes.OutcomeChildren, Err: err}
}

// fromContext reports an error that a handler returns because its context ended.
func fromContext(err, cause error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cause)
}

// interrupted is what the end of a context means for a handler that stopped because of it. A cause that is not
// ours (a middleware with a timeout of its own) means an ordinary failure: a release would repeat it for ever.
func interrupted(cause, err error) (Outcome, bool) {
	switch {
	case errors.Is(cause, flowfabric.ErrDraining):
		return Outcome{Kind: codes.OutcomeRelease, Err: err}, true
	case errors.Is(cause, flowfabric.ErrDeadline):
		return Outcome{Kind: codes.OutcomeAbandon, Err: cause}, true
	case errors.Is(cause, flowfabric.ErrAttemptTimeout):
		return plainFailure(causes.Timeout, err), true
	case errors.Is(cause, flowfabric.ErrOverBudget):
		return plainFailure(causes.OverBudget, err), true
	case errors.Is(cause, context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded):
		return plainFailure(causes.Timeout, err), true
	}
	return Outcome{}, false
}

// plainFailure is a failure that the policy alone decides about.
func plainFailure(category flowfabric.Category, err error) Outcome {
	out := Outcome{Kind: codes.OutcomeFail, Failure: Failure{Category: category, Reason: errorText(err)}, Err: err}
	if step, ok := errors.AsType[*stepError](err); ok {
		out.Failure.Step, out.Failure.StepTook = step.name, step.took
	}
	return out
}

// failed builds the failure that err asks for; category is the default.
func failed(category flowfabric.Category, err error) Outcome {
	out := plainFailure(category, err)
	// What a wait was answered is kept, so that the next attempt would be told the same; and a condition that makes
	// no sense makes none then.
	answered := errors.Is(err, flowfabric.ErrNoSignal) || errors.Is(err, flowfabric.ErrWaitTimeout) ||
		errors.Is(err, denied.Condition)
	out.Failure.Permanent = is[*permanentError](err) || is[denied.Lasting](err) || answered
	if named, ok := errors.AsType[*categoryError](err); ok {
		if bad := valid.Category(named.category); bad != nil {
			out.Failure.Reason = cut(fmt.Sprintf("%v: %s", bad, out.Failure.Reason))
		} else {
			out.Failure.Category = named.category
		}
	}
	if retry, ok := errors.AsType[*retryAfterError](err); ok && !out.Failure.Permanent {
		after := wholeMillis(retry.after, limits.MaxBackoff)
		out.Failure.RetryAfter = &after
	}
	return out
}

// wholeMillis rounds up, so that a short pause does not become none, and keeps d within 0..limit.
func wholeMillis(d, limit time.Duration) time.Duration {
	if d >= limit {
		return limit
	}
	return max(0, d+time.Millisecond-1).Truncate(time.Millisecond)
}
