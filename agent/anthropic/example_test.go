package anthropic_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
)

func ExampleNew() {
	// A service that answers with a few events stands in for the real one; leave BaseURL and HTTPClient out to speak
	// to Anthropic.
	service := httptest.NewServer(events(started, textBlock(0), text(0, "Hello, "), text(0, "world."), end(0),
		because("end_turn"), stopped))
	defer service.Close()

	model, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5", APIKey: "sk-ant-…", BaseURL: service.URL,
		HTTPClient: service.Client()})
	if err != nil {
		panic(err)
	}
	request := agent.Request{
		System:   "Greet politely.",
		Messages: []agent.Message{{Role: agent.User, Parts: agent.Text("Say hello.")}},
	}
	response, err := model.Generate(context.Background(), request, func(d agent.Delta) error {
		fmt.Printf("%q\n", d.Text)
		return nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(response.Message.Text(), response.Stop, response.Usage.Total(), "tokens")
	// Output:
	// "Hello, "
	// "world."
	// Hello, world. end 147 tokens
}
