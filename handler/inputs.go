package handler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
)

// Given is the result that an upstream in the flow left under an input. ok is false if there is none: the flow gives
// this node no input of that name, or the upstream did not succeed before an any-of or a quorum was decided. An
// upstream that completed with nothing gives the zero value. As a []byte with the codec [JSON] it is the stored
// result, which must not be changed.
//
// A result that does not decode into T is a permanent failure of category extractor_payload_decode.
func Given[T any](t *Task, in flow.Input[T]) (value T, ok bool, err error) {
	raw, ok := t.cfg.Claim.Inputs[in.Name]
	if len(raw) == 0 {
		return value, ok, nil
	}
	decode := t.valueCodec().Decode
	if in.Codec != nil {
		decode = in.Codec.Decode
	}
	raw, err = t.cfg.Box.Open(raw)
	if err == nil {
		err = decode(raw, &value)
	}
	if err != nil {
		var zero T
		return zero, false, fmt.Errorf("input %s: %w", in.Name,
			undecodable(fmt.Errorf("decode a result into %T: %w", zero, err)))
	}
	return value, true, nil
}

// Need is [Given] for an input that a node cannot do without: a missing input is a permanent failure.
func Need[T any](t *Task, in flow.Input[T]) (T, error) {
	value, ok, err := Given(t, in)
	if err == nil && !ok {
		err = Permanent(fmt.Errorf("%w: input %s: the flow gives node %q none", flowfabric.ErrInvalidInput, in.Name,
			t.Node()))
	}
	return value, err
}

// Inputs are the names of the inputs that were given, sorted.
func (t *Task) Inputs() []string { return slices.Sorted(maps.Keys(t.cfg.Claim.Inputs)) }

// Upstreams reads what those that the handler's node depends on came to, by the names of the nodes: for nodes with
// flow.AllEnded or flow.AnyFailed. It is one call to the server. The results of those that succeeded come through
// [Given]. It returns none for an execution that depends on nobody, and in a test of a handler without a server.
//
// If an upstream is replayed after this node became ready, Upstreams may say completed although [Given] gives nothing.
//
// Errors: flowfabric.ErrTransport, flowfabric.ErrNotFound for an execution that was purged; an error of ctx.
func (t *Task) Upstreams(ctx context.Context) ([]flow.Outcome, error) {
	if t.cfg.Results == nil || t.Node() == "" {
		return nil, nil
	}
	read, err := t.cfg.Results.Upstreams(ctx, t.ID())
	if err != nil {
		return nil, fmt.Errorf("outcomes of what node %q depends on: %w", t.Node(), err)
	}
	out := make([]flow.Outcome, len(read))
	for i, up := range read {
		out[i] = flow.Outcome{Node: up.Node, Input: up.Input, ID: up.From, State: up.Outcome, Category: up.Category}
	}
	slices.SortFunc(out, func(a, b flow.Outcome) int { return strings.Compare(a.Node, b.Node) })
	return out, nil
}
