package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Permit lets a handler make one call to a service. Safe for concurrent use.
type Permit struct {
	task *Task
	call engine.ServiceCall

	mu       sync.Mutex
	admitted bool
	how      engine.CallEnd // what was said of its end, "" nothing yet
	over     bool           // the gate knows
}

// calls are what a task asks of services.
type calls struct {
	mu    sync.Mutex
	last  uint64                   // number of the newest call
	turns map[string]chan struct{} // one call at a time asks for its turn at a service
	open  []*Permit                // that have not ended
}

// turn returns the lock of a service.
func (c *calls) turn(service string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns == nil {
		c.turns = map[string]chan struct{}{}
	}
	if c.turns[service] == nil {
		c.turns[service] = make(chan struct{}, 1)
	}
	return c.turns[service]
}

// Acquire waits for the turn of a call to a service, such as a model, whose gate has an [admission.Service]: as many
// calls pass as that allows in a minute and at once, over all workers. Say what the call will use at most or about,
// make it, and tell the permit how it ended; what was estimated and not used is given back to the service's minute.
//
//	answer, err := handler.Step(ctx, t, "answer", func(ctx context.Context) (string, error) {
//		p, err := t.Acquire(ctx, "openai/gpt-5", map[string]int64{"tokens": 4000})
//		if err != nil {
//			return "", err // also when it waits: return it
//		}
//		text, used, err := llm.Generate(ctx, in.Topic, 4000)
//		if status, ok := errors.AsType[*llm.TooManyRequests](err); ok {
//			return "", errors.Join(err, p.Refused(ctx, status.RetryAfter))
//		}
//		return text, errors.Join(err, p.Settle(ctx, map[string]int64{"tokens": used}))
//	})
//
// Namespaces share the service by weight, and in a namespace it goes by priority, then by age. If the turn comes
// within the service's patience (2 s unless it says otherwise; a quarter while several namespaces wait), Acquire waits
// for it in the slot. Otherwise it returns an error that the handler returns: the execution gives its slot up, keeps
// its place, uses no retry, and when its turn is near the handler runs again, with its recorded steps. An execution has
// one place in the line of a service: concurrent calls of a task to the same service ask one after the other.
//
// estimate is 0..2^53-1 by dimension, at most 8 of them, none of which is above what a minute has. Of requests it is 1
// unless it says more; dimensions that the service does not limit are not counted. One call to the server for a turn,
// one when it has ended, and one each time it asks again.
//
// Errors: ErrInvalidInput for the name and the estimate, and for a gate that is none of a service; ErrNotFound: nobody
// made the gate (admin.PutGate, `flowfabric gate create`); code task_consumed after the handler returned; ErrTransport;
// the context's cause. Then nothing was let through, or it is given back.
func (t *Task) Acquire(ctx context.Context, service string, estimate map[string]int64) (_ *Permit, err error) {
	defer func() { err = denied.Last(err) }()
	if err := cmp.Or(valid.Service("service", service), validateUsage(admission.Usage{Amounts: estimate})); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if len(estimate) > limits.MaxServiceDimensions {
		return nil, fmt.Errorf("acquire: %w: %d dimensions, want at most %d", flowfabric.ErrInvalidInput, len(estimate),
			limits.MaxServiceDimensions)
	}
	p := &Permit{task: t, call: engine.ServiceCall{Service: service, Fence: t.Fence(), Namespace: t.Namespace(),
		Priority: t.cfg.Claim.Priority, Since: t.cfg.Claim.CreatedAt, Estimate: maps.Clone(estimate)}}
	if t.cfg.Services == nil {
		p.admitted, p.over = true, true
		return p, nil
	}
	turn := t.calls.turn(service)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("acquire: %w", context.Cause(ctx))
	}
	defer func() { <-turn }()
	if err := t.calls.begin(t, p); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	open, err := p.wait(ctx)
	if err != nil {
		if !open {
			p.over = true
			t.calls.close(p)
		} else { // else, if it was let through, it ends when the handler returns, or its lease is over
			ctx, cancel := outlive(ctx, spendGrace)
			defer cancel()
			_ = p.end(ctx, engine.CallReleased)
		}
		return nil, fmt.Errorf("acquire %s: %w", service, err)
	}
	t.called(tasks.CallAdmitted)
	return p, nil
}

// begin gives a call its number.
func (c *calls) begin(t *Task, p *Permit) error {
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if ended {
		return fmt.Errorf("%w: the handler has returned", denied.TaskConsumed)
	}
	c.last++
	p.call.Number = c.last
	c.open = append(c.open, p)
	return nil
}

// close forgets a call that has ended.
func (c *calls) close(p *Permit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, func(x *Permit) bool { return x == p })
}

// wait asks until the call may be made, or is to wait without a slot. open: it is not known whether it was let through.
func (p *Permit) wait(ctx context.Context) (open bool, err error) {
	began := time.Now()
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		x := p.call
		x.Waited = time.Since(began)
		turn, err := p.task.cfg.Services.Acquire(ctx, x)
		if errors.Is(err, flowfabric.ErrNotFound) {
			return false, fmt.Errorf(
				"%w: nobody made this service's gate; make it with admin.PutGate or `flowfabric gate create %s`", err,
				p.call.Service)
		}
		if err != nil {
			return ledger.Open(err), err
		}
		if turn.Admitted {
			p.mu.Lock()
			p.admitted = true
			p.mu.Unlock()
			return false, nil
		}
		if !turn.Stay {
			p.task.called(tasks.CallAway)
			return false, &delayError{after: turn.Retry, service: p.call.Service, place: turn.Place, of: turn.Waiting}
		}
		timer := time.NewTimer(turn.Retry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// called says what becomes of a call.
func (t *Task) called(what tasks.Call) {
	if t.cfg.OnCall != nil {
		t.cfg.OnCall(what)
	}
}

// Settle says what the call used, by dimension, also after the context has ended; nil is as much as was estimated.
// Nothing that was said of its end before is changed by it.
//
// Errors: ErrInvalidInput for amounts, before any call; ErrTransport: it is said again when the handler returns.
func (p *Permit) Settle(ctx context.Context, used map[string]int64) (err error) {
	defer func() { err = denied.Last(err) }()
	if err := validateUsage(admission.Usage{Amounts: used}); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if used == nil {
		used = p.call.Estimate
	}
	return p.say(ctx, engine.CallSettled, used, 0)
}

// Release says that the call was not made, for certain: what was estimated is given back. Errors: as Settle.
func (p *Permit) Release(ctx context.Context) (err error) {
	defer func() { err = denied.Last(err) }()
	return p.say(ctx, engine.CallReleased, nil, 0)
}

// Refused says that the service refused the call because there are too many (HTTP status 429), and that it is to be
// asked again after a time, 0 if it did not say (at most an hour). The service is closed for all workers until then;
// without a time for 1 s, twice as long each time until a call succeeds, at most a minute, and after two refusals in a
// row one call at a time tries. Each refusal takes its rates down to 0.7 of what they were, at most once a second and
// not below a twentieth; a twentieth of the full rate comes back every 10 s. Errors: as Settle.
func (p *Permit) Refused(ctx context.Context, retryAfter time.Duration) (err error) {
	defer func() { err = denied.Last(err) }()
	return p.say(ctx, engine.CallRefused, nil, retryAfter)
}

func (p *Permit) say(ctx context.Context, how engine.CallEnd, used map[string]int64, pause time.Duration) error {
	p.mu.Lock()
	first := p.how == ""
	if first {
		p.how, p.call.Used, p.call.Pause = how, maps.Clone(used), pause
	}
	p.mu.Unlock()
	if first {
		p.task.called(map[engine.CallEnd]tasks.Call{engine.CallSettled: tasks.CallSettled,
			engine.CallReleased: tasks.CallReleased, engine.CallRefused: tasks.CallRefused}[how])
	}
	ctx, cancel := outlive(ctx, spendGrace)
	defer cancel()
	return p.end(ctx, how)
}

// end tells the gate what was said of the call, or how it ended if nothing was.
func (p *Permit) end(ctx context.Context, how engine.CallEnd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	if p.how != "" {
		how = p.how
	}
	x := p.call
	if how == engine.CallSettled && p.how == "" {
		x.Used = x.Estimate
	}
	_, err := p.task.cfg.Services.EndCall(ctx, x, how)
	if err != nil && ledger.Open(err) {
		return fmt.Errorf("%s: %w", how, err)
	}
	p.over = true
	p.task.calls.close(p)
	return nil
}

// ended ends all calls of a run: as it was said, else in full.
func (c *calls) ended(ctx context.Context, t *Task) {
	c.mu.Lock()
	open := slices.Clone(c.open)
	c.mu.Unlock()
	if len(open) == 0 { // as of nearly every run
		return
	}
	ctx, cancel := outlive(ctx, spendGrace)
	defer cancel()
	for _, p := range open {
		p.mu.Lock()
		admitted, said := p.admitted, p.how
		p.mu.Unlock()
		how := engine.CallReleased
		if admitted && said == "" {
			how = engine.CallSettled
			t.called(tasks.CallForgotten)
			t.Logger().WarnContext(ctx,
				"flowfabric: the end of a call was not told to the gate of its service; it counts as estimated",
				"service", p.call.Service)
		}
		if err := p.end(ctx, how); err != nil {
			t.Logger().WarnContext(ctx, "flowfabric: the gate of a service does not know that a call has ended",
				"service", p.call.Service, "error", err)
		}
	}
}
