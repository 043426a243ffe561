package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var chat = handler.Define[string, agent.Result]("chat")

// script is a model that answers by what the conversation has come to: the n-th answer for a conversation with n
// answers in it.
type script struct {
	answers []agent.Response
	called  func(turn int, req agent.Request) // may be nil
}

func (s *script) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	turn := 0
	for _, m := range req.Messages {
		if m.Role == agent.Assistant {
			turn++
		}
	}
	if s.called != nil {
		s.called(turn+1, req)
	}
	if turn >= len(s.answers) {
		return agent.Response{}, handler.Permanent(fmt.Errorf("the script has no answer %d", turn+1))
	}
	answer := s.answers[turn]
	for _, word := range words(answer.Message.Text()) {
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
	}
	return answer, context.Cause(ctx)
}

// words cuts a text behind its spaces.
func words(text string) (all []string) {
	for len(text) > 0 {
		n := len(text)
		for i := range len(text) {
			if text[i] == ' ' {
				n = i + 1
				break
			}
		}
		all, text = append(all, text[:n]), text[n:]
	}
	return all
}

// says is an answer that ends, of 10 tokens.
func says(text string) agent.Response {
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd,
		Usage: agent.Usage{Input: 7, Output: 3}}
}

// wants is an answer that calls tools, of 10 tokens: name, arguments, name, arguments …
func wants(calls ...string) agent.Response {
	r := says("")
	r.Stop = agent.StopTools
	for pair := range slices.Chunk(calls, 2) {
		id := fmt.Sprintf("c%d", len(r.Message.Calls)+1)
		r.Message.Calls = append(r.Message.Calls,
			agent.ToolCall{ID: id, Name: pair[0], Arguments: json.RawMessage(pair[1])})
	}
	return r
}

type query struct {
	Text string `json:"text" jsonschema:"what to look for"`
}

// search is a tool that answers with its question, and fails for "bad".
func search(called func(text string)) agent.Tool {
	return agent.NewTool("search", "looks things up", func(_ context.Context, q query) (string, error) {
		if called != nil {
			called(q.Text)
		}
		if q.Text == "bad" {
			return "", errors.New("nothing is there")
		}
		return "about " + q.Text, nil
	})
}

// run runs an agent with a prompt to its end.
func run(t testing.TB, cfg agent.Config) *fftest.Report[agent.Result] {
	t.Helper()
	return fftest.Run(t, chat, running(cfg), "hello")
}

func running(cfg agent.Config) func(context.Context, *handler.Task, string) (agent.Result, error) {
	return func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		cfg := cfg
		cfg.Prompt = prompt
		return agent.Run(ctx, task, cfg)
	}
}

// talk is a conversation in lines, for comparison.
func talk(messages []agent.Message) (lines []string) {
	for _, m := range messages {
		line := string(m.Role) + ": " + m.Text()
		if m.From != "" {
			line = string(m.Role) + " " + m.From + ": " + m.Text()
		}
		if m.Role == agent.ToolRole {
			line = "tool " + m.Tool + " " + m.Call + ": " + m.Text()
		}
		if m.Failed {
			line = "failed " + line
		}
		for _, c := range m.Calls {
			line += " " + c.Name + string(c.Arguments)
		}
		lines = append(lines, line)
	}
	return lines
}

func wantTalk(t testing.TB, got []agent.Message, want ...string) {
	t.Helper()
	if lines := talk(got); !slices.Equal(lines, want) {
		t.Errorf("the conversation:\n%q\nwant\n%q", lines, want)
	}
}
