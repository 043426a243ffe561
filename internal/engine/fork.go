package engine

import (
	"context"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Fork asks for another execution of what one has recorded.
type Fork struct {
	Request flowfabric.UUID // the same one makes one fork; nil mints one
	Step    string          // it has the steps that were recorded before this one; "": all
	Input   *[]byte         // another one; nil: that of the execution
}

// id is that of the fork. A request names it, so that a repeat finds what was made.
func (q Fork) id(of flowfabric.ExecutionID) flowfabric.ExecutionID {
	if q.Request.IsZero() {
		return mint.ID(of.Partition())
	}
	return mint.Join(of.Partition(), ids.Derive("flowfabric fork v1", ids.UUID(of).String(), q.Request.String()))
}

// Forked tells of a fork: its steps, and the names of those that stayed behind.
type Forked struct {
	ID       flowfabric.ExecutionID
	Code     codes.Code
	Attempts uint32 // that it has taken over
	Steps    int
	Left     []string
	Already  bool // the request had made it before: Left is empty, and Steps are those of now
}

// ForkExecution makes another execution, in the same partition, of the steps that one has recorded
// (lua/execution/ff_fork_execution.lua). denied.NoStep (slot 0: Step); denied.Idempotency if the request was for
// another step; ErrNotFound, ErrResultPurged; the errors of a new execution: ErrLaneClosed, denied.TooManyRoutes,
// ErrPayloadTooLarge, ErrInvalidInput, also for a member of a flow that has inputs of others; ErrLimit if the answer
// of its last wait does not fit among the steps.
func (e *Engine) ForkExecution(ctx context.Context, id flowfabric.ExecutionID, q Fork) (Forked, error) {
	x := wire.ForkExecution{ID: ids.UUID(id).String(), Step: q.Step, Other: q.Input != nil}
	out := Forked{ID: q.id(id)}
	x.Fork = ids.UUID(out.ID).String()
	if q.Input != nil {
		input, err := e.seal("ff_fork_execution", *q.Input)
		if err != nil {
			return Forked{}, err
		}
		x.Input = rueidis.BinaryString(input)
	}
	r, already, err := ask[wire.ForkExecutionReply](ctx, e, id.Partition(), x)
	if err != nil {
		return Forked{}, err
	}
	out.Code, out.Attempts, out.Steps, out.Already = codes.Code(r.Code), uint32(r.Attempts), r.Steps, already
	out.Left = r.Left
	return out, nil
}
