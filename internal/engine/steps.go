package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// stepKinds are the kinds of the steps that the library makes, by how their names begin.
var stepKinds = []struct{ prefix, kind string }{{StepAwait, "wait"}, {StepWaitpoint, "waitpoint"},
	{StepChildren, "children"}, {StepReceipt, "messages"}}

// Steps returns what is known of the durable steps of an execution, the first that ended first
// (lua/read/ff_read_steps.lua, see readSteps). ErrNotFound; ErrResultPurged while a tombstone is left.
func (e *Engine) Steps(ctx context.Context, id flowfabric.ExecutionID) ([]flowfabric.StepRecord, error) {
	out, _, err := e.readSteps(ctx, id, "")
	return out, err
}

// StepValue returns the value of one step of the handler's; ok is false if none is recorded under this name.
// ErrNotFound; ErrResultPurged while a tombstone is left; ErrInvalidInput for a name that no step can have.
func (e *Engine) StepValue(ctx context.Context, id flowfabric.ExecutionID,
	name string) (value []byte, ok bool, err error) {
	if name == "" || name[:1] == unit {
		return nil, false, fmt.Errorf("ff_read_steps: %w: a step of a handler has another first byte",
			flowfabric.ErrInvalidInput)
	}
	return e.recorded(ctx, id, name)
}

// Waitpoint returns the step that records a pending waitpoint under a name, for [DecodeOpened]; ok is false if none
// does. ErrNotFound; ErrResultPurged while a tombstone is left; ErrInvalidInput for a name that none can have.
func (e *Engine) Waitpoint(ctx context.Context, id flowfabric.ExecutionID,
	name string) (value []byte, ok bool, err error) {
	return e.recorded(ctx, id, StepWaitpoint+name)
}

// recorded returns the value of one step.
func (e *Engine) recorded(ctx context.Context, id flowfabric.ExecutionID,
	name string) (value []byte, ok bool, err error) {
	list, value, err := e.readSteps(ctx, id, name)
	return value, err == nil && len(list) > 0, err
}

// readSteps reads all steps, or with a name one that is recorded, and its value (lua/read/ff_read_steps.lua).
func (e *Engine) readSteps(ctx context.Context, id flowfabric.ExecutionID,
	name string) (out []flowfabric.StepRecord, value []byte, err error) {
	r, _, err := ask[wire.ReadStepsReply](ctx, e, id.Partition(), wire.ReadSteps{ID: ids.UUID(id).String(), Name: name})
	for _, x := range r.Recorded {
		s := step(x.Name, x.Attempt, x.At, x.Took)
		s.Bytes = x.Bytes
		out = append(out, s)
	}
	for _, x := range r.Failed {
		s := step(x.Name, x.Attempt, x.At, x.Took)
		s.State, s.Error = "failed", e.text(x.Reason)
		out = append(out, s)
	}
	if r.Value != nil {
		value = e.cfg.Box.Shown([]byte(*r.Value))
	}
	slices.SortFunc(out, func(a, b flowfabric.StepRecord) int {
		return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.Attempt, b.Attempt), strings.Compare(a.Name, b.Name))
	})
	return out, value, err
}

// step is what both kinds of rows begin with.
func step(name string, attempt int, at time.Time, took time.Duration) flowfabric.StepRecord {
	s := flowfabric.StepRecord{Name: name, Kind: "step", State: "recorded", Attempt: uint32(attempt), EndedAt: at,
		StartedAt: at.Add(-took)}
	for _, k := range stepKinds {
		if rest, ok := strings.CutPrefix(s.Name, k.prefix); ok {
			s.Name, s.Kind = rest, k.kind
		}
	}
	return s
}
