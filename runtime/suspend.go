package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// suspend makes the call of a handler that waits. It returns true when signals that came early suffice: the hold is
// kept and the handler runs again, told by resume. Else it leaves in outcome what is to be settled: that the attempt
// is suspended, or why not.
func (j *job) suspend(outcome *handler.Outcome, waits tasks.Waits, resume **suspend.Result) (again bool) {
	j.lines.flush()
	if err := j.frames.Flush(j.jobs.ctx); err != nil { // settling meets the same error, and knows what to do about it
		*outcome = handler.Outcome{Kind: codes.OutcomeAbandon, Err: err}
		return false
	}
	q := waits.Suspension()
	if q == nil {
		*outcome = refusedOutcome("suspend", errNothingToWaitFor)
		return false
	}
	return j.suspendOn(q, outcome, waits, resume)
}

// suspendOn is suspend for what the handler waits for, once its frames are stored.
func (j *job) suspendOn(q *engine.Suspension, outcome *handler.Outcome, waits tasks.Waits,
	resume **suspend.Result) (again bool) {
	reply, err := j.suspended(q, waits)
	if err == nil && reply.Events < limits.MaxHistory { // from then on it forgets the oldest for each new one
		j.near(limitHistory, reply.Events, limits.MaxHistory)
	}
	switch {
	case err == nil && reply.Satisfied:
		waits.Run().Resumed(reply.Resume)
		*resume = &reply.Resume
		j.jobs.metrics.goesOn(j.route.Kind, *resume)
		j.jobs.metrics.settle(j.route.Kind, "satisfied", "")
		return true
	case err == nil:
		j.jobs.seeds.Keyring.Use(j.held.Fence().Execution.Partition(), reply.Kid)
		*outcome = handler.Outcome{Kind: codes.OutcomeSuspend, Err: outcome.Err}
	case j.held.Check() != nil || keeper.NotOurs(err) || flowfabric.Retryable(err):
		*outcome = handler.Outcome{Kind: codes.OutcomeAbandon, Err: err}
	default:
		j.logger().Error("flowfabric: the server refuses to suspend; the attempt fails", "error", err)
		refused := refusedOutcome("suspend", err)
		refused.Failure.Category = causes.Suspend
		// Keys are configuration, which somebody may repair before the next attempt.
		refused.Failure.Permanent = !errors.Is(err, denied.NoTokenKeys) && !errors.Is(err, denied.KidNotCurrent)
		*outcome = refused
	}
	return false
}

// errNothingToWaitFor is the error of a middleware that makes up an outcome that waits.
var errNothingToWaitFor = fmt.Errorf("%w: the outcome does not say what to wait for; return the error of a wait",
	flowfabric.ErrInvalidInput)

// suspended makes the call until it is answered; again when the partition signs with another key of ours.
func (j *job) suspended(q *engine.Suspension, waits tasks.Waits) (reply engine.Suspended, err error) {
	mint := func(*engine.Suspension) error { return nil } // q comes minted
	err = j.jobs.seeds.Keyring.Signed(j.held.Fence().Execution.Partition(), func() error {
		if err := mint(q); err != nil {
			return err
		}
		mint = waits.Run().Remint
		return j.held.Persist(j.jobs.ctx, func(ctx context.Context) (err error) {
			return j.jobs.seeds.Known(ctx, func() error {
				reply, err = j.jobs.store.SuspendExecution(ctx, j.held.Fence(), *q)
				return err
			})
		})
	})
	return reply, err
}

// CreatePendingWaitpoint implements [waits.Opener] under the hold.
func (j *job) CreatePendingWaitpoint(ctx context.Context, f flowfabric.Fence, name string, m engine.Minted,
	life time.Duration) (opened engine.Opened, err error) {
	err = j.held.Persist(ctx, func(ctx context.Context) (err error) {
		return j.jobs.seeds.Known(ctx, func() error {
			opened, err = j.jobs.store.CreatePendingWaitpoint(ctx, f, name, m, life)
			return err
		})
	})
	return opened, err
}

// ExpectEvent implements [waits.Opener] under the hold.
func (j *job) ExpectEvent(ctx context.Context, x engine.Expectation) error {
	return j.held.Persist(ctx, func(ctx context.Context) error { return j.jobs.store.ExpectEvent(ctx, x) })
}

// CloseWaitpoint implements [waits.Opener] under the hold.
func (j *job) CloseWaitpoint(ctx context.Context, f flowfabric.Fence, id flowfabric.UUID) (already bool, err error) {
	err = j.held.Persist(ctx, func(ctx context.Context) (err error) {
		already, err = j.jobs.store.CloseWaitpoint(ctx, f, id)
		return err
	})
	return already, err
}

// ReadSuspension implements [waits.Opener] under the hold.
func (j *job) ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (r suspend.Record, err error) {
	err = j.held.Persist(ctx, func(ctx context.Context) (err error) {
		r, err = j.jobs.store.ReadSuspension(ctx, id)
		return err
	})
	return r, err
}

// ReceiveMessages implements [waits.Opener] under the hold.
func (j *job) ReceiveMessages(ctx context.Context, f flowfabric.Fence,
	q engine.Receiving) (r engine.Receipt, recorded bool, err error) {
	err = j.held.Persist(ctx, func(ctx context.Context) (err error) {
		r, recorded, err = j.jobs.store.ReceiveMessages(ctx, f, q)
		return err
	})
	if err == nil && recorded {
		size := 0
		for _, m := range r.Messages {
			size += len(m.Payload)
		}
		j.recorded(q.Name, size)
	}
	return r, recorded, err
}
