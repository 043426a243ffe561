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
func (e *Execution[Out]) AwaitSuspension(ctx context.Context) (suspend.Record, error) {
	c, id := e.client, e.id
	s, done, err := e.suspended(ctx)
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
		if s, done, err = e.suspended(ctx); done {
			return s, err
		}
	}
}

// suspended reads once; done is false while it runs or waits for a worker, and after an error that may pass.
func (e *Execution[Out]) suspended(ctx context.Context) (s suspend.Record, done bool, err error) {
	s, err = e.Suspension(ctx)
	if err != nil {
		return s, link.Final(ctx, err), err
	}
	if s.State.Terminal() {
		return s, true, fmt.Errorf("wait for the suspension of %s: %w: it is %s", e.id, flowfabric.ErrTerminal,
			s.State)
	}
	return s, s.State == flowfabric.Suspended, nil
}
