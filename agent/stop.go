package agent

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Stopped answers a [Stop].
type Stopped struct {
	Done    []Effect `json:"done"`         // the tools of the turn that were called, in the order of their recording
	Already bool     `json:"already"`      // another stop came first, and the agent has not noticed it yet
	By      string   `json:"by,omitempty"` // who stopped it, if that is known
}

// Stop ends what an agent says, in mid-token, and keeps the agent: client.Execution.Stop, whose errors and options it
// has, and tells which tools of the turn were called before. What the model had said until then is its answer, with
// [StopStopped]. Its tokens are spent: as the model's service reports them, else as an estimate (Usage.Estimated).
// Tools that run go on, and their results are recorded; those that have not begun are not made, nor are those that
// wait for people. One that a lost worker may have begun is not repeated, and the model is told so. Children are
// cancelled. Readers get a frame [FrameTurn]. A conversation then waits for the next message; any other agent returns,
// and RunAs fails.
//
// Stop returns as soon as the stop is recorded, maybe before the agent heeds it: a tool that runs then is missing in
// Done, and in the frame it is not. It makes one call, and one for each tool and each answer of the turn. o says how to
// read them.
//
// Errors: those of client.Execution.Stop, and of [ReadTranscript]: the turn is stopped all the same then.
func Stop(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, o TranscriptOptions,
	opts ...flowfabric.ActOption) (Stopped, error) {
	s, err := c.Execution(id).Stop(ctx, opts...)
	if err != nil {
		return Stopped{}, err
	}
	out := Stopped{Done: []Effect{}, Already: s.Already, By: s.By}
	if o.Codec == nil {
		o.Codec = handler.JSON
	}
	names := map[place]string{}
	for _, name := range s.Done {
		if at, ok := placeOf(o.Name, name); ok && at.call > 0 {
			names[at] = name
			names[place{at.turn, 0}] = Config{Name: o.Name}.prefixed(modelStep(at.turn))
		}
	}
	values, err := readValues(ctx, c, id, names)
	if err != nil {
		return out, fmt.Errorf("what was done: %w", err)
	}
	for _, name := range s.Done {
		of, ok := placeOf(o.Name, name)
		if !ok || of.call < 1 {
			continue
		}
		var answer turn
		if err := o.Codec.Decode(values[place{of.turn, 0}], &answer); err != nil {
			return out, fmt.Errorf("what was done: model call %d does not decode: %w", of.turn, err)
		}
		if of.call > len(answer.Message.Calls) {
			continue
		}
		e, made, err := effectOf(Place{Name: o.Name, Codec: o.Codec}, of, answer.Message.Calls[of.call-1], values[of])
		if err != nil {
			return out, err
		}
		if made {
			out.Done = append(out.Done, e)
		}
	}
	return out, nil
}
