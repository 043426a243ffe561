package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/edit"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// signaller is the part of the engine behind signals, waitpoints and token keys. Each call may be repeated.
type signaller interface {
	DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
		s suspend.SentSignal) (suspend.Delivered, error)
	ApproveWaitpoint(ctx context.Context, id flowfabric.ExecutionID, waitpoint string,
		s suspend.SentSignal) (suspend.Delivered, error)
	ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error)
	ReadQuestion(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
		digest string) (suspend.Asked, error)
}

// defaultSourceType is the source type of what a client sends.
const defaultSourceType = "client"

// SignalOption changes a [Client.Signal] or an [Execution.Approve]: flowfabric.Key, [SignalName],
// [SignalSource], [SignalDetails].
type SignalOption interface {
	ApproveOption
	SignalOption()
}

// ApproveOption is an option of [Execution.Approve]: flowfabric.By and every [SignalOption].
type ApproveOption interface{ ApproveOption() }

// signalFunc is an option of this package.
type signalFunc func(*suspend.SentSignal) error

func (signalFunc) SignalOption()  {}
func (signalFunc) ApproveOption() {}

// SignalName sets the name that conditions distinguish signals by: 1..128 bytes, not beginning with "__". Default the
// choice of the payload, if it is a suspend.Answer or another object with a choice, else "signal".
func SignalName(name string) SignalOption {
	return signalFunc(func(s *suspend.SentSignal) error {
		if name == "" {
			return fmt.Errorf("%w: the name of the signal is empty, want 1..%d bytes", flowfabric.ErrInvalidInput,
				limits.MaxSignalName)
		}
		s.Name = name
		return nil
	})
}

// SignalSource says what kind of sender this is (≤ 64 bytes, for example webhook or person) and who (≤ 256 bytes).
// Default "client" and Config.Creator, which may be nobody. Approve ignores it: there the source is an operator, named
// by flowfabric.By.
func SignalSource(kind, who string) SignalOption {
	return signalFunc(func(s *suspend.SentSignal) error { s.SourceType, s.Source = kind, who; return nil })
}

// SignalDetails says what is rarely said of a signal, with four fields of d; every other field must be zero.
//
//   - Category is a word for readers of the log, ≤ 64 bytes. Default none.
//   - Correlation is an id that the sender's own system knows the signal by, ≤ 256 bytes. Default none.
//   - CreatedAt is when the sender's clock says it was sent; it decides nothing. Default none.
//   - DedupTTL is how long after its delivery the flowfabric.Key is known, up to 7 days. Default 24 h.
//     While the waitpoint is open it is known in any case.
//
// The call fails with flowfabric.ErrInvalidInput for a value out of bounds and for another field: name, source and
// key have options of their own. Of several the last counts, with its zero values.
func SignalDetails(d suspend.SentSignal) SignalOption {
	return signalFunc(func(s *suspend.SentSignal) error {
		s.Category, s.Correlation, s.CreatedAt, s.DedupTTL = d.Category, d.Correlation, d.CreatedAt, d.DedupTTL
		rest := d
		rest.Category, rest.Correlation, rest.CreatedAt, rest.DedupTTL = "", "", time.Time{}, 0
		if !reflect.ValueOf(rest).IsZero() {
			return fmt.Errorf("%w: SignalDetails takes Category, Correlation, CreatedAt and DedupTTL only",
				flowfabric.ErrInvalidInput)
		}
		return nil
	})
}

// Signal answers a waitpoint: it brings payload to the execution that waits on it. token is what handler.Task.Pending
// gave, or suspend.ParseToken read. payload is encoded as JSON; a json.RawMessage is sent as it is, and a []byte, too,
// as bytes that are not JSON. The answer says what became of it (Effect), and whether the waitpoint takes more signals
// (Open). A signal may be taken and still count for nothing, because no condition wants its name: look at Effect. Where
// a question is asked (handler.Task.Ask), one that is no choice is refused, and so are changed arguments
// (suspend.Answer) that it does not take: the error names the field. An answer, whose payload is a
// suspend.Answer or another object with the choice that the signal is named after, is in the audit trail if it counts.
//
// The call's own repeats are harmless. A caller that repeats it after ErrTransport gives it a
// flowfabric.Key.
//
// Errors: flowfabric.ErrInvalidToken for the zero token, and for one that opens nothing here, whatever the
// reason; ErrTokenExpired; ErrNoTokenKeys on a store where no key was ever made known; ErrWaitpointClosed and
// ErrTerminal for a signal that comes too late; ErrLimit; ErrPayloadTooLarge above 64 KiB; ErrInvalidInput.
func (c *Client) Signal(ctx context.Context, token suspend.Token, payload any,
	opts ...SignalOption) (suspend.Delivered, error) {
	if token.IsZero() && !c.closed.Load() {
		return suspend.Delivered{}, fmt.Errorf("signal: %w", denied.NoToken)
	}
	s, err := newSignal(c, payload, opts)
	if err != nil {
		return suspend.Delivered{}, c.refuse("signal", token.Execution(), err)
	}
	return c.DeliverSignal(ctx, token.Execution(), token.Waitpoint(), token.Digest(), s)
}

// DeliverSignal is [Client.Signal] for what package suspend has taken apart; it makes the client an approval.Deliverer.
// A token of a partition that this store does not have is ErrInvalidToken, too.
func (c *Client) DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
	s suspend.SentSignal) (suspend.Delivered, error) {
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

// ReadQuestion is what the holder of a token, of which digest is suspend.Token.Digest, may know: the question
// (handler.Task.Ask), and the answer that stands. It changes nothing, and the handler of approval.New calls it. Errors:
// flowfabric.ErrInvalidToken for a token that opens nothing here, whatever the reason; ErrTokenExpired;
// ErrNoTokenKeys; ErrTransport.
func (c *Client) ReadQuestion(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	digest string) (suspend.Asked, error) {
	if err := c.admit("question of", id); err != nil {
		return suspend.Asked{}, err
	}
	if id.Partition() >= c.store.Partitions() {
		return suspend.Asked{},
			link.Signalled("question of", id, denied.New("question", flowfabric.CodeOf(flowfabric.ErrInvalidToken)))
	}
	q, err := c.store.ReadQuestion(ctx, id, waitpoint, digest)
	if err != nil {
		return suspend.Asked{}, link.Signalled("question of", id, err)
	}
	return q, nil
}

// deliver makes the call of a signal that shows a token.
func (c *Client) deliver(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	err := s.Validate()
	switch {
	case err != nil:
	case id.Partition() >= c.store.Partitions():
		err = denied.New("signal", flowfabric.CodeOf(flowfabric.ErrInvalidToken))
	default:
		if chosen(s.Payload) == s.Name { // what a person decides, by whatever link or door; other signals are work
			ctx = link.Act{By: s.Source}.Execution(ctx, "answer", id, waitpoint.String(), s.Name)
		}
		if err = c.fits(s, func() (*suspend.Question, error) {
			asked, err := c.store.ReadQuestion(ctx, id, waitpoint, digest)
			return asked.Question, err
		}); err != nil {
			break
		}
		var d suspend.Delivered
		if d, err = c.store.DeliverSignal(ctx, id, waitpoint, digest, s); err == nil {
			return d, nil
		}
	}
	return suspend.Delivered{}, link.Signalled("signal", id, err)
}

// Approve answers a waitpoint on the word of an operator, who needs no token: a program that may call it may answer
// for anybody. waitpoint is its id or its key; of several with the key the open one is meant. The signal keeps as its
// source who answered: give flowfabric.By, or set client.Config.Creator (1..256 bytes); without either it is refused.
// The worker needs token keys all the same, see package suspend; without any no waitpoint opens. Name, payload and
// the rest are as in [Client.Signal].
//
// Errors: flowfabric.ErrInvalidInput when nobody answers; ErrNotFound for
// execution and waitpoint; ErrWaitpointClosed, ErrTerminal; ErrLimit; ErrPayloadTooLarge.
func (e *Execution[Out]) Approve(ctx context.Context, waitpoint string, payload any,
	opts ...ApproveOption) (suspend.Delivered, error) {
	c, id := e.client, e.id
	var by string
	var signals []ApproveOption
	for _, o := range opts {
		if named, ok := link.Who(o); ok {
			by = named
		} else {
			signals = append(signals, o)
		}
	}
	s, err := newSignal(c, payload, signals)
	if err == nil {
		s.SourceType, s.Source = "operator", cmp.Or(by, c.cfg.Creator)
		err = errors.Join(link.CheckNamed(s.Source, limits.MaxSignalSource), s.Validate())
	}
	switch {
	case err != nil:
	case waitpoint == "":
		err = fmt.Errorf("%w: the waitpoint is empty, want its id or its key", flowfabric.ErrInvalidInput)
	}
	if err != nil {
		return suspend.Delivered{}, c.refuse("approve", id, err)
	}
	if err := c.admit("approve", id); err != nil {
		return suspend.Delivered{}, err
	}
	if err := c.fits(s, func() (*suspend.Question, error) { return c.questionOf(ctx, id, waitpoint) }); err != nil {
		return suspend.Delivered{}, link.Signalled("approve", id, err)
	}
	ctx, span := c.tracer.Signal(ctx, "approve", tracing.Work{Execution: id})
	if span != nil {
		s.Trace = tracing.Traceparent(ctx)
	}
	d, err := c.store.ApproveWaitpoint(link.Act{By: s.Source}.Execution(ctx, "answer", id, waitpoint, s.Name), id,
		waitpoint, s)
	if err != nil {
		err = link.Signalled("approve", id, err)
	}
	span.Ended(err)
	return d, err
}

// fits refuses an answer that changes arguments to what its question does not take, before it is sent. What the
// execution waits for may be another question by then; the handler checks the arguments again.
func (c *Client) fits(s suspend.SentSignal, read func() (*suspend.Question, error)) error {
	arguments, ok := edit.In(s)
	if !ok {
		return nil
	}
	q, err := read()
	if err != nil || q == nil {
		return err
	}
	return edit.Check(*q, arguments)
}

// questionOf is what the open waitpoint of an id or a key asks; nil for nothing.
func (c *Client) questionOf(ctx context.Context, id flowfabric.ExecutionID,
	waitpoint string) (*suspend.Question, error) {
	r, err := c.store.ReadSuspension(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Waitpoints {
		switch {
		case !w.Open() || w.Suspension != r.ID || w.Key != waitpoint && w.ID.String() != waitpoint:
		case w.Question != nil:
			return w.Question, nil
		default:
			return r.Question, nil
		}
	}
	return nil, nil
}

// newSignal makes what Signal and Approve send.
func newSignal[Option any](c *Client, payload any, opts []Option) (suspend.SentSignal, error) {
	s := suspend.SentSignal{SourceType: defaultSourceType, Source: c.cfg.Creator}
	var said flowfabric.Start
	for i, o := range opts {
		if own, ok := any(o).(signalFunc); ok {
			if err := own(&s); err != nil {
				return s, err
			}
		} else if err := option.Apply(&said, i, o); err != nil {
			return s, err
		}
	}
	if said.Key != nil {
		s.IdempotencyKey = said.Key.Text
		if err := valid.TextKey(*said.Key, "a signal"); err != nil {
			return s, err
		}
	}
	var err error
	if s.Encoding, s.Payload, err = encoded(payload); s.Name == "" {
		s.Name = cmp.Or(chosen(s.Payload), limits.DefaultSignal)
	}
	return s, err
}

// chosen is the choice of a payload that is an answer, as the page's form names its signal; "" for any other payload.
func chosen(payload []byte) string {
	if !bytes.HasPrefix(bytes.TrimLeft(payload, " \t\r\n"), []byte{'{'}) { // not even an object
		return ""
	}
	var answer struct {
		Choice string `json:"choice"`
	}
	if json.Unmarshal(payload, &answer) != nil ||
		(suspend.SentSignal{Name: answer.Choice, Encoding: "json"}).Validate() != nil {
		return ""
	}
	return answer.Choice
}

// encoded is a payload as it is sent, and how.
func encoded(payload any) (encoding string, data []byte, err error) {
	switch p := payload.(type) {
	case json.RawMessage:
		if !json.Valid(p) {
			err = fmt.Errorf("%w: the payload is a json.RawMessage that is not JSON", flowfabric.ErrInvalidInput)
		}
		return "json", p, err
	case []byte:
		return "bytes", p, nil
	}
	data, err = json.Marshal(payload)
	if err != nil {
		err = fmt.Errorf("%w: the payload does not encode as JSON: %w", flowfabric.ErrInvalidInput, err)
	}
	return "json", data, err
}

// refuse is the error of a call that was not made; a closed client and an empty id come first.
func (c *Client) refuse(verb string, id flowfabric.ExecutionID, err error) error {
	if refused := c.admit(verb, id); refused != nil {
		return refused
	}
	return link.Operated(verb, id, err)
}
