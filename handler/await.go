package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Await waits for one signal on the waitpoint called name and returns its payload, decoded from JSON (a []byte gets
// it as it is, a string also from encoding utf8). If [Task.Pending] opened a waitpoint of that key before, it waits on
// that one; else it opens one, which operators reach by its key and outsiders through a token that admin.ReissueToken
// makes.
//
// The first run gets an error that the handler must return, wrapped or not: it is what suspends the execution, after
// the handler has returned. Slot, lease and goroutine are free while it waits. When it goes on, the handler runs
// again from the top, and this Await returns the answer. name is 1..128 bytes of printable ASCII, unique within a
// run.
//
// Errors: flowfabric.ErrWaitTimeout after suspend.Within with suspend.OnTimeout(suspend.Resume); ErrNoSignal when an
// operator resumed the execution without one; ErrInvalidInput for a name, key or option out of bounds, a duplicate, a
// condition that cannot be met, or a wait inside a step; code task_consumed after the handler returned; the context's
// cause. On a worker without token keys the attempt fails, category suspend_refused (flowfabric.ErrNoTokenKeys); the
// retry policy decides, since somebody may configure keys meanwhile. A payload that does not decode is returned as such
// each time; what to do about it is the handler's decision.
func Await[T any](ctx context.Context, t *Task, name string, opts ...suspend.Option) (T, error) {
	var value T
	o := waitOptionsOf(opts)
	cond := suspend.Signal(cmp.Or(o.key, name))
	if o.named != "" {
		cond = cond.Named(o.named)
	}
	o.named, o.key = "", ""
	r, err := t.wait(ctx, name, cond, o)
	if err != nil {
		return value, err
	}
	if len(r.Signals) == 0 {
		return value, fmt.Errorf("wait %s: %w%s", name, flowfabric.ErrNoSignal, who(r))
	}
	if value, err = suspend.Decode[T](r.Signals[0]); err != nil {
		return value, fmt.Errorf("wait %s: %w", name, err)
	}
	return value, nil
}

// who tells who resumed an execution and what they said, as far as that is known.
func who(r suspend.Result) string {
	who := ""
	if r.By != "" {
		who = " by " + r.By
	}
	if r.Reason != "" {
		who += ": " + r.Reason
	}
	return who
}

// Wait is [Await] for any condition; each key of it is a waitpoint that [Task.Pending] opened before, or a fresh one.
// An operator who resumes the execution is an answer (Result.Cause) and no error. Errors: as Await, but for
// ErrNoSignal.
func (t *Task) Wait(ctx context.Context, name string, cond suspend.Condition,
	opts ...suspend.Option) (suspend.Result, error) {
	return t.wait(ctx, name, cond, waitOptionsOf(opts))
}

func (t *Task) wait(ctx context.Context, name string, cond suspend.Condition,
	o waitOptions) (r suspend.Result, err error) {
	defer func() { err = denied.Last(err) }()
	p := t.ownWaits()
	answer, err := p.Ask(ctx, name)
	if err != nil {
		return suspend.Result{}, err
	}
	if answer != nil {
		for _, s := range answer.Signals {
			if err := t.readable(s.Payload); err != nil {
				return *answer, fmt.Errorf("wait %s: signal %s: %w", name, s.Name, err)
			}
		}
		return *answer, late(name, *answer)
	}
	if ctx.Err() != nil {
		return suspend.Result{}, context.Cause(ctx)
	}
	w, err := o.wanted(name, cond)
	if err != nil {
		return suspend.Result{}, fmt.Errorf("wait %s: %w", name, err)
	}
	p.Want(name)
	return suspend.Result{}, w
}

// late is the error of a wait that a timeout ended.
func late(name string, r suspend.Result) error {
	if r.Cause == suspend.CauseTimeout {
		return fmt.Errorf("wait %s: %w", name, flowfabric.ErrWaitTimeout)
	}
	return nil
}

// On is a wait for handlers that are state machines of their own: returned by one, it suspends the execution, and the
// next run finds the answer with [Task.Resumed]. Nothing is kept for later runs. A condition or option that is not
// valid fails the attempt for good. The options At and Named are not for it.
func On(cond suspend.Condition, opts ...suspend.Option) error {
	w, err := waitOptionsOf(opts).wanted("", cond)
	if err != nil {
		return err
	}
	return w
}

// Resumed tells what ended the execution's last suspension; ok is false if there was none. A timeout is an answer
// here.
func (t *Task) Resumed() (r suspend.Result, ok bool) {
	last := t.ownWaits().Last()
	if last == nil {
		return suspend.Result{}, false
	}
	return *last, true
}

// IsWait reports that err asks to wait, for children and for a turn at a service ([Task.Acquire]) too, so that
// middleware does not take it for a failure.
func IsWait(err error) bool {
	delay, ok := errors.AsType[*delayError](err)
	return ok && delay.service != "" || is[*waitwords.Wanted](err) || is[*childWait](err)
}
