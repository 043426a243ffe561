package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// A configuration that is not valid fails for good, and the error names the field and what it wants.
func TestConfigNamesTheField(t *testing.T) {
	model := &script{}
	nothing := func(context.Context, query) (string, error) { return "", nil }
	for want, cfg := range map[string]agent.Config{
		"Model is nil":                        {},
		"MaxTurns is 501, want 1..500":        {Model: model, MaxTurns: 501},
		"MaxTurns is -1":                      {Model: model, MaxTurns: -1},
		"MaxTokens is -1, want at least 0":    {Model: model, MaxTokens: -1},
		"MaxTime is -1s, want at least 0":     {Model: model, MaxTime: -time.Second},
		"MaxOutput is -1, want at least 0":    {Model: model, MaxOutput: -1},
		"Parallel is 65, want 1..64":          {Model: model, Parallel: 65},
		"Idle is -1s, want at least 0":        {Model: model, Idle: -time.Second},
		"Conversation needs Mailbox":          {Model: model, Conversation: true},
		`Name "a b" is not valid, want 1..32`: {Model: model, Name: "a b"},
		`Messages[1] has role "system", want user`: {Model: model,
			Messages: []agent.Message{{Role: agent.User}, {Role: "system"}}},
		"129 Tools, want at most 128":                 {Model: model, Tools: make([]agent.Tool, 129)},
		"Tools[0]: the tool is empty":                 {Model: model, Tools: make([]agent.Tool, 1)},
		"Tools[1]: another tool is named search, too": {Model: model, Tools: []agent.Tool{search(nil), search(nil)}},
		`Tools[0]: tool "a b": the name is not valid`: {Model: model,
			Tools: []agent.Tool{agent.NewTool("a b", "", nothing)}},
		`Tools[0]: tool "x": the function is nil`: {Model: model,
			Tools: []agent.Tool{agent.NewTool[query, string]("x", "", nil)}},
		`the arguments are a string, want a struct`: {Model: model, Tools: []agent.Tool{
			agent.NewTool("x", "", func(context.Context, string) (string, error) { return "", nil })}},
		`the arguments, a time.Time, are no object`: {Model: model, Tools: []agent.Tool{
			agent.NewTool("x", "", func(context.Context, time.Time) (string, error) { return "", nil })}},
		`schema of the arguments: For[struct { F func(`: {Model: model, Tools: []agent.Tool{
			agent.NewTool("x", "", func(context.Context, struct{ F func() }) (string, error) { return "", nil })}},
		"Compact.Window is 0, want at least 1": {Model: model, Compact: agent.Compact{Keep: 1}},
		"Compact.Share is 101, want 1..100":    {Model: model, Compact: agent.Compact{Window: 1, Share: 101}},
		"Compact.Keep is -1, want at least 1":  {Model: model, Compact: agent.Compact{Window: 1, Keep: -1}},
		"OneByOne needs Mailbox":               {Model: model, OneByOne: true},
		"Needs is about a agent_test.amount, want one": {Model: model, Tools: []agent.Tool{agent.NewTool("x", "",
			nothing, agent.Needs(func(amount) agent.Decision { return agent.Decision{} }))}},
		"the function of the option Needs is nil": {Model: model,
			Tools: []agent.Tool{agent.NewTool("x", "", nothing, agent.Needs[query](nil))}},
	} {
		r := run(t, cfg)
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || !strings.Contains(r.Err.Error(), "agent: ") ||
			len(r.Attempts) != 1 {
			t.Errorf("%s: %v after %d attempts", want, r.Err, len(r.Attempts))
		}
	}
}

// An agent needs something to begin with.
func TestNothingToBeginWith(t *testing.T) {
	model := &script{answers: []agent.Response{says("x")}}
	for _, messages := range [][]agent.Message{nil,
		{{Role: agent.User, Parts: agent.Text("hi")}, {Role: agent.Assistant, Parts: agent.Text("hello")}}} {
		r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
			return agent.Run(ctx, task, agent.Config{Model: model, Messages: messages})
		}, "")
		if r.Err == nil || !strings.Contains(r.Err.Error(), "Prompt and Mailbox are empty") &&
			!strings.Contains(r.Err.Error(), "all empty") {
			t.Error(r.Err)
		}
	}
	if _, err := agent.Run(t.Context(), nil, agent.Config{Model: model, Prompt: "x"}); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}

// Two agents in one handler have names, and steps of their own; the second goes on with the words of the first.
func TestTwoAgents(t *testing.T) {
	r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		first, err := agent.Run(ctx, task, agent.Config{Name: "plan",
			Model: &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("a plan")}},
			Tools: []agent.Tool{search(nil)}, Prompt: prompt})
		if err != nil {
			return first, err
		}
		model := &script{answers: make([]agent.Response, 2)}
		model.answers = append(model.answers, says("a book"))
		return agent.Run(ctx, task,
			agent.Config{Name: "write", Model: model, Messages: first.Messages, Prompt: "write it"})
	}, "hello")
	r.Want(fftest.Want{Steps: []string{"plan model 1", "plan tool 1.1 search", "plan model 2", "write turn",
		"write model 1"}})
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"x"}`, "tool search c1: about x",
		"assistant: a plan", "user: write it", "assistant: a book")
	if r.Result.Turns != 1 || r.Result.Usage.Total() != 10 {
		t.Errorf("%+v", r.Result)
	}
}

// Two agents without different names are an error, not one that recalls what the other did.
func TestTwoAgentsOfOneName(t *testing.T) {
	r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		cfg := agent.Config{Model: &script{answers: []agent.Response{says("x")}}, Prompt: prompt}
		if r, err := agent.Run(ctx, task, cfg); err != nil {
			return r, err
		}
		return agent.Run(ctx, task, cfg)
	}, "hello")
	if r.Err == nil || !strings.Contains(r.Err.Error(), "step model 1 was already used in this run") {
		t.Error(r.Err)
	}
}

// The request has what the configuration says, and Edit changes what is asked but not the transcript.
func TestRequest(t *testing.T) {
	var asked []agent.Request
	model := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("done")},
		called: func(_ int, req agent.Request) { asked = append(asked, req) }}
	r := run(t, agent.Config{Model: model, System: "be brief", MaxOutput: 99, Tools: []agent.Tool{search(nil)},
		Edit: func(req *agent.Request) {
			for i, m := range req.Messages {
				if m.Role == agent.User {
					req.Messages[i].Parts[0].Text = "edited"
				}
			}
		}})
	if len(asked) != 2 {
		t.Fatalf("%d calls, %v", len(asked), r.Err)
	}
	first := asked[0]
	if first.System != "be brief" || first.MaxTokens != 99 || len(first.Tools) != 1 ||
		first.Tools[0].Name != "search" || first.Tools[0].Description != "looks things up" ||
		first.Tools[0].Schema.Properties["text"].Description != "what to look for" || len(first.Messages) != 1 ||
		first.Messages[0].Text() != "edited" {
		t.Errorf("%+v", first)
	}
	if len(asked[1].Messages) != 3 || asked[1].Messages[0].Text() != "edited" ||
		r.Result.Messages[0].Text() != "hello" {
		t.Errorf("asked %+v, the transcript %+v", asked[1].Messages, r.Result.Messages)
	}
	r = run(t, agent.Config{Model: model, Edit: func(req *agent.Request) { req.Messages = nil }})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "Edit left no messages") {
		t.Error(r.Err)
	}
}
