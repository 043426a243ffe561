// Package flowplan is a flow between package flow, which makes it of a graph, and package client, which sends it; and
// the template of a flow that a schedule stores, and that the process which fires it sends.
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

// Of checks a *flow.Flow and gives its members the ids that they have in flow id. It changes nothing, and may be
// called again. The errors are those of flow.Flow.Err, and flowfabric.ErrInvalidInput for the zero id. Package flow
// sets it when it is initialised.
var Of func(flow any, id flowfabric.FlowID, d flowfabric.Start) (Plan, error)

// More checks a *flow.Flow whose nodes are added to flow id, and gives them the ids that they have in it. It changes
// nothing. The errors are those of flow.Flow.Err. Package flow sets it when it is initialised.
var More func(flow any, id flowfabric.FlowID, d flowfabric.Start) (Plan, error)

// ChildrenOf checks a *flow.ChildSet of an execution in a namespace, and is what the execution asks the server for.
// It changes nothing. The errors are those of flow.ChildSet.Wait. Package flow sets it when it is initialised.
var ChildrenOf func(set any, parent flowfabric.ExecutionID, continues int, namespace string) (engine.ChildWait, error)
