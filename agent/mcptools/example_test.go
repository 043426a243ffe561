package mcptools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/handler"
)

// servers are a program that reads files, and a service with tickets of which a person approves what changes one.
func servers(tickets string) (*mcptools.Pool, error) {
	return mcptools.New(mcptools.Config{},
		mcptools.Server{Name: "files", Command: []string{"mcp-files", "/srv/docs"}, Include: []string{"read_*"}},
		mcptools.Server{Name: "tickets", URL: tickets,
			Header: func(context.Context) (http.Header, error) {
				return http.Header{"Authorization": {"Bearer " + os.Getenv("TICKETS_TOKEN")}}, nil
			},
			Options: func(tool *sdk.Tool) []agent.ToolOption {
				if tool.Annotations != nil && tool.Annotations.ReadOnlyHint {
					return nil
				}
				return []agent.ToolOption{agent.Needs(func(json.RawMessage) agent.Decision {
					return agent.Decision{Ask: true, Assignee: "support", Within: time.Hour}
				})}
			}})
}

// Helper has the tools of MCP servers.
type Helper struct {
	Model   agent.Model
	Servers *mcptools.Pool // made once, closed after the worker
}

func (h *Helper) Handle(ctx context.Context, t *handler.Task, question string) (string, error) {
	tools, err := h.Servers.Tools(ctx, t, "tickets") // without names: of all servers
	if err != nil {
		return "", err
	}
	result, err := agent.Run(ctx, t, agent.Config{Model: h.Model, Tools: tools, Prompt: question})
	return result.Text, err
}

func ExamplePool_Tools() {
	// A server that the program has itself stands in for a service.
	type number struct {
		Number int `json:"number"`
	}
	service := sdk.NewServer(&sdk.Implementation{Name: "tickets", Version: "1"}, nil)
	sdk.AddTool(service, &sdk.Tool{Name: "show", Description: "Shows a ticket.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in number) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{
				Text: fmt.Sprintf("Ticket %d: the printer is out of paper.", in.Number)}}}, nil, nil
		})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return service },
		&sdk.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()
	pool, err := servers(web.URL)
	if err != nil {
		panic(err)
	}
	defer pool.Close()

	model := &script{answers: []agent.Response{wants("tickets_show", `{"number":7}`), says("It is out of paper.")},
		called: func(_ int, req agent.Request) {
			last := req.Messages[len(req.Messages)-1]
			fmt.Printf("%s: %s\n", last.Role, last.Text())
		}}
	text, err := ask(&Helper{Model: model, Servers: pool}, "What is ticket 7 about?")
	fmt.Println(text, err)
	// Output:
	// user: What is ticket 7 about?
	// tool: Ticket 7: the printer is out of paper.
	// It is out of paper. <nil>
}
