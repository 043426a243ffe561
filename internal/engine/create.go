package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// CreateExecutions admits 1..100 executions of one partition, at most 1 MiB of payload in all, in one atomic call
// (lua/execution/ff_create_execution.lua). Each item is judged alone: Created.Err tells why one was refused, the
// others are admitted. An id that exists already answers Duplicate when the digests agree, ErrIdempotencyConflict
// when they do not. The call may be repeated with the same ids, which is up to the caller: the engine makes one try.
func (e *Engine) CreateExecutions(ctx context.Context, partition uint16, items []NewExecution) ([]Created, error) {
	if len(items) < 1 || len(items) > flowfabric.MaxBatch {
		return nil, fmt.Errorf("%s: %w: %d items, want 1..%d", fnCreate.name, flowfabric.ErrInvalidInput, len(items), flowfabric.MaxBatch)
	}
	out, sent := make([]Created, len(items)), make([]int, 0, len(items))
	total := 0
	for i := range items {
		x := &items[i]
		if x.ID.Partition() != partition || x.ID.IsZero() {
			return nil, fmt.Errorf("%s: %w: item %d: id %q is not of partition %d", fnCreate.name, flowfabric.ErrInvalidInput, i, x.ID, partition)
		}
		out[i].ID = x.ID
		if err := x.validate(); err != nil {
			out[i].Err = fmt.Errorf("%s: %w", fnCreate.name, err)
			continue
		}
		sent = append(sent, i)
		total += len(x.Payload)
	}
	if total > flowfabric.MaxCallBytes {
		return nil, fmt.Errorf("%s: %w: the batch has %d payload bytes, want at most %d", fnCreate.name, flowfabric.ErrPayloadTooLarge, total, flowfabric.MaxCallBytes)
	}
	if len(sent) == 0 {
		return out, nil
	}
	if int(partition) >= len(e.roots) {
		return nil, fmt.Errorf("%s: %w: partition %d of %d", fnCreate.name, flowfabric.ErrInvalidInput, partition, len(e.roots))
	}
	r, err := e.run(ctx, e.client, fnCreate, e.roots[partition:partition+1], createArgs(items, sent))
	if err != nil {
		return nil, err
	}
	if n := r.count(1); n != len(sent) {
		r.stop("%d answers to %d items", n, len(sent))
	}
	for _, i := range sent {
		text, already, refused := r.answer()
		if refused != nil {
			out[i].Err = refused
			continue
		}
		state, _ := flowfabric.Project(flowfabric.Code(text))
		out[i].State, out[i].Duplicate = state.Public, already
	}
	return out, r.fail()
}

// createArgs are the arguments of a batch: of items that differ in nothing but id, digest and payload one without these, and three
// for each; of others all fourteen for each.
func createArgs(items []NewExecution, sent []int) []string {
	first := &items[sent[0]]
	policy := first.Policy.Pack()
	if len(sent) < 2 || slices.ContainsFunc(sent, func(i int) bool { return !items[i].alike(first, policy) }) {
		args := append(make([]string, 0, 2+14*len(sent)), protocol, strconv.Itoa(len(sent)))
		for _, i := range sent {
			args = items[i].appendTo(args)
		}
		return args
	}
	args := append(make([]string, 0, 16+3*len(sent)), protocol, "="+strconv.Itoa(len(sent)))
	rest := *first
	rest.Digest, rest.Payload = "", nil
	args = rest.appendTo(args)
	args[2] = ""
	for _, i := range sent {
		x := &items[i]
		args = append(args, x.ID.UUID().String(), x.Digest, rueidis.BinaryString(x.Payload))
	}
	return args
}

// alike tells whether an item differs from another, whose policy is packed, in nothing but id, digest and payload, and has no tags.
func (x *NewExecution) alike(y *NewExecution, policy string) bool {
	return len(x.Tags) == 0 && x.Namespace == y.Namespace && x.Lane == y.Lane && x.Kind == y.Kind && x.Creator == y.Creator &&
		x.Priority == y.Priority && x.Delay == y.Delay && x.Deadline == y.Deadline && x.DelayUntil.Equal(y.DelayUntil) && x.DeadlineAt.Equal(y.DeadlineAt) &&
		slices.Equal(x.Capabilities, y.Capabilities) && slices.Equal(x.Gates, y.Gates) &&
		x.Policy.AttemptTimeout == y.Policy.AttemptTimeout && x.Policy.Pack() == policy
}

// appendTo adds the fourteen arguments of an item, and its tags.
func (x *NewExecution) appendTo(args []string) []string {
	timeout := ""
	if x.Policy.AttemptTimeout > 0 {
		timeout = strconv.FormatInt(max(1, x.Policy.AttemptTimeout.Milliseconds()), 10)
	}
	args = append(args, x.ID.UUID().String(), x.Namespace, x.Lane, x.Kind, requirements(x.Capabilities, x.Gates),
		strconv.Itoa(x.Priority), when(x.DelayUntil, x.Delay), when(x.DeadlineAt, x.Deadline), x.Policy.Pack(), timeout,
		x.Creator, x.Digest, rueidis.BinaryString(x.Payload), strconv.Itoa(len(x.Tags)))
	for k, v := range x.Tags {
		args = append(args, k, v)
	}
	return args
}
