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

// Rewind says from where an execution goes on again, see [Execution.Rewind].
type Rewind struct {
	// Step is the handler's step, 1..128 bytes, that is forgotten with everything that was recorded after it.
	Step string `json:"step" jsonschema:"the step of the handler that is forgotten, with everything that was recorded after it"`
	// Attempt is the attempt that the caller saw the execution in, from 1 (flowfabric.Snapshot.Attempt); in another one
	// nothing is done. Default 0: any.
	Attempt uint32 `json:"attempt,omitempty" jsonschema:"the attempt that it was seen in: in another one nothing is done; absent for any"`
	// Message is what is said in the place of what was said before the step, for handlers that look for it, as those of
	// package agent do. It is encoded as by [Execution.Send], at most 64 KiB. Default nil: nothing.
	Message any `json:"message,omitempty" jsonschema:"what is said in the place of what was said before the step"`
}

// Rewound answers an [Execution.Rewind].
type Rewound struct {
	Attempt uint32   `json:"attempt" jsonschema:"the attempt that begins next"`
	Dropped []string `json:"dropped" jsonschema:"the steps of the handler that are forgotten, in the order in which they were recorded"`
	// Already: a repeat of the same call had been applied; Dropped is not known then.
	Already bool `json:"already,omitempty" jsonschema:"a repeat of the call was applied; dropped is not known"`
}

// Rewind has an execution, in any state, go on again from a recorded step on. That step and everything that was
// recorded after it are forgotten: steps, answers of waits, received messages, at most 1,000. It is claimable at once,
// for a new attempt of type replay, which is handed what was recorded before. No retry is used up, and those that were
// are given back.
//
// One that runs is taken from its worker, whose handler's context ends with flowfabric.ErrLeaseLost and which can
// record nothing more. One that is suspended waits no longer: its waitpoints are closed, and an answer that comes later
// is told so; waitpoints that a step before recorded stay open. Children that it waits for are cancelled, if its end
// would cancel them. Frames of forgotten steps go from transcripts. What such a step has done in the world stays done:
// the caller looks at the steps first ([Execution.Steps]). One that an operator holds stays held. One that has ended is
// replayed, also if it succeeded, by the rules of admin.Admin.Replay.
//
// Of several that rewind what they saw in the same attempt one wins; see [Rewind]. The call's own repeats are harmless.
// A caller that repeats it after ErrTransport names the attempt.
//
// Errors: flowfabric.ErrNotFound, also for a step that is not recorded; ErrConflict for another attempt; ErrLimit after
// 1,000 rewinds, for one that has ended at the cap of its policy, and for a message without room; ErrState for a member
// of a flow that was cancelled, and ErrResolving; ErrPayloadTooLarge; ErrInvalidInput for Step, Message, and a By of
// more than 64 bytes.
func (e *Execution[Out]) Rewind(ctx context.Context, how Rewind, opts ...flowfabric.ActOption) (Rewound, error) {
	c, id := e.client, e.id
	if err := c.admit("rewind", id); err != nil {
		return Rewound{}, err
	}
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, c.cfg.Creator)
	q, err := how.request()
	if err == nil {
		err = link.CheckBy(act.By)
	}
	if err != nil {
		return Rewound{}, link.Operated("rewind", id, err)
	}
	r, err := c.store.RewindExecution(act.Execution(ctx, "rewind", id), id, q)
	if r.Dropped == nil {
		r.Dropped = []string{}
	}
	return Rewound(r), link.Operated("rewind", id, err)
}

// maxEditedStep is how long the name of a step may be that something else is said before, in bytes.
const maxEditedStep = 120

// request says it to the store.
func (r Rewind) request() (engine.Rewind, error) {
	q := engine.Rewind{Step: r.Step, Attempt: r.Attempt}
	most := limits.MaxStepName
	if r.Message != nil {
		most = maxEditedStep
	}
	if r.Step == "" || len(r.Step) > most {
		return q, fmt.Errorf("%w: Step has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, len(r.Step), most)
	}
	if r.Message == nil {
		return q, nil
	}
	var err error
	if q.Encoding, q.Message, err = encoded(r.Message); err == nil && len(q.Message) > limits.MaxMessage {
		err = fmt.Errorf("%w: a message of %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(q.Message),
			limits.MaxMessage)
	}
	return q, err
}
