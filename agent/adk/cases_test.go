package adk_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent/adk"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func rooted(a agent.Agent) adk.Config { return adk.Config{Runner: runner.Config{Agent: a}} }

func run(t *testing.T, cfg func() adk.Config) *fftest.Report[[]string] {
	t.Helper()
	return fftest.Run(t, ask, answering(cfg), "hello")
}

// What could not be recorded is refused for good, whatever else the agent would do.
func TestRefused(t *testing.T) {
	plain := func(cfg llmagent.Config) adk.Config {
		cfg.Name = "support"
		return rooted(made(llmagent.New(cfg)))
	}
	once := &script{answers: []*genai.Content{says("hi")}}
	streaming := made(functiontool.NewStreaming(functiontool.Config{Name: "watch", Description: "watches"},
		func(agent.Context, query) iter.Seq2[string, error] { return func(func(string, error) bool) {} }))
	for about, c := range map[string]struct {
		cfg  func() adk.Config
		want string
	}{
		"no agent": {func() adk.Config { return adk.Config{} }, "Config.Runner.Agent is missing"},
		"a session service": {func() adk.Config {
			cfg := plain(llmagent.Config{Model: adk.Model(once)})
			cfg.Runner.SessionService = session.InMemoryService()
			return cfg
		}, "Config.Runner.SessionService must be nil"},
		"a model that is not wrapped": {func() adk.Config { return plain(llmagent.Config{Model: once}) },
			"the model of agent support is not recorded: wrap it with adk.Model"},
		"a streaming tool": {func() adk.Config {
			return plain(llmagent.Config{Model: adk.Model(once), Tools: []tool.Tool{streaming}})
		}, "tool watch is a streaming one"},
	} {
		t.Run(about, func(t *testing.T) {
			r := run(t, c.cfg)
			if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) || len(r.Attempts) != 1 {
				t.Errorf("%v after %d attempts, want one and %q", r.Err, len(r.Attempts), c.want)
			}
		})
	}
}

// A model that fails ends the attempt; the next one asks it again and no other.
func TestModelFails(t *testing.T) {
	var first, second atomic.Int32
	r := run(t, func() adk.Config {
		return rooted(newAgent("support", &script{answers: []*genai.Content{wants("search", "a"), says("done")},
			called: func(turn int, _ *model.LLMRequest) {
				if turn == 1 {
					first.Add(1)
				} else if second.Add(1) < 3 {
					panic("the service is away") // ADK makes an error of it
				}
			}}, func(c *llmagent.Config) { c.Tools = tools(func(string) {}) }))
	})
	if r.Err != nil || first.Load() != 1 || second.Load() != 3 || r.Result[len(r.Result)-1] != "done" {
		t.Errorf("%q, %v: the model was called %d and %d times", r.Result, r.Err, first.Load(), second.Load())
	}
}

// Agents side by side have steps of their own, whoever is first.
func TestParallelAgents(t *testing.T) {
	r := run(t, func() adk.Config {
		var all []agent.Agent
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, newAgent(name, &script{answers: []*genai.Content{wants("search", "x"), says(name)}},
				func(c *llmagent.Config) { c.Tools = tools(func(string) {}) }))
		}
		return rooted(made(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "all",
			SubAgents: all}})))
	})
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	want := "a model 1,a model 2,a tool 1.1 search,b model 1,b model 2,b tool 1.1 search,c model 1,c model 2," +
		"c tool 1.1 search"
	if r.Err != nil || strings.Join(names, ",") != want {
		t.Errorf("%q, %v", names, r.Err)
	}
}

// A tool that waits suspends the execution, and goes on with what it waited for.
func TestToolWaits(t *testing.T) {
	began := 0
	cfg := func() adk.Config {
		courier := newTool(functiontool.Config{Name: "courier"}, func(ctx agent.Context, q query) (string, error) {
			began++
			return handler.Await[string](ctx, adk.TaskFrom(ctx), "parcel "+q.Text)
		})
		return rooted(newAgent("support", &script{answers: []*genai.Content{wants("courier", "7"), says("done")}},
			func(c *llmagent.Config) { c.Tools = []tool.Tool{courier} }))
	}
	r := fftest.Run(t, ask, fftest.Answered(answering(cfg), fftest.Signal("parcel 7", "at the door")), "hello")
	want := []string{"user: hello", "support calls courier", "support: courier map[result:at the door]",
		"support: done", "done"}
	if r.Err != nil || !slices.Equal(r.Result, want) || began != 2 {
		t.Errorf("%q, %v, the tool began %d times", r.Result, r.Err, began)
	}
}

// A session takes one message after the other, knows what was said before the execution, and has the state that tools
// wrote, also in a run that was only told of it. Ids of calls are the same in each run.
func TestConversation(t *testing.T) {
	var ids []string
	talk := func(ctx context.Context, t *handler.Task, in string) ([]string, error) {
		look := newTool(functiontool.Config{Name: "look"}, func(ctx agent.Context, _ query) (string, error) {
			seen, err := ctx.State().Get("seen")
			return fmt.Sprint(seen), err
		})
		cfg := rooted(newAgent("support", &script{answers: []*genai.Content{says("before"), wants("search", "a"),
			says("found"), wants("look", "b"), says("seen")}},
			func(c *llmagent.Config) { c.Tools = append(tools(func(string) {}), look) }))
		earlier := genai.NewContentFromText("earlier", genai.RoleUser)
		cfg.History = []*session.Event{{Author: "user", LLMResponse: model.LLMResponse{Content: earlier}},
			{Author: "support", LLMResponse: model.LLMResponse{Content: says("before")}}}
		s, err := adk.New(ctx, t, cfg)
		if err != nil {
			return nil, err
		}
		first, err := s.Send(ctx, genai.NewContentFromText(in, genai.RoleUser))
		if err != nil {
			return nil, err
		}
		ids = append(ids, first.Events[1].Content.Parts[0].FunctionCall.ID)
		if _, err := t.Ask(ctx, "pause", suspend.Question{Title: "Go on?"}); err != nil {
			return nil, err
		}
		second, err := s.Send(ctx, genai.NewContentFromText("and?", genai.RoleUser))
		return append(told(second.Events), first.Text), err
	}
	r := fftest.Run(t, ask, fftest.Answered(talk, fftest.Approve("pause", suspend.Answer{Choice: "approve"},
		flowfabric.By("anna"))), "hello")
	want := []string{"user: and?", "support calls look", "support: look map[result:a]", "support: seen", "found"}
	if r.Err != nil || !slices.Equal(r.Result, want) {
		t.Errorf("%q, %v", r.Result, r.Err)
	}
	if len(ids) != 2 || ids[0] != ids[1] || !strings.HasPrefix(ids[0], "adk-") {
		t.Errorf("ids of the call: %q", ids)
	}
}

// Outside a session the model is the plain one, and there is no task.
func TestOutside(t *testing.T) {
	m := adk.Model(&script{answers: []*genai.Content{says("plain")}})
	n := 0
	for a, err := range m.GenerateContent(t.Context(), &model.LLMRequest{}, false) {
		if n++; err != nil || a.Content.Parts[0].Text != "plain" {
			t.Error(a, err)
		}
	}
	if n != 1 || adk.TaskFrom(t.Context()) != nil || m.Name() != "script" {
		t.Error(n, m.Name())
	}
}
