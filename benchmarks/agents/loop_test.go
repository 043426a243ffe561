package agents

import (
	"context"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
)

// chats is a model that calls a tool in each turn, but the last, and streams so many deltas first.
type chats struct{ turns, deltas int }

func (m chats) Generate(_ context.Context, req agent.Request, emit func(agent.Delta) error) (agent.Response, error) {
	for i := range m.deltas {
		if err := emit(agent.Delta{Text: fmt.Sprintf("token %d ", i)}); err != nil {
			return agent.Response{}, err
		}
	}
	if len(req.Messages) < 2*m.turns-1 {
		call := agent.ToolCall{ID: fmt.Sprint("c", len(req.Messages)), Name: "add", Arguments: []byte(`{"N":1}`)}
		return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{call}}}, nil
	}
	return agent.Response{Message: agent.Message{Parts: agent.Text("done")}}, nil
}

var add = agent.NewTool("add", "", func(_ context.Context, in struct{ N int }) (int, error) { return in.N + 1, nil })

// BenchmarkLoop is what the loop costs: a run of one turn, what a turn with a call of a tool adds, and a delta.
func BenchmarkLoop(b *testing.B) {
	for _, n := range []chats{{1, 0}, {21, 0}, {1, 1000}} {
		b.Run(fmt.Sprintf("turns=%d/deltas=%d", n.turns, n.deltas), func(b *testing.B) {
			c := start(b, func() agent.Config {
				return agent.Config{Model: n, Tools: []agent.Tool{add}, MaxTurns: 100}
			})
			b.ReportAllocs()
			for b.Loop() {
				h, err := client.Submit(b.Context(), c, look, "look")
				if err != nil {
					b.Fatal(err)
				}
				if r, err := h.Result(b.Context()); err != nil || len(r.Messages) != 2*n.turns {
					b.Fatalf("%v, %d messages", err, len(r.Messages))
				}
			}
		})
	}
}
