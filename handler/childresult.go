package handler

import (
	"context"
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// outcomeErrors are what the ends without a result are as errors.
var outcomeErrors = map[flowfabric.PublicState]error{flowfabric.Failed: flowfabric.ErrFailed,
	flowfabric.Cancelled: flowfabric.ErrCancelled, flowfabric.Expired: flowfabric.ErrExpired,
	flowfabric.Skipped: flowfabric.ErrSkipped, "": denied.NotTerminal}

// ChildOutcome is how a child had ended when its wait was over: completed, failed, cancelled, expired or skipped; empty
// for one that had not ended, also if flow.CancelRemaining cancels it then, and while the wait is not over. It stays
// so in every run, whatever became of the child since.
func ChildOutcome[Out any](t *Task, child *flow.ChildNode[Out]) flowfabric.PublicState {
	o, _, _ := t.kids.outcome(child.Plan().Wait, child.ID(t), child.Name())
	return o.Outcome
}

// ChildResult is the result of a child that completed, read from the server and decoded; one that completed with
// nothing gives the zero value. Call it when the wait is over: [Task.WaitChildren] or [Task.WaitChildrenOr] has
// returned nil, or flowfabric.ErrWaitTimeout.
//
// Errors: a *flow.ChildError for a child that has none. The next attempt would be told the same, so a handler that
// returns it fails for good, with category child_failed. ErrInvalidInput before the wait, or for a child that was not
// part of the set when it was waited for; a permanent failure of category extractor_payload_decode; ErrTransport.
func ChildResult[Out any](ctx context.Context, t *Task, child *flow.ChildNode[Out]) (Out, error) {
	var zero Out
	p, name := child.Plan(), child.Name()
	o, over, known := t.kids.outcome(p.Wait, child.ID(t), name)
	id := o.ID
	switch {
	case !over:
		return zero, fmt.Errorf("child %s of %s: %w: ask for results when the wait is over", name, p.Wait,
			flowfabric.ErrInvalidInput)
	case !known:
		return zero, Permanent(fmt.Errorf(
			"child %s of %s: %w: it was not there when the wait began; names stand for the same children in every run",
			name, p.Wait, flowfabric.ErrInvalidInput))
	case o.Outcome != flowfabric.Completed:
		err := &flow.ChildError{Wait: p.Wait, Name: name, ID: id, State: o.Outcome, Err: outcomeErrors[o.Outcome]}
		if o.Gone {
			err.Err = flowfabric.ErrNotFound
		}
		return zero, Category(causes.Child, Permanent(err))
	}
	raw, err := t.readResult(ctx, id, uint32(o.Attempt))
	if err == nil && raw == nil && p.Other { // it completed with nothing, unless it was purged since
		_, err = t.checkOthers(ctx, []flowfabric.ExecutionID{id})
	}
	switch {
	case errors.Is(err, flowfabric.ErrResultPurged) || errors.Is(err, flowfabric.ErrNotFound):
		err = &flow.ChildError{Wait: p.Wait, Name: name, ID: id, State: o.Outcome, Err: flowfabric.ErrResultPurged}
		return zero, Category(causes.Child, Permanent(err))
	case err != nil:
		return zero, fmt.Errorf("child %s of %s: %w", name, p.Wait, err)
	}
	var value Out
	if raw, err = t.cfg.Box.Open(raw); err == nil {
		value, err = p.Decode(raw)
	}
	if err != nil {
		return zero, fmt.Errorf("child %s of %s: %w", name, p.Wait, undecodable(err))
	}
	return value, nil
}
