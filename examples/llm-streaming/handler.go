package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Prompt is the input of an execution.
type Prompt struct {
	Text      string
	MaxTokens int    // 1..4000
	Seed      uint64 // equal seeds give equal answers where the model allows it
}

// Answer is its result.
type Answer struct {
	Text     string
	Tokens   int
	Model    string
	Duration time.Duration // spent generating, without outages
	Attempt  uint32        // the attempt that finished it, counted from 1
}

// Generate is what producers and workers share.
var Generate = handler.Define[Prompt, Answer]("llm-generate",
	handler.Retry(3, 500*time.Millisecond, 5*time.Second), flowfabric.Timeout(5*time.Minute))

// frameToken is the type of all frames: each is a token of the answer.
const frameToken = "token"

const (
	maxTokens = 4000
	maxParts  = 900 // an execution records at most 1,000 steps
)

// Generator handles Generate. Its model comes from fx.
type Generator struct{ model LLM }

// NewGenerator is the constructor given to runtime.Provide.
func NewGenerator(model LLM) *Generator { return &Generator{model: model} }

// Handle streams an answer part by part. Every part is a Step: its tokens go out as frames while it runs, and once
// it is recorded no later run repeats it. So after a crash or a drain the answer goes on after the last recorded
// part, and a tail drops the tokens after it.
func (g *Generator) Handle(ctx context.Context, t *handler.Task, in Prompt) (Answer, error) {
	if strings.TrimSpace(in.Text) == "" || in.MaxTokens < 1 || in.MaxTokens > maxTokens {
		return Answer{}, handler.Permanent(errors.New("a prompt needs text and 1..4000 tokens"))
	}
	answer := Answer{Model: g.model.Name(), Attempt: t.Attempt()}
	for n := range maxParts {
		part, err := handler.Step(ctx, t, fmt.Sprintf("part-%d", n+1), func(ctx context.Context) (Part, error) {
			return g.model.Stream(ctx, in, answer.Text, func(token string) error {
				return t.Frame(ctx, frameToken, token)
			})
		})
		if err != nil {
			return Answer{}, err // the policy retries, unless the error says otherwise
		}
		answer.Text += part.Text
		answer.Tokens += part.Tokens
		answer.Duration += part.Took
		if part.Done {
			break
		}
	}
	answer.Text = strings.TrimSpace(answer.Text)
	return answer, nil
}
