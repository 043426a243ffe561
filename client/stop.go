package client

import (
	"cmp"
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// Stopped answers an [Execution.Stop].
type Stopped struct {
	// Done are the steps of the turn that are recorded, in their order: what they did, is done.
	Done []string `json:"done" jsonschema:"the recorded steps of the turn, in their order: what these did is done"`
	// Already says that another stop came first, and the handler has not noticed it yet.
	Already bool   `json:"already" jsonschema:"somebody else had stopped it before"`
	By      string `json:"by,omitempty" jsonschema:"who stopped it, if that is known"`
}

// Stop asks the run of an execution to end what it says and to keep what it has: an agent ends its answer in
// mid-token and begins no tool; its conversation waits for the next message, and without one it returns, with
// agent.StopStopped. A worker hears of it at once. Without one, the next run heeds it: what waits for people or for
// children goes on at once, and so does what is delayed, but for its first start. A handler that is no agent does not
// heed it, though a wait of its goes on as after admin.Admin.Resume. agent.Stop tells more of an agent's turn.
//
// Stop returns as soon as the stop is recorded, and the history has it, with flowfabric.By (at most 64 bytes; default
// Config.Creator) and flowfabric.Reason (cut to 1 KiB). Of a stop and the last word of an answer one comes first, and
// the other is told. Safe for concurrent use; its own repeats are harmless.
//
// Errors: flowfabric.ErrState, code nothing_to_stop, when the agent has answered and waits for a message;
// ErrTerminal, with the state, for one that has ended; ErrNotFound; ErrResultPurged; ErrInvalidInput for a By that is
// too long.
func (e *Execution[Out]) Stop(ctx context.Context, opts ...flowfabric.ActOption) (Stopped, error) {
	c, id := e.client, e.id
	if err := c.admit("stop", id); err != nil {
		return Stopped{}, err
	}
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, c.cfg.Creator)
	if err := link.CheckBy(act.By); err != nil {
		return Stopped{}, link.Operated("stop", id, err)
	}
	s, err := c.store.StopTurn(act.Execution(ctx, "stop", id), id, mint.UUID())
	if err != nil {
		return Stopped{}, link.Signalled("stop", id, err)
	}
	return Stopped{Done: s.Steps, Already: s.Other, By: s.By}, nil
}
