package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Count is a kind of work like any other.
var Count = handler.Define[CountIn, CountOut]("count-words")

type CountIn struct {
	Text []string `json:"text" jsonschema:"the words to count"`
}

type CountOut struct {
	Words int `json:"words"`
}

// An AI client finds the kind among its tools, and a call of the tool is an execution. Here the client is in the same
// process; others come over HTTP ([mcp.Server.HTTP]) or start the program themselves ([mcp.Server.Stdio]).
func Example() {
	const url = "embedded://"
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(Count,
		func(_ context.Context, _ *handler.Task, in CountIn) (CountOut, error) {
			return CountOut{Words: len(in.Text)}, nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	server, err := mcp.New(c, mcp.Config{Name: "counter", Logger: quiet}, mcp.Tool(Count, "Counts words."))
	if err != nil {
		fmt.Println(err)
		return
	}
	ours, theirs := sdk.NewInMemoryTransports()
	running.Go(func() { _ = server.Run(ctx, ours) })
	session, err := sdk.NewClient(&sdk.Implementation{Name: "example"}, nil).Connect(ctx, theirs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tools.Tools[0].Name, "-", tools.Tools[0].Description)
	result, err := session.CallTool(ctx,
		&sdk.CallToolParams{Name: "count-words", Arguments: CountIn{Text: []string{"for", "a", "model"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.StructuredContent, result.IsError)

	// Output:
	// count-words - Counts words.
	// map[words:3] false
}
