package flow

import flowfabric "github.com/flowfabric/flowfabric-go"

// Input is the result of an upstream under a name, with its type; usually a package variable that both sides import.
// Who builds the flow says where it comes from ([Input.From]), and the handler reads it: handler.Need, or
// handler.Given where it may be missing.
type Input[T any] struct {
	// Name is 1..64 bytes of UTF-8 without control characters, unique among the inputs of a node.
	Name string
	// Codec is that of the upstreams' definitions, if the handler that reads the input has another one. Default the
	// handler's. A handler.Codec is one.
	Codec interface {
		Decode(data []byte, v any) error
	}
}

// From makes a node depend on an upstream, and gives it the upstream's result under the name of the input.
func (i Input[T]) From(up Source[T]) NodeOption {
	return nodeFunc(func(n *node) {
		if up == nil {
			n.input(i.Name, nil)
			return
		}
		n.input(i.Name, up.upstream())
	})
}

// Outcome is the end of an upstream of a node.
type Outcome struct {
	Node  string // its name in the flow; "" once it was purged
	Input string // under which its result is given, if it has one; see [Input]
	ID    flowfabric.ExecutionID
	// State is completed, failed, cancelled, expired or skipped, as the node was told; "" while the upstream has not
	// ended, which a node with [AllEnded] or [AnyFailed] does not see.
	State    flowfabric.PublicState
	Category flowfabric.Category // why it did not succeed
}
