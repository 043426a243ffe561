package lease

import (
	"cmp"
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

const maxClaim = limits.MaxBatch

// Held is an execution that this process holds. Exactly one of Complete, Fail, Delay and Release ends that; after a
// loss of the lease none is needed. The fields are what the claim brought and must not be changed. Safe for concurrent
// use.
type Held struct {
	flowfabric.Route                        // namespace, lane, kind and capabilities
	Fence            flowfabric.Fence       // its id, its attempt, and an Epoch that external systems may compare
	Type             flowfabric.AttemptType // why it was claimed: new, a retry, taken from a dead worker …
	Input            []byte                 // as it was encoded, mostly JSON; still encrypted without its key
	Tags             map[string]string

	session *Session
	held    *keeper.Held
	ctx     context.Context
	cancel  context.CancelFunc
}

// Renewal is how the renewals of a lease go. All times are of this machine's clock. A lease is renewed with all others
// of its partition, and extended by each claim there.
type Renewal struct {
	At      time.Time // when the newest call that extended the lease was sent
	Next    time.Time // when the next is due
	Expires time.Time // from when the server may give the execution to somebody else; the context ends before
	Failed  int       // renewals in a row
}

func newHeld(s *Session, held *keeper.Held, route flowfabric.Route) *Held {
	c := held.Claim()
	h := &Held{Route: route, Fence: c.Fence, Type: c.Type, Input: c.Input, Tags: c.Tags, session: s, held: held}
	h.ctx, h.cancel = held.Bounded(0)
	return h
}

// Context ends when the execution is no longer this process's to run, with the reason as its cause:
// flowfabric.ErrLeaseLost, ErrCancelled, ErrDeadline, ErrAttemptTimeout, ErrOverBudget or ErrDraining.
func (h *Held) Context() context.Context { return h.ctx }

// Check returns nil while the execution may be acted on, else the cause that its context ended with. It reads the
// clock, so a process that was stopped learns here that its lease ran out. Call it before each effect.
func (h *Held) Check() error { return h.held.Check() }

// Renewal tells how the renewals of the lease go.
func (h *Held) Renewal() Renewal { return Renewal(h.held.Renewal()) }

// Renew renews the lease now, before a pause of the process for example, and returns what [Held.Check] says then. An
// error of the server, such as flowfabric.ErrTransport, says nothing about the lease; Check does.
func (h *Held) Renew(ctx context.Context) error { return h.held.Renew(ctx) }

// Complete ends the execution with a result of up to 1 MiB, encoded as its readers expect it (JSON by default).
//
// It is repeated until the server answers, as Fail, Delay and Release are. Errors: the cause of the context if the
// lease is lost; the cause of ctx with the last error, then the outcome is unknown and may be sent again;
// flowfabric.ErrPayloadTooLarge. What the server refuses is still held: fail or release it.
func (h *Held) Complete(ctx context.Context, result []byte) error {
	return h.settle(ctx, "complete", func(ctx context.Context) error {
		items := []engine.Completion{{Fence: h.Fence, Result: result}}
		settled, _, err := h.session.engine.CompleteExecutions(ctx, h.Fence.Execution.Partition(), items, nil)
		switch {
		case err != nil:
			return err
		case len(settled) != 1:
			return denied.New("ff_complete_execution", "parse", "an item has no answer")
		}
		return settled[0].Err
	})
}

// Fail ends the attempt. The execution's retry policy says whether another one follows, after a pause of retryIn. The
// category of f is handler_error by default. Errors: see Complete.
func (h *Held) Fail(ctx context.Context, f handler.Failure) (retry bool, retryIn time.Duration, err error) {
	f.Category = cmp.Or(f.Category, causes.HandlerError)
	err = h.settle(ctx, "fail", func(ctx context.Context) error {
		reply, err := h.session.engine.FailExecution(ctx, h.Fence, engine.Failure(f))
		retry, retryIn = reply.Retry, reply.RetryIn
		return err
	})
	return retry, retryIn, err
}

// Delay puts the execution back for d, 1 ms..10 years, without using up a retry. It waits for that time and nothing
// else: turns at services are handler.Task.Acquire's. Errors: see Complete.
func (h *Held) Delay(ctx context.Context, d time.Duration) error {
	return h.settle(ctx, "delay", func(ctx context.Context) error {
		_, err := h.session.engine.DelayExecution(ctx, h.Fence, d, "")
		return err
	})
}

// Release puts the execution back into its queue, for another process, without using up an attempt. Errors: see
// Complete.
func (h *Held) Release(ctx context.Context) error {
	return h.settle(ctx, "release", func(ctx context.Context) error {
		_, err := h.session.engine.ReleaseExecution(ctx, h.Fence)
		return err
	})
}

// settle makes a settling call and gives up the hold if that ends it.
func (h *Held) settle(ctx context.Context, what string, call func(context.Context) error) error {
	err := h.held.Persist(ctx, call)
	if err == nil || h.held.Check() != nil || keeper.NotOurs(err) {
		h.held.Release()
		h.cancel()
	}
	if err != nil {
		return fmt.Errorf("%s execution %s: %w", what, h.Fence.Execution, err)
	}
	return nil
}
