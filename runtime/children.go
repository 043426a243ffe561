package runtime

import (
	"context"
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// children makes the calls of a handler that waits for children: they are made, and the execution is suspended. It
// returns true when the wait is over already: the hold is kept and the handler runs again, told by resume. Else it
// leaves in outcome what is to be settled: that the attempt waits, or why not.
func (j *job) children(outcome *handler.Outcome, waits tasks.Waits, resume **suspend.Result) (again bool) {
	j.lines.flush()
	if err := j.frames.Flush(j.jobs.ctx); err != nil { // as in suspend
		*outcome = handler.Outcome{Kind: codes.OutcomeAbandon, Err: err}
		return false
	}
	q := waits.Children()
	if q == nil || q.Until == nil {
		*outcome = refusedOutcome("wait for children", errNothingToWaitFor)
		return false
	}
	made, err := j.made(*q)
	if err == nil && len(q.Others) > 0 && !made.Over {
		err = j.held.Persist(j.jobs.ctx, func(ctx context.Context) error {
			return j.jobs.store.WaitForOthers(ctx, j.held.Fence(), *q)
		})
	}
	switch {
	case err == nil && made.Over:
		waits.Answered(q.Name, made.Outcomes)
		*resume = nil
		j.jobs.metrics.settle(j.route.Kind, "satisfied", "")
		return true
	case err == nil:
		return j.suspendOn(q.Until, outcome, waits, resume) && j.outcomes(outcome, waits, q.Name)
	case errors.Is(err, denied.FlowCancelled): // whatever its policy says of those that run: it lets nobody wait
		*outcome = handler.Outcome{Kind: codes.OutcomeCancel, Reason: "wait for children: the flow was cancelled",
			Err: err}
	case turnedAway(err): // by what an operator may change
		*outcome = refusedOutcome("wait for children", err)
		outcome.Failure.Category, outcome.Failure.Permanent = causes.Suspend, false
	case j.held.Check() != nil || keeper.NotOurs(err) || flowfabric.Retryable(err):
		*outcome = handler.Outcome{Kind: codes.OutcomeAbandon, Err: err}
	default:
		j.logger().Error("flowfabric: the server refuses to wait for children; the attempt fails", "error", err)
		refused := refusedOutcome("wait for children", err)
		refused.Failure.Category = causes.Suspend
		if errors.Is(err, denied.Idempotency) {
			refused.Failure.Reason += " (a child was made before with another input: inputs must be the same in every run, compute them in a step)"
		}
		*outcome = refused
	}
	return false
}

// outcomes asks how the children of a wait were that a suspension ended at once. It returns false when nobody answers.
func (j *job) outcomes(outcome *handler.Outcome, waits tasks.Waits, name string) bool {
	made, err := j.made(engine.ChildWait{Name: name, Mode: engine.WaitAll})
	if err == nil && !made.Over {
		err = fmt.Errorf("%w: the wait for children %s is over and has no outcomes", flowfabric.ErrNotFound, name)
	}
	if err != nil {
		*outcome = handler.Outcome{Kind: codes.OutcomeAbandon, Err: err}
		return false
	}
	waits.Answered(name, made.Outcomes)
	return true
}

// made makes the children, a batch a call, each until it is answered; without any it asks for what was recorded.
func (j *job) made(q engine.ChildWait) (made engine.MadeChildren, err error) {
	batches := engine.Batches(q.Children)
	if len(batches) == 0 {
		batches = [][]engine.FlowMember{nil}
	}
	for _, batch := range batches {
		call, refused := q, error(nil)
		call.Children = batch
		err = j.held.Persist(j.jobs.ctx, func(ctx context.Context) (err error) {
			if made, err = j.jobs.store.MakeChildren(ctx, j.held.Fence(), call); turnedAway(err) {
				refused, err = err, nil // an answer: to hold on until it changes would take a slot
			}
			return err
		})
		if err = errors.Join(err, refused); err != nil || made.Over {
			return made, err
		}
	}
	return made, nil
}

// turnedAway reports that children were refused for a reason that may pass.
func turnedAway(err error) bool {
	return errors.Is(err, flowfabric.ErrLaneClosed) || errors.Is(err, denied.TooManyRoutes)
}
