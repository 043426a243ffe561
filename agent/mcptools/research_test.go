package mcptools_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type Topic struct{ Name string }

var (
	Research = handler.Define[string, agent.Result]("research")
	Check    = handler.Define[Topic, agent.Result]("check")
	share    = flow.Share(map[string]int64{"tokens": 500}) // of the budget of the agent that makes the call
	check    = agent.Child("check", "Has a fact checked.", Check, agent.ChildOptions(share))
	publish  = agent.NewTool("publish", "Publishes a sentence about a topic.",
		func(_ context.Context, in map[string]string) (int, error) {
			return fmt.Println("published:", in["text"])
		},
		agent.Needs(func(map[string]string) agent.Decision { return agent.Decision{Ask: true, Assignee: "editor"} }))
)

// scripted is a model without a key: "tool {…}" is a call of that tool, and everything else is said.
func scripted(answers ...string) agent.Model {
	return agent.ModelFunc(func(_ context.Context, q agent.Request,
		say func(agent.Delta) error) (r agent.Response, err error) {
		said := answers[len(q.Messages)/2] // the user's message, then an answer and a result for each turn
		r.Usage, r.Stop = agent.Usage{Input: 80, Output: 20}, agent.StopTools
		if name, arguments, is := strings.Cut(said, " {"); is {
			r.Message.Calls = []agent.ToolCall{{ID: said, Name: name, Arguments: []byte("{" + arguments)}}
			return r, nil
		}
		r.Message.Parts, r.Stop = agent.Text(said), agent.StopEnd
		return r, say(agent.Delta{Text: said})
	})
}

func try[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// An agent looks a fact up with a tool of an MCP server, has it checked by another agent with a share of the budget,
// and publishes what a person has approved and changed. Both are shown live, in one stream.
func Example() {
	server := sdk.NewServer(&sdk.Implementation{Name: "facts", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "look_up", Description: "Looks a fact up."},
		func(_ context.Context, _ *sdk.CallToolRequest, in Topic) (*sdk.CallToolResult, map[string]string, error) {
			return nil, map[string]string{in.Name: "twice a day"}, nil
		})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer web.Close()
	pool := try(mcptools.New(mcptools.Config{}, mcptools.Server{Name: "facts", URL: web.URL}))
	defer pool.Close()
	ask := func(ctx context.Context, t *handler.Task, question string) (agent.Result, error) {
		tools, err := pool.Tools(ctx, t)
		if err != nil {
			return agent.Result{}, err
		}
		model := scripted(`facts_look_up {"Name":"tides"}`, `check {"Name":"tides"}`, `publish {"text":"Two"}`, "Done.")
		tools = append(tools, check, publish)
		return agent.Run(ctx, t, agent.Config{Model: model, Tools: tools, Prompt: question})
	}
	confirm := func(ctx context.Context, t *handler.Task, in Topic) (agent.Result, error) {
		return agent.Run(ctx, t, agent.Config{Prompt: "Check: " + in.Name, Model: scripted("Twice a day is right.")})
	}
	ctx, stop := context.WithCancel(context.Background())
	cfg := runtime.Config{URL: "embedded://", Logger: slog.New(slog.DiscardHandler)} // in production redis://host:6379
	var worker sync.WaitGroup
	worker.Go(func() { try(0, runtime.Run(ctx, cfg, runtime.Handle(Research, ask), runtime.Handle(Check, confirm))) })
	c := try(client.Connect(ctx, cfg.Client()))
	defer c.Close()
	a, limits := admin.New(c), map[string]admission.Limit{"tokens": {Hard: 2_000}}
	try(0, a.PutGate(ctx, admission.Gate{Name: "desk", Limits: limits}))
	exec := try(client.Submit(ctx, c, Research, "How often do tides come?", flowfabric.Gates("desk")))
	for event, err := range exec.Tail(ctx) {
		switch who := try(event, err).Child; {
		case event.Frame.Type == agent.FrameToken && who != nil:
			fmt.Printf("%s: %s\n", strings.Join(who.Path, "/"), event.Frame.Payload)
		case event.Frame.Type == agent.FrameToken:
			fmt.Printf("%s ", event.Frame.Payload)
		case event.Kind == stream.TailSuspended:
			for _, w := range event.Suspension.Waitpoints {
				if w.Open() && w.Question != nil { // an agent may ask several at once
					fmt.Printf("%s? %s\n", w.Key, w.Question.Title)
					changed := suspend.Answer{Choice: "approve", Arguments: []byte(`{"text":"Twice a day."}`)}
					try(exec.Approve(ctx, w.Key, changed, flowfabric.By("anna")))
				}
			}
		}
	}
	fmt.Println(try(exec.Result(ctx)).Turns, "turns,", try(a.GetGate(ctx, "desk")).Used["tokens"], "tokens")
	stop()
	worker.Wait()
	// Output:
	// check 2.1: Twice a day is right.
	// approve 3.1 publish? publish: text Two
	// published: Twice a day.
	// Done. 4 turns, 500 tokens
}
