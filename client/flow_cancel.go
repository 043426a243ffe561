package client

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// FlowCancellation is the result of [Flow.Cancel].
type FlowCancellation struct {
	Already bool                          `json:"already" jsonschema:"it was cancelled before: policy and reason are what was said then"`
	Policy  flowfabric.CancellationPolicy `json:"policy"`
	Reason  string                        `json:"reason"`
	// members that had not ended when the answer was given, active ones of CancelPending and all of CancelFlow
	// included
	Unended int `json:"unended" jsonschema:"members that had not ended when this was answered, those that the policy leaves alone included"`
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
