package engine

import (
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

var flowStates = map[string]flowfabric.FlowState{"F0": flowfabric.FlowStaging, "F1": flowfabric.FlowOpen,
	"F2": flowfabric.FlowCompleted, "F3": flowfabric.FlowFailed, "F4": flowfabric.FlowCancelled}

// FlowStateOf returns the state that a stored code names; ok is false for one that names none.
func FlowStateOf(code string) (state flowfabric.FlowState, ok bool) {
	state, ok = flowStates[code]
	return state, ok
}

// stateOf reads the one that a function answered.
func stateOf(f function, code string) (flowfabric.FlowState, error) {
	state, ok := FlowStateOf(code)
	if !ok {
		return "", misread(f, fmt.Errorf("%q is no state of a flow", clip(code)))
	}
	return state, nil
}

// decoded reads the texts of an answer.
func decoded[T any](f function, texts []string, read func(text string) (T, error)) (out []T, err error) {
	for _, text := range texts {
		x, err := read(text)
		if err != nil {
			return nil, misread(f, err)
		}
		out = append(out, x)
	}
	return out, nil
}

// misread says of an answer that something in it cannot be; nil if err is.
func misread(f function, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", f.name, denied.Reply, err)
}
