package ourserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type topic struct {
	Topic string `json:"topic"`
}

// The tools of an agent may be kinds of work, through the MCP server of this project: calls are tasks, tasks are
// executions, and an execution that asks its caller is told to the model and cancelled.
func TestOurServer(t *testing.T) {
	write := handler.Define[topic, string]("write", flowfabric.Retries(0))
	publish := handler.Define[topic, string]("publish", flowfabric.Retries(0))
	var p *mcptools.Pool
	tides := `{"topic":"tides"}`
	model := script{wants("work_write", tides, "work_publish", tides), says("done")}
	e := start(t, handler.Bind(chat, func(ctx context.Context, t *handler.Task, prompt string) (agent.Result, error) {
		return talking(p, model)(ctx, t, prompt)
	}), handler.Bind(write, func(ctx context.Context, t *handler.Task, in topic) (string, error) {
		_, err := t.Wait(ctx, "think", suspend.Timeout(), suspend.Within(1500*time.Millisecond),
			suspend.OnTimeout(suspend.Resume))
		if err != nil && !errors.Is(err, flowfabric.ErrWaitTimeout) {
			return "", err
		}
		return "all about " + in.Topic, nil
	}), handler.Bind(publish, func(ctx context.Context, t *handler.Task, in topic) (string, error) {
		answer, err := t.Ask(ctx, "approval", suspend.Question{Title: "Publish " + in.Topic + "?"})
		return answer.Choice, err
	}))
	server, err := mcp.New(e.client, mcp.Config{Authorize: httpapi.Open, Logger: quiet},
		mcp.Tool(write, "Writes."), mcp.Tool(publish, "Publishes."))
	must.No(t, err)
	h, err := server.HTTP()
	must.No(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	p = pool(t, mcptools.Server{Name: "work", URL: web.URL})
	t.Cleanup(p.Close)
	x, err := client.Submit(e.ctx, e.client, chat, "hello")
	must.No(t, err)
	r, err := x.Result(e.ctx)
	must.No(t, err)
	wantTold(t, r.Messages, "work_write: all about tides", "failed work_publish: the task of the tool was "+
		"cancelled: it asks for input from a user, which cannot be given here: Publish tides?")
	steps, err := x.Steps(e.ctx)
	must.No(t, err)
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	if !slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(s, "tool 1.1 work_write start") }) {
		t.Errorf("%q", names)
	}
}

// A call whose answer is lost is made again with its key, and meets the execution that it has submitted.
func TestOurServerKnowsKeys(t *testing.T) {
	write := handler.Define[topic, string]("write", flowfabric.Retries(0))
	var p *mcptools.Pool
	var mu sync.Mutex
	executions := map[flowfabric.ExecutionID]bool{}
	model := script{wants("work_write", `{"topic":"tides"}`), says("done")}
	e := start(t, handler.Bind(chat, func(ctx context.Context, t *handler.Task, prompt string) (agent.Result, error) {
		return talking(p, model)(ctx, t, prompt)
	}), handler.Bind(write, func(_ context.Context, t *handler.Task, in topic) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		executions[t.ID()] = true
		return "all about " + in.Topic, nil
	}))
	server, err := mcp.New(e.client, mcp.Config{Authorize: httpapi.Open, Logger: quiet}, mcp.Tool(write, "Writes."))
	must.No(t, err)
	h, err := server.HTTP()
	must.No(t, err)
	var calls atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Mcp-Method") == "tools/call" && calls.Add(1) == 1 {
			h.ServeHTTP(httptest.NewRecorder(), q)
			panic(http.ErrAbortHandler) // the answer is lost
		}
		h.ServeHTTP(w, q)
	}))
	t.Cleanup(web.Close)
	p = pool(t, mcptools.Server{Name: "work", URL: web.URL, RetryAway: time.Millisecond})
	t.Cleanup(p.Close)
	x, err := client.Submit(e.ctx, e.client, chat, "hello")
	must.No(t, err)
	r, err := x.Result(e.ctx)
	must.No(t, err)
	wantTold(t, r.Messages, "work_write: all about tides")
	if len(executions) != 1 || calls.Load() != 2 {
		t.Errorf("%d executions after %d calls", len(executions), calls.Load())
	}
}
