// Package flowplan is a flow, or a set of children, between package flow, which makes it of a graph, and packages
// client and handler, which send it; and the template of a flow that a schedule stores, and that the process which
// fires it sends.
package flowplan

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Plan is a flow that was checked and is ready to be sent.
type Plan struct {
	Kind    string
	Mode    engine.SealMode
	Members []engine.FlowMember // in an order in which edges lead from earlier to later ones
	Edges   int                 // of all members
	Digest  string              // of kind, mode, nodes, inputs, gates and edges: flows with equal ones are the same
	Tags    map[string]string
}

// Request is what a plan of a flow is for.
type Request struct {
	Flow  flowfabric.FlowID
	Start flowfabric.Start // what is said for all members
	Adds  bool             // the members are added to a flow that was submitted
}

// Parent is the execution that waits for children.
type Parent struct {
	Execution flowfabric.ExecutionID
	Continues int
	Namespace string
}

// Children is a set of children as the execution that waits for it needs it.
type Children struct {
	Wait   string // the name of the wait
	Mode   engine.WaitMode
	Others bool // it has executions that the handler did not make
	// Request checks the set and is what the execution asks the server for, the others by their ids and names alone.
	Request func() (engine.ChildWait, error)
	// Streamed lists, by their ids and names, those whose output is shown in the output of the parent.
	Streamed func() []engine.ChildOutcome
}

// Child is one of a set.
type Child[Out any] struct {
	Wait   string // the name of the set's wait
	Other  bool   // the handler did not make it
	Decode func(result []byte) (Out, error)
}
