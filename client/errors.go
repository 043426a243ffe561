package client

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// ErrClosed is returned, wrapped, by every call on a client after [Client.Close], before anything else is looked at,
// and by waits and tails that Close ended.
var ErrClosed = errors.New("the client is closed")

// UnknownOutcomeError says that a create call was sent and not answered: the caller's context ended, or the
// server could not be reached for Config.SubmitTimeout. The execution may exist or still come into being under
// ID; [Execution.Get] tells, and submitting again with the same idempotency key is safe.
//
// A flow may have been released, be staged in part if it takes several calls, or not exist; [Client.Flow] of Flow
// tells. Submitting it again with the same flowfabric.Key completes it. Without a key nothing of a flow that was not
// released ever runs, and a tick gives it up a day after its last part came.
type UnknownOutcomeError struct {
	ID    flowfabric.ExecutionID // zero for a flow
	Flow  flowfabric.FlowID      // zero for an execution
	Cause error                  // wraps the context's error or flowfabric.ErrTransport
}

func (e *UnknownOutcomeError) Error() string {
	if e.Flow != (flowfabric.FlowID{}) {
		return fmt.Sprintf("submit flow %s: %v (the flow may exist under this id)", e.Flow, e.Cause)
	}
	return fmt.Sprintf("submit %s: %v (the submission may still happen under this id)", e.ID, e.Cause)
}

// Unwrap returns Cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Cause }

// ItemError is one failed input of [SubmitMany].
type ItemError struct {
	Index int // of the input
	Err   error
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Index, e.Err) }

// Unwrap returns Err.
func (e *ItemError) Unwrap() error { return e.Err }

// OutcomeError is returned by Result for an execution that ended without a result. It matches the sentinel of
// its outcome: flowfabric.ErrFailed, ErrCancelled, ErrExpired or ErrSkipped.
type OutcomeError struct {
	ID       flowfabric.ExecutionID
	State    flowfabric.PublicState // failed, cancelled, expired or skipped
	Category flowfabric.Category    // of the last failure; "" for none
	Reason   string                 // of the failure or the cancellation, ≤ 1 KiB; may be empty
	By       string                 // the person or token that cancelled it; "" if none was named
	Source   string                 // what kind of source cancelled it, see flowfabric.Snapshot.CancelSource
	Attempts uint32                 // attempts started
}

func newOutcomeError(s engine.Snapshot) *OutcomeError {
	e := &OutcomeError{ID: s.ID, State: s.State.Public, Category: s.Failure.Category, Reason: s.Failure.Message,
		Attempts: s.Attempts}
	if e.State == flowfabric.Cancelled {
		e.Reason, e.By, e.Source = s.CancelReason, s.CancelledBy, s.CancelSource
	}
	return e
}

func (e *OutcomeError) Error() string {
	text := fmt.Sprintf("execution %s %s after %d attempts", e.ID, e.State, e.Attempts)
	if e.Attempts == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	switch {
	case e.By != "":
		text += " (by " + e.By + ")"
	case e.Source != "" || e.Category != "":
		text += " (" + cmp.Or(e.Source, string(e.Category)) + ")"
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap returns the sentinel of the outcome.
func (e *OutcomeError) Unwrap() error {
	switch e.State {
	case flowfabric.Cancelled:
		return flowfabric.ErrCancelled
	case flowfabric.Expired:
		return flowfabric.ErrExpired
	case flowfabric.Skipped:
		return flowfabric.ErrSkipped
	}
	return flowfabric.ErrFailed
}
