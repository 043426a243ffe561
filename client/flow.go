package client

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// flows is the part of the engine behind the calls about flows. Each of them may be repeated; the engine itself
// repeats CreateFlow, StageFlow and SealFlow not.
type flows interface {
	link.FlowReader
	CreateFlow(ctx context.Context, q engine.NewFlow) (engine.FlowCreated, error)
	StageFlow(ctx context.Context, id flowfabric.FlowID, revision *uint64,
		members []engine.FlowMember) (engine.FlowCreated, error)
	SealFlow(ctx context.Context, id flowfabric.FlowID, mode engine.SealMode, members,
		edges int) (flowfabric.FlowState, bool, error)
	CancelFlow(ctx context.Context, id flowfabric.FlowID,
		policy flowfabric.CancellationPolicy) (engine.FlowCancelled, error)
}

// Flow is a handle on one flow: a graph of executions that resolves by itself. It holds no connection and no
// goroutine, may be dropped at any time, and can be made again from the id with [Client.Flow]. Its methods may be
// called concurrently.
type Flow struct {
	client    *Client
	id        flowfabric.FlowID
	duplicate bool
}

// Flow returns a handle on a flow that was submitted elsewhere or earlier, or that an execution founded by waiting
// for children: such a flow has the execution's id. It makes no call and has no error; the methods answer
// flowfabric.ErrNotFound for an id that names no flow, and ErrInvalidInput for the zero id and for one of a partition
// that this store does not have.
func (c *Client) Flow(id flowfabric.FlowID) *Flow { return &Flow{client: c, id: id} }

// ID names the flow; its text form is what other processes need for [Client.Flow].
func (f *Flow) ID() flowfabric.FlowID { return f.id }

// Duplicate reports whether a submit met a flow that had been released before: of an earlier submit of the same
// definition under the same flowfabric.Key, of one under the same Key.WhileActive that has not ended, or
// of its own call whose answer was lost.
func (f *Flow) Duplicate() bool { return f.duplicate }

// Member is the execution of a node that was submitted with the flow. Children that a handler made have ids of their
// own, see flowfabric.ExecutionID.Child; the snapshot lists them.
func (f *Flow) Member(node string) flowfabric.ExecutionID { return f.id.Member(node) }

// Describe reads the header of the flow: its state, the exact counters of its members by state, how it was released and
// cancelled, and its tags. It is one call however large the flow is.
//
// Errors: flowfabric.ErrNotFound; ErrResultPurged while the tombstone of a purged flow is left.
func (f *Flow) Describe(ctx context.Context) (flowfabric.FlowRecord, error) {
	if err := f.admit("describe"); err != nil {
		return flowfabric.FlowRecord{}, err
	}
	record, err := f.client.store.DescribeFlow(ctx, f.id)
	return record, link.AboutFlow("describe", f.id, err)
}

// Seal ends the growth of a flow that was released as flow.Unsealed or flow.Growing: it takes no members any more,
// also none from its own handlers, and ends by itself. Sealing twice is no error. A flow that has not been released
// is not sealed but submitted again, under its key.
//
// Errors: flowfabric.ErrNotFound; ErrTerminal, with the state, for one that has ended; ErrCorrupt for one that is
// staged only; ErrInvalidInput for a By of more than 64 bytes.
func (f *Flow) Seal(ctx context.Context, opts ...flowfabric.ActOption) error {
	if err := f.admit("seal"); err != nil {
		return err
	}
	act, err := f.client.act(opts)
	if err != nil {
		return link.AboutFlow("seal", f.id, err)
	}
	record, err := f.client.store.DescribeFlow(ctx, f.id)
	if err == nil && record.State == flowfabric.FlowStaging {
		err = link.InWords("flow_incomplete: it was staged and never released; submit it again under its key",
			denied.FlowIncomplete)
	}
	if err == nil {
		var more bool
		if more, err = f.client.seal(act.Noted(ctx, "seal", "flow", f.id.String()), f.id, engine.SealClosed, 0,
			0); err == nil && more {
			link.Drain(ctx, f.client.store, f.id.Partition())
		}
	}
	return link.AboutFlow("seal", f.id, err)
}

func (f *Flow) admit(verb string) error { return link.AdmitFlow(verb, f.id, f.client.ended()) }

// Wait waits until the last member of the flow has ended and returns how all of them did. That a flow failed or was
// cancelled is no error of Wait: it is in State, and each node says how it ended. A flow that was cancelled with
// flowfabric.CancelPending or CancelFlow has ended once the members that run on have; one that was released as
// flow.Unsealed ends only after [Flow.Seal]. A replay opens a flow again: a Wait that began after it waits for the
// new end.
//
// Wait does not poll: it waits for the flow's event, and reads again every 5 s in case one was lost. The wait goes on
// while the server cannot be reached, so ctx should have a deadline when that matters.
//
// Errors: flowfabric.ErrNotFound, ErrResultPurged; the context's error with its cause; [ErrClosed].
func (f *Flow) Wait(ctx context.Context) (FlowSnapshot, error) {
	if err := f.admit("wait for"); err != nil {
		return FlowSnapshot{}, err
	}
	s, done, err := f.finished(ctx)
	if done {
		return s, err
	}
	bell, leave, closed := f.client.waits.join(flowfabric.ExecutionID(f.id)) // a flow rings like an execution of its id
	if closed != nil {
		return FlowSnapshot{}, fmt.Errorf("wait for flow %s: %w", f.id, closed)
	}
	defer leave()
	safety := time.NewTimer(link.Jitter(link.Recheck))
	defer safety.Stop()
	for {
		select {
		case <-bell:
		case <-safety.C:
		case <-ctx.Done():
			return FlowSnapshot{}, f.waitError(link.Ended(ctx), err)
		case <-f.client.waits.life.Done():
			return FlowSnapshot{}, f.waitError(ErrClosed, err)
		}
		safety.Reset(link.Jitter(link.Recheck))
		if s, done, err = f.finished(ctx); done {
			return s, err
		}
	}
}

// waitError ends a wait; last is what the server answered to the last read, if that failed.
func (f *Flow) waitError(why, last error) error {
	if last != nil {
		return fmt.Errorf("wait for flow %s: %w (last read: %w)", f.id, why, last)
	}
	return fmt.Errorf("wait for flow %s: %w", f.id, why)
}

// finished reads the flow if it has ended. done is false while it has not and after an error that may pass.
func (f *Flow) finished(ctx context.Context) (s FlowSnapshot, done bool, err error) {
	record, err := f.client.store.DescribeFlow(ctx, f.id)
	if err == nil && !record.EndedAt.IsZero() {
		if s, err = f.snapshot(ctx); err == nil && !s.EndedAt.IsZero() { // else it was replayed meanwhile
			return s, true, nil
		}
	}
	if err != nil {
		return FlowSnapshot{}, link.Final(ctx, err), link.AboutFlow("wait for", f.id, err)
	}
	return FlowSnapshot{}, false, nil
}
