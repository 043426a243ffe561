package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Talk is a conversation: one execution, which lives until somebody ends it. It is shared by the web server and the
// workers.
var Talk = handler.Define[chat.Conversation, agent.Result]("chat",
	handler.Retry(5, time.Second, 30*time.Second), // of a model's service that fails; a killed worker uses up none
	handler.MaxReclaims(1000),                     // the page has a button that kills workers
	handler.StreamFrames(100_000))

const (
	dimension = "tokens" // what the budget of a conversation counts
	maxOutput = 1000     // tokens of an answer
	maxTurns  = 300      // answers until it goes on as another link of the execution
)

// The answers to the question whether a conversation may use more.
const (
	allowMore = "more"
	endIt     = "end"
)

const instructions = "You are the assistant in a demonstration of FlowFabric, a durable runtime. Use search for questions about the bundled old books, calculator for " +
	"arithmetic, and publish if the user wants something published; a person approves that. Answer in plain text without markup, in at most 150 words unless asked for more."

// Talker handles Talk.
type Talker struct {
	model agent.Model
	tools []agent.Tool
	files blob.Store
}

// NewTalker is the constructor given to runtime.Provide: fx injects the model, its tools, and where images and
// files are.
func NewTalker(model agent.Model, tools []agent.Tool, files blob.Store) *Talker {
	return &Talker{model: model, tools: tools, files: files}
}

// Handle talks until the user ends it. A crash in the middle of it loses nothing: every answer, every result of a
// tool and every message is a step.
func (k *Talker) Handle(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
	r, err := chat.Run(ctx, t, in, agent.Config{
		Model: k.model, System: instructions, Tools: k.tools, Blobs: k.files, MaxTurns: maxTurns, MaxOutput: maxOutput,
	})
	if errors.Is(err, flowfabric.ErrOverBudget) {
		return r, k.askForMore(ctx, t, r)
	}
	return r, err
}

// askForMore asks a person after an answer that the budget did not pay for. The person who allows more raises the
// budget first, so the next run can pay; one that still cannot asks again, under the next name. While it waits no
// model is called, so nothing more is spent.
func (k *Talker) askForMore(ctx context.Context, t *handler.Task, r agent.Result) error {
	for n := 1; ; n++ {
		answer, err := t.Ask(ctx, fmt.Sprintf("budget %d.%d", r.Turns+1, n), suspend.Question{
			Title: "The budget has no room for this answer. Allow more?",
			Text:  "The answer would have passed the hard limit, so it was not paid for and not recorded. Everything before it is kept.",
			Choices: []suspend.Choice{{Name: allowMore, Label: "Allow more"},
				{Name: endIt, Label: "End the conversation"}},
		})
		if err != nil {
			return err
		}
		if answer.Choice == endIt {
			return nil
		}
	}
}
