package crash

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	ff "github.com/flowfabric/flowfabric-go/benchmarks/systems/flowfabric"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

var flowFabric = system{
	name:  "FlowFabric",
	serve: redisServer, talk: respDialect, work: workFlowFabric, open: openFlowFabric,
	version: func() string { return ff.System{}.Version() },
}

var agentKind = handler.Define[string, string]("agent")

// seat is what the model says when it wants the tool.
type seat struct {
	Seat string `json:"seat"`
}

func workFlowFabric(ctx context.Context, url, service string) error {
	reserve := agent.NewTool("book", "Books a seat.", func(ctx context.Context, in seat) (string, error) {
		c, _ := agent.CallFrom(ctx)
		return book(ctx, service, booking{Key: c.Key, Seat: in.Seat})
	})
	return runtime.Run(ctx, runtime.Config{URL: url, Concurrency: 1, LeaseTTL: time.Second,
		Logger: slog.New(slog.DiscardHandler)},
		runtime.Handle(agentKind, func(ctx context.Context, t *handler.Task, prompt string) (string, error) {
			r, err := agent.Run(ctx, t,
				agent.Config{Model: remote(service), Tools: []agent.Tool{reserve}, Prompt: prompt})
			return r.Text, err
		}))
}

// remote is the model service.
func remote(service string) agent.Model {
	return agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		var messages []message
		for _, m := range req.Messages {
			said := message{Role: string(m.Role), Text: m.Text()}
			for _, c := range m.Calls {
				var in seat
				if err := json.Unmarshal(c.Arguments, &in); err != nil {
					return agent.Response{}, err
				}
				said.Call = &call{ID: c.ID, Seat: in.Seat}
			}
			messages = append(messages, said)
		}
		answer, end, err := ask(ctx, service, messages, func(token string) error {
			return delta(agent.Delta{Text: token})
		})
		if err != nil {
			return agent.Response{}, err
		}
		out := agent.Response{Message: agent.Message{Parts: agent.Text(answer.Text)}, Stop: agent.StopEnd,
			Usage: agent.Usage{Input: end.Input, Output: end.Output}}
		if c := answer.Call; c != nil {
			arguments, err := json.Marshal(seat{c.Seat})
			if err != nil {
				return agent.Response{}, err
			}
			out.Message.Calls = []agent.ToolCall{{ID: c.ID, Name: "book", Arguments: arguments}}
			out.Stop = agent.StopTools
		}
		return out, nil
	})
}

// ffCaller follows from the moment of the submission.
type ffCaller struct {
	client *client.Client
	exec   *client.Execution[string]

	following  conc.WaitGroup
	transcript stream.Transcript
	told       int // tokens, also those that were dropped later
	err        error
}

func openFlowFabric(ctx context.Context, s driver.Server) (caller, error) {
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Partitions: 1, Logger: slog.New(slog.DiscardHandler)})
	return &ffCaller{client: c}, err
}

func (c *ffCaller) submit(ctx context.Context) (err error) {
	if c.exec, err = client.Submit(ctx, c.client, agentKind, question.Text); err != nil {
		return err
	}
	c.following.Go(func() {
		for event, err := range c.exec.Tail(ctx) {
			if err != nil {
				c.err = err
				return
			}
			if event.Kind == stream.TailFrame && event.Frame.Type == agent.FrameToken {
				c.told++
			}
			c.transcript.Add(event)
		}
	})
	return nil
}

func (c *ffCaller) result(ctx context.Context) (string, error) { return c.exec.Result(ctx) }

func (c *ffCaller) pass(context.Context) error { return nil } // the lease of a second

func (c *ffCaller) shown(context.Context) (tokens []string, dropped int, err error) {
	c.following.Wait()
	for _, f := range c.transcript.Frames() {
		if f.Type == agent.FrameToken {
			tokens = append(tokens, string(f.Payload))
		}
	}
	return tokens, c.told - len(tokens), c.err
}

func (c *ffCaller) close() { c.client.Close() }
