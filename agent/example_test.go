package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// weather is what the model may ask for.
type weather struct {
	City string `json:"city" jsonschema:"in English"`
}

var lookUp = agent.NewTool("weather", "Tells the weather of a city.",
	func(_ context.Context, in weather) (string, error) {
		return "rain in " + in.City, nil
	})

// parrot stands in for a service: it asks for the weather, and then repeats it.
var parrot = agent.ModelFunc(func(_ context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == agent.User {
		call := agent.ToolCall{ID: "1", Name: "weather", Arguments: json.RawMessage(`{"city":"Bergen"}`)}
		return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{call}}, Stop: agent.StopTools,
			Usage: agent.Usage{Input: 20, Output: 5}}, nil
	}
	text := "There is " + last.Text() + "."
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd,
		Usage: agent.Usage{Input: 30, Output: 6}}, delta(agent.Delta{Text: text})
})

var Ask = handler.Define[string, string]("ask")

func answer(ctx context.Context, t *handler.Task, question string) (string, error) {
	r, err := agent.Run(ctx, t, agent.Config{Model: parrot, Tools: []agent.Tool{lookUp}, Prompt: question,
		MaxTokens: 10_000})
	return r.Text, err
}

// An agent is a handler: it is submitted, followed and waited for like any other work.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	w, err := runtime.New(runtime.Config{URL: s.URL(), Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(Ask, answer))
	if err != nil {
		fmt.Println(err)
		return
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer stop()
	working.Go(func() { _ = w.Run(ctx) })

	c, err := client.Connect(ctx, client.Config{URL: s.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	x, err := client.Submit(ctx, c, Ask, "How is the weather in Bergen?")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := x.Result(ctx)
	fmt.Println(text, err)

	transcript, err := agent.ReadTranscript(ctx, c, x.ID(), agent.TranscriptOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range transcript.Messages {
		fmt.Println(strings.TrimSpace(fmt.Sprint(m.Role, ": ", m.Text())), len(m.Calls))
	}
	fmt.Println(transcript.Turns, "turns,", transcript.Usage.Total(), "tokens")
	// Output:
	// There is rain in Bergen. <nil>
	// user: How is the weather in Bergen? 0
	// assistant: 1
	// tool: rain in Bergen 0
	// assistant: There is rain in Bergen. 0
	// 2 turns, 61 tokens
}

// A tool that needs approval suspends the run until a person has decided. Its key makes an effect outside harmless to
// repeat.
func ExampleNeeds() {
	type refund struct {
		Order string `json:"order"`
		Cents int    `json:"cents"`
	}
	pay := func(key, order string, cents int) error { return nil } // a service that knows idempotency keys
	tool := agent.NewTool("refund", "Pays money back.", func(ctx context.Context, in refund) (string, error) {
		call, _ := agent.CallFrom(ctx)
		return "paid", pay(call.Key, in.Order, in.Cents)
	},
		agent.Needs(func(in refund) agent.Decision {
			switch {
			case in.Cents > 100_000:
				return agent.Decision{Refuse: "at most 1,000 can be paid back"}
			case in.Cents > 1000:
				return agent.Decision{Ask: true, Assignee: "support", Always: in.Cents < 5000, Within: 48 * time.Hour,
					Title: fmt.Sprintf("Pay back %d cents for order %s?", in.Cents, in.Order)}
			}
			return agent.Decision{} // it runs
		}))
	_ = agent.Config{Tools: []agent.Tool{tool}}
}
