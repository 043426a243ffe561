package engine

import (
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

var flowStates = map[string]flowfabric.FlowState{"F0": flowfabric.FlowStaging, "F1": flowfabric.FlowOpen,
	"F2": flowfabric.FlowCompleted, "F3": flowfabric.FlowFailed, "F4": flowfabric.FlowCancelled}

// FlowStateOf returns the state that a stored code names; ok is false for one that names none.
func FlowStateOf(code string) (state flowfabric.FlowState, ok bool) {
	state, ok = flowStates[code]
	return state, ok
}

// stateOf reads the one that a function answered.
func stateOf(op, code string) (flowfabric.FlowState, error) {
	state, ok := FlowStateOf(code)
	if !ok {
		return "", unread(op, fmt.Errorf("%q is no state of a flow", clip(code)))
	}
	return state, nil
}
