package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// signaller is the part of the engine behind signals, waitpoints and token keys. Each call may be repeated.
type signaller interface {
	suspend.Deliverer
	ApproveWaitpoint(ctx context.Context, id flowfabric.ExecutionID, waitpoint string, s suspend.SentSignal) (suspend.Delivered, error)
	ResumeExecution(ctx context.Context, id flowfabric.ExecutionID, q engine.ResumeRequest) (already bool, err error)
	ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error)
	ReissueToken(ctx context.Context, id flowfabric.ExecutionID, m engine.Minted, by string) (key string, err error)
	RotateTokenKey(ctx context.Context, k engine.TokenKey, grace time.Duration, force bool) []engine.KeyRotated
	TokenKeys(ctx context.Context) []engine.PartitionKeys
}

// defaultSignal is the name of a signal that was given none, and the source type of what a client sends.
const (
	defaultSignal     = "signal"
	defaultSourceType = "client"
)

// sending is a signal on its way, with what its options said.
type sending struct {
	suspend.SentSignal
	keyed bool
}

// SignalOption changes a [Client.Signal] or a [Client.Approve]: [IdempotencyKey], [SignalName], [SignalSource], [SignalCategory],
// [SignalCorrelation], [SignalSentAt], [SignalRemembered].
type SignalOption interface{ signal(s *sending) }

type signalFunc func(*sending)

func (f signalFunc) signal(s *sending) { f(s) }

// SignalName is what conditions tell signals apart by: 1..128 bytes, not beginning with "__". Default "signal", and for a
// suspend.Answer its choice.
func SignalName(name string) SignalOption {
	return signalFunc(func(s *sending) { s.Name = name })
}

// SignalSource says what kind of sender this is (≤ 64 bytes, for example webhook or person) and who (≤ 256 bytes). Default
// "client" and Config.Creator. Approve ignores it: there the source is an operator, named by its argument.
func SignalSource(kind, who string) SignalOption {
	return signalFunc(func(s *sending) { s.SourceType, s.Source = kind, who })
}

// SignalCategory is a word for readers of the log, ≤ 64 bytes. Default none.
func SignalCategory(category string) SignalOption {
	return signalFunc(func(s *sending) { s.Category = category })
}

// SignalCorrelation is an id that the sender's own system knows the signal by, ≤ 256 bytes. Default none.
func SignalCorrelation(id string) SignalOption {
	return signalFunc(func(s *sending) { s.Correlation = id })
}

// SignalSentAt is when the sender's clock says it was sent; it decides nothing. Default none.
func SignalSentAt(t time.Time) SignalOption {
	return signalFunc(func(s *sending) { s.CreatedAt = t })
}

// SignalRemembered is how long after its delivery the [IdempotencyKey] is known, up to 7 days. Default 24 h. While the waitpoint is
// open it is known in any case.
func SignalRemembered(d time.Duration) SignalOption {
	return signalFunc(func(s *sending) { s.DedupTTL = d })
}

// Signal answers a waitpoint: it brings payload to whoever waits on it. token is what suspend.Pending gave, or
// suspend.ParseToken read. payload is encoded as JSON; a json.RawMessage is sent as it is, and a []byte, too, as bytes that are
// not JSON. The answer says what became of it (Effect), and whether the waitpoint takes more signals (Open). A signal may be taken
// and still count for nothing, because no condition wants its name: look at Effect.
//
// The call's own repeats are harmless. A caller that repeats it after ErrTransport gives it an [IdempotencyKey].
//
// Errors: flowfabric.ErrMissingToken for the zero token; ErrInvalidToken for one that opens nothing here, whatever the
// reason; ErrTokenExpired; ErrNoTokenKeys on a store where no key was ever made known; ErrWaitpointClosed and ErrNotSignalable
// for a signal that comes too late; ErrSignalLimit; ErrPayloadTooLarge above 64 KiB; ErrInvalidInput. Spec 20 §3.4.
func (c *Client) Signal(ctx context.Context, token suspend.Token, payload any, opts ...SignalOption) (suspend.Delivered, error) {
	if token.IsZero() && !c.closed.Load() {
		return suspend.Delivered{}, fmt.Errorf("signal: %w", flowfabric.ErrMissingToken)
	}
	s, err := c.newSignal(payload, opts)
	if err != nil {
		return suspend.Delivered{}, c.refuse("signal", token.Execution(), err)
	}
	return c.DeliverSignal(ctx, token.Execution(), token.Waitpoint(), token.Digest(), s)
}

// DeliverSignal is [Client.Signal] for what package suspend has taken apart; it makes the client a suspend.Deliverer. A token of
// a partition that this store does not have is ErrInvalidToken, too.
func (c *Client) DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID, digest string, s suspend.SentSignal) (suspend.Delivered, error) {
	if err := c.admit("signal", id); err != nil {
		return suspend.Delivered{}, err
	}
	ctx, span := c.tracer.Signal(ctx, "signal", tracing.Work{Execution: id})
	if span != nil {
		s.Trace = tracing.Traceparent(ctx)
	}
	d, err := c.deliver(ctx, id, waitpoint, digest, s)
	span.Ended(err)
	return d, err
}

// deliver makes the call of a signal that shows a token.
func (c *Client) deliver(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID, digest string, s suspend.SentSignal) (suspend.Delivered, error) {
	err := s.Validate()
	switch {
	case err != nil:
	case id.Partition() >= c.store.Partitions():
		err = flowfabric.NewError("signal", flowfabric.CodeOf(flowfabric.ErrInvalidToken))
	default:
		var d suspend.Delivered
		if d, err = c.store.DeliverSignal(ctx, id, waitpoint, digest, s); err == nil {
			return d, nil
		}
	}
	return suspend.Delivered{}, signalled("signal", id, err)
}

// Approve answers a waitpoint on the word of an operator, who needs no token: whoever may call it, may answer for anybody.
// waitpoint is its id or its key; of several with the key the open one is meant. by says who, 1..256 bytes, and is kept with
// the signal as its source. Name, payload and the rest are as in [Client.Signal].
//
// Errors: flowfabric.ErrInvalidInput without by; ErrNotFound; ErrWaitpointNotFound; ErrWaitpointClosed, ErrNotSignalable;
// ErrSignalLimit; ErrPayloadTooLarge. Spec 20 §2.8, S33.
func (c *Client) Approve(ctx context.Context, id flowfabric.ExecutionID, waitpoint, by string, payload any, opts ...SignalOption) (suspend.Delivered, error) {
	s, err := c.newSignal(payload, opts)
	if err == nil {
		s.SourceType, s.Source = suspend.SourceOperator, by
		err = errors.Join(named(by, flowfabric.MaxSignalSource), s.Validate())
	}
	if err == nil && waitpoint == "" {
		err = fmt.Errorf("%w: the waitpoint is empty, want its id or its key", flowfabric.ErrInvalidInput)
	}
	if err != nil {
		return suspend.Delivered{}, c.refuse("approve", id, err)
	}
	if err := c.admit("approve", id); err != nil {
		return suspend.Delivered{}, err
	}
	ctx, span := c.tracer.Signal(ctx, "approve", tracing.Work{Execution: id})
	if span != nil {
		s.Trace = tracing.Traceparent(ctx)
	}
	d, err := c.store.ApproveWaitpoint(ctx, id, waitpoint, s)
	if err != nil {
		err = signalled("approve", id, err)
	}
	span.Ended(err)
	return d, err
}

// ResumeOption changes a [Client.Resume]: [Reason], [OnlySuspension], [ResumeDelay], [ResumeRequest].
type ResumeOption interface{ resume(q *engine.ResumeRequest) }

type resumeFunc func(*engine.ResumeRequest)

func (f resumeFunc) resume(q *engine.ResumeRequest) { f(q) }

// OnlySuspension resumes only if this is still the suspension (suspend.Record.ID as [Client.Suspension] showed it);
// otherwise Resume answers flowfabric.ErrSuspensionChanged.
func OnlySuspension(id uuid.UUID) ResumeOption {
	return resumeFunc(func(q *engine.ResumeRequest) { q.Suspension = id })
}

// ResumeDelay keeps the execution back for up to 30 days before a worker may go on with it. Default 0.
func ResumeDelay(d time.Duration) ResumeOption {
	return resumeFunc(func(q *engine.ResumeRequest) { q.Delay = d })
}

// ResumeRequest names the request, for a caller that repeats an unanswered [Client.Resume] itself: the same id resumes only
// once. Default a new id for every call, which makes the client's own repeats harmless.
func ResumeRequest(id uuid.UUID) ResumeOption {
	return resumeFunc(func(q *engine.ResumeRequest) { q.Request = id })
}

// Resume lets a suspended execution go on without a signal. Its handler's suspend.Await returns flowfabric.ErrNoSignal, a
// suspend.Wait a Result with by and [Reason]; to give it an answer instead, [Client.Approve]. by says who, 1..64 bytes.
//
// Errors: flowfabric.ErrNotSuspended, with the state; ErrSuspensionChanged, see [OnlySuspension]; ErrNotFound;
// ErrInvalidInput. Spec 20 §3.7.
func (c *Client) Resume(ctx context.Context, id flowfabric.ExecutionID, by string, opts ...ResumeOption) error {
	q := engine.ResumeRequest{Request: uuid.New(), By: by}
	for _, o := range opts {
		o.resume(&q)
	}
	if err := c.admit("resume", id); err != nil {
		return err
	}
	err := named(by, flowfabric.MaxName)
	if q.Delay < 0 || q.Delay > flowfabric.MaxResumeDelay {
		err = fmt.Errorf("%w: resume delay %s, want 0..30 days", flowfabric.ErrInvalidInput, q.Delay)
	}
	if err == nil {
		_, err = c.store.ResumeExecution(ctx, id, q)
	}
	return signalled("resume", id, err)
}

// newSignal makes what Signal and Approve send.
func (c *Client) newSignal(payload any, opts []SignalOption) (suspend.SentSignal, error) {
	name := defaultSignal
	if a, ok := payload.(suspend.Answer); ok && a.Choice != "" {
		name = a.Choice // as the page's form names it
	}
	s := sending{SentSignal: suspend.SentSignal{Name: name, SourceType: defaultSourceType, Source: c.by()}}
	for _, o := range opts {
		o.signal(&s)
	}
	if s.keyed && s.IdempotencyKey == "" {
		return s.SentSignal, fmt.Errorf("%w: the idempotency key is empty, want 1..%d bytes", flowfabric.ErrInvalidInput, flowfabric.MaxIdempotencyKey)
	}
	var err error
	switch p := payload.(type) {
	case json.RawMessage:
		s.Encoding, s.Payload = "json", p
		if !json.Valid(p) {
			err = fmt.Errorf("%w: the payload is a json.RawMessage that is not JSON", flowfabric.ErrInvalidInput)
		}
	case []byte:
		s.Encoding, s.Payload = "bytes", p
	default:
		s.Encoding = "json"
		if s.Payload, err = json.Marshal(payload); err != nil {
			err = fmt.Errorf("%w: the payload does not encode as JSON: %w", flowfabric.ErrInvalidInput, err)
		}
	}
	return s.SentSignal, err
}

// refuse is the error of a call that was not made; a closed client and an empty id come first.
func (c *Client) refuse(verb string, id flowfabric.ExecutionID, err error) error {
	if refused := c.admit(verb, id); refused != nil {
		return refused
	}
	return operated(verb, id, err)
}

// named checks who an operator says they are. There is no default: these calls decide something in somebody's name.
func named(by string, limit int) error {
	if by == "" || len(by) > limit || strings.ContainsFunc(by, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return fmt.Errorf("%w: by has %d bytes, want 1..%d without control characters that say who asks", flowfabric.ErrInvalidInput, len(by), limit)
	}
	return nil
}
