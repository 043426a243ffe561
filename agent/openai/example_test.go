package openai_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

func ExampleNew() {
	// A service that answers with two events stands in for a real one; leave BaseURL and HTTPClient out to speak to
	// OpenAI.
	service := httptest.NewServer(events(text("Hello, "), chunk(`{"content":"world."}`, "stop"), done))
	defer service.Close()

	model, err := openai.New(openai.Config{Model: "gpt-5-mini", APIKey: "sk-…", BaseURL: service.URL,
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
	fmt.Println(response.Message.Text(), response.Stop)
	// Output:
	// "Hello, "
	// "world."
	// Hello, world. end
}
