package client

import (
	"cmp"
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// forker is the part of the engine that forks.
type forker interface {
	ForkExecution(ctx context.Context, id flowfabric.ExecutionID, q engine.Fork) (engine.Forked, error)
}

// Fork says what a fork begins with. The zero value: all that is recorded.
type Fork struct {
	// Step is the name of a recorded step, at most 128 bytes: the fork has the steps that were recorded before it, and
	// does this one again. Default: it has all.
	Step string `json:"step,omitempty" jsonschema:"the fork has the steps that were recorded before this one; default: all"`
	// Request makes a repeat harmless: of one execution, the same request makes one fork. Default: a new one.
	Request flowfabric.UUID `json:"request,omitzero" jsonschema:"repeated with the same, it makes one fork"`
	// Input is another one, at most 1 MiB, as the definition's codec writes it. nil: that of the execution.
	Input []byte `json:"-"`
}

// Forked tells of a fork that was made.
type Forked struct {
	ID    flowfabric.ExecutionID `json:"id"`
	Steps int                    `json:"steps" jsonschema:"recorded steps, answers and messages that it begins with"`
	// Left are the names of the steps of the execution that the fork does not have, sorted: what they did is done, and
	// the fork may do it again.
	Left []string `json:"left,omitempty" jsonschema:"names of the steps that it does not have; what they did is done"`
	// Already says that the request had made it before. Left is empty then, and Steps are those that it has now.
	Already bool `json:"already,omitempty" jsonschema:"the request had made it before"`
}

// Fork makes another execution that begins with what this one has recorded: steps, received messages and answers of
// waits, up to a step or all of it. Its handler runs from the top, as after a replay, and does what is not recorded.
// It has its own id, in the same partition, namespace, lane and kind, with the input, tags, policy, priority and gates
// of this one (gates that its scopes have by now, too); the deadline gets its original span. It is in no flow, has no
// key, none of the messages that nobody has received, and no open wait, waitpoint or child: it opens and makes its
// own. This execution, in whatever state, is not changed.
//
// The frames that the steps cover are referred to, not copied. Readers see them as those of the fork's first attempts,
// as long as the fork is there, whatever becomes of this execution; a TailAttemptEnd with reason "forked" ends the last
// of them, and the fork's own attempts follow. A child whose outcome is recorded is not made again; its result is read
// where it is, until that child is purged.
//
// Errors: flowfabric.ErrNotFound for the execution and for Step; ErrResultPurged for the execution, and for a fork of
// the same Request; ErrInvalidInput for what is out of bounds, for a member of a flow that has inputs of others, and
// for a Request that was for another Step; ErrLaneClosed; ErrPayloadTooLarge; ErrLimit when a new execution would be
// refused so, too. After ErrTransport it may have happened: repeat it with the same Request.
func (e *Execution[Out]) Fork(ctx context.Context, how Fork, opts ...flowfabric.ActOption) (Forked, error) {
	c, id := e.client, e.id
	if err := c.admit("fork", id); err != nil {
		return Forked{}, err
	}
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, c.cfg.Creator)
	err := link.CheckBy(act.By)
	if err == nil && len(how.Step) > limits.MaxStepName {
		err = fmt.Errorf("%w: Step has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(how.Step),
			limits.MaxStepName)
	}
	q := engine.Fork{Request: how.Request, Step: how.Step}
	if how.Input != nil {
		q.Input = &how.Input
	}
	var x engine.Forked
	if err == nil {
		x, err = c.store.ForkExecution(act.Execution(ctx, "fork", id), id, q)
	}
	if err != nil {
		return Forked{}, link.Operated("fork", id, err)
	}
	return Forked{ID: x.ID, Steps: x.Steps, Left: x.Left, Already: x.Already}, nil
}
