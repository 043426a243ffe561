package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// ReplayExecution runs an ended execution again (lua/execution/ff_replay_execution.lua): it waits at its old age and
// priority, and its next claim makes an attempt of type replay. Retries and reclaims count from zero; epochs, attempts,
// frames and results stay; the deadline gets its original span again. already: this request was applied before,
// whatever became of it since. denied.NotTerminal; denied.NoStep (slot 0: FromStep); denied.ReplayNotAllowed for a
// success that is not forced; denied.ReplaysExhausted at the policy's cap; ErrNotFound also for what is being purged.
func (e *Engine) ReplayExecution(ctx context.Context, id flowfabric.ExecutionID, q Replay) (already bool, err error) {
	if q.Request.IsZero() {
		q.Request = mint.UUID()
	}
	return e.settled(ctx, id.Partition(), wire.ReplayExecution{ID: ids.UUID(id).String(), Request: q.Request.String(),
		Steps: q.steps(), Force: q.Force})
}

// RewindExecution has an execution in any state go on again from a recorded step on
// (lua/execution/ff_rewind_execution.lua): the step and all that was recorded after it are forgotten, and the next
// claim makes an attempt of type replay. denied.NoStep; denied.OtherAttempt (slot 0: the one that it is in);
// denied.ReplaysExhausted; denied.FlowCancelled; denied.StepLimit for a message that has no room; ErrNotFound.
func (e *Engine) RewindExecution(ctx context.Context, id flowfabric.ExecutionID, q Rewind) (Rewound, error) {
	if q.Request.IsZero() {
		q.Request = mint.UUID()
	}
	payload, err := e.seal("ff_rewind_execution", q.Message)
	if err != nil {
		return Rewound{}, err
	}
	r, already, err := ask[wire.RewindExecutionReply](ctx, e, id.Partition(), wire.RewindExecution{
		ID: ids.UUID(id).String(), Request: q.Request.String(), Step: q.Step, Attempt: int(q.Attempt),
		Encoding: q.Encoding, Payload: rueidis.BinaryString(payload)})
	out := Rewound{Attempt: uint32(r.Attempt), Already: already}
	for _, name := range r.Steps {
		if !strings.HasPrefix(name, unit) {
			out.Dropped = append(out.Dropped, name)
		}
	}
	return out, err
}

// ChangePriority gives an execution that has not ended another priority, clamped to 0..9000
// (lua/execution/ff_change_priority.lua). One that waits moves within its queue and keeps its age. old and now
// are the priorities before and after. denied.NotActive for one that has ended.
func (e *Engine) ChangePriority(ctx context.Context, id flowfabric.ExecutionID,
	priority int) (old, now int, err error) {
	r, _, err := ask[wire.ChangePriorityReply](ctx, e, id.Partition(),
		wire.ChangePriority{ID: ids.UUID(id).String(), Priority: priority})
	return r.Old, r.New, err
}

// DelayChange says until when an execution waits that waits for a time.
type DelayChange struct {
	Delay   time.Duration   // from now, rounded up to whole ms; 0 = claimable at once
	Request flowfabric.UUID // the same one is applied once; default a new one

	service string // only one that waits for its turn there
}

// SetDelay changes until when an execution waits: a delayed start, a pause before a retry or a reclaim, a delay of
// its handler or of a resumption (lua/execution/ff_set_delay.lua). already: the request was applied before, or with
// no delay it is claimable. denied.NotEligible: it is in another state; denied.NotActive: it has ended; ErrNotFound.
func (e *Engine) SetDelay(ctx context.Context, id flowfabric.ExecutionID, q DelayChange) (already bool, err error) {
	if q.Request.IsZero() {
		q.Request = mint.UUID()
	}
	return e.settled(ctx, id.Partition(), wire.SetDelay{ID: ids.UUID(id).String(),
		Delay: q.Delay + time.Millisecond - 1, Request: q.Request.String(), Reason: q.service})
}

// SetTags sets and removes tags of an execution in any state, all of them or none (lua/execution/ff_set_tags.lua).
// A key in both is removed. denied.TagKey, ErrInvalidInput for a value over 256 bytes or more than 64 tags.
func (e *Engine) SetTags(ctx context.Context, id flowfabric.ExecutionID, set map[string]string, remove []string) error {
	return e.setTags(ctx, id, wire.SetTags{Of: "execution", Sets: set, Removals: remove})
}

// setTags makes a call that changes the tags of an execution or a flow.
func (e *Engine) setTags(ctx context.Context, id flowfabric.ExecutionID, q wire.SetTags) error {
	q.ID = ids.UUID(id).String()
	if err := valid.Tags(q.Sets); err != nil {
		return fmt.Errorf("%s: %w", q.Function(), err)
	}
	if len(q.Removals) > limits.MaxTags {
		return fmt.Errorf("%s: %w: %d tags to remove, want at most %d", q.Function(), flowfabric.ErrInvalidInput,
			len(q.Removals), limits.MaxTags)
	}
	_, err := e.settled(ctx, id.Partition(), q)
	return err
}

// PurgeExecution removes an ended execution with everything that belongs to it (lua/execution/ff_purge_execution.lua).
// A tombstone keeps its id taken for keep, 24 h to ten years (0: 24 h). already: it was purged
// before. denied.NotTerminal, ErrNotFound.
func (e *Engine) PurgeExecution(ctx context.Context, id flowfabric.ExecutionID,
	keep time.Duration) (already bool, err error) {
	q := wire.PurgeExecution{ID: ids.UUID(id).String(), Keep: cmp.Or(keep, 24*time.Hour)}
	for {
		r, already, err := ask[wire.PurgeExecutionReply](ctx, e, id.Partition(), q)
		if err != nil || already || !r.More {
			return already, err
		}
	}
}

// RevokeLease takes an execution away from its holder at once (lua/worker/ff_revoke_lease.lua): the holder's writes are
// refused with denied.LeaseRevoked and its handler's context ends, and the tick requeues the work as lost, which counts
// as a reclaim. With a session only that session's lease is taken, else denied.StaleLease. The call's own repeats never
// take the next holder's lease. already: it is revoked or its session is dead. denied.NotActive when nobody holds it.
func (e *Engine) RevokeLease(ctx context.Context, id flowfabric.ExecutionID,
	session string) (already bool, err error) {
	return e.settled(ctx, id.Partition(), wire.RevokeLease{ID: ids.UUID(id).String(), Session: session,
		Request: uuid.NewString()})
}

// MarkSessionDead declares a session dead before it expires (lua/worker/ff_mark_dead.lua): the tick requeues what it
// holds. Why and by whom, as the note of ctx says, is kept in 256 bytes. already: it was dead. denied.NoSession.
func (e *Engine) MarkSessionDead(ctx context.Context, partition uint16, session string) (already bool, err error) {
	return e.markDead(ctx, partition, wire.MarkDead{What: "session", Name: session})
}

// markDead is lua/worker/ff_mark_dead.lua.
func (e *Engine) markDead(ctx context.Context, partition uint16, q wire.MarkDead) (already bool, err error) {
	return e.settled(ctx, partition, q)
}

// UpdateProgress stores how far the holder got (lua/execution/ff_update_progress.lua): percent 0..100 (-1 keeps the
// last), message ≤ 1 KiB ("" keeps the last). It belongs to the attempt. Errors of a fenced call; ErrInvalidInput for
// a longer message, which is not cut.
func (e *Engine) UpdateProgress(ctx context.Context, f flowfabric.Fence, percent int, message string) error {
	if len(message) <= limits.MaxReason { // a longer one is refused
		message = e.cfg.Box.SealText(message, limits.MaxReason)
	}
	q := wire.UpdateProgress{Fence: fenceOf(f), Message: message}
	if percent >= 0 {
		q.Percent = &percent
	}
	_, err := e.settled(ctx, f.Execution.Partition(), q)
	return err
}

// ForwardRing rings one other waiter for each ready route of a subscription: this instance was rung and has no slot
// free (lua/worker/ff_forward_ring.lua).
func (e *Engine) ForwardRing(ctx context.Context, partition uint16, subscription string) (heard int, err error) {
	r, _, err := ask[wire.ForwardRingReply](ctx, e, partition, wire.ForwardRing{Subscription: subscription})
	return r.Heard, err
}

// FreezePartition refuses every call to a partition with ErrPartitionFrozen until ThawPartition, so that its slot can
// be moved key by key (lua/system/ff_freeze_partition.lua). Leases go on running out: a freeze that is shorter than
// the shortest lease loses none. Why and by whom, as the note of ctx says, is kept in 256 bytes. Freezing twice is no
// error.
func (e *Engine) FreezePartition(ctx context.Context, partition uint16) error {
	_, err := e.settled(ctx, partition, wire.FreezePartition{Frozen: true})
	return err
}

// ThawPartition ends a freeze. Thawing a partition that is not frozen is no error.
func (e *Engine) ThawPartition(ctx context.Context, partition uint16) error {
	_, err := e.settled(ctx, partition, wire.FreezePartition{})
	return err
}

// ReadHistory returns what happened to an execution, oldest first (lua/read/ff_read_history.lua): creation, ended
// attempts, and what was out of the ordinary. Of the latter the newest 1,000 are kept. ErrNotFound; ErrResultPurged
// while a tombstone is left.
func (e *Engine) ReadHistory(ctx context.Context, id flowfabric.ExecutionID) ([]flowfabric.Event, error) {
	r, err := e.call(ctx, functionOf["ff_read_history"], id.Partition(), protocol, ids.UUID(id).String())
	if err != nil {
		return nil, err
	}
	core, attempts := r.Pairs(), r.Pairs()
	entries := make([]string, 0, 8)
	for range r.Count(1) {
		entries = append(entries, r.Text())
	}
	if r.Err != nil {
		return nil, r.fail()
	}
	events := timeline.Read(core, attempts, entries, &r.Reader)
	for i := range events {
		events[i].Reason = e.text(events[i].Reason)
	}
	return events, r.fail()
}
