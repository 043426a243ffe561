package handler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Pending opens a waitpoint before the handler waits, and returns its token to hand out; a later [Await], [Task.Ask] or
// [Task.Wait] on the key uses it, and signals that come before that count. life, 1 s to 7 days, bounds only the time
// until then: the wait itself may last longer (suspend.Within). If it runs out before, the wait fails the execution
// for good, category suspend_refused. In every run, also after a crash, the same key gets the same token: hand it out
// inside a step, so that it is handed out once. A waitpoint serves one wait, or several that end with
// suspend.OnTimeout(suspend.Remind) and wait on its key again. key is 1..128 bytes of printable ASCII. The token of a
// waitpoint that is closed is the zero token if its key is no longer configured: nobody needs it.
//
// Errors: flowfabric.ErrNoTokenKeys when no token key is configured, or not the one that signed a waitpoint that is
// still open; ErrLimit beyond 64 open ones, and when the execution has recorded all steps that it may;
// ErrInvalidInput; ErrLeaseLost; ErrTransport; code task_consumed after the handler returned; the context's cause.
func (t *Task) Pending(ctx context.Context, key string, life time.Duration) (token suspend.Token, err error) {
	defer func() { err = denied.Last(err) }()
	if err := waitwords.CheckName(key); err != nil {
		return suspend.Token{}, err
	}
	if err := valid.WaitpointLife(key, life); err != nil {
		return suspend.Token{}, err
	}
	return t.ownWaits().Pending(ctx, key, life)
}

// Expect opens the waitpoint called key for one event: the first that client.Publish publishes, after Expect has
// returned, with this subject and these fields, in the namespace of the execution. It does not wait: do what leads to
// the event, then call [Await] with the same name, which returns the event's data, or [Task.Wait] with a condition that
// names the key. As a suspend.StoredSignal an event has the name "event", its subject as Source and its id as
// Correlation.
//
//	err := t.Expect(ctx, "paid", "invoice.paid", map[string]any{"invoice": id})
//	// … send the invoice in a step
//	paid, err := handler.Await[Payment](ctx, t, "paid", suspend.Within(30*24*time.Hour))
//
// The handler has 7 days from the first Expect until it waits; the wait itself may last longer. An event that comes
// before the wait is kept for it. Each Expect takes one event, and each key is for one: those of a loop are numbered.
// Expect is recorded like a step, so a later run goes on waiting for the same event. When the execution ends, or the
// wait, nothing waits for the event any more.
//
// key is 1..128 bytes of printable ASCII, and so is subject, without braces. where is the filter: fields of the data,
// by names joined by dots, and the string, number, boolean or null that each must have, at most 8. All must match;
// fields inside of lists match nothing. Without fields every event of the subject matches.
//
// Errors: flowfabric.ErrInvalidInput for the key, the subject or the filter, inside a step, and for a key that
// [Task.Pending] opened, or Expect for another subject; ErrLimit beyond 64 open waitpoints, when the execution has
// recorded all steps that it may, and when 1,000 executions wait for events with the same filter; ErrNoTokenKeys as for
// Pending; ErrLeaseLost; ErrTransport; code task_consumed after the handler returned; the context's cause.
func (t *Task) Expect(ctx context.Context, key, subject string, where map[string]any) (err error) {
	defer func() {
		if err = denied.Last(err); err != nil {
			err = fmt.Errorf("expect %s: %w", key, err)
		}
	}()
	x := engine.Expectation{Subject: engine.Subject{Namespace: t.Namespace(), Text: subject}}
	if err := cmp.Or(waitwords.CheckName(key), trigger.CheckSubject(subject)); err != nil {
		return err
	}
	if x.Terms, err = trigger.Filter(where); err != nil {
		return err
	}
	return t.ownWaits().Expect(ctx, key, x)
}

// CloseWaitpoint closes a waitpoint that [Task.Pending] or [Task.Expect] opened and that nothing waits for: its token
// is dead at once, and a signal that comes later is refused with flowfabric.ErrWaitpointClosed. What had come is not
// used. The waitpoint's step records it, so in later runs CloseWaitpoint does nothing. Pending keeps returning the
// token, and a wait on the key fails the execution for good, category suspend_refused. Closing what an answered wait
// has closed is no error.
//
// Errors: flowfabric.ErrInvalidInput for a key that Pending has not opened in this execution, or inside a step;
// ErrLeaseLost; ErrTransport; code task_consumed after the handler returned; the context's cause.
func (t *Task) CloseWaitpoint(ctx context.Context, key string) (err error) {
	defer func() { err = denied.Last(err) }()
	return t.ownWaits().Close(ctx, key)
}
