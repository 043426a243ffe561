package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// CreatePendingWaitpoint opens a waitpoint while the attempt goes on, for 1 s to 7 days, so that its token can be
// handed out before the attempt suspends; signals are buffered (lua/suspend/ff_create_pending_waitpoint.lua). With a
// name (≤ 128 bytes) it is kept as a step: a later call under that name, in any attempt, gets the same waitpoint,
// whatever identity was minted for it. denied.WaitpointLimit beyond 64 open ones; ErrNoTokenKeys,
// denied.KidNotCurrent (slot 0: the current kid).
func (e *Engine) CreatePendingWaitpoint(ctx context.Context, f flowfabric.Fence, name string, m Minted,
	life time.Duration) (Opened, error) {
	args := append(fenceArgs([]string{protocol}, f), name, m.ID.String(), m.Key, m.Kid, m.Digest, m.Nonce,
		strconv.FormatInt(life.Milliseconds(), 10))
	r, err := e.call(ctx, fnPend, f.Execution.Partition(), args...)
	if err != nil {
		return Opened{}, err
	}
	out := Opened{ID: r.uuid(), Key: r.Text(), Kid: r.Text(), Nonce: r.Text(), ExpiresAt: r.Instant()}
	return out, r.fail()
}

// CloseWaitpoint takes a pending waitpoint back (lua/suspend/ff_close_waitpoint.lua). already: it was closed or has
// expired. denied.NoWaitpoint; denied.WaitpointNotPending for one that a suspension waits on.
func (e *Engine) CloseWaitpoint(ctx context.Context, f flowfabric.Fence, id uuid.UUID) (already bool, err error) {
	return e.settled(ctx, f.Execution.Partition(), wire.CloseWaitpoint{Fence: fenceOf(f), Waitpoint: id.String()})
}

// SuspendExecution gives up the lease until a condition is met (lua/suspend/ff_suspend_execution.lua). The attempt
// stays and its timeout stands still. When signals that came early suffice, nothing is given up (Satisfied). A repeat
// after a lost reply answers the same, also with other minted waitpoints if it carries the same Request.
//
// Errors: denied.Condition; denied.NoWaitpoint, denied.WaitpointNotPending, denied.WaitpointExpired,
// denied.WaitpointKey for a binding (slot 0: its key); denied.StepLimit when the answer of the wait before cannot be
// kept; denied.KidNotCurrent (slot 0: the current kid).
func (e *Engine) SuspendExecution(ctx context.Context, f flowfabric.Fence, q Suspension) (Suspended, error) {
	timeout := ""
	if q.Timeout > 0 {
		timeout = strconv.FormatInt(max(1, q.Timeout.Milliseconds()), 10)
	}
	args := append(fenceArgs([]string{protocol}, f), q.ID.String(), q.Request, q.Name, q.Reason, timeout, q.Behaviour,
		strconv.FormatInt(q.ResumeDelay.Milliseconds(), 10), q.Condition, q.Question, strconv.Itoa(len(q.Bindings)))
	for _, b := range q.Bindings {
		if b.Pending {
			args = append(args, b.ID.String(), b.Key, "p", "", "", "")
		} else {
			args = append(args, b.ID.String(), b.Key, "f", b.Kid, b.Digest, b.Nonce)
		}
	}
	r, err := e.call(ctx, fnSuspend, f.Execution.Partition(), args...)
	if err != nil {
		return Suspended{}, err
	}
	out := Suspended{Already: r.Already}
	switch what := r.Text(); what {
	case "satisfied":
		out.Satisfied = true
	case "suspended":
	default:
		r.Stop("suspended is %q", clip(what))
	}
	out.Suspension, out.TimeoutAt = r.uuid(), r.Instant()
	outcome := r.bytes()
	out.Kid = r.Text()
	for range r.Count(4) {
		out.Waitpoints = append(out.Waitpoints, Opened{ID: r.uuid(), Key: r.Text(), Kid: r.Text(), Nonce: r.Text()})
	}
	if out.Satisfied && r.Err == nil {
		if out.Resume, err = DecodeResume(outcome); err != nil {
			r.Stop("%w", err)
		}
	}
	return out, r.fail()
}

// ResumeRequest asks to resume a suspended execution without a signal.
type ResumeRequest struct {
	Request    uuid.UUID     // makes a repeat harmless; nil mints one
	Suspension uuid.UUID     // only if this is the current one; nil: whichever is
	Auto       bool          // a policy asks, not an operator
	By         string        // who asks, 1..64 bytes
	Reason     string        // ≤ 1 KiB
	Delay      time.Duration // 0..30 days until it may be claimed
}

// ResumeExecution resumes a suspended execution on the word of an operator or a policy
// (lua/suspend/ff_resume_execution.lua). already: this request was applied before. denied.NotSuspended (slot 0: its
// code), denied.SuspensionChanged (slot 0: the current one), ErrNotFound.
func (e *Engine) ResumeExecution(ctx context.Context, id flowfabric.ExecutionID,
	q ResumeRequest) (already bool, err error) {
	call := wire.ResumeExecution{ID: id.UUID().String(), Trigger: "operator", By: q.By,
		Reason: cut(q.Reason, limits.MaxReason), Delay: q.Delay}
	if q.Suspension != uuid.Nil {
		call.Suspension = q.Suspension.String()
	}
	if q.Auto {
		call.Trigger = "auto_resume"
	}
	if q.Request == uuid.Nil {
		q.Request = uuid.New()
	}
	call.Request = q.Request.String()
	return e.settled(ctx, id.Partition(), call)
}

// DeliverSignal brings a signal to a waitpoint for whoever holds its token, of which digest is the SHA-256 in 64 hex
// digits (lua/suspend/ff_deliver_signal.lua). Whatever else there is or is not, a wrong token is ErrInvalidToken.
// Then: ErrTokenExpired, denied.NotSignalable (slot 0: the code), ErrWaitpointClosed (slots: reason, when),
// denied.SignalLimit. A repeat of the same signal or key is answered like the first.
func (e *Engine) DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID, digest string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	return e.deliver(ctx, fnDeliver, id, s, waitpoint.String(), digest)
}

// ApproveWaitpoint delivers on the word of an operator, without a token (lua/suspend/ff_approve_waitpoint.lua).
// waitpoint is the id or the key of one; s.Source says who, and is mandatory. Otherwise it is DeliverSignal;
// denied.NoWaitpoint.
func (e *Engine) ApproveWaitpoint(ctx context.Context, id flowfabric.ExecutionID, waitpoint string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	s.SourceType = waithook.SourceOperator
	return e.deliver(ctx, fnApprove, id, s, waitpoint)
}

func (e *Engine) deliver(ctx context.Context, f function, id flowfabric.ExecutionID, s suspend.SentSignal,
	target ...string) (suspend.Delivered, error) {
	if s.ID == uuid.Nil {
		s.ID = uuid.New()
	}
	ttl := "0"
	if s.IdempotencyKey != "" {
		ttl = strconv.FormatInt(cmp.Or(s.DedupTTL, limits.DefaultDedupTTL).Milliseconds(), 10)
	}
	created := ""
	if !s.CreatedAt.IsZero() {
		created = strconv.FormatInt(max(0, s.CreatedAt.UnixMilli()), 10)
	}
	args := append(append([]string{protocol, id.UUID().String()}, target...), s.ID.String(), s.Name, s.Category,
		s.SourceType, s.Source, joinTrace(s.Correlation, s.Trace), s.IdempotencyKey, ttl, created,
		cmp.Or(s.Encoding, "json"), rueidis.BinaryString(s.Payload))
	r, err := e.call(ctx, f, id.Partition(), args...)
	if err != nil {
		return suspend.Delivered{}, err
	}
	out := suspend.Delivered{Signal: r.uuid(), Effect: r.Text()}
	out.Open = openState(r.Text())
	out.Duplicate = r.Already && out.Signal != s.ID
	return out, r.fail()
}

// ReissueToken gives an open waitpoint a new token; the old one is dead at once (lua/suspend/ff_reissue_token.lua).
// Of m the key is ignored. by is who asked, 1..64 bytes. It returns the waitpoint's key. denied.NoWaitpoint,
// denied.WaitpointNotOpen.
func (e *Engine) ReissueToken(ctx context.Context, id flowfabric.ExecutionID, m Minted,
	by string) (key string, err error) {
	r, err := e.call(ctx, fnReissue, id.Partition(), protocol, id.UUID().String(), m.ID.String(), m.Kid, m.Digest,
		m.Nonce, by)
	if err != nil {
		return "", err
	}
	r.uuid()
	key = r.Text()
	return key, r.fail()
}

// ReadSuspension reads the current or last suspension of an execution and its waitpoints
// (lua/read/ff_read_suspension.lua). ErrNotFound; ErrResultPurged while a tombstone is left.
func (e *Engine) ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error) {
	r, err := e.call(ctx, fnReadSuspension, id.Partition(), protocol, id.UUID().String())
	if err != nil {
		return suspend.Record{}, err
	}
	out := suspend.Record{Code: flowfabric.Code(r.Text())}
	if flow := r.Text(); flow != "" {
		u, err := uuid.Parse(flow)
		if err != nil {
			r.Stop("flow: %w", err)
		}
		out.Flow = flowfabric.FlowID(flowfabric.MakeExecutionID(id.Partition(), u))
	}
	outcome := r.bytes()
	u := r.Pairs()
	for range r.Count(2) {
		w, err := decodeWaitpoint(r.Text(), r.Text())
		if err != nil {
			r.Stop("%w", err)
			break
		}
		out.Waitpoints = append(out.Waitpoints, w)
	}
	for i := range out.Waitpoints {
		out.Waitpoints[i].RefusedAt = r.Instant()
	}
	slices.SortFunc(out.Waitpoints, func(a, b suspend.Waitpoint) int {
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	if outcome != nil && r.Err == nil {
		resume, err := DecodeResume(outcome)
		if err != nil {
			r.Stop("%w", err)
		}
		out.Result = &resume
	}
	if r.Err == nil && u["id"] != "" {
		fillSuspension(&out, u, r)
	}
	return out, r.fail()
}

// fillSuspension reads the fields of lua/lib/suspension.lua.
func fillSuspension(out *suspend.Record, u map[string]string, r *reader) {
	number := func(field string) int64 {
		if u[field] == "" {
			return 0
		}
		n, err := strconv.ParseInt(u[field], 10, 64)
		if err != nil {
			r.Stop("suspension %s is %q", field, clip(u[field]))
		}
		return n
	}
	at := func(field string) time.Time {
		if n := number(field); n > 0 {
			return time.UnixMilli(n)
		}
		return time.Time{}
	}
	id, err := uuid.Parse(u["id"])
	if err != nil {
		r.Stop("suspension id: %w", err)
	}
	out.ID, out.Name, out.Reason, out.Behaviour, out.Condition = id, u["name"], u["reason"], u["behaviour"],
		u["condition"]
	out.CreatedAt, out.TimeoutAt, out.LastSignalAt, out.ClosedAt = at("created_at"), at("timeout_at"),
		at("last_signal_at"), at("closed_at")
	out.ResumeDelay = time.Duration(number("resume_delay")) * time.Millisecond
	out.Signals, out.Matched = int(number("signals")), int(number("matched"))
	out.CloseReason, out.Cause, out.Trigger = u["close_reason"], u["cause"], u["trigger"]
	_, sender, _ := strings.Cut(u["signal_source"], "\t") // behind its type
	out.By = cmp.Or(u["resumed_by"], sender)
	out.Question = r.question(u["question"])
}

// question reads a question as it is stored.
func (r *reader) question(text string) *suspend.Question {
	if text == "" {
		return nil
	}
	q := new(suspend.Question)
	if err := json.Unmarshal([]byte(text), q); err != nil {
		r.Stop("question %q: %w", clip(text), err)
		return nil
	}
	return q
}

// ReadQuestion reads what the holder of a token may know: the question, whether the waitpoint is open, and the answer
// that stands (lua/read/ff_read_question.lua). digest is the SHA-256 of the token in 64 hex digits. ErrInvalidToken,
// whatever there is or is not; ErrTokenExpired.
func (e *Engine) ReadQuestion(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID,
	digest string) (suspend.Asked, error) {
	r, err := e.call(ctx, fnReadQuestion, id.Partition(), protocol, id.UUID().String(), waitpoint.String(), digest)
	if err != nil {
		return suspend.Asked{}, err
	}
	out := suspend.Asked{Question: r.question(r.Text()), Open: openState(r.Text())}
	if text := r.Text(); text != "" {
		s, err := decodeSignal(text)
		if err != nil {
			r.Stop("%w", err)
		}
		out.Answer = &s
	}
	return out, r.fail()
}

// ReadSignals reads what was delivered to a waitpoint, oldest first, 100 a call from offset; total is how many are
// kept, at most 1,000 (lua/read/ff_read_signals.lua). The payload is there only while a signal is buffered.
// denied.NoWaitpoint.
func (e *Engine) ReadSignals(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID,
	offset int) (out []suspend.StoredSignal, total int, err error) {
	r, err := e.call(ctx, fnReadSignals, id.Partition(), protocol, id.UUID().String(), waitpoint.String(),
		strconv.Itoa(offset))
	if err != nil {
		return nil, 0, err
	}
	total = r.Int()
	for range r.Count(1) {
		s, err := decodeSignal(r.Text())
		if err != nil {
			r.Stop("%w", err)
			break
		}
		out = append(out, s)
	}
	return out, total, r.fail()
}
