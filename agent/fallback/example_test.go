package fallback_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/fallback"
)

func ExampleNew() {
	busy := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		return agent.Response{}, agent.StatusError(529, nil, errors.New("overloaded"))
	})
	local := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		said := agent.Message{Role: agent.Assistant, Parts: agent.Text("Hello.")}
		return agent.Response{Message: said, Stop: agent.StopEnd, Model: "local"}, nil
	})
	model, err := fallback.New(busy, local)
	if err != nil {
		panic(err)
	}
	response, err := model.Generate(context.Background(), agent.Request{}, func(agent.Delta) error { return nil })
	fmt.Println(response.Model, response.Message.Text(), err)
	// Output: local Hello. <nil>
}
