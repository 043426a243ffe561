package handler

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
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

// CloseWaitpoint closes a waitpoint that [Task.Pending] opened and that nothing waits for: its token is dead at once,
// and a signal that comes later is refused with flowfabric.ErrWaitpointClosed. What had come is not used. The
// waitpoint's step records it, so in later runs CloseWaitpoint does nothing. Pending keeps returning the token, and a
// wait on the key fails the execution for good, category suspend_refused. Closing what an answered wait has closed is
// no error.
//
// Errors: flowfabric.ErrInvalidInput for a key that Pending has not opened in this execution, or inside a step;
// ErrLeaseLost; ErrTransport; code task_consumed after the handler returned; the context's cause.
func (t *Task) CloseWaitpoint(ctx context.Context, key string) (err error) {
	defer func() { err = denied.Last(err) }()
	return t.ownWaits().Close(ctx, key)
}
