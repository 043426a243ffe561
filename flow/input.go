package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/taskhook"
)

// Input is the result of an upstream under a name, with its type. Make it with [NewInput], usually in a package
// variable that both sides import: who builds the flow says where it comes from, and the handler gets it. Safe for
// concurrent use.
type Input[T any] struct {
	name  string
	codec handler.Codec
}

// NewInput names an input: 1..64 bytes of UTF-8 without control characters, unique among the inputs of a node.
func NewInput[T any](name string) Input[T] { return Input[T]{name: name} }

// WithCodec is the input of upstreams whose definitions have another codec than that of the handler which gets it.
func (i Input[T]) WithCodec(c handler.Codec) Input[T] {
	i.codec = c
	return i
}

// Name is what NewInput was given.
func (i Input[T]) Name() string { return i.name }

// From makes a node depend on an upstream, and gives it the upstream's result under the name of the input.
func (i Input[T]) From(up Source[T]) NodeOption {
	return nodeFunc(func(n *node) {
		if up == nil {
			n.input(i.name, nil)
			return
		}
		n.input(i.name, up.upstream())
	})
}

// Get returns the result that the upstream left. ok is false if there is none: the flow gives this node no input of
// that name, or the upstream did not succeed before an any-of or a quorum was decided. An upstream that completed
// with nothing gives the zero value.
//
// A result that does not decode into T is a permanent failure of category extractor_payload_decode.
func (i Input[T]) Get(t *handler.Task) (value T, ok bool, err error) {
	raw, ok := t.Given(i.name)
	if !ok {
		return value, false, nil
	}
	value, err = decoded(func(raw []byte) (T, error) { return read[T](t, i.codec, raw) }, raw)
	if err != nil {
		var zero T
		return zero, false, fmt.Errorf("input %s: %w", i.name, err)
	}
	return value, true, nil
}

// Need is [Input.Get] for an input that a node cannot do without: a missing input is a permanent failure.
func (i Input[T]) Need(t *handler.Task) (T, error) {
	value, ok, err := i.Get(t)
	if err == nil && !ok {
		err = handler.Permanent(fmt.Errorf("%w: input %s: the flow gives node %q none", flowfabric.ErrInvalidInput,
			i.name, t.Node()))
	}
	return value, err
}

// read decodes a result with a codec, the task's own if it is nil.
func read[T any](t *handler.Task, codec handler.Codec, raw []byte) (value T, err error) {
	if codec == nil {
		codec = t.Codec()
	}
	if err := codec.Decode(raw, &value); err != nil {
		var zero T
		return zero, taskhook.Undecodable(fmt.Errorf("decode a result into %T: %w", zero, err))
	}
	return value, nil
}

// Outcome is what an upstream of a node came to.
type Outcome struct {
	Node  string // its name in the flow; "" once it was purged
	Input string // under which its result is given, if it has one; see [Input]
	ID    flowfabric.ExecutionID
	// State is completed, failed, cancelled, expired or skipped, as the node was told; "" while the upstream has not
	// ended, which a node with [AllEnded] or [AnyFailed] does not see.
	State    flowfabric.PublicState
	Category string // why it did not succeed, see flowfabric.Snapshot.Failure
}

// Outcomes reads what those that the handler's node depends on came to, by the names of the nodes: for nodes with
// [AllEnded] or [AnyFailed]. It is one call to the server. The results of those that succeeded come through
// [Input.Get]. It returns none for an execution that depends on nobody, and in a test of a handler without a server.
//
// If an upstream is replayed after this node became ready, Outcomes may say completed although [Input.Get] gives
// nothing.
//
// Errors: flowfabric.ErrTransport, flowfabric.ErrNotFound for an execution that was purged; an error of ctx.
func Outcomes(ctx context.Context, t *handler.Task) ([]Outcome, error) {
	read, err := taskhook.ChildrenOf(t).Upstreams(ctx)
	if err != nil {
		return nil, fmt.Errorf("outcomes of what node %q depends on: %w", t.Node(), err)
	}
	out := make([]Outcome, len(read))
	for i, up := range read {
		out[i] = Outcome{Node: up.Node, Input: up.Input, ID: up.From, State: up.Outcome, Category: up.Category}
	}
	slices.SortFunc(out, func(a, b Outcome) int { return strings.Compare(a.Node, b.Node) })
	return out, nil
}
