package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
)

func TestKindsAreTools(t *testing.T) {
	e := start(t)
	session := e.connect(t, e.serve(t, e.server(t, mcp.Config{Name: "press", Authorize: authorize}, kinds()...)), "ada",
		nil)
	tools, err := session.ListTools(e.ctx, nil)
	must.No(t, err)
	got := map[string]string{}
	for _, tool := range tools.Tools {
		in, _ := json.Marshal(tool.InputSchema)
		out, _ := json.Marshal(tool.OutputSchema)
		got[tool.Name] = string(in) + " → " + string(out)
	}
	for name, want := range map[string]string{
		"write-article": `{"additionalProperties":false,"properties":{"topic":{"description":"what to write about","type":"string"},"words":{"type":"integer"}},"required":["topic"],"type":"object"} → {"additionalProperties":false,"properties":{"text":{"type":"string"},"title":{"type":"string"}},"required":["title","text"],"type":"object"}`,
		"shout_loud":    `{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"} → {"additionalProperties":false,"properties":{"result":{"type":"string"}},"required":["result"],"type":"object"}`,
	} {
		if got[name] != want {
			t.Errorf("%s: %s", name, got[name])
		}
	}
}

func TestCallsAnswerResults(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize}, kinds()...)
	overHTTP := e.connect(t, e.serve(t, s), "ada", nil)
	for name, session := range map[string]*sdk.ClientSession{"http": overHTTP, "now": e.beside(t, s, nil, ""),
		"2025": e.beside(t, s, nil, "2025-06-18")} {
		t.Run(name, func(t *testing.T) {
			r, err := session.CallTool(e.ctx,
				&sdk.CallToolParams{Name: "write-article", Arguments: Topic{Topic: "tides"}})
			must.No(t, err)
			structured, _ := json.Marshal(r.StructuredContent)
			if string(structured) != `{"text":"all about tides","title":"tides"}` ||
				text(r) != `{"title":"tides","text":"all about tides"}` || r.IsError {
				t.Errorf("%s, %q", structured, text(r))
			}
			if r.Meta["flowfabric/execution"] == "" {
				t.Errorf("the result does not name its execution: %v", r.Meta)
			}
			r, err = session.CallTool(e.ctx,
				&sdk.CallToolParams{Name: "shout_loud", Arguments: map[string]any{"input": "hey"}})
			must.No(t, err)
			structured, _ = json.Marshal(r.StructuredContent)
			if string(structured) != `{"result":"hey!"}` || text(r) != "hey!" {
				t.Errorf("%s, %q", structured, text(r))
			}
		})
	}
}

func TestFailuresAreToolErrors(t *testing.T) {
	e := start(t)
	session := e.connect(t, e.serve(t, e.server(t, mcp.Config{Authorize: authorize}, kinds()...)), "ada", nil)
	for how, want := range map[string]string{
		"":         "handler_error: the printer is out of paper",
		"category": "out_of_paper: the printer is out of paper",
		"cancel":   "cancelled: not today",
	} {
		r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "broken", Arguments: map[string]any{"input": how}})
		must.No(t, err)
		category, _, _ := strings.Cut(want, ":")
		if !r.IsError || text(r) != want || r.Meta["flowfabric/category"] != category {
			t.Errorf("%q: %v %q %v", how, r.IsError, text(r), r.Meta)
		}
	}
	for _, arguments := range []any{map[string]any{}, map[string]any{"input": 7},
		map[string]any{"input": "x", "more": 1}, nil} {
		r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "broken", Arguments: arguments})
		must.No(t, err)
		if !r.IsError || !strings.HasPrefix(text(r), "invalid_arguments: ") {
			t.Errorf("%v: %q", arguments, text(r))
		}
	}
	_, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "broken", Arguments: map[string]any{"input": "panic"}})
	fault, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || fault.Code != jsonrpc.CodeInternalError || fault.Message != "the tool failed: handler_panic" ||
		!strings.Contains(string(fault.Data), `"execution":`) {
		t.Errorf("a panic: %v", err)
	}
}

func TestFramesAreProgress(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize}, mcp.Tool(write, "Writes.", mcp.ProgressFrames("token")))
	url := e.serve(t, s)
	for name, connect := range map[string]func(*sdk.ClientOptions) *sdk.ClientSession{
		"http": func(o *sdk.ClientOptions) *sdk.ClientSession { return e.connect(t, url, "ada", o) },
		"2025": func(o *sdk.ClientOptions) *sdk.ClientSession { return e.beside(t, s, o, "2025-11-25") },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var told []string
			session := connect(&sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
				q *sdk.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, q.Params.Message)
				if q.Params.Progress != float64(len(told)) || q.Params.ProgressToken != "p1" {
					t.Errorf("progress %v of %v", q.Params.Progress, q.Params.ProgressToken)
				}
			}})
			params := &sdk.CallToolParams{Name: "write-article", Arguments: Topic{Topic: "tides"}}
			params.SetProgressToken("p1")
			r, err := session.CallTool(e.ctx, params)
			must.No(t, err)
			if r.IsError {
				t.Error(text(r))
			}
			e.until(t, "progress", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) >= 3 })
			if !slices.Equal(told, []string{"all", "about", "tides"}) {
				t.Errorf("%q", told)
			}
		})
	}
}
