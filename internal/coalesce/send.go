package coalesce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// firstPause is before the first repeat of a call; the pauses grow to 2 s.
const firstPause = 20 * time.Millisecond

// batch is what one create call carries.
type batch struct {
	partition uint16
	items     []*Entry
	try       *try
}

// try is what is known of the tries of one batch. Coalescer.mu guards it.
type try struct {
	underWay bool // a call is being made
	maybe    bool // some call may have reached the server
}

// send makes the create call of a batch and fills in every item's answer. It repeats the call, with the same ids,
// while its outcome is unknown or the partition is frozen; no other layer does.
func (c *Coalescer) send(ctx context.Context, b batch) {
	var pauses *backoff.ExponentialBackOff // the usual case needs none
	for {
		sent, items := c.begin(b)
		var created []engine.Created
		var err error
		if len(items) > 0 {
			created, err = c.cfg.Store.CreateExecutions(ctx, b.partition, items)
		}
		maybe := c.ended(b, err)
		if err != nil && link.Repeatable(err) {
			if pauses == nil {
				pauses = backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause),
					backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(c.cfg.Timeout))
			}
			if pause := pauses.NextBackOff(); pause != backoff.Stop && rest(ctx, pause) {
				continue
			}
		}
		if err != nil && ctx.Err() != nil && (link.Repeatable(err) || errors.Is(err, ctx.Err())) {
			err = link.Ended(ctx)
		}
		c.answer(sent, created, err, maybe)
		return
	}
}

// begin notes that a try is under way, and returns those of a batch whose callers are still there.
func (c *Coalescer) begin(b batch) (sent []*Entry, items []engine.NewExecution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.try.underWay = true
	if sent = b.items; slices.ContainsFunc(sent, func(p *Entry) bool { return p.gone }) {
		sent = slices.DeleteFunc(slices.Clone(sent), func(p *Entry) bool { return p.gone })
	}
	items = make([]engine.NewExecution, len(sent))
	for i, p := range sent {
		items[i] = p.Sub.Item
	}
	return sent, items
}

// ended notes that a try has ended, and tells whether any try of the batch may have reached the server.
func (c *Coalescer) ended(b batch, err error) (maybe bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.try.underWay = false
	b.try.maybe = b.try.maybe || !certainlyNot(err)
	return b.try.maybe
}

// answer fills in what became of the items that were sent at last. The callers of the others have left, and were told
// so.
func (c *Coalescer) answer(sent []*Entry, created []engine.Created, err error, maybe bool) {
	if err == nil && len(created) != len(sent) {
		err = fmt.Errorf("%w: %d answers to %d items", denied.Reply, len(created), len(sent))
	}
	for i, p := range sent {
		if err != nil {
			p.Err = c.callError(p.Sub.Item.ID, err, maybe)
		} else {
			p.Created, p.Err = created[i], itemError(p.Sub, created[i])
		}
	}
}

// rest lets time pass; false if ctx ended before.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// certainlyNot tells errors of calls that created nothing: there was no connection, or the server refused before it
// did anything.
func certainlyNot(err error) bool {
	return engine.NotSent(err) || errors.Is(err, flowfabric.ErrPartitionFrozen) || refusedUnread(err)
}

// refusedUnread tells refusals of a command that the server did not look into, for want of memory or of rights.
func refusedUnread(err error) bool {
	return errors.Is(err, flowfabric.ErrOutOfMemory) || errors.Is(err, flowfabric.ErrAuth)
}

// callError is the error of one item of a call that failed as a whole; maybe says whether one of its tries may have
// reached the server.
func (c *Coalescer) callError(id flowfabric.ExecutionID, err error, maybe bool) error {
	lost := errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
	switch {
	case lost && !maybe:
		return fmt.Errorf("submit: %w (nothing was sent)", err)
	case lost:
		return c.cfg.Unknown(id, err)
	case maybe && refusedUnread(err): // what became of an earlier try is still unknown
		return c.cfg.Unknown(id, fmt.Errorf("%w: an earlier try was not answered, then: %w", flowfabric.ErrTransport,
			err))
	}
	return fmt.Errorf("submit %s: %w", id, err)
}

// itemError is the error of one refused item.
func itemError(sub *Submission, created engine.Created) error {
	err := created.Err
	if err == nil {
		return nil
	}
	if sub.Item.Key != nil && errors.Is(err, denied.Idempotency) {
		err = link.InWords(fmt.Sprintf("idempotency_conflict: key %q names an execution with another payload",
			sub.Item.Key.Text), err)
	}
	return fmt.Errorf("submit %s: %w", created.ID, err)
}
