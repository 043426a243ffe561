package handler

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Receive takes the next message of a mailbox and returns its payload, decoded as [Await] decodes that of a signal. As
// a suspend.Message it is the whole message, with its sender and time. If there is none, the execution waits for one,
// as it does in Await: the first run gets an error that the handler must return, and holds nothing while it waits.
//
// A mailbox is a name, 1..96 bytes of printable ASCII; it needs no opening. client.Send puts messages into it from
// when the execution was submitted until it ends, also while it runs or waits for something else. Messages are
// received in the order in which they came, each once: what a Receive returned is kept like a step, so that after a
// crash the same Receive returns the same message, and a replay that keeps the steps gets it, too. The receipts of a
// mailbox are numbered by the run itself, so a loop needs no names. Those of one mailbox must come in the same order
// in every run: do not call them from several goroutines.
//
// Each receipt is a step of the 1,000 that an execution may have. A replay from scratch gets what nobody has received
// yet.
//
// Errors: those of Await. ErrNoSignal is the answer when an operator resumed the execution and no message was there;
// flowfabric.ErrWaitTimeout after suspend.Within with suspend.OnTimeout(suspend.Resume), if none has come meanwhile.
func Receive[T any](ctx context.Context, t *Task, mailbox string, opts ...suspend.Option) (value T, err error) {
	m, err := t.receive(ctx, mailbox, waitOptionsOf(opts))
	if err == nil {
		value, err = suspend.Decode[T](m)
	}
	if err != nil && !is[*waitwords.Wanted](err) {
		err = fmt.Errorf("receive from %s: %w", mailbox, err)
	}
	return value, err
}

func (t *Task) receive(ctx context.Context, mailbox string, o waitOptions) (m suspend.Message, err error) {
	defer func() { err = denied.Last(err) }()
	name, answer, err := t.receipt(ctx, mailbox)
	if err != nil {
		return suspend.Message{}, err
	}
	var why suspend.Cause
	if answer != nil && (answer.Cause == suspend.CauseTimeout || answer.Cause == suspend.CauseOperator) {
		why = answer.Cause
	}
	messages, why, err := t.ownWaits().Take(ctx,
		engine.Receiving{Name: name, Mailbox: mailbox, Limit: 1, Why: why})
	switch {
	case err != nil:
		return suspend.Message{}, err
	case len(messages) > 0:
		return messages[0], t.readable(messages[0].Payload)
	case why == suspend.CauseTimeout:
		return suspend.Message{}, flowfabric.ErrWaitTimeout
	case why == suspend.CauseOperator && answer != nil:
		return suspend.Message{}, fmt.Errorf("%w%s", flowfabric.ErrNoSignal, who(*answer))
	case why != "":
		return suspend.Message{}, flowfabric.ErrNoSignal
	case ctx.Err() != nil:
		return suspend.Message{}, context.Cause(ctx)
	}
	w, err := o.wanted(name, suspend.Mailbox(mailbox))
	if err != nil {
		return suspend.Message{}, err
	}
	t.ownWaits().Want(name)
	return suspend.Message{}, w
}

// Drain takes what is in a mailbox now, up to 100 messages and 128 KiB of them, the first that came first, without
// waiting; none is no error. It is a receipt like [Receive], and what it returned is kept, also that there was
// nothing: later runs get the same.
//
// Errors: flowfabric.ErrInvalidInput for the mailbox, or inside a step; ErrLimit; code unflushed; ErrLeaseLost;
// ErrTransport; code task_consumed after the handler returned; the context's cause.
func (t *Task) Drain(ctx context.Context, mailbox string) ([]suspend.Message, error) {
	return t.drain(ctx, mailbox, limits.MaxReceived)
}

// drain is Drain of at most so many.
func (t *Task) drain(ctx context.Context, mailbox string, limit int) (messages []suspend.Message, err error) {
	defer func() { err = denied.Last(err) }()
	name, _, err := t.receipt(ctx, mailbox)
	if err == nil {
		messages, _, err = t.ownWaits().Take(ctx,
			engine.Receiving{Name: name, Mailbox: mailbox, Limit: limit, Why: engine.Looked})
	}
	for i := 0; err == nil && i < len(messages); i++ {
		err = t.readable(messages[i].Payload)
	}
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", mailbox, err)
	}
	return messages, nil
}

// receipt begins one.
func (t *Task) receipt(ctx context.Context, mailbox string) (name string, answer *suspend.Result, err error) {
	if err := waitwords.CheckMailbox(mailbox); err != nil {
		return "", nil, err
	}
	return t.ownWaits().Receipt(ctx, mailbox)
}
