package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
)

// FlowOption changes one [SubmitFlow]: [FlowKey], [Namespace], [Creator], [Budgets], [Quotas].
type FlowOption interface{ submitFlow(q *flowSubmission) }

type flowSubmission struct {
	namespace, creator string
	keyed              bool
	key                string
	gates              []flowfabric.Gate
}

type flowKey string

func (k flowKey) submitFlow(q *flowSubmission) { q.keyed, q.key = true, string(k) }

// FlowKey makes the flow's id depend on (namespace, kind, key) alone: a second submit of the same definition with an equal key meets
// the first flow ([Flow.Duplicate]), completes it if that was cut short less than a day ago, and otherwise changes nothing: one that
// was given up since is met as it is, cancelled because of flow_abandoned. Another definition under the key (other nodes, inputs,
// edges, budgets, quotas or mode) is flowfabric.ErrFlowConflict. The key is taken as long as the flow is retained, and by its tombstone. 1..256
// bytes. Without it every submit makes a flow of its own.
func FlowKey(key string) FlowOption { return flowKey(key) }

// UnknownFlowError says that a flow was being submitted when the caller's context ended, or when the server could not be reached for
// Config.SubmitTimeout. The flow may have been released, be staged in part, or not exist. [Client.Flow] of ID tells. Submitting
// again with the same [FlowKey] completes it; without a key nothing of a flow that was not released ever runs, and a tick gives
// it up a day after its last part came.
type UnknownFlowError struct {
	ID    flowfabric.FlowID
	Cause error // wraps the context's error or flowfabric.ErrTransport
}

func (e *UnknownFlowError) Error() string {
	return fmt.Sprintf("submit flow %s: %v (the flow may exist under this id)", e.ID, e.Cause)
}

// Unwrap returns Cause.
func (e *UnknownFlowError) Unwrap() error { return e.Cause }

// SubmitFlow stores a flow and releases it, and returns its handle: from then on its members run as they can. The definition is
// checked first, then the flow is put together in calls of at most 100 members, 1,000 edges and about 900 KiB of payload, and
// nothing of it can be claimed before the call that releases all of it at once. What that call leaves to do, for the backlog, is
// worked off before SubmitFlow returns, within bounds; the tick does the rest.
//
// A submit that is cut short, by a crash or by a lost connection, leaves a flow that is staged and does not run. Submitting it again
// with the same [FlowKey] completes it. Without a key nobody can: a tick gives it up, as if it were cancelled, a day after its
// last part came. Every call may be repeated, and is, for Config.SubmitTimeout, while it is not answered.
//
// Errors before any I/O: those of flow.Flow.Build; flowfabric.ErrInvalidInput for a key or namespace out of bounds. From the server:
// ErrBudgetNotFound and ErrQuotaNotFound for budgets and quotas that a node names, before anything is made; ErrFlowConflict; ErrFlowTerminal when the flow was cancelled while it was put together; ErrLaneClosed, ErrTooManyRoutes and
// ErrIdempotencyConflict, with the node they are about, which leave the flow staged: once their cause is removed the same submit
// with the same key goes on; ErrOutOfMemory. [*UnknownFlowError]; an error of ctx alone when nothing was sent; [ErrClosed].
func SubmitFlow(ctx context.Context, c *Client, f *flow.Flow, opts ...FlowOption) (*Flow, error) {
	q := flowSubmission{namespace: c.cfg.Namespace, creator: c.cfg.Creator}
	for _, o := range opts {
		o.submitFlow(&q)
	}
	if err := c.submits.Begin(); err != nil {
		return nil, fmt.Errorf("submit flow: %w", err)
	}
	defer c.submits.End()
	id, plan, err := c.plan(f, q)
	if err == nil {
		err = c.link.Gates.Require(ctx, gatesOf(plan.Members))
	}
	if err != nil {
		return nil, fmt.Errorf("submit flow: %w", err)
	}
	ctx, span := c.tracer.Send(ctx, tracing.Work{Namespace: q.namespace, Kind: plan.Kind, Count: len(plan.Members)})
	if span != nil {
		for i := range plan.Members {
			plan.Members[i].Tags = c.tracer.Tag(ctx, plan.Members[i].Tags)
		}
		span.Execution(flowfabric.ExecutionID(id))
	}
	duplicate, err := c.submitFlow(ctx, id, plan, q)
	span.Ended(err)
	if err != nil {
		return nil, err
	}
	return &Flow{client: c, id: id, duplicate: duplicate && q.keyed}, nil // a plain duplicate is our own repeated call
}

// plan checks a submission and gives it its id.
func (c *Client) plan(f *flow.Flow, q flowSubmission) (id flowfabric.FlowID, plan flow.Plan, err error) {
	if f == nil {
		return id, plan, fmt.Errorf("%w: there is no flow", flowfabric.ErrInvalidInput)
	}
	if err := flowfabric.ValidateName("namespace", q.namespace); err != nil {
		return id, plan, err
	}
	if len(q.creator) > maxCreator {
		return id, plan, fmt.Errorf("%w: creator has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(q.creator), maxCreator)
	}
	if q.keyed {
		if q.key == "" || len(q.key) > MaxIdempotencyKey {
			return id, plan, fmt.Errorf("%w: flow key has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, len(q.key), MaxIdempotencyKey)
		}
		id = flowfabric.DeriveFlowID(c.store.Partitions(), q.namespace, f.Kind(), q.key)
	} else {
		id = flowfabric.NewFlowID(c.submits.Partition())
	}
	plan, err = f.Build(id, flow.Defaults{Namespace: q.namespace, Creator: q.creator, Gates: q.gates})
	return id, plan, err
}

// gatesOf are the gates that any member has.
func gatesOf(members []engine.FlowMember) []flowfabric.Gate {
	var all []flowfabric.Gate
	for _, m := range members {
		for _, g := range m.Gates {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	return all
}

// submitFlow makes the calls. duplicate: the flow had been released before.
func (c *Client) submitFlow(ctx context.Context, id flowfabric.FlowID, plan flow.Plan, q flowSubmission) (duplicate bool, err error) {
	if ctx.Err() != nil {
		return false, link.NotSent(ctx)
	}
	header := engine.NewFlow{ID: id, Namespace: q.namespace, Kind: plan.Kind, Creator: q.creator, Digest: plan.Digest, Tags: plan.Tags}
	made, err := link.Persist(ctx, c.cfg.SubmitTimeout, func() (engine.FlowCreated, error) { return c.store.CreateFlow(ctx, header) })
	if err != nil {
		return false, flowError(ctx, id, q, err)
	}
	if made.State != flowfabric.FlowStaging {
		return true, nil
	}
	for _, batch := range engine.Batches(plan.Members) {
		_, err := link.Persist(ctx, c.cfg.SubmitTimeout, func() (engine.FlowCreated, error) { return c.store.StageFlow(ctx, id, nil, batch) })
		if err != nil {
			return false, flowError(ctx, id, q, err)
		}
	}
	more, err := link.Persist(ctx, c.cfg.SubmitTimeout, func() (bool, error) {
		_, more, err := c.store.SealFlow(ctx, id, plan.Mode, len(plan.Members), plan.Edges)
		return more, err
	})
	if errors.Is(err, flowfabric.ErrFlowSealed) { // another submit of it was faster, and somebody has sealed it since
		return true, nil
	}
	if err != nil {
		return false, flowError(ctx, id, q, err)
	}
	if more {
		link.Drain(ctx, c.store, id.Partition())
	}
	return false, nil
}

// flowError is the error of a submit of which something was sent.
func flowError(ctx context.Context, id flowfabric.FlowID, q flowSubmission, err error) error {
	if ctx.Err() != nil && (link.Repeatable(err) || errors.Is(err, ctx.Err())) {
		err = link.Ended(ctx)
	}
	if errors.Is(err, flowfabric.ErrTransport) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &UnknownFlowError{ID: id, Cause: err}
	}
	if q.keyed && errors.Is(err, flowfabric.ErrFlowConflict) {
		err = link.InWords(fmt.Sprintf("flow_conflict: key %q names a flow with another definition", q.key), err)
	}
	return link.AboutFlow("submit", id, err)
}

// NodeResult waits until a node of the flow has ended and returns its decoded result, as [Execution.Result] does of an execution:
// a node that failed, was cancelled, expired or was skipped is an [*OutcomeError]. The node must be one of the definition
// that the flow was submitted from: its name and its type are what matters.
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
