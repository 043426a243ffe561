package mcp_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// The code of docs/how-to/mcp.md.

type (
	Draft struct {
		Topic string `json:"topic" jsonschema:"what the article is about"`
	}
	Review struct {
		Stars   int    `json:"stars"`
		Remarks string `json:"remarks"`
	}
)

var (
	Write    = handler.Define[Draft, string]("write-draft")
	Publish  = handler.Define[Draft, string]("publish-draft")
	Critique = handler.Define[Draft, Review]("critique")
)

// Support is an agent.
var Support = handler.Define[string, string]("support")

// Talking lets clients talk with an agent and control its turns.
func Talking(c *client.Client) (*mcp.Server, error) {
	return mcp.New(c, mcp.Config{Name: "support"}, mcp.Tool(Support, "Answers a customer.", mcp.Turns(agent.Place{})))
}

func publishDraft(ctx context.Context, t *handler.Task, in Draft) (string, error) {
	answer, err := t.Ask(ctx, "editor", suspend.Question{Title: "Publish the article about " + in.Topic + "?"})
	return answer.Choice, err
}

func critique(ctx context.Context, t *handler.Task, _ Draft) (Review, error) {
	return handler.Await[Review](ctx, t, "review")
}

// Serve mounts the tools at /mcp.
func Serve(c *client.Client, mux *http.ServeMux, tokens *httpapi.Tokens, key []byte) error {
	server, err := mcp.New(c, mcp.Config{Name: "publisher", Authorize: tokens.Authorize, TaskKey: key},
		mcp.Tool(Write, "Writes an article about a topic."),
		mcp.Tool(Publish, "Publishes an article. An editor has to agree."),
		mcp.Tool(Critique, "Asks somebody what they think of an article.",
			mcp.Waitpoint[Review]("review", "How good is it?")))
	if err != nil {
		return err
	}
	h, err := server.HTTP()
	if err != nil {
		return err
	}
	mux.Handle("/mcp", h)
	return nil
}

func TestPage(t *testing.T) {
	e := start(t, handler.Bind(Publish, publishDraft), handler.Bind(Critique, critique),
		handler.Bind(Write, handler.Plain(func(_ context.Context, in Draft) (string, error) {
			return "all about " + in.Topic, nil
		})))
	secret, entry, err := httpapi.NewToken("desk", httpapi.Operator, time.Time{})
	must.No(t, err)
	file := filepath.Join(t.TempDir(), "tokens.json")
	must.No(t, os.WriteFile(file, []byte("["+entry+"]"), 0o600))
	tokens, err := httpapi.LoadTokens(file, quiet)
	must.No(t, err)
	key, err := hex.DecodeString("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	must.No(t, err)
	mux := http.NewServeMux()
	must.No(t, Serve(e.client, mux, tokens, key))
	url := e.listen(t, mux) + "/mcp"

	r, err := e.connect(t, url, secret, nil).CallTool(e.ctx,
		&sdk.CallToolParams{Name: "write-draft", Arguments: Draft{Topic: "tides"}})
	must.No(t, err)
	if text(r) != "all about tides" {
		t.Errorf("%q", text(r))
	}
	r, err = e.connect(t, url, secret, asksUser("accept", map[string]any{"choice": "approve"}, nil)).CallTool(e.ctx,
		&sdk.CallToolParams{Name: "publish-draft", Arguments: Draft{Topic: "tides"}})
	must.No(t, err)
	if text(r) != "approve" {
		t.Errorf("%q", text(r))
	}
	r, err = e.connect(t, url, secret, asksUser("accept", map[string]any{"stars": 4, "remarks": "wet"}, nil)).CallTool(
		e.ctx, &sdk.CallToolParams{Name: "critique", Arguments: Draft{Topic: "tides"}})
	must.No(t, err)
	if text(r) != `{"stars":4,"remarks":"wet"}` {
		t.Errorf("%q", text(r))
	}
}
