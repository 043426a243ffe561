package handler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// Batch says how executions are gathered for one call of a function, see [BindBatch].
type Batch struct {
	// Size is how many executions a call gets at most: 1..1000, and no more than the worker's Concurrency.
	Size int
	// Wait is how long the first execution of a call waits for others: 1 ms..1 min, and less than the Timeout of the
	// kind. Default 10 ms. Nothing waits for longer than half of the time that it has left.
	Wait time.Duration
}

// defaultBatchWait is Batch.Wait where nothing is said.
const defaultBatchWait = 10 * time.Millisecond

// check fills in the default and refuses what is out of bounds.
func (b *Batch) check() error {
	if b.Wait == 0 {
		b.Wait = defaultBatchWait
	}
	switch {
	case b.Size < 1 || b.Size > limits.MaxBatchSize:
		return fmt.Errorf("%w: Batch.Size is %d, want 1..%d", flowfabric.ErrInvalidInput, b.Size, limits.MaxBatchSize)
	case b.Wait < time.Millisecond || b.Wait > limits.MaxBatchWait:
		return fmt.Errorf("%w: Batch.Wait is %s, want 1ms..%s", flowfabric.ErrInvalidInput, b.Wait, limits.MaxBatchWait)
	}
	return nil
}

// Item is one execution of a call of a batch function: its input, and its end. Its methods may be called
// concurrently, until the function has returned; later calls have no effect.
type Item[In, Out any] struct {
	In In
	// Task is that of the execution: its fence, tags, progress, frames and spending are its own. Steps, waits,
	// messages and children are not available in a batch, and fail with flowfabric.ErrInvalidInput.
	Task *Task

	ctx   context.Context
	batch *batch[In, Out]
	ended bool
	out   Out
	err   error
}

// Context ends when this execution is no longer to be worked on, whatever becomes of the others: it was cancelled,
// its lease is lost, its deadline or the timeout of its attempt has passed, or the worker drains. context.Cause tells
// which.
func (i *Item[In, Out]) Context() context.Context { return i.ctx }

// Complete gives the execution its result. The first of Complete and Fail counts. It is stored after the function has
// returned.
func (i *Item[In, Out]) Complete(out Out) { i.end(out, nil) }

// Fail ends the attempt of this execution with an error, and no other: its policy decides whether it is tried again.
// [Permanent], [RetryAfter], [Category], [Delay] and [Cancel] mean what they mean in any handler.
func (i *Item[In, Out]) Fail(err error) {
	if err == nil {
		err = errors.New("the batch handler failed the item without an error")
	}
	var none Out
	i.end(none, err)
}

func (i *Item[In, Out]) end(out Out, err error) {
	i.batch.mu.Lock()
	defer i.batch.mu.Unlock()
	if !i.ended && !i.batch.over {
		i.ended, i.out, i.err = true, out, err
	}
}

// BindBatch joins a definition and a function that gets several executions in one call: up to size.Size of them, or
// those that came within size.Wait. They are executions of one kind, lane and namespace that this worker has claimed;
// each keeps its own fence, lease, retries, timeout and history, and counts as one of the worker's Concurrency while
// it waits for others and while the function runs.
//
//	handler.BindBatch(Index, func(ctx context.Context, items []*handler.Item[Doc, int]) error {
//		for _, item := range items { … item.Complete(n) or item.Fail(err) … }
//		return nil
//	}, handler.Batch{Size: 100, Wait: 50 * time.Millisecond})
//
// Each execution ends as its item does: with [Item.Complete], or with [Item.Fail], after which only that one is tried
// again. What the function has ended counts, whatever it returns then. Items that it has not ended fail with the
// error that it returns, each by its own policy; after nil they fail, too, since a result is missing. A panic fails
// them with category handler_panic.
//
// ctx ends when the timeout of an attempt in the call passes (the strictest counts for all items), when the worker
// drains, or when no item is to be worked on any more. Items that are not ended then fail with attempt_timeout, or go
// back to their queue in a drain. An item that is cancelled or whose lease is lost concerns no other: its own context
// ends. ctx carries the values of the first item's context.
//
// Middleware wraps every item's run, and not the call: what it measures includes the wait for others. A drain hands
// back at once what waits. fn is called concurrently, once its items are complete. An out-of-bounds size, a nil def
// or fn, or an invalid definition is reported by [Binding.Err] and runtime.New, as is a Size above the worker's
// Concurrency by the latter.
func BindBatch[In, Out any](def *Definition[In, Out], fn func(ctx context.Context, items []*Item[In, Out]) error,
	size Batch) Binding {
	switch {
	case def == nil:
		return Binding{err: fmt.Errorf("%w: BindBatch: the definition is nil", flowfabric.ErrInvalidInput)}
	case def.err != nil:
		return Binding{info: def.Info(), err: def.err}
	case fn == nil:
		return Binding{info: def.Info(),
			err: fmt.Errorf("%w: BindBatch: the function for kind %s is nil", flowfabric.ErrInvalidInput, def.Kind())}
	}
	b := typed(def)
	b.batch = size
	err := b.batch.check()
	if timeout := def.info.Policy.AttemptTimeout; err == nil && timeout > 0 && time.Duration(timeout) <= b.batch.Wait {
		err = fmt.Errorf("%w: Batch.Wait is %s, want less than the Timeout of %s, which runs meanwhile",
			flowfabric.ErrInvalidInput, b.batch.Wait, timeout)
	}
	if err != nil {
		return Binding{info: def.Info(), err: fmt.Errorf("BindBatch: kind %s: %w", def.Kind(), err)}
	}
	g := &gatherer[In, Out]{size: b.batch, fn: fn, open: map[place]*batch[In, Out]{}}
	b.run = func(ctx context.Context, t *Task) (out Outcome) {
		defer t.rescue(ctx, &out)
		t.bar(errInBatch)
		item := &Item[In, Out]{Task: t, ctx: ctx}
		if err := t.decodeInput(b.codec, &item.In); err != nil {
			return b.undecodable(ctx, t, err)
		}
		if refused, ok := g.join(item); ok {
			return refused
		}
		if item.ended && item.err == nil {
			return b.complete(ctx, t, item.out)
		}
		return item.failure()
	}
	return b
}

// Batch is how executions are gathered; the zero value for a handler of one execution a call.
func (b Binding) Batch() Batch { return b.batch }

var errInBatch = fmt.Errorf("%w: steps, waits, messages and children are not available in a batch handler",
	flowfabric.ErrInvalidInput)

// gatherer fills the calls of one function. The runs of its items wait here, each in its own goroutine with its own
// slot; that of a call's first item has the call made in a goroutine of its own.
type gatherer[In, Out any] struct {
	size Batch
	fn   func(ctx context.Context, items []*Item[In, Out]) error

	mu   sync.Mutex
	open map[place]*batch[In, Out] // that take more items
}

// place is what all executions of a call have in common.
type place struct {
	worker          *tasks.Worker
	namespace, lane string
}

// batch is one call, from its first item on. The gatherer's mu guards items until it is sealed; its own mu what the
// function says of them.
type batch[In, Out any] struct {
	place  place
	items  []*Item[In, Out]
	since  time.Time
	due    time.Time // when the timer begins it
	timer  *time.Timer
	sealed chan struct{} // closed when no item comes or goes any more
	done   chan struct{} // closed when the call has ended

	mu       sync.Mutex
	left     int // items whose context has not ended
	over     bool
	returned bool
	panicked any
	err      error
	cause    error // why the call's context ended before
}

// join waits with an item until its call has ended. It answers for an item that leaves before the call begins.
func (g *gatherer[In, Out]) join(item *Item[In, Out]) (out Outcome, left bool) {
	b := g.enter(item)
	select {
	case <-b.sealed:
	case <-item.ctx.Done():
		if g.leave(b, item) {
			return Classify(item.ctx, item.Task, context.Cause(item.ctx)), true
		}
	case <-b.place.draining():
		if g.leave(b, item) {
			return Outcome{Kind: codes.OutcomeRelease, Err: flowfabric.ErrDraining}, true
		}
	}
	<-b.sealed // at once: it has not left because it was sealed
	if b.items[0] == item {
		var call conc.WaitGroup // runtime.Goexit in the function ends no item's run, which has an outcome to tell
		call.Go(func() { g.call(b) })
		call.Wait()
	}
	<-b.done
	return Outcome{}, false
}

// enter adds an item to the call that is being filled, and begins it if that is complete.
func (g *gatherer[In, Out]) enter(item *Item[In, Out]) *batch[In, Out] {
	cfg := &item.Task.cfg
	at := place{cfg.Worker, cfg.Route.Namespace, cfg.Route.Lane}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.open[at]
	if b == nil {
		b = &batch[In, Out]{place: at, since: time.Now(), sealed: make(chan struct{}), done: make(chan struct{})}
		b.timer = time.AfterFunc(g.size.Wait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.seal(b)
		})
		b.due = b.since.Add(g.size.Wait)
		g.open[at] = b
	}
	if end, ok := item.ctx.Deadline(); ok {
		if half := time.Now().Add(time.Until(end) / 2); half.Before(b.due) { // else it would end before the call begins
			b.due = half
			b.timer.Reset(time.Until(half))
		}
	}
	item.batch = b
	b.items = append(b.items, item)
	if len(b.items) == g.size.Size {
		g.seal(b)
	}
	return b
}

// seal lets a call begin. The gatherer is locked.
func (g *gatherer[In, Out]) seal(b *batch[In, Out]) {
	if g.open[b.place] == b {
		delete(g.open, b.place)
		b.timer.Stop()
		close(b.sealed)
	}
}

// leave takes an item out of a call that has not begun.
func (g *gatherer[In, Out]) leave(b *batch[In, Out], item *Item[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[b.place] != b {
		return false
	}
	b.items = slices.DeleteFunc(b.items, func(other *Item[In, Out]) bool { return other == item })
	if len(b.items) == 0 {
		delete(g.open, b.place)
		b.timer.Stop()
	}
	return true
}

// call calls the function with the items that are still to be worked on.
func (g *gatherer[In, Out]) call(b *batch[In, Out]) {
	defer close(b.done)
	live := make([]*Item[In, Out], 0, len(b.items))
	for _, item := range b.items {
		if item.ctx.Err() == nil && item.Task.held() == nil {
			live = append(live, item)
		}
	}
	if len(live) == 0 {
		return
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(live[0].ctx))
	defer cancel(nil)
	ended := func(error) {}
	if w := b.place.worker; w != nil && w.Batch != nil {
		of := make([]context.Context, len(live))
		for i, item := range live {
			of[i] = item.ctx
		}
		ctx, ended = w.Batch(ctx, live[0].Task.cfg.Route, of, time.Since(b.since))
	}
	b.left = len(live)
	for _, item := range live {
		defer context.AfterFunc(item.ctx, func() { b.lost(context.Cause(item.ctx), cancel) })()
	}
	defer func() {
		b.mu.Lock()
		b.over = true
		b.cause = context.Cause(ctx)
		if !b.returned {
			if b.panicked = recover(); b.panicked != nil {
				live[0].Task.Logger().ErrorContext(ctx, "flowfabric: batch handler panicked", "items", len(live),
					"panic", fmt.Sprint(b.panicked), "stack", string(debug.Stack()))
			}
		}
		err := b.failed()
		b.mu.Unlock()
		ended(err)
	}()
	err := g.fn(ctx, live)
	b.mu.Lock()
	b.err, b.returned = err, true
	b.mu.Unlock()
}

// lost ends the call's context if the end of an item's concerns all: the timeout of an attempt, a drain, or the end
// of the last one.
func (b *batch[In, Out]) lost(cause error, cancel context.CancelCauseFunc) {
	b.mu.Lock()
	b.left--
	last := b.left == 0
	b.mu.Unlock()
	if last || errors.Is(cause, flowfabric.ErrAttemptTimeout) || errors.Is(cause, flowfabric.ErrDraining) {
		cancel(cause)
	}
}

// failed is what items are told that the function has not ended. The batch is locked, or over.
func (b *batch[In, Out]) failed() error {
	switch {
	case b.panicked != nil:
		if err, ok := b.panicked.(error); ok {
			return fmt.Errorf("panic: %w", err)
		}
		return fmt.Errorf("panic: %v", b.panicked)
	case !b.returned:
		return errors.New("the batch handler ended its goroutine (runtime.Goexit)")
	}
	return b.err
}

// failure is the outcome of an item without a result.
func (i *Item[In, Out]) failure() Outcome {
	b, err := i.batch, i.err
	if !i.ended {
		err = b.failed()
		if lost := i.Task.lost(i.ctx); lost != nil {
			return Outcome{Kind: codes.OutcomeAbandon, Err: lost}
		}
		if b.panicked != nil || !b.returned {
			if i.ctx.Err() != nil { // it did not take part, or its end came first
				return Classify(i.ctx, i.Task, context.Cause(i.ctx))
			}
			return plainFailure(causes.Panic, err)
		}
	}
	switch {
	case i.ctx.Err() != nil:
		if err == nil {
			err = context.Cause(i.ctx)
		}
		return Classify(i.ctx, i.Task, err)
	case b.cause != nil:
		if err == nil {
			err = b.cause
		}
		if out, ok := interrupted(b.cause, err); ok && (!deliberate(err) || fromContext(err, b.cause)) {
			return out
		}
	case err == nil:
		err = errors.New("the batch handler returned without ending this item: call Complete or Fail for each")
	}
	return Classify(i.ctx, i.Task, err)
}

// draining is closed when the worker takes no more work; nil without a worker.
func (p place) draining() <-chan struct{} {
	if p.worker == nil {
		return nil
	}
	return p.worker.Draining
}

// bar refuses steps, waits, messages and children in this run.
func (t *Task) bar(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.barred = err
}

// bars is why steps, waits, messages and children are refused, nil if they are not.
func (t *Task) bars() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.barred
}
