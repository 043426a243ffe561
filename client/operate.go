package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// operator is the part of the engine behind the calls of this file. Each of them may be repeated.
type operator interface {
	ReplayExecution(ctx context.Context, id flowfabric.ExecutionID, q engine.Replay) (already bool, err error)
	ChangePriority(ctx context.Context, id flowfabric.ExecutionID, priority int, by string) (old, now int, err error)
	RevokeLease(ctx context.Context, id flowfabric.ExecutionID, session, by, reason string) (already bool, err error)
	SetTags(ctx context.Context, id flowfabric.ExecutionID, set map[string]string, remove []string) error
	ReadHistory(ctx context.Context, id flowfabric.ExecutionID) ([]engine.Event, error)
	PurgeExecution(ctx context.Context, id flowfabric.ExecutionID, keep time.Duration) (already bool, err error)
}

// Bounds of how long the tombstone of a purged execution stays.
const (
	MinTombstone = 24 * time.Hour
	MaxTombstone = 10 * 365 * 24 * time.Hour
)

// defaultBy is who asked when neither the call nor the configuration says so.
const defaultBy = "client"

// By names who asks, for the execution's history or a lane's record: client.By("anna"). At most 64 bytes. It is an option of
// Cancel, Replay, ChangePriority, Revoke, Pause, the calls that change a lane, a budget, a quota or what is attached, and Flow.Cancel; without it Config.Creator is named, or "client";
// a Cancel then names nobody.
type By string

// CancelOption changes a [Client.Cancel]: [By].
type CancelOption interface{ cancel(by *string) }

func (b By) cancel(by *string)            { *by = string(b) }
func (b By) replay(q *engine.Replay)      { q.By = string(b) }
func (b By) replayFlow(q *flowReplaying)  { q.By = string(b) }
func (b By) cancelFlow(q *flowCancelling) { q.by = string(b) }
func (b By) revoke(q *revocation)         { q.by = string(b) }
func (b By) reprioritise(by *string)      { *by = string(b) }
func (b By) lane(q *laneCall)             { q.by = string(b) }

// ReplayOption changes a [Client.Replay] or a [Flow.Replay]: [By], [Reason], [FromScratch], [Force], [ReplayRequest].
type ReplayOption interface {
	FlowReplayOption
	replay(q *engine.Replay)
}

type replayFunc func(*engine.Replay)

func (f replayFunc) replay(q *engine.Replay)     { f(q) }
func (f replayFunc) replayFlow(q *flowReplaying) { f(&q.Replay) }

// ReasonOption is [Reason], an option of [Client.Replay], [Flow.Replay], [Flow.Cancel] and [Client.Resume].
type ReasonOption interface {
	ReplayOption
	ResumeOption
	FlowCancelOption
}

type reason string

func (r reason) replay(q *engine.Replay)        { q.Reason = string(r) }
func (r reason) replayFlow(q *flowReplaying)    { q.Reason = string(r) }
func (r reason) cancelFlow(q *flowCancelling)   { q.reason = string(r) }
func (r reason) resume(q *engine.ResumeRequest) { q.Reason = string(r) }

// Reason is why the execution is replayed or resumed, or the flow cancelled, for its history; cut to 1 KiB.
func Reason(text string) ReasonOption { return reason(text) }

// FromScratch forgets the recorded steps and what waits were answered, so that the replay does all of it again. Without it
// they are kept, and only what is missing runs: links that a step handed out before a wait timed out are dead then, see
// [Client.ReissueToken].
func FromScratch() ReplayOption {
	return replayFunc(func(q *engine.Replay) { q.DropSteps = true })
}

// ForceOption is [Force], an option of [Client.Replay] and [Client.RotateTokenKeys].
type ForceOption interface {
	ReplayOption
	RotateOption
}

type forced struct{}

func (forced) replay(q *engine.Replay)     { q.Force = true }
func (forced) replayFlow(q *flowReplaying) { q.Force = true }
func (forced) rotate(force *bool)          { *force = true }

// Force replays an execution that succeeded, too; without it that is refused. The old result stays stored with its
// attempt. Of a key rotation: it is made although tokens of open waitpoints then end before they are needed.
func Force() ForceOption { return forced{} }

// ReplayRequest names the request, for a caller that repeats an unanswered [Client.Replay] itself: as long as no other
// request was applied, the same id replays the execution only once. Default a new id for every call, which makes the
// client's own repeats harmless.
func ReplayRequest(id uuid.UUID) ReplayOption {
	return replayFunc(func(q *engine.Replay) { q.Request = id })
}

// Replay runs an ended execution again under its id, at its old age and priority, in a new attempt of type replay.
// Retries and lost leases count from zero, a deadline gets its original span again, earlier attempts with their frames
// and results stay. From then on Result waits for the new end, and a tail goes on with the new attempt; waits and tails
// that saw the old end have ended with it.
//
// Errors: flowfabric.ErrNotTerminal; ErrReplayNotAllowed for a success without [Force]; ErrReplaysExhausted at the cap
// of the execution's policy (10 unless its definition says handler.MaxReplays); ErrNotFound, also for a purged one; ErrInvalidInput for a By of more than 64 bytes.
// After ErrTransport it may have happened, see [ReplayRequest]. Spec 10 §4.20.
func (c *Client) Replay(ctx context.Context, id flowfabric.ExecutionID, opts ...ReplayOption) error {
	q := engine.Replay{Request: uuid.New(), By: c.by()}
	for _, o := range opts {
		o.replay(&q)
	}
	if err := c.admit("replay", id); err != nil {
		return err
	}
	err := validateBy(q.By)
	if err == nil {
		_, err = c.store.ReplayExecution(ctx, id, q)
	}
	return link.Operated("replay", id, err)
}

// PriorityOption changes a [Client.ChangePriority]: [By].
type PriorityOption interface{ reprioritise(by *string) }

// ChangePriority gives an execution that has not ended another priority, 0..9000. One that waits moves within its
// queue and keeps its age; for any other it counts from the next time it waits.
//
// Errors: flowfabric.ErrInvalidInput outside of 0..9000, before any call; ErrTerminal, with the state, for one
// that has ended; ErrNotFound. Spec 10 §4.12.
func (c *Client) ChangePriority(ctx context.Context, id flowfabric.ExecutionID, priority int, opts ...PriorityOption) error {
	by := c.by()
	for _, o := range opts {
		o.reprioritise(&by)
	}
	if err := c.admit("change priority of", id); err != nil {
		return err
	}
	err := validateBy(by)
	if priority < 0 || priority > flowfabric.MaxPriority {
		err = fmt.Errorf("%w: priority %d, want 0..%d", flowfabric.ErrInvalidInput, priority, flowfabric.MaxPriority)
	}
	if err == nil {
		_, _, err = c.store.ChangePriority(ctx, id, priority, by)
	}
	return link.Operated("change priority of", id, err)
}

type revocation struct{ session, by string }

// RevokeOption changes a [Client.Revoke]: [By], [HeldBy].
type RevokeOption interface{ revoke(q *revocation) }

type revokeFunc func(*revocation)

func (f revokeFunc) revoke(q *revocation) { f(q) }

// HeldBy revokes only if this session is still the holder (engine.Snapshot.Session as Get showed it); otherwise
// Revoke answers flowfabric.ErrStaleLease and takes nothing from anybody.
func HeldBy(session string) RevokeOption {
	return revokeFunc(func(q *revocation) { q.session = session })
}

// Revoke takes an execution away from the worker that runs it, at once: its writes are refused, its handler's context
// ends with flowfabric.ErrLeaseLost, and the work is queued again as after a crash, which uses up no retry. It does not
// end the execution ([Client.Cancel] does). reason is cut to 1 KiB. Revoking what is revoked, or whose worker is dead, is
// no error. The work may be claimed again within a millisecond, also by the same worker; a second Revoke then takes that
// claim (repeats of one call never do).
//
// Errors: ErrTerminal, with the state, for one that has ended; ErrNotActive when nobody runs it; ErrStaleLease, see
// [HeldBy]; ErrNotFound. Spec 10 §4.16.
func (c *Client) Revoke(ctx context.Context, id flowfabric.ExecutionID, reason string, opts ...RevokeOption) error {
	q := revocation{by: c.by()}
	for _, o := range opts {
		o.revoke(&q)
	}
	if err := c.admit("revoke", id); err != nil {
		return err
	}
	err := validateBy(q.by)
	if err == nil {
		_, err = c.store.RevokeLease(ctx, id, q.session, q.by, reason)
	}
	return link.Operated("revoke", id, err)
}

// SetTags sets and removes tags of an execution in any state, all of them or none. A key in both is removed. At most 64
// tags are left; keys and values are bounded as by [Tags]. A removed key that is not there is no error. A handler that runs already
// sees the old ones, and the history has no line about tags.
//
// Errors: flowfabric.ErrInvalidTagKey, ErrInvalidInput, ErrNotFound.
func (c *Client) SetTags(ctx context.Context, id flowfabric.ExecutionID, set map[string]string, remove ...string) error {
	if err := c.admit("set tags of", id); err != nil {
		return err
	}
	return link.Operated("set tags of", id, c.store.SetTags(ctx, id, set, remove))
}

// History tells what happened to an execution, oldest first: its creation, every attempt, its end, and what was out of
// the ordinary (delays, hand-backs, revocations, changed priorities, replays), of which the newest 1,000 are kept.
// Each event prints as one line. Errors: flowfabric.ErrNotFound; ErrResultPurged after a purge.
func (c *Client) History(ctx context.Context, id flowfabric.ExecutionID) ([]engine.Event, error) {
	if err := c.admit("history of", id); err != nil {
		return nil, err
	}
	events, err := c.store.ReadHistory(ctx, id)
	if err != nil {
		return nil, link.Operated("history of", id, err)
	}
	return events, nil
}

// PurgeOption changes a [Client.Purge]: [Tombstone].
type PurgeOption func(keep *time.Duration)

// Tombstone is how long a purged execution's id and idempotency key stay taken: 24 h (default) to ten years, rounded
// down to whole milliseconds.
func Tombstone(keep time.Duration) PurgeOption {
	return func(k *time.Duration) { *k = keep }
}

// Purge removes an ended execution with its input, results, steps, frames and history, for good. A tombstone is left
// for a day, see [Tombstone]: until it is gone Get and Result answer flowfabric.ErrResultPurged, a Submit with the
// same idempotency key and payload is a duplicate of the purged execution, and one with another payload
// ErrIdempotencyConflict. Purging twice is no error.
//
// History and Tail, too, answer ErrResultPurged while the tombstone is left. Calls that would change something, Cancel,
// Replay, Revoke, ChangePriority and SetTags, answer ErrNotFound from the purge on, as does everything once the tombstone
// is gone.
//
// Errors: flowfabric.ErrNotTerminal for one that has not ended, cancel it first; ErrNotFound; ErrInvalidInput. Design §9.
func (c *Client) Purge(ctx context.Context, id flowfabric.ExecutionID, opts ...PurgeOption) error {
	if err := c.admit("purge", id); err != nil {
		return err
	}
	keep := MinTombstone
	for _, o := range opts {
		o(&keep)
	}
	if keep < MinTombstone || keep > MaxTombstone {
		return link.Operated("purge", id, fmt.Errorf("%w: tombstone for %s, want 24h..10 years", flowfabric.ErrInvalidInput, keep))
	}
	_, err := c.store.PurgeExecution(ctx, id, keep)
	return link.Operated("purge", id, err)
}

func (c *Client) by() string { return cmp.Or(c.cfg.Creator, defaultBy) }

func validateBy(by string) error {
	if len(by) > flowfabric.MaxName {
		return fmt.Errorf("%w: By has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(by), flowfabric.MaxName)
	}
	return nil
}
