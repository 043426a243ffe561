package client

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
)

// Add adds the nodes of more to a flow that was submitted as flow.Unsealed or flow.Growing and has neither ended nor
// been sealed. more is what flow.New makes of the flow's kind; flow.Existing names members that new nodes depend on.
// A new node sees how those ended that have ended already, so it may run at once. The namespace is that of the flow.
// [NodeResult] takes the new nodes, too.
//
// At most 100 nodes, 1,000 edges and 1 MiB of payload are added by one call, all of it or nothing, in the sizes of
// [SubmitFlow]; more of them take several calls, and the nodes of the first calls may run before the last one. Nodes
// that the flow has already under the same names, with the same kinds and inputs, are left alone, edges included. So
// Add may be repeated after an error, and does so itself for Config.SubmitTimeout while a call is not answered;
// repeated after the flow was sealed or has ended it is no error either.
//
// Errors before anything is added: those of flow.Flow.Err; flowfabric.ErrInvalidInput for another kind than the
// flow's; ErrCorrupt for a flow that is staged only; ErrNotFound for the flow, a gate. Of a call, which
// then adds nothing: ErrState; ErrTerminal; ErrNotFound for an edge from a member that the flow does not have;
// ErrConflict for a node that is there with another input; ErrLimit above 10,000 members or 50,000 edges in all;
// ErrLaneClosed, ErrLimit, ErrOutOfMemory, each with the node it is about. ErrTransport and errors of ctx, after
// which some nodes may have been added; [ErrClosed].
func (f *Flow) Add(ctx context.Context, more *flow.Flow) error {
	if err := f.admit("add to"); err != nil {
		return err
	}
	if err := f.client.submits.Begin(); err != nil {
		return link.AboutFlow("add to", f.id, err)
	}
	defer f.client.submits.End()
	return link.AboutFlow("add to", f.id, f.add(ctx, more))
}

func (f *Flow) add(ctx context.Context, more *flow.Flow) error {
	if more == nil {
		return fmt.Errorf("%w: there are no nodes", flowfabric.ErrInvalidInput)
	}
	if err := more.Err(); err != nil {
		return err
	}
	c := f.client
	record, err := c.store.DescribeFlow(ctx, f.id)
	switch {
	case err != nil:
		return err
	case record.State == flowfabric.FlowStaging:
		return link.InWords("flow_incomplete: it was staged and never released; submit it again under its key",
			denied.FlowIncomplete)
	case record.Kind != more.Kind():
		return fmt.Errorf("%w: it is of kind %s, the nodes are for flows of kind %s", flowfabric.ErrInvalidInput,
			record.Kind, more.Kind())
	}
	plan, err := more.Plan(flowplan.Request{Flow: f.id, Adds: true,
		Start: flowfabric.Start{Namespace: record.Namespace, Creator: c.cfg.Creator}})
	if err == nil {
		err = c.link.Gates.Require(ctx, gatesOf(plan.Members))
	}
	if err != nil {
		return err
	}
	ctx, span := c.tracer.Send(ctx,
		tracing.Work{Namespace: record.Namespace, Kind: plan.Kind, Count: len(plan.Members)})
	if span != nil {
		for i := range plan.Members {
			plan.Members[i].Tags = c.tracer.Tag(ctx, plan.Members[i].Tags)
		}
		span.Execution(flowfabric.ExecutionID(f.id))
	}
	for _, batch := range engine.Batches(plan.Members) {
		if _, err = link.Persist(ctx, c.cfg.SubmitTimeout, func() (engine.FlowCreated, error) {
			return c.store.StageFlow(ctx, f.id, nil, batch)
		}); err != nil {
			break
		}
	}
	span.Ended(err)
	if err != nil && ctx.Err() != nil && link.Repeatable(err) {
		err = link.Ended(ctx)
	}
	return err
}
