package client

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// maxPauseReason is the longest reason of a pause, in bytes; maxAgeing and maxShare bound what lanes are told.
const (
	maxPauseReason = 256
	maxAgeing      = 24 * time.Hour
	maxShare       = 1000
)

// Pause keeps an execution that could be claimed, or that budgets and quotas are being asked for, from being handed out until
// [Client.Unpause]. It keeps its age and priority; a deadline goes on. Pausing what is paused is no error. reason has at most 256 bytes.
//
// Errors: flowfabric.ErrNotEligible, with the state, for one that runs, waits for a time, a signal or others; ErrTerminal for one that
// has ended; ErrNotFound; ErrInvalidInput. Spec 10 D20, 70 §5.
func (c *Client) Pause(ctx context.Context, id flowfabric.ExecutionID, reason string, opts ...PauseOption) error {
	by, err := c.pausing("pause", id, opts)
	if err == nil && len(reason) > maxPauseReason {
		err = link.Operated("pause", id, fmt.Errorf("%w: reason has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(reason), maxPauseReason))
	}
	if err != nil {
		return err
	}
	_, err = c.store.PauseExecution(ctx, id, by, reason)
	return link.Operated("pause", id, err)
}

// Unpause ends a [Client.Pause]: the execution takes its old place among those that wait. One that waits already is no error. Errors:
// those of Pause.
func (c *Client) Unpause(ctx context.Context, id flowfabric.ExecutionID, opts ...PauseOption) error {
	by, err := c.pausing("unpause", id, opts)
	if err != nil {
		return err
	}
	_, err = c.store.UnpauseExecution(ctx, id, by)
	return link.Operated("unpause", id, err)
}

func (c *Client) pausing(verb string, id flowfabric.ExecutionID, opts []PauseOption) (by string, err error) {
	by = c.by()
	for _, o := range opts {
		o.pause(&by)
	}
	if err := c.admit(verb, id); err != nil {
		return by, err
	}
	return by, link.Operated(verb, id, validateBy(by))
}

// SetShare gives a namespace a weight in a lane, 1..1000: of what the lane hands out while several namespaces have work in it, each gets
// its weight's part, whatever it has waiting. 0 is the usual weight, 1. Each partition shares by itself.
//
// Errors: flowfabric.ErrInvalidInput before any call; a [*PartitionsError] that names the partitions that did not do it: the others
// did, and the call may be repeated. [ErrClosed]. Design §6.
func (c *Client) SetShare(ctx context.Context, namespace, lane string, weight int) error {
	err := flowfabric.ValidateName("namespace", namespace)
	if err == nil {
		err = flowfabric.ValidateName("lane", lane)
	}
	if err == nil && (weight < 0 || weight > maxShare) {
		err = fmt.Errorf("%w: weight %d, want 0..%d", flowfabric.ErrInvalidInput, weight, maxShare)
	}
	if c.closed.Load() {
		err = ErrClosed
	}
	verb := fmt.Sprintf("set share of %q in lane %q", namespace, lane)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return foldAnswers(verb, c.store.SetShare(ctx, namespace, lane, weight))
}

// LaneAgeing says how much waiting outweighs one step of priority in a lane, so that work of low priority is not passed over for ever:
// whole milliseconds, at most 24 h. 0 is the default: no waiting does. It holds for what becomes claimable from now on. See
// [Client.SetLane].
func (c *Client) LaneAgeing(ctx context.Context, lane string, d time.Duration, opts ...LaneOption) error {
	return c.SetLane(ctx, lane, engine.LaneChange{Ageing: &d}, opts...)
}
