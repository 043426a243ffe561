package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// CreatePendingWaitpoint opens a waitpoint while the attempt goes on, for 1 s to 7 days, so that its token can be
// handed out before the attempt suspends; signals are buffered (lua/suspend/ff_create_pending_waitpoint.lua). With a
// name (≤ 128 bytes) it is kept as a step: a later call under that name, in any attempt, gets the same waitpoint,
// whatever identity was minted for it. With Minted.Event it takes an event, see ExpectEvent. denied.WaitpointLimit
// beyond 64 open ones; ErrNoTokenKeys, denied.KidNotCurrent (slot 0: the current kid).
func (e *Engine) CreatePendingWaitpoint(ctx context.Context, f flowfabric.Fence, name string, m Minted,
	life time.Duration) (Opened, error) {
	q := wire.CreatePendingWaitpoint{Fence: fenceOf(f), Name: name, Waitpoint: m.ID.String(), Key: m.Key, Kid: m.Kid,
		Digest: m.Digest, Nonce: m.Nonce, Lifetime: life}
	if m.Event != (Subject{}) {
		_, q.Subject = e.place(m.Event)
		q.Text = m.Event.Text
	}
	r, _, err := ask[wire.CreatePendingWaitpointReply](ctx, e, f.Execution.Partition(), q)
	return Opened{ID: r.Waitpoint, Key: r.Key, Kid: r.Kid, Nonce: r.Nonce, ExpiresAt: r.Expires, Event: q.Subject,
		Wanted: q.Subject != ""}, err
}

// CloseWaitpoint takes a pending waitpoint back (lua/suspend/ff_close_waitpoint.lua). already: it was closed or has
// expired. denied.NoWaitpoint; denied.WaitpointNotPending for one that a suspension waits on.
func (e *Engine) CloseWaitpoint(ctx context.Context, f flowfabric.Fence, id flowfabric.UUID) (already bool, err error) {
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
	question, err := e.sealQuestion(q.Question)
	if err != nil {
		return Suspended{}, err
	}
	call := wire.SuspendExecution{Fence: fenceOf(f), Suspension: q.ID.String(), Request: q.Request, Name: q.Name,
		Reason: q.Reason, Timeout: whole(q.Timeout), Behaviour: q.Behaviour, Delay: q.ResumeDelay,
		Condition: q.Condition, Question: question, Several: q.Several}
	for _, b := range q.Bindings {
		w := wire.SuspendExecutionWaitpoint{Waitpoint: b.ID.String(), Key: b.Key, Mode: "p", Within: whole(b.Within)}
		if !b.Pending {
			w.Mode, w.Kid, w.Digest, w.Nonce = "f", b.Kid, b.Digest, b.Nonce
		}
		call.Waitpoints = append(call.Waitpoints, w)
	}
	r, already, err := ask[wire.SuspendExecutionReply](ctx, e, f.Execution.Partition(), call)
	if err != nil {
		return Suspended{}, err
	}
	out := Suspended{Already: already, Satisfied: r.What == "satisfied", Suspension: r.Suspension, TimeoutAt: r.Timeout,
		Kid: r.Kid, Events: r.Events}
	for _, w := range r.Waitpoints {
		out.Waitpoints = append(out.Waitpoints, Opened{ID: w.Waitpoint, Key: w.Key, Kid: w.Kid, Nonce: w.Nonce})
	}
	switch {
	case out.Satisfied:
		out.Resume, err = DecodeResume([]byte(r.Outcome))
		OpenResult(e.cfg.Box, &out.Resume)
	case r.What != "suspended":
		err = fmt.Errorf("suspended is %q", clip(r.What))
	}
	return out, unread("ff_suspend_execution", err)
}

// ResumeRequest asks to resume a suspended execution without a signal.
type ResumeRequest struct {
	Request    flowfabric.UUID // makes a repeat harmless; nil mints one
	Suspension flowfabric.UUID // only if this is the current one; nil: whichever is
	Auto       bool            // a policy asks, not an operator
	Delay      time.Duration   // 0..30 days until it may be claimed
}

// ResumeExecution resumes a suspended execution on the word of an operator or a policy
// (lua/suspend/ff_resume_execution.lua), whom the note of ctx names. already: this request was applied before.
// denied.NotSuspended (slot 0: its code), denied.SuspensionChanged (slot 0: the current one), ErrNotFound,
// ErrInvalidInput if nobody is named.
func (e *Engine) ResumeExecution(ctx context.Context, id flowfabric.ExecutionID,
	q ResumeRequest) (already bool, err error) {
	call := wire.ResumeExecution{ID: ids.UUID(id).String(), Trigger: "operator", Delay: q.Delay}
	if !q.Suspension.IsZero() {
		call.Suspension = q.Suspension.String()
	}
	if q.Auto {
		call.Trigger = "auto_resume"
	}
	if q.Request.IsZero() {
		q.Request = mint.UUID()
	}
	call.Request = q.Request.String()
	return e.settled(ctx, id.Partition(), call)
}

// DeliverSignal brings a signal to a waitpoint for whoever holds its token, of which digest is the SHA-256 in 64 hex
// digits (lua/suspend/ff_deliver_signal.lua). Whatever else there is or is not, a wrong token is ErrInvalidToken.
// Then: ErrTokenExpired, denied.NotSignalable (slot 0: the code), ErrWaitpointClosed (slots: reason, when),
// denied.SignalLimit. A repeat of the same signal or key is answered like the first.
func (e *Engine) DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	s, err := e.sealSignal(s)
	if err != nil {
		return suspend.Delivered{}, err
	}
	q := wire.DeliverSignal{ID: ids.UUID(id).String(), Waitpoint: waitpoint.String(), Digest: digest, Signal: signal(s)}
	return e.deliver(ctx, id, q.Signal, q)
}

// ApproveWaitpoint delivers on the word of an operator, without a token (lua/suspend/ff_approve_waitpoint.lua).
// waitpoint is the id or the key of one; s.Source says who, and is mandatory. Otherwise it is DeliverSignal;
// denied.NoWaitpoint.
func (e *Engine) ApproveWaitpoint(ctx context.Context, id flowfabric.ExecutionID, waitpoint string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	s, err := e.sealSignal(s)
	if err != nil {
		return suspend.Delivered{}, err
	}
	s.SourceType = "operator"
	q := wire.ApproveWaitpoint{ID: ids.UUID(id).String(), Waitpoint: waitpoint, Signal: signal(s)}
	return e.deliver(ctx, id, q.Signal, q)
}

func signal(s suspend.SentSignal) wire.Signal {
	if s.ID.IsZero() {
		s.ID = mint.UUID()
	}
	out := wire.Signal{Signal: s.ID.String(), Name: s.Name, Category: s.Category, SourceType: s.SourceType,
		Source: s.Source, Correlation: joinTrace(s.Correlation, s.Trace), Key: s.IdempotencyKey,
		Encoding: cmp.Or(s.Encoding, "json"), Payload: rueidis.BinaryString(s.Payload)}
	if s.IdempotencyKey != "" {
		out.TTL = cmp.Or(s.DedupTTL, limits.DefaultDedupTTL)
	}
	if s.CreatedAt.UnixMilli() > 0 {
		out.Created = s.CreatedAt
	}
	return out
}

// deliver makes one of the two calls that bring a signal; their answers are alike.
func (e *Engine) deliver(ctx context.Context, id flowfabric.ExecutionID, s wire.Signal,
	q wire.Call) (suspend.Delivered, error) {
	r, already, err := ask[wire.DeliverSignalReply](ctx, e, id.Partition(), q)
	return suspend.Delivered{Signal: r.Signal, Effect: suspend.Effect(r.Effect.Effect), Open: openState(r.Effect.State),
		Duplicate: already && flowfabric.UUID(r.Signal).String() != s.Signal}, err
}

// ReissueToken gives an open waitpoint a new token; the old one is dead at once (lua/suspend/ff_reissue_token.lua).
// Of m the key is ignored. The note of ctx names who asks. It returns the waitpoint's key. denied.NoWaitpoint,
// denied.WaitpointNotOpen, ErrInvalidInput if nobody is named.
func (e *Engine) ReissueToken(ctx context.Context, id flowfabric.ExecutionID, m Minted) (key string, err error) {
	r, _, err := ask[wire.ReissueTokenReply](ctx, e, id.Partition(), wire.ReissueToken{ID: ids.UUID(id).String(),
		Waitpoint: m.ID.String(), Kid: m.Kid, Digest: m.Digest, Nonce: m.Nonce})
	return r.Key, err
}

// ReadSuspension reads the current or last suspension of an execution and its waitpoints
// (lua/read/ff_read_suspension.lua). ErrNotFound; ErrResultPurged while a tombstone is left.
func (e *Engine) ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error) {
	r, _, err := ask[wire.ReadSuspensionReply](ctx, e, id.Partition(), wire.ReadSuspension{ID: ids.UUID(id).String()})
	if err != nil {
		return suspend.Record{}, err
	}
	out, own := suspend.Record{State: codes.Shown(codes.Code(r.Code)).Public}, &reader{op: "ff_read_suspension"}
	if r.Flow != uuid.Nil {
		out.Flow = flowfabric.FlowID(mint.Join(id.Partition(), r.Flow))
	}
	if len(r.All) != len(r.Waitpoints) {
		own.Stop("%d waitpoints, and of %d when a token was refused", len(r.Waitpoints), len(r.All))
		return out, own.fail()
	}
	out.Waitpoints = make([]suspend.Waitpoint, 0, len(r.Waitpoints)) // in JSON none are an empty list
	for i, x := range r.Waitpoints {
		w, err := decodeWaitpoint(x.Waitpoint, x.Record)
		if err != nil {
			own.Stop("%w", err)
		}
		w.RefusedAt = r.All[i].Refused
		out.Waitpoints = append(out.Waitpoints, w)
	}
	if out.Root, out.Path, err = lineOf(id.Partition(), r.Line); err != nil {
		own.Stop("%w", err)
	}
	if r.Outcome != "" {
		resume, err := DecodeResume([]byte(r.Outcome))
		if err != nil {
			own.Stop("%w", err)
		}
		OpenResult(e.cfg.Box, &resume)
		out.Result = &resume
	}
	if r.Record["id"] != "" {
		r.Record["question"] = e.openQuestion(r.Record["question"])
		fillSuspension(&out, r.Record, own)
	}
	slices.SortFunc(out.Waitpoints, inOrder)
	return out, own.fail()
}

// lineOf reads the line of an execution that a handler made: who is first above it, and the names of those below that.
func lineOf(partition uint16, line []wire.ReadSuspensionLine) (root flowfabric.ExecutionID, path []string, err error) {
	for i, x := range slices.Backward(line) {
		if i < len(line)-1 {
			path = append(path, x.Node)
		} else if root, err = parseFull(partition, x.ID); err != nil {
			return root, nil, err
		}
	}
	return root, path, nil
}

// fillSuspension reads the fields of lua/lib/suspension.lua.
func fillSuspension(out *suspend.Record, u map[string]string, r *reader) {
	f := wire.Fields{M: u, R: r}
	id, err := uuid.Parse(u["id"])
	if err != nil {
		r.Stop("suspension id: %w", err)
	}
	out.ID, out.Name, out.Reason, out.Behaviour, out.Condition = flowfabric.UUID(id), u["name"], u["reason"],
		u["behaviour"],
		u["condition"]
	out.CreatedAt, out.TimeoutAt, out.LastSignalAt, out.ClosedAt = f.Instant("created_at"), f.Instant("timeout_at"),
		f.Instant("last_signal_at"), f.Instant("closed_at")
	out.ResumeDelay = flowfabric.Millis(f.Number("resume_delay")) * flowfabric.Millis(time.Millisecond)
	out.Signals, out.Matched = int(f.Number("signals")), int(f.Number("matched"))
	out.CloseReason, out.Cause, out.Trigger = u["close_reason"], suspend.Cause(u["cause"]), u["trigger"]
	_, sender, _ := strings.Cut(u["signal_source"], "\t") // behind its type
	out.By = cmp.Or(u["resumed_by"], sender)
	questions := r.questions(u["question"])
	if out.Question = questions.of(""); questions.Several == nil {
		return
	}
	listed := strings.Split(u["waitpoints"], ",")
	first := len(listed)
	for i := range out.Waitpoints {
		w := &out.Waitpoints[i]
		if !w.Open() || w.Suspension != out.ID {
			continue
		}
		w.Question = questions.of(w.Key)
		if n := slices.Index(listed, w.ID.String()); n >= 0 && n < first && w.Question != nil {
			out.Question, first = w.Question, n
		}
	}
}

// ReadQuestion reads what the holder of a token may know: the question, whether the waitpoint is open, and the answer
// that stands (lua/read/ff_read_question.lua). digest is the SHA-256 of the token in 64 hex digits. ErrInvalidToken,
// whatever there is or is not; ErrTokenExpired.
func (e *Engine) ReadQuestion(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	digest string) (suspend.Asked, error) {
	r, _, err := ask[wire.ReadQuestionReply](ctx, e, id.Partition(),
		wire.ReadQuestion{ID: ids.UUID(id).String(), Waitpoint: waitpoint.String(), Digest: digest})
	if err != nil {
		return suspend.Asked{}, err
	}
	own := &reader{op: "ff_read_question"}
	out := suspend.Asked{Question: own.questions(e.openQuestion(r.Question)).of(r.Key), Open: openState(r.State),
		ExpiresAt: r.Expires}
	if r.Answer != "" {
		s, err := decodeSignal(r.Answer)
		if err != nil {
			own.Stop("%w", err)
		}
		s.Payload = e.cfg.Box.Shown(s.Payload)
		out.Answer = &s
	}
	return out, own.fail()
}

// ReadSignals reads what was delivered to a waitpoint, oldest first, 100 a call from offset; total is how many are
// kept, at most 1,000 (lua/read/ff_read_signals.lua). The payload is there only while a signal is buffered.
// denied.NoWaitpoint.
func (e *Engine) ReadSignals(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	offset int) (out []suspend.StoredSignal, total int, err error) {
	r, _, err := ask[wire.ReadSignalsReply](ctx, e, id.Partition(),
		wire.ReadSignals{ID: ids.UUID(id).String(), Waitpoint: waitpoint.String(), Offset: offset})
	if err != nil {
		return nil, 0, err
	}
	out, err = decoded("ff_read_signals", r.Signals, decodeSignal)
	for i := range out {
		out[i].Payload = e.cfg.Box.Shown(out[i].Payload)
	}
	return out, r.Total, err
}

// inOrder has waitpoints in the order of their ids, which is that of time, and those with questions, which were made
// together, behind them in the order of their keys: 2 before 10.
func inOrder(a, b suspend.Waitpoint) int {
	switch {
	case a.Question != nil && b.Question != nil:
		return cmp.Or(numeric(a.Key, b.Key), strings.Compare(a.ID.String(), b.ID.String()))
	case a.Question != nil:
		return 1
	case b.Question != nil:
		return -1
	}
	return strings.Compare(a.ID.String(), b.ID.String())
}

// numeric compares texts, and numbers in them by their size.
func numeric(a, b string) int {
	digits := func(s string) int {
		return len(s) - len(strings.TrimLeft(s, "0123456789"))
	}
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] && digits(a[i:]) == digits(b[i:]) {
			continue
		}
		if m, n := digits(a[i:]), digits(b[i:]); m > 0 && n > 0 {
			return cmp.Or(cmp.Compare(m, n), strings.Compare(a[i:], b[i:]))
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}
