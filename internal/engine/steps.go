package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
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
	if name == "" {
		return nil, false, fmt.Errorf("%s: %w: the name of the step is empty", fnReadSteps.name,
			flowfabric.ErrInvalidInput)
	}
	list, value, err := e.readSteps(ctx, id, name)
	return value, err == nil && len(list) > 0, err
}

// readSteps reads all steps, or with a name one that is recorded, and its value (lua/read/ff_read_steps.lua).
func (e *Engine) readSteps(ctx context.Context, id flowfabric.ExecutionID,
	name string) (out []flowfabric.StepRecord, value []byte, err error) {
	r, err := e.call(ctx, fnReadSteps, id.Partition(), protocol, id.UUID().String(), name)
	if err != nil {
		return nil, nil, err
	}
	for range r.count(5) {
		s := r.step()
		s.Bytes = int(r.number())
		out = append(out, s)
	}
	for range r.count(5) {
		s := r.step()
		s.Failed, s.Error = true, r.text()
		out = append(out, s)
	}
	if name != "" && len(out) > 0 {
		value = r.bytes()
	}
	slices.SortFunc(out, func(a, b flowfabric.StepRecord) int {
		return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.Attempt, b.Attempt), strings.Compare(a.Name, b.Name))
	})
	return out, value, r.fail()
}

// step reads what both kinds of rows begin with: name, attempt, end and duration.
func (r *reader) step() flowfabric.StepRecord {
	s := flowfabric.StepRecord{Name: r.text(), Kind: "step", Attempt: uint32(r.number()), EndedAt: r.instant()}
	s.StartedAt = s.EndedAt.Add(-time.Duration(r.number()) * time.Millisecond)
	for _, k := range stepKinds {
		if rest, ok := strings.CutPrefix(s.Name, k.prefix); ok {
			s.Name, s.Kind = rest, k.kind
		}
	}
	return s
}
