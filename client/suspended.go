package client

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// AwaitSuspension waits until the execution is suspended, and tells what it waits for. flowfabric.ErrTerminal when it
// has ended instead; ErrNotFound, ErrResultPurged; the context's cause.
func (c *Client) AwaitSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error) {
	s, done, err := c.suspension(ctx, id)
	if done {
		return s, err
	}
	bell, leave, closed := c.waits.join(id)
	if closed != nil {
		return s, fmt.Errorf("wait for the suspension of %s: %w", id, closed)
	}
	defer leave()
	safety := time.NewTimer(link.Jitter(link.Recheck))
	defer safety.Stop()
	for {
		select {
		case <-bell:
		case <-safety.C:
		case <-ctx.Done():
			return s, waitError(id, link.Ended(ctx), err)
		case <-c.waits.life.Done():
			return s, waitError(id, ErrClosed, err)
		}
		safety.Reset(link.Jitter(link.Recheck))
		if s, done, err = c.suspension(ctx, id); done {
			return s, err
		}
	}
}

// suspension reads once; done is false while it runs or waits for a worker, and after an error that may pass.
func (c *Client) suspension(ctx context.Context, id flowfabric.ExecutionID) (s suspend.Record, done bool, err error) {
	s, err = c.Suspension(ctx, id)
	if err != nil {
		return s, link.Final(ctx, err), err
	}
	state, _ := flowfabric.Project(s.Code)
	if state.Terminal() {
		return s, true, fmt.Errorf("wait for the suspension of %s: %w: it is %s", id, flowfabric.ErrTerminal,
			state.Public)
	}
	return s, state.Public == flowfabric.Suspended, nil
}

// AwaitSuspension waits until the execution is suspended; see [Client.AwaitSuspension].
func (e *Execution[Out]) AwaitSuspension(ctx context.Context) (suspend.Record, error) {
	return e.client.AwaitSuspension(ctx, e.id)
}

// Suspension tells what the execution waits for, or last waited for; see [Client.Suspension].
func (e *Execution[Out]) Suspension(ctx context.Context) (suspend.Record, error) {
	return e.client.Suspension(ctx, e.id)
}

// Waitpoints lists its waitpoints; see [Client.Waitpoints].
func (e *Execution[Out]) Waitpoints(ctx context.Context) ([]suspend.Waitpoint, error) {
	return e.client.Waitpoints(ctx, e.id)
}

// Approve answers one of its waitpoints on the word of an operator; see [Client.Approve].
func (e *Execution[Out]) Approve(ctx context.Context, waitpoint string, payload any,
	opts ...ApproveOption) (suspend.Delivered, error) {
	return e.client.Approve(ctx, e.id, waitpoint, payload, opts...)
}

// Send puts a message into one of its mailboxes; see [Client.Send].
func (e *Execution[Out]) Send(ctx context.Context, mailbox string, payload any, opts ...SendOption) (Sent, error) {
	return e.client.Send(ctx, e.id, mailbox, payload, opts...)
}
