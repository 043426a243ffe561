package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// cancelWait is how long [Flow.CancelAndWait] waits when its context has no deadline.
const cancelWait = 30 * time.Second

// maxLeft is how many nodes a partial cancellation names.
const maxLeft = 1000

// FlowCancellation is the result of [Flow.Cancel].
type FlowCancellation struct {
	Already bool                          `json:"already" jsonschema:"it was cancelled before: policy and reason are what was said then"`
	Policy  flowfabric.CancellationPolicy `json:"policy"`
	Reason  string                        `json:"reason"`
	// members that had not ended when the answer was given, active ones of CancelPending and all of CancelFlow
	// included
	Unended int `json:"unended" jsonschema:"members that had not ended when this was answered, those that the policy leaves alone included"`
	// Left are members that are still to be cancelled when [Flow.CancelAndWait] ran out of time: the first 1,000.
	Left []flowfabric.MemberRecord `json:"-"`
}

// Cancel cancels the flow: it takes no members any more, and its own become what policy says. flowfabric.CancelAll
// cancels every member that has not ended: a handler that runs gets a context ended with flowfabric.ErrCancelled.
// CancelPending cancels those that are not active. CancelFlow cancels none; they go on as if nothing had happened. A
// flow that was never released is cancelled with all of its members. Members that a cancellation covers end
// cancelled, none is skipped, and from the call on none of them is handed to a worker, however long the rest takes:
// 64 members are cancelled by the call itself, the others by calls that Cancel makes before it returns, at the latest
// by the tick. When the last member has ended the flow has, see [Flow.Wait].
//
// Cancelling twice is no error: the first policy and reason stand, and are returned. The reason is cut to 1 KiB;
// without one it is "flow_cancelled".
//
// Errors: flowfabric.ErrInvalidInput for another policy; ErrTerminal, with the state, for a flow that has completed or
// failed; ErrNotFound; ErrInvalidInput for a By of more than 64 bytes.
func (f *Flow) Cancel(ctx context.Context, policy flowfabric.CancellationPolicy,
	opts ...flowfabric.ActOption) (FlowCancellation, error) {
	out, more, err := f.cancel(ctx, policy, opts)
	if err == nil && more {
		link.Drain(ctx, f.client.store, f.id.Partition())
		if record, err := f.client.store.DescribeFlow(ctx, f.id); err == nil {
			// it is cancelled, whether or not that is answered
			out.Unended = unended(record)
		}
	}
	return out, err
}

// CancelAndWait is [Flow.Cancel] that returns only once nothing that the policy covers is left: no member at all of
// flowfabric.CancelAll, none but the active ones of CancelPending. It waits until the deadline of its context, or for
// 30 s without one.
//
// Errors: those of Cancel; the context's error when time ran out: then the flow is cancelled, the FlowCancellation is
// valid, and its Left are being cancelled.
func (f *Flow) CancelAndWait(ctx context.Context, policy flowfabric.CancellationPolicy,
	opts ...flowfabric.ActOption) (FlowCancellation, error) {
	out, _, err := f.cancel(ctx, policy, opts)
	if err != nil {
		return out, err
	}
	return f.untilCancelled(ctx, out)
}

// cancel makes the call; more: the backlog goes on with it.
func (f *Flow) cancel(ctx context.Context, policy flowfabric.CancellationPolicy,
	opts []flowfabric.ActOption) (out FlowCancellation, more bool, err error) {
	if err := f.admit("cancel"); err != nil {
		return out, false, err
	}
	act, err := f.client.act(opts)
	if err != nil {
		return out, false, link.AboutFlow("cancel", f.id, err)
	}
	done, err := f.client.store.CancelFlow(act.Noted(ctx, "cancel", "flow", f.id.String(), string(policy)), f.id,
		policy)
	if err != nil {
		return out, false, link.AboutFlow("cancel", f.id, err)
	}
	return FlowCancellation{Already: done.Already, Policy: done.Policy, Reason: done.Reason, Unended: done.Unended},
		done.More, nil
}

// untilCancelled works off the backlog until nothing that the policy covers is left.
func (f *Flow) untilCancelled(ctx context.Context, out FlowCancellation) (FlowCancellation, error) {
	within := ctx
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, cancelWait)
		defer cancel()
	}
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(10*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	last := error(nil)
	for {
		record, err := f.client.store.DescribeFlow(within, f.id)
		if err != nil && (link.Final(within, err) || errors.Is(err, denied.NoFlow)) {
			return out, link.AboutFlow("cancel", f.id, err)
		}
		if err == nil {
			out.Unended = unended(record)
			if covered(record) == 0 {
				return out, nil
			}
		}
		last = err
		more := false
		if err == nil && record.Backlog > 0 {
			more, last = f.client.store.DrainFlows(within, f.id.Partition())
		}
		if more && last == nil {
			continue
		}
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-within.Done():
			return f.partial(out, link.Ended(within), last)
		}
	}
}

// partial is the answer when time has run out.
func (f *Flow) partial(out FlowCancellation, why, last error) (FlowCancellation, error) {
	ctx, cancel := context.WithTimeout(f.client.waits.life, 5*time.Second)
	defer cancel()
	if s, err := f.snapshot(ctx); err == nil {
		out.Unended = unended(s.FlowRecord)
		for _, m := range s.Nodes {
			if len(out.Left) < maxLeft && m.State.Public != "" && !m.State.Terminal() &&
				(out.Policy == flowfabric.CancelAll || m.State.Public != flowfabric.Active) {
				out.Left = append(out.Left, m)
			}
		}
	}
	if last != nil {
		why = fmt.Errorf("%w (last call: %w)", why, last)
	}
	return out, fmt.Errorf("cancel flow %s: it is cancelled, and some of its members are not yet: %w", f.id, why)
}

// covered is how many members of a cancelled flow are still to be cancelled.
func covered(r flowfabric.FlowRecord) int {
	switch r.Policy {
	case flowfabric.CancelAll:
		return unended(r)
	case flowfabric.CancelPending:
		return unended(r) - r.Count[flowfabric.Active]
	}
	return 0
}
