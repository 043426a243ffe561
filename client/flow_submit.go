package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// FlowOption changes one [SubmitFlow]: flowfabric.Key, Namespace, Creator, Tags, Gates.
type FlowOption interface{ SubmitFlowOption() }

// flowSubmission is what the caller of [SubmitFlow] says about the flow.
type flowSubmission struct {
	flowfabric.Start           // of the flow; without tags it has those that flow.New was given
	taken            uuid.UUID // what the store calls a key that is held while the flow is active
}

// named tells whether the id of the flow follows from its key.
func (q *flowSubmission) named() bool { return q.Key != nil && !q.Key.WhileActive }

// newFlowSubmission reads the options of a [SubmitFlow].
func (c *Client) newFlowSubmission(opts []FlowOption) (q flowSubmission, err error) {
	q.Namespace, q.Creator = c.cfg.Namespace, c.cfg.Creator
	for i, o := range opts {
		if err := option.Apply(&q.Start, i, o); err != nil {
			return q, err
		}
	}
	if err := option.Foreign(&q.Start, "flow word", "a flow: it belongs to the nodes"); err != nil {
		return q, err
	}
	if q.Key != nil {
		err = valid.FlowKey(*q.Key)
	}
	return q, errors.Join(err, valid.Tags(q.Tags))
}

// SubmitFlow stores a flow and releases it, and returns its handle: from then on its members run as they can. The
// definition is checked first. A flow of at most 100 members, 1,000 edges and 1 MiB of payload is stored and released
// by one call, all of it or nothing; each member but the first counts as eight edges, and each of its tags as one
// more. A larger flow is put together in several calls of that size, and nothing of it can be claimed before the last
// one, which releases all of it at once. What that call leaves to do, for the backlog, is worked off before
// SubmitFlow returns, within bounds; the tick does the rest.
//
// A submit of a larger flow that is cut short, by a crash or by a lost connection, leaves a flow that is staged and
// does not run. Submitting it again with the same flowfabric.Key completes it. Without a key nobody can: a
// tick gives it up, as if it were cancelled, a day after its last part came. Every call may be repeated, and is, for
// Config.SubmitTimeout, while it is not answered.
//
// Errors before any I/O: those of flow.Flow.Err; flowfabric.ErrInvalidInput for a key or namespace out of bounds.
// From the server: ErrNotFound for gates that a node names, before anything is made; ErrConflict;
// ErrResultPurged for a key whose flow was purged less than a day ago; ErrTerminal when the flow was cancelled while
// it was put together; ErrLaneClosed, ErrLimit and ErrConflict, with the node they are about, which leave nothing, or
// a larger flow staged: once their cause is removed the same submit with the same key goes on; ErrOutOfMemory.
// [*UnknownOutcomeError]; an error of ctx alone when nothing was sent; [ErrClosed].
func SubmitFlow(ctx context.Context, c *Client, f *flow.Flow, opts ...FlowOption) (*Flow, error) {
	q, err := c.newFlowSubmission(opts)
	if err != nil {
		return nil, fmt.Errorf("submit flow: %w", err)
	}
	if err := c.submits.Begin(); err != nil {
		return nil, fmt.Errorf("submit flow: %w", err)
	}
	defer c.submits.End()
	id := c.flowID(f, &q)
	plan, err := c.plan(f, id, q)
	if err == nil {
		err = c.link.Gates.Require(ctx, gatesOf(plan.Members))
	}
	if err != nil {
		return nil, fmt.Errorf("submit flow: %w", err)
	}
	ctx, span := c.tracer.Send(ctx, tracing.Work{Namespace: q.Namespace, Kind: plan.Kind, Count: len(plan.Members)})
	if span != nil {
		for i := range plan.Members {
			plan.Members[i].Tags = c.tracer.Tag(ctx, plan.Members[i].Tags)
		}
		span.Execution(flowfabric.ExecutionID(id))
	}
	duplicate, made, err := c.submitFlow(ctx, id, plan, q)
	if err == nil && made.Other != (flowfabric.FlowID{}) {
		if id = made.Other; made.State == flowfabric.FlowStaging {
			duplicate, err = c.complete(ctx, f, id, q)
		}
	}
	span.Ended(err)
	if err != nil {
		return nil, err
	}
	// a plain duplicate is our own repeated call
	return &Flow{client: c, id: id, duplicate: duplicate && q.Key != nil}, nil
}

// complete goes on with a flow of the same definition that has the key and was cut short.
func (c *Client) complete(ctx context.Context, f *flow.Flow, id flowfabric.FlowID,
	q flowSubmission) (duplicate bool, err error) {
	q.taken = uuid.Nil
	plan, err := c.plan(f, id, q)
	if err == nil {
		duplicate, _, err = c.submitFlow(ctx, id, plan, q)
	}
	if errors.Is(err, denied.FlowConflict) || errors.Is(err, flowfabric.ErrTerminal) { // nothing to go on with
		return true, nil
	}
	return duplicate, err
}

// flowID gives a submission its id.
func (c *Client) flowID(f *flow.Flow, q *flowSubmission) flowfabric.FlowID {
	switch {
	case f == nil:
		return flowfabric.FlowID{}
	case q.named():
		return flowfabric.FlowID(mint.Join(ids.KeyedFlow(c.store.Partitions(), q.Namespace, f.Kind(),
			q.Key.Text)))
	case q.Key != nil:
		var partition uint16
		partition, q.taken = ids.UniqueFlow(c.store.Partitions(), q.Namespace, f.Kind(), q.Key.Text)
		return flowfabric.FlowID(mint.ID(partition))
	}
	return flowfabric.FlowID(mint.ID(c.submits.Partition()))
}

// plan checks a submission.
func (c *Client) plan(f *flow.Flow, id flowfabric.FlowID, q flowSubmission) (plan flowplan.Plan, err error) {
	if f == nil {
		return plan, fmt.Errorf("%w: there is no flow", flowfabric.ErrInvalidInput)
	}
	if err := errors.Join(valid.Name("namespace", q.Namespace), valid.Terms(&q.Start)); err != nil {
		return plan, err
	}
	return f.Plan(flowplan.Request{Flow: id, Start: q.Start})
}

// gatesOf are the gates that any member has.
func gatesOf(members []engine.FlowMember) []flowfabric.Gate {
	var all []flowfabric.Gate
	for _, m := range members {
		for _, g := range m.Gates() {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	return all
}

// submitFlow makes the calls. duplicate: the flow had been released before, or other has the key. No other layer
// repeats them.
func (c *Client) submitFlow(ctx context.Context, id flowfabric.FlowID, plan flowplan.Plan,
	q flowSubmission) (duplicate bool, made engine.FlowCreated, err error) {
	if ctx.Err() != nil {
		return false, made, link.NotSent(ctx)
	}
	batches := engine.Batches(plan.Members)
	first := engine.NewFlow{ID: id, Namespace: q.Namespace, Kind: plan.Kind, Creator: q.Creator, Digest: plan.Digest,
		Tags: plan.Tags, Members: batches[0], Key: q.taken}
	if len(batches) == 1 {
		first.Mode = plan.Mode
	}
	made, err = link.Persist(ctx, c.cfg.SubmitTimeout, func() (engine.FlowCreated, error) {
		return c.store.CreateFlow(ctx, first)
	})
	if err != nil {
		return false, made, flowError(ctx, id, q, err)
	}
	if made.Other != (flowfabric.FlowID{}) {
		return true, made, nil
	}
	more := made.More
	if made.State == flowfabric.FlowStaging {
		if more, err = c.finish(ctx, id, plan, batches[1:]); errors.Is(err, denied.FlowSealed) {
			return true, made, nil // another submit of it was faster, and somebody has sealed it since
		} else if err != nil {
			return false, made, flowError(ctx, id, q, err)
		}
	} else if made.Already {
		return true, made, nil
	}
	if more {
		link.Drain(ctx, c.store, id.Partition())
	}
	return false, made, nil
}

// finish stages the batches of a flow that did not fit into the call that made it, and releases it. more: the release
// goes on in the backlog.
func (c *Client) finish(ctx context.Context, id flowfabric.FlowID, plan flowplan.Plan,
	batches [][]engine.FlowMember) (more bool, err error) {
	for _, batch := range batches {
		_, err := link.Persist(ctx, c.cfg.SubmitTimeout, func() (engine.FlowCreated, error) {
			return c.store.StageFlow(ctx, id, nil, batch)
		})
		if err != nil {
			return false, err
		}
	}
	return c.seal(ctx, id, plan.Mode, len(plan.Members), plan.Edges)
}

// seal releases a flow, or says how it may grow from now on.
func (c *Client) seal(ctx context.Context, id flowfabric.FlowID, mode engine.SealMode, members,
	edges int) (more bool, err error) {
	return link.Persist(ctx, c.cfg.SubmitTimeout, func() (bool, error) {
		_, more, err := c.store.SealFlow(ctx, id, mode, members, edges)
		return more, err
	})
}

// flowError is the error of a submit of which something was sent.
func flowError(ctx context.Context, id flowfabric.FlowID, q flowSubmission, err error) error {
	if ctx.Err() != nil && (link.Repeatable(err) || errors.Is(err, ctx.Err())) {
		err = link.Ended(ctx)
	}
	if errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return &UnknownOutcomeError{Flow: id, Cause: err}
	}
	if q.named() && errors.Is(err, denied.FlowConflict) {
		err = link.InWords(fmt.Sprintf("flow_conflict: key %q names a flow with another definition",
			q.Key.Text), err)
	}
	if q.named() && errors.Is(err, flowfabric.ErrResultPurged) {
		err = link.InWords(fmt.Sprintf(
			"result_purged: the flow of key %q was purged; the key is free again a day after that",
			q.Key.Text), err)
	}
	return link.AboutFlow("submit", id, err)
}

// NodeResult waits until a node of the flow has ended and returns its decoded result, as [Execution.Result] does of
// an execution: a node that failed, was cancelled, expired or was skipped is an [*OutcomeError]. The node must be one
// of the definition that the flow was submitted from: its name and its type are what matters.
//
// Errors: those of [Execution.Result]; flowfabric.ErrNotFound for a node that the flow does not have.
func NodeResult[Out any](ctx context.Context, f *Flow, node *flow.Node[Out]) (Out, error) {
	var none Out
	if err := f.admit("result of a node of"); err != nil {
		return none, err
	}
	id := node.ID(f.id)
	raw, stored, err := f.client.await(ctx, id)
	if err != nil {
		return none, fmt.Errorf("node %q: %w", node.Name(), err)
	}
	out, err := node.Decode(raw)
	switch {
	case err == nil:
		return out, nil
	case !stored:
		return none, fmt.Errorf("node %q: result of %s: %w", node.Name(), id, flowfabric.ErrResultPurged)
	}
	return none, fmt.Errorf("node %q: result of %s: %w", node.Name(), id, err)
}
