package client

import (
	"context"
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/submission"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
)

// Submit creates one execution of def with input in and returns its handle as soon as the server has stored it.
// Policy, deadline, lane, priority, capabilities, tags, gates come from the definition; options override
// them, of the policy flowfabric.Retries, Timeout and Retention.
//
// A codec that does not copy shares in with the call: such an input must not change until Submit has returned, nor
// after an [*UnknownOutcomeError]. A []byte is copied.
//
// Errors before any I/O: flowfabric.ErrInvalidInput, ErrPayloadTooLarge,
// the definition's own error, the codec's. From the server: ErrNotFound for a gate that is named
// and does not exist, before anything is created; ErrConflict, for a Key; ErrLimit,
// ErrOutOfMemory. [*UnknownOutcomeError] when the call was sent and not answered; an error of ctx alone when
// nothing was sent.
func Submit[In, Out any](ctx context.Context, c *Client, def *handler.Definition[In, Out], in In,
	opts ...SubmitOption) (*Execution[Out], error) {
	common, err := prepare(c, def, opts)
	if err == nil && common.KeyFor != nil {
		err = fmt.Errorf("%w: Keys is for SubmitMany, use flowfabric.Key", flowfabric.ErrInvalidInput)
	}
	if err != nil {
		return nil, submission.Error(def, err)
	}
	if err := c.link.Gates.Require(ctx, common.Item.Gates()); err != nil {
		return nil, submission.Error(def, err)
	}
	ctx, span := c.traced(ctx, common, 0)
	sub := &common.Submission
	if err := submission.Fill(sub, common, def, in, 0); err != nil {
		err = submission.Error(def, err)
		span.Ended(err)
		return nil, err
	}
	if ctx.Err() != nil {
		err = link.NotSent(ctx)
		span.Ended(err)
		return nil, err
	}
	created, err := c.submits.Submit(ctx, sub)
	if err == nil && span != nil {
		span.Execution(created.ID)
	}
	span.Ended(err)
	if err != nil {
		return nil, err
	}
	return newExecution(c, def, created, sub), nil
}

// traced begins the span of a submission and lets its context travel with what is submitted.
func (c *Client) traced(ctx context.Context, common *submission.Common, count int) (context.Context, *tracing.Span) {
	ctx, span := c.tracer.Send(ctx, tracing.Work{Namespace: common.Item.Namespace, Lane: common.Item.Lane,
		Kind: common.Item.Kind, Count: count})
	if span != nil {
		common.Item.Tags = c.tracer.Tag(ctx, common.Item.Tags)
	}
	return ctx, span
}

// SubmitMany creates one execution per input, in calls of at most 100 inputs and about 900 KiB with up to four
// calls in flight, and returns the handles in the order of inputs. Each call goes to one partition, the next in
// rotation, so executions of one call are claimed in input order among themselves; with [Keys] the
// calls are grouped by the partitions of the keys.
//
// An invalid option refuses the whole with one error, and invalid inputs with an [*ItemError] for each, both before any
// I/O. Later, inputs fail one by one: their handles are nil and the error joins an [*ItemError] for each. Errors are
// those of [Submit]; when ctx ends, what was not sent yet fails with its error and what was sent with
// [*UnknownOutcomeError].
func SubmitMany[In, Out any](ctx context.Context, c *Client, def *handler.Definition[In, Out], inputs []In,
	opts ...SubmitOption) ([]*Execution[Out], error) {
	common, err := prepare(c, def, opts)
	if err == nil && common.Item.Key != nil {
		err = fmt.Errorf("%w: every input would have the same key, use client.Keys", flowfabric.ErrInvalidInput)
	}
	if err != nil {
		return nil, submission.Error(def, err)
	}
	if err := c.link.Gates.Require(ctx, common.Item.Gates()); err != nil {
		return nil, submission.Error(def, err)
	}
	ctx, span := c.traced(ctx, common, len(inputs))
	handles, err := submitAll(ctx, c, def, common, inputs)
	span.Ended(err)
	return handles, err
}

// submitAll creates one execution per input with what they have in common.
func submitAll[In, Out any](ctx context.Context, c *Client, def *handler.Definition[In, Out], common *submission.Common,
	inputs []In) ([]*Execution[Out], error) {
	items := make([]*coalesce.Entry, len(inputs))
	var failed []error
	for i, in := range inputs {
		sub := &coalesce.Submission{Item: common.Item}
		if err := submission.Fill(sub, common, def, in, i); err != nil {
			failed = append(failed, &ItemError{Index: i, Err: submission.Error(def, err)})
			continue
		}
		items[i] = &coalesce.Entry{Sub: sub}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	if err := c.submits.SubmitMany(ctx, items); err != nil {
		return nil, err
	}
	out := make([]*Execution[Out], len(inputs))
	for i, p := range items {
		if p.Err != nil {
			failed = append(failed, &ItemError{Index: i, Err: p.Err})
			continue
		}
		out[i] = newExecution(c, def, p.Created, p.Sub)
	}
	return out, errors.Join(failed...)
}

// prepare makes what all inputs of one call have in common, and checks definition and options.
func prepare[In, Out any](c *Client, def *handler.Definition[In, Out],
	opts []SubmitOption) (*submission.Common, error) {
	if c.closed.Load() {
		return nil, ErrClosed
	}
	from := submission.From{Namespace: c.cfg.Namespace, Creator: c.cfg.Creator, Box: c.box}
	return submission.Prepare(from, def, opts)
}
