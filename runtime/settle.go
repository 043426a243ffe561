package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// settle ends the attempt as the handler decided, and gives up the hold: settled, lost, or abandoned with a log
// line. Log lines and frames come first: a terminal call must not overtake them.
func (j *job) settle(outcome handler.Outcome) {
	j.lines.close()
	err := j.frames.close()
	switch { // they can never be delivered; the attempt can still fail
	case errors.Is(err, denied.FrameGap): // the server lost acknowledged frames (a failover): the policy decides
		outcome, err = refusedOutcome("frames", err), nil
		outcome.Failure.Category, outcome.Failure.Permanent = causes.FramesLost, false
	case denied.ClassOf(err) == fault.Caller:
		outcome, err = refusedOutcome("frames", err), nil
	}
	if err == nil {
		outcome, err = j.end(outcome)
	}
	switch {
	case err == nil:
		j.held.Release()
	case j.held.Check() != nil:
		j.lost(j.held.Check(), outcome.Kind)
	case keeper.NotOurs(err):
		level, what := dropped(endedAs(err))
		j.logger().Log(j.jobs.ctx, level, what, "outcome", outcome.Kind, "error", err)
		j.jobs.metrics.settle(j.route.Kind, "refused", "")
		j.held.Release()
	default:
		j.logger().Error(
			"flowfabric: the worker could not settle the execution; it releases it, or the execution is requeued when its session expires",
			"outcome", outcome.Kind, "error", err)
		j.jobs.metrics.settle(j.route.Kind, "abandoned", "")
		j.held.Abandon()
	}
}

// lost gives up a hold that is not ours any more.
func (j *job) lost(cause error, outcome string) {
	level, what := dropped(cause)
	j.logger().Log(j.jobs.ctx, level, what, "outcome", outcome, "cause", cause)
	j.jobs.metrics.settle(j.route.Kind, "lost", "")
	j.held.Release()
}

// completes tells whether all that is left is a completion of a hold that is not in doubt.
func (j *job) completes(outcome handler.Outcome) bool {
	if outcome.Kind != codes.OutcomeComplete {
		return false
	}
	j.lines.close()
	return j.frames.close() == nil && j.held.Check() == nil
}

func (j *job) completion(result []byte) engine.Completion {
	return engine.Completion{Fence: j.held.Fence(), Result: result}
}

// end makes the settling call, and a second one where the first cannot succeed: a result that the server
// refuses as too large fails the attempt for good instead.
func (j *job) end(o handler.Outcome) (handler.Outcome, error) {
	err := j.send(o)
	if denied.ClassOf(err) != fault.Caller || o.Kind == codes.OutcomeRelease ||
		o.Kind == codes.OutcomeAbandon {
		return o, err
	}
	failure := refusedOutcome(o.Kind, err)
	j.logger().Error("flowfabric: the server refuses the outcome; the attempt fails", "outcome", o.Kind,
		"error", err)
	return failure, j.send(failure)
}

// send makes the one call of an outcome until it is answered.
func (j *job) send(o handler.Outcome) error {
	return j.held.Persist(j.jobs.ctx, func(ctx context.Context) error {
		fence := j.held.Fence()
		switch o.Kind {
		case codes.OutcomeComplete:
			return j.settled(j.completeAndWait(o.Result), "complete", "")
		case codes.OutcomeFail:
			reply, err := j.jobs.store.FailExecution(ctx, fence, engine.Failure(o.Failure))
			return j.failed(o, reply, err)
		case codes.OutcomeDelay:
			_, err := j.jobs.store.DelayExecution(ctx, fence, o.Delay, o.Service)
			return j.settled(err, "delay", "")
		case codes.OutcomeContinue:
			_, err := j.jobs.store.ContinueExecution(ctx, fence, o.Input)
			return j.settled(err, "continue", "")
		case codes.OutcomeBlock:
			return j.settled(j.block(ctx, o), "block", "")
		case codes.OutcomeCancel:
			_, err := j.jobs.store.CancelExecution(trail.As(ctx, "", o.Reason), fence.Execution,
				engine.Cancellation{Source: engine.CancelOwner, Fence: &fence})
			return j.settled(err, "cancel", "")
		case codes.OutcomeSuspend: // it has been suspended; what is left is to give up the hold
			return j.settled(nil, "suspend", "")
		case codes.OutcomeRelease, codes.OutcomeAbandon: // still ours, so nobody else has decided: hand it back
			_, err := j.jobs.store.ReleaseExecution(ctx, fence)
			return j.settled(err, "release", "")
		}
		return fmt.Errorf("%w: the handler's outcome is of no kind", flowfabric.ErrInvalidInput)
	})
}

func (j *job) settled(err error, outcome string, category flowfabric.Category) error {
	if err == nil {
		j.jobs.metrics.settle(j.route.Kind, outcome, category)
		j.jobs.measure(j, ended(outcome), time.Now())
	}
	return err
}

// failed records what followed a failure, and logs it once: the last one loudly.
func (j *job) failed(o handler.Outcome, reply engine.FailOutcome, err error) error {
	switch {
	case err != nil:
		return err
	case reply.Retry:
		j.logger().Info("flowfabric: attempt failed, will be retried", "category", o.Failure.Category, "reason",
			o.Failure.Reason, "in", reply.RetryIn.Round(time.Millisecond).String())
		return j.settled(nil, "retry", o.Failure.Category)
	}
	j.logger().Warn("flowfabric: execution failed", "category", o.Failure.Category, "reason", o.Failure.Reason)
	return j.settled(nil, "fail", o.Failure.Category)
}

// completeAndWait settles one completion, with others that are being repeated, and returns its answer.
func (j *job) completeAndWait(result []byte) error {
	answer := make(chan error, 1)
	j.jobs.done.complete(completion{job: j, item: j.completion(result), answer: answer, dependants: j.member()})
	return <-answer
}

// refusedOutcome is what becomes of something that the server will never accept.
func refusedOutcome(what string, err error) handler.Outcome {
	return handler.Outcome{Kind: codes.OutcomeFail, Failure: handler.Failure{
		Category: causes.HandlerError, Reason: what + " refused: " + err.Error(), Permanent: true}}
}

// dropped is how loudly, and in which words, the loss of a hold is told: what somebody asked for is no surprise. A nil
// cause is a refusal whose reason the worker was not told.
func dropped(cause error) (slog.Level, string) {
	switch {
	case cause == nil:
		return slog.LevelWarn, "flowfabric: outcome refused; the execution is no longer this worker's"
	case errors.Is(cause, flowfabric.ErrCancelled):
		return slog.LevelInfo, "flowfabric: execution cancelled; the handler's outcome is dropped"
	case errors.Is(cause, flowfabric.ErrDeadline):
		return slog.LevelInfo, "flowfabric: execution expired; the handler's outcome is dropped"
	case errors.Is(cause, flowfabric.ErrAttemptTimeout):
		return slog.LevelInfo, "flowfabric: attempt timed out; the handler's outcome is dropped"
	}
	return slog.LevelWarn, "flowfabric: lease lost; the handler's outcome is dropped"
}

// endedAs reads the cause from a refusal that outran the notice of it: the state is in its first slot. Else nil.
func endedAs(refusal error) error {
	if e, ok := errors.AsType[*flowfabric.Error](refusal); ok {
		switch state, _ := codes.Project(codes.Code(denied.Slot(e, 0))); state.Public {
		case flowfabric.Cancelled:
			return flowfabric.ErrCancelled
		case flowfabric.Expired:
			return flowfabric.ErrDeadline
		}
	}
	return nil
}
