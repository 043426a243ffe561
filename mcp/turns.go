package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
)

// Turns says that the handler runs an agent, and lets callers control its turns: with the first such tool the server
// has the tools stop_turn, regenerate_turn, edit_turn and fork_turn. Each takes the id of a task that its caller has,
// so a client without tasks cannot use them. of is which agent it is, if the handler has several, and its codec;
// of.Turn is not looked at. What they do to tokens, effects and readers is in docs/how-to/turn-control.md. fork_turn
// returns the id of another task. A tool that has one of these names is refused by [New].
func Turns(of agent.Place) ToolOption {
	return func(k *Kind) { k.turns = &of }
}

// turnInput is what the tools for turns take.
type turnInput struct {
	Task string `json:"task" jsonschema:"the id of the task whose agent is meant"`
	Turn int    `json:"turn,omitempty" jsonschema:"the number of the answer, from 1; without it the first answer to what the user said last"`
}

type forkInput struct {
	Task string `json:"task" jsonschema:"the id of the task whose agent is meant"`
	Turn int    `json:"turn,omitempty" jsonschema:"the number of the first answer that the new task does not have, from 1; without it the new task has them all"`
}

type editInput struct {
	turnInput
	Message string `json:"message" jsonschema:"what the user says instead"`
}

type stopInput struct {
	Task string `json:"task" jsonschema:"the id of the task whose agent is meant"`
}

// turnOutput is what became of it.
type turnOutput struct {
	Task    string   `json:"task" jsonschema:"the task that goes on: another one after a fork"`
	Already bool     `json:"already,omitempty" jsonschema:"it had been done before, and nothing was done now"`
	Steps   []string `json:"steps,omitempty" jsonschema:"stop: recorded steps of the turn, so what is done; else: steps that are forgotten, or that the fork does not have"`
}

// addTurns adds the tools for turns.
func (s *Server) addTurns() error {
	for _, k := range []string{"stop_turn", "regenerate_turn", "edit_turn", "fork_turn"} {
		if s.byName[k] != nil {
			return fmt.Errorf("tool %s: the name is that of a tool for turns", k)
		}
	}
	yes, no := true, false
	add := func(name, description string, gone *bool) *sdk.Tool {
		return &sdk.Tool{Name: name, Description: description,
			Annotations: &sdk.ToolAnnotations{DestructiveHint: gone, OpenWorldHint: &no}}
	}
	sdk.AddTool(s.sdk, add("stop_turn", "Ends the answer of a task's agent where it is. The run goes on: it waits for "+
		"the next message, or returns what there is. Tokens stay paid, and calls that run end by themselves.", &no),
		func(ctx context.Context, _ *sdk.CallToolRequest, in stopInput) (*sdk.CallToolResult, turnOutput, error) {
			return s.turn(ctx, in.Task, func(who caller, x agentRun) (turnOutput, error) {
				r, err := s.client.Execution(x.id).Stop(ctx, who.by(), byTool("stop_turn"))
				return turnOutput{Task: in.Task, Already: r.Already, Steps: r.Done}, err
			})
		})
	rewound := func(in turnInput, r agent.Rewound, err error) (turnOutput, error) {
		return turnOutput{Task: in.Task, Already: r.Already, Steps: r.Dropped}, err
	}
	sdk.AddTool(s.sdk, add("regenerate_turn", "Forgets an answer of a task's agent and all that follows, and has the "+
		"agent answer again. Effects of tools stay done, and tokens stay paid.", &yes),
		func(ctx context.Context, _ *sdk.CallToolRequest, in turnInput) (*sdk.CallToolResult, turnOutput, error) {
			return s.turn(ctx, in.Task, func(who caller, x agentRun) (turnOutput, error) {
				r, err := agent.Regenerate(ctx, s.client, x.id, x.at(in.Turn), who.by(), byTool("regenerate_turn"))
				return rewound(in, r, err)
			})
		})
	sdk.AddTool(s.sdk, add("edit_turn", "Changes what the user said before an answer of a task's agent, forgets that "+
		"answer and all that follows, and has the agent answer. Effects of tools stay done, tokens stay paid.", &yes),
		func(ctx context.Context, _ *sdk.CallToolRequest, in editInput) (*sdk.CallToolResult, turnOutput, error) {
			return s.turn(ctx, in.Task, func(who caller, x agentRun) (turnOutput, error) {
				if strings.TrimSpace(in.Message) == "" {
					return turnOutput{}, fmt.Errorf("%w: message is empty", flowfabric.ErrInvalidInput)
				}
				r, err := agent.Edit(ctx, s.client, x.id, x.at(in.Turn), in.Message, who.by(), byTool("edit_turn"))
				return rewound(in.turnInput, r, err)
			})
		})
	sdk.AddTool(s.sdk, add("fork_turn", "Makes another task that has what a task's agent did before an answer, and "+
		"answers again from there. What it has is not done or paid again, and the first task goes on as it is.", &no),
		func(ctx context.Context, _ *sdk.CallToolRequest, in forkInput) (*sdk.CallToolResult, turnOutput, error) {
			return s.turn(ctx, in.Task, func(who caller, x agentRun) (turnOutput, error) {
				how := client.Fork{Step: x.step(in.Turn)}
				r, err := s.client.Execution(x.id).Fork(ctx, how, who.by(), byTool("fork_turn"))
				return turnOutput{Task: s.tasks.seal(r.ID, who.Name), Steps: r.Left}, err
			})
		})
	return nil
}

func byTool(name string) flowfabric.ActOption { return flowfabric.Reason("tools/call " + name) }

// agentRun is the execution of a task whose handler runs an agent.
type agentRun struct {
	id flowfabric.ExecutionID
	of agent.Place
}

func (r agentRun) at(turn int) agent.Place {
	r.of.Turn = turn
	return r.of
}

// step is the step of an answer, "" without a number.
func (r agentRun) step(turn int) string {
	if turn == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s model %d", r.of.Name, turn))
}

// turn does something with the agent of a task that the caller has. Refusals are for the model to read.
func (s *Server) turn(ctx context.Context, taskID string,
	do func(who caller, x agentRun) (turnOutput, error)) (*sdk.CallToolResult, turnOutput, error) {
	who, _ := ctx.Value(callerKey{}).(caller)
	x, k, err := s.find(ctx, who, taskID)
	if err != nil {
		return nil, turnOutput{}, err
	}
	if k.turns == nil {
		return nil, turnOutput{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "tasks of tool " + k.name + " have no turns"}
	}
	out, err := do(who, agentRun{x.ID, *k.turns})
	switch {
	case err == nil:
		return nil, out, nil
	case errors.Is(err, flowfabric.ErrState), errors.Is(err, flowfabric.ErrConflict),
		errors.Is(err, flowfabric.ErrTerminal), errors.Is(err, flowfabric.ErrInvalidInput),
		errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrLimit):
		return toolError(x.ID, flowfabric.CodeOf(err), err.Error()), turnOutput{}, nil
	}
	return nil, turnOutput{}, s.internal("control "+x.ID.String(), err)
}
