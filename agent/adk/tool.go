package adk

import (
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
)

// recordWithin is how long the result of a tool may take to be recorded after its context ended: its effect has
// happened.
const recordWithin = 3 * time.Second

// done is what is recorded of a call of a tool.
type done struct {
	Result  map[string]any       `json:"result,omitempty"`
	Error   string               `json:"error,omitempty"`
	Actions session.EventActions `json:"actions"`
}

func (d done) answer() (map[string]any, error) {
	if d.Error != "" {
		return nil, errors.New(d.Error)
	}
	return d.Result, nil
}

// beforeModel refuses what could not be recorded.
func (r *run) beforeModel(ctx agent.Context, q *model.LLMRequest) (*model.LLMResponse, error) {
	for name, t := range q.Tools {
		if _, streams := t.(interface {
			RunStream(ctx agent.Context, args any) iter.Seq2[string, error]
		}); streams {
			return nil, r.stop(invalid("tool %s is a streaming one, whose calls ADK lets nobody record", name))
		}
	}
	r.mark(unasked, placeOf(ctx).of(ctx.AgentName()), true)
	return nil, r.halted()
}

// afterModel finds models that are not ours.
func (r *run) afterModel(ctx agent.Context, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
	if name := ctx.AgentName(); r.mark(unasked, placeOf(ctx).of(name), false) {
		return nil, r.stop(invalid("the model of agent %s is not recorded: wrap it with adk.Model", name))
	}
	return nil, r.halted()
}

// beforeTool answers a call with what is recorded.
func (r *run) beforeTool(ctx agent.Context, t tool.Tool, _ map[string]any) (map[string]any, error) {
	if err := r.halted(); err != nil {
		return nil, err
	}
	step := placeOf(ctx).path + " " + t.Name()
	if !r.task.Recorded(step) {
		if !r.task.LeaseHealthy() {
			return nil, r.stop(flowfabric.ErrLeaseLost)
		}
		r.mark(began, step, true)
		return nil, nil
	}
	d, err := handler.Step(ctx, r.task, step, func(context.Context) (done, error) { return done{}, nil })
	if err != nil {
		return nil, r.stop(err)
	}
	*ctx.Actions() = d.Actions
	for key, value := range d.Actions.StateDelta { // a key that begins with temp: is in the session alone
		if err := ctx.State().Set(key, value); err != nil {
			return nil, r.stop(err)
		}
	}
	return d.answer()
}

// toolError comes before callbacks that make an answer of an error.
func (r *run) toolError(ctx agent.Context, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
	if handler.IsWait(err) || ctx.Err() != nil || errors.Is(err, flowfabric.ErrLeaseLost) {
		return nil, r.stop(err)
	}
	return nil, nil
}

// afterTool records a call. Nothing is known of one that failed while the run ended. One without an answer gives ADK
// nothing, and so is made again by each run.
func (r *run) afterTool(ctx agent.Context, t tool.Tool, _, result map[string]any, err error) (map[string]any, error) {
	step := placeOf(ctx).path + " " + t.Name()
	if !r.mark(began, step, false) || err == nil && result == nil {
		return nil, nil
	}
	d := done{Result: result, Actions: *ctx.Actions()}
	if err != nil {
		if halt := r.halted(); halt != nil {
			return nil, halt
		}
		d.Error = err.Error()
	}
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	if _, err := handler.Step(record, r.task, step, func(context.Context) (done, error) { return d, nil }); err != nil {
		return nil, r.stop(err)
	}
	return nil, nil
}
