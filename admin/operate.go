package admin

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// operator is the part of the engine behind the calls of this file. Each of them may be repeated.
type operator interface {
	ReplayExecution(ctx context.Context, id flowfabric.ExecutionID, q engine.Replay) (already bool, err error)
	ChangePriority(ctx context.Context, id flowfabric.ExecutionID, priority int) (old, now int, err error)
	SetDelay(ctx context.Context, id flowfabric.ExecutionID, q engine.DelayChange) (already bool, err error)
	RevokeLease(ctx context.Context, id flowfabric.ExecutionID, session string) (already bool, err error)
	SetTags(ctx context.Context, id flowfabric.ExecutionID, set map[string]string, remove []string) error
	ReadHistory(ctx context.Context, id flowfabric.ExecutionID) ([]flowfabric.Event, error)
	PurgeExecution(ctx context.Context, id flowfabric.ExecutionID, keep time.Duration) (already bool, err error)
	HoldExecution(ctx context.Context, id flowfabric.ExecutionID) (already bool, err error)
	UnholdExecution(ctx context.Context, id flowfabric.ExecutionID) (already bool, err error)
	ResumeExecution(ctx context.Context, id flowfabric.ExecutionID, q engine.ResumeRequest) (already bool, err error)
}

// maxHoldReason is the longest reason of a hold, in bytes.
const maxHoldReason = 256

// Replay says how [Admin.Replay] runs an execution again. The zero value keeps what was done and refuses a success.
type Replay struct {
	// FromScratch forgets the recorded steps and what waits were answered, so that the replay does all of it again.
	// Without it they are kept, and only what is missing runs. If a wait whose time was over ended the execution, it
	// asks again: the waitpoints that handler.Task.Pending had opened for it are opened again, and the steps that were
	// recorded since, which handed out the old link, run again.
	FromScratch bool `json:"from_scratch,omitempty" jsonschema:"replay only: forget the recorded steps"`
	// FromStep forgets the handler's step of this name and everything that was recorded after it: steps, answers of
	// waits, received messages. What was recorded before is kept. Steps that ran side by side count in the order in
	// which they were recorded.
	FromStep string `json:"from_step,omitempty" jsonschema:"replay only: forget this step and everything recorded after it"`
	// Force replays an execution that succeeded, too; without it that is refused. The old result stays stored with
	// its attempt.
	Force bool `json:"force,omitempty" jsonschema:"replay only: include successes"`
	// Request names the request, for a caller that repeats an unanswered call itself: as long as no other request was
	// applied, the same id replays the execution only once. Default a new id for every call, which makes the call's
	// own repeats harmless.
	Request flowfabric.UUID `json:"request,omitzero" jsonschema:"id of the request: a repeat with the same id replays once"`
}

// check refuses what contradicts itself, and names that no step has.
func (r Replay) check() error {
	switch {
	case r.FromScratch && r.FromStep != "":
		return fmt.Errorf("%w: FromScratch and FromStep %.40q exclude each other", flowfabric.ErrInvalidInput,
			r.FromStep)
	case len(r.FromStep) > limits.MaxStepName:
		return fmt.Errorf("%w: FromStep has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(r.FromStep),
			limits.MaxStepName)
	}
	return nil
}

func (r Replay) request() engine.Replay {
	if r.Request.IsZero() {
		r.Request = mint.UUID()
	}
	return engine.Replay{Request: r.Request, DropSteps: r.FromScratch, FromStep: r.FromStep, Force: r.Force}
}

// Replay runs an ended execution again under its id, at its old age and priority, in a new attempt of type replay.
// Retries and lost leases count from zero, a deadline gets its original span again, earlier attempts with their frames
// and results stay. From then on Result waits for the new end, and a tail goes on with the new attempt; waits and tails
// that saw the old end have ended with it. The reason is cut to 1 KiB.
//
// Errors: flowfabric.ErrState for one that has not ended, and for a success without how.Force; ErrNotFound for
// FromStep; ErrLimit at the cap of the execution's policy (10 unless its definition says handler.MaxReplays);
// ErrNotFound, also for a purged one; ErrInvalidInput for a By of more than 64 bytes. After ErrTransport it may have
// happened, see [Replay].
func (a *Admin) Replay(ctx context.Context, id flowfabric.ExecutionID, how Replay, opts ...flowfabric.ActOption) error {
	if err := a.admit("replay", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil {
		err = how.check()
	}
	if err == nil {
		_, err = a.store.ReplayExecution(act.Execution(ctx, "replay", id), id, how.request())
	}
	return link.Operated("replay", id, err)
}

// SetPriority gives an execution that has not ended another priority, 0..9000. One that waits moves within its
// queue and keeps its age; for any other it counts from the next time it waits.
//
// Errors: flowfabric.ErrInvalidInput outside of 0..9000, before any call; ErrTerminal, with the state, for one
// that has ended; ErrNotFound.
func (a *Admin) SetPriority(ctx context.Context, id flowfabric.ExecutionID, priority int,
	opts ...flowfabric.ActOption) error {
	if err := a.admit("set priority of", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if priority < 0 || priority > limits.MaxPriority {
		err = fmt.Errorf("%w: priority %d, want 0..%d", flowfabric.ErrInvalidInput, priority, limits.MaxPriority)
	}
	if err == nil {
		_, _, err = a.store.ChangePriority(act.Execution(ctx, "set priority", id, strconv.Itoa(priority)), id, priority)
	}
	return link.Operated("set priority of", id, err)
}

// SetDelay changes until when an execution waits that waits for a time: d from now by the server's clock, 0..10
// years, rounded up to whole milliseconds; 0 makes it claimable at once. That is a delayed start, a pause before a
// retry or after a lost worker, a delay that its handler asked for, or that of a resumption. A retry or reclaim after
// the pause counts as before, and a deadline goes on. It uses up no retry, and keeps its age and priority. One that
// can be claimed already is no error if d is 0. The reason is cut to 1 KiB; the history keeps it with who asked.
//
// A member of a flow whose upstreams are open waits for them, not for a time. Each call starts d again; the call's own
// repeats after a lost reply do not.
//
// Errors: flowfabric.ErrState, with the state, for one that runs, is suspended or held, waits for others, or can be
// claimed and d is not 0; ErrTerminal, with the state, for one that has ended; ErrNotFound; ErrInvalidInput.
func (a *Admin) SetDelay(ctx context.Context, id flowfabric.ExecutionID, d time.Duration,
	opts ...flowfabric.ActOption) error {
	if err := a.admit("set delay of", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil && (d < 0 || d > limits.MaxDelay) {
		err = fmt.Errorf("%w: delay %s, want 0..10 years", flowfabric.ErrInvalidInput, d)
	}
	if err == nil {
		_, err = a.store.SetDelay(act.Execution(ctx, "set delay", id, d.String()), id,
			engine.DelayChange{Delay: d})
	}
	return link.Operated("set delay of", id, err)
}

// Revoke takes an execution away from the worker that runs it, at once: its writes are refused, its handler's context
// ends with flowfabric.ErrLeaseLost, and the work is queued again as after a crash, which uses up no retry. It does not
// end the execution (client.Execution.Cancel does). The reason is cut to 1 KiB. Revoking what is revoked, or whose
// worker is dead, is no error.
//
// With a session (Snapshot.Session as Get showed it) it takes the work from that holder only; if another one has it,
// the answer is code stale_lease. With "" it takes the work from any holder. The work may be claimed again within a
// millisecond, also by the same worker; a second Revoke without a session then takes that claim (repeats of one call
// never do).
//
// Errors: ErrTerminal, with the state, for one that has ended; ErrState when nobody runs it; ErrNotFound.
func (a *Admin) Revoke(ctx context.Context, id flowfabric.ExecutionID, session string,
	opts ...flowfabric.ActOption) error {
	if err := a.admit("revoke", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil {
		_, err = a.store.RevokeLease(act.Execution(ctx, "revoke", id), id, session)
	}
	return link.Operated("revoke", id, err)
}

// SetTags sets and removes tags of an execution in any state, all of them or none. A key in both is removed. At most 64
// tags are left; keys and values are bounded as by flowfabric.Tags. A removed key that is not there is no error. A
// handler that runs already sees the old ones.
//
// Errors: flowfabric.ErrInvalidInput, ErrNotFound.
func (a *Admin) SetTags(ctx context.Context, id flowfabric.ExecutionID, set map[string]string, remove []string,
	opts ...flowfabric.ActOption) error {
	if err := a.admit("set tags of", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil {
		err = a.store.SetTags(act.Execution(ctx, "set tags", id, tagWords(set, remove)...), id, set, remove)
	}
	return link.Operated("set tags of", id, err)
}

// Hold keeps an execution that could be claimed, or that gates are being asked for, from being handed
// out until [Admin.Unhold]. It keeps its age and priority; a deadline goes on. Holding what is held is no error. The
// reason has at most 256 bytes.
//
// Errors: flowfabric.ErrState, with the state, for one that runs, waits for a time, a signal or others; ErrTerminal
// for one that has ended; ErrNotFound; ErrInvalidInput.
func (a *Admin) Hold(ctx context.Context, id flowfabric.ExecutionID, opts ...flowfabric.ActOption) error {
	if err := a.admit("hold", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil && len(act.Reason) > maxHoldReason {
		err = fmt.Errorf("%w: reason has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(act.Reason),
			maxHoldReason)
	}
	if err == nil {
		_, err = a.store.HoldExecution(act.Execution(ctx, "hold", id), id)
	}
	return link.Operated("hold", id, err)
}

// Unhold ends a [Admin.Hold]: the execution takes its old place among those that wait. One that waits already is no
// error. Errors: those of Hold.
func (a *Admin) Unhold(ctx context.Context, id flowfabric.ExecutionID, opts ...flowfabric.ActOption) error {
	if err := a.admit("unhold", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil {
		_, err = a.store.UnholdExecution(act.Execution(ctx, "unhold", id), id)
	}
	return link.Operated("unhold", id, err)
}

// Resume says how [Admin.Resume] lets a suspended execution go on. The zero value: at once, whatever it waits for.
type Resume struct {
	// Suspension resumes only if this is still the suspension (its ID as client.Execution.Suspension showed it);
	// otherwise flowfabric.ErrState. Default any.
	Suspension flowfabric.UUID `json:"suspension,omitzero" jsonschema:"resume only if it still is this suspension; default any"`
	// Delay keeps the execution back for up to 30 days before a worker may go on with it. Default 0.
	Delay flowfabric.Millis `json:"delay_ms,omitempty" jsonschema:"before a worker may go on with it, up to 30 days"`
	// Request names the request, for a caller that repeats an unanswered call itself: the same id resumes only once.
	// Default a new id for every call, which makes the call's own repeats harmless.
	Request flowfabric.UUID `json:"request,omitzero" jsonschema:"id of the request: a repeat with the same id resumes once"`
}

// Resume lets a suspended execution go on without a signal. Its handler's handler.Await returns
// flowfabric.ErrNoSignal, a handler.Task.Wait a Result with who and why; to give it an answer instead,
// client.Execution.Approve. It is done in somebody's name: without By the client's Creator resumes, 1..64 bytes, and
// without either it is refused.
//
// Errors: flowfabric.ErrState for one that is not suspended, and see [Resume]; ErrNotFound; ErrInvalidInput.
func (a *Admin) Resume(ctx context.Context, id flowfabric.ExecutionID, how Resume, opts ...flowfabric.ActOption) error {
	if err := a.admit("resume", id); err != nil {
		return err
	}
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, a.conn.Creator)
	err := link.CheckNamed(act.By, limits.MaxName)
	delay := time.Duration(how.Delay)
	if delay < 0 || delay > limits.MaxResumeDelay {
		err = fmt.Errorf("%w: resume delay %s, want 0..30 days", flowfabric.ErrInvalidInput, delay)
	}
	if how.Request.IsZero() {
		how.Request = mint.UUID()
	}
	if err == nil {
		_, err = a.store.ResumeExecution(act.Execution(ctx, "resume", id), id, engine.ResumeRequest{
			Request: how.Request, Suspension: how.Suspension, Delay: delay})
	}
	return link.Signalled("resume", id, err)
}

// Purge removes an ended execution with its input, results, steps, frames and history, for good. A tombstone is left
// for keep, 24 h to ten years, rounded down to whole milliseconds; 0 is 24 h. Until it is gone Get and Result answer
// flowfabric.ErrResultPurged. The execution's key is free at once. Purging twice is no error.
//
// History and Tail, too, answer ErrResultPurged while the tombstone is left. Calls that would change something
// (Cancel, Replay, Revoke, SetPriority, SetTags) answer ErrNotFound from the purge on, as does everything once the
// tombstone is gone.
//
// Errors: flowfabric.ErrState for one that has not ended, cancel it first; ErrNotFound; ErrInvalidInput.
func (a *Admin) Purge(ctx context.Context, id flowfabric.ExecutionID, keep time.Duration,
	opts ...flowfabric.ActOption) error {
	if err := a.admit("purge", id); err != nil {
		return err
	}
	keep = cmp.Or(keep, limits.MinTombstone)
	if keep < limits.MinTombstone || keep > limits.MaxTombstone {
		return link.Operated("purge", id,
			fmt.Errorf("%w: tombstone for %s, want 24h..10 years", flowfabric.ErrInvalidInput, keep))
	}
	act, err := a.act(opts)
	if err == nil {
		_, err = a.store.PurgeExecution(act.Execution(ctx, "purge", id), id, keep)
	}
	return link.Operated("purge", id, err)
}
