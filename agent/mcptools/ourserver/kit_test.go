package ourserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

var chat = handler.Define[string, agent.Result]("chat", handler.Retry(3, time.Second, time.Second))

// env is a worker and a client.
type env struct {
	ctx    context.Context
	client *client.Client
}

func start(t *testing.T, bindings ...handler.Binding) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: "embedded://",
		Logger: quiet})
	must.No(t, err)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet}, bindings...)
	must.No(t, err)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		c.Close()
	})
	return &env{ctx, c}
}

// script is a model that answers by what the conversation has come to.
type script []agent.Response

func (s script) Generate(_ context.Context, req agent.Request, _ func(agent.Delta) error) (agent.Response, error) {
	turn := 0
	for _, m := range req.Messages {
		if m.Role == agent.Assistant {
			turn++
		}
	}
	if turn >= len(s) {
		return agent.Response{}, handler.Permanent(errors.New("the script has no more answers"))
	}
	return s[turn], nil
}

func says(text string) agent.Response {
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd}
}

// wants is an answer that calls tools: name, arguments, name, arguments …
func wants(calls ...string) agent.Response {
	r := agent.Response{Stop: agent.StopTools}
	for pair := range slices.Chunk(calls, 2) {
		r.Message.Calls = append(r.Message.Calls, agent.ToolCall{ID: fmt.Sprintf("c%d", len(r.Message.Calls)+1),
			Name: pair[0], Arguments: json.RawMessage(pair[1])})
	}
	return r
}

func talking(p *mcptools.Pool, model agent.Model) func(context.Context, *handler.Task, string) (agent.Result, error) {
	return func(ctx context.Context, t *handler.Task, prompt string) (agent.Result, error) {
		tools, err := p.Tools(ctx, t)
		if err != nil {
			return agent.Result{}, err
		}
		return agent.Run(ctx, t, agent.Config{Model: model, Tools: tools, Prompt: prompt})
	}
}

// wantTold compares what tools said.
func wantTold(t testing.TB, messages []agent.Message, want ...string) {
	t.Helper()
	var lines []string
	for _, m := range messages {
		if m.Role != agent.ToolRole {
			continue
		}
		line := m.Tool + ": " + m.Text()
		if m.Failed {
			line = "failed " + line
		}
		lines = append(lines, line)
	}
	if !slices.Equal(lines, want) {
		t.Errorf("tools said\n%q\nwant\n%q", lines, want)
	}
}

func pool(t testing.TB, servers ...mcptools.Server) *mcptools.Pool {
	t.Helper()
	p, err := mcptools.New(mcptools.Config{Logger: quiet}, servers...)
	must.No(t, err)
	return p
}
