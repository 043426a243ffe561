package mcptools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// asServer makes the test's own program an MCP server over stdio; its value is a folder for what it has to remember.
// With asWorker it is a worker on the server at that URL, which starts itself as the MCP server.
const (
	asServer = "FLOWFABRIC_TEST_AS_MCP_SERVER"
	asWorker = "FLOWFABRIC_TEST_AS_WORKER"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(asServer)
	if url := os.Getenv(asWorker); url != "" {
		if err := work(url, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir != "" {
		if err := (&world{dir: dir}).server().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

var chat = handler.Define[string, agent.Result]("chat", handler.Retry(3, time.Second, time.Second))

// world is what servers of a test have in common: they come and go, and it stays.
type world struct {
	dir     string            // where a process remembers, "" for one that is the test's
	did     func(what string) // may be nil
	dialect string            // of tasks: "new", "old" or ""
	hour    time.Duration     // what is an hour for tasks

	mu     sync.Mutex
	tools  []map[string]any // what is listed in place of the tools
	lists  int              // requests for the list
	keys   []string         // of calls
	tasks  map[string]time.Time
	ended  []string // tasks that were cancelled
	polled func()   // may be nil
	away   int      // how many sessions are not to be had
	hanged chan struct{}
}

func text(format string, args ...any) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
}

// note remembers something in the folder, and says how often it was done before.
func (w *world) note(what string) int {
	path := w.dir + "/" + what
	before, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append(before, '.'), 0o600); err != nil {
		panic(err)
	}
	return len(before)
}

func (w *world) effect(what string) {
	if w.did != nil {
		w.did(what)
	}
}

// server is one of the SDK.
func (w *world) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name string, fn func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		schema := `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
		if name == "routed" {
			schema = strings.Replace(schema, `"string"`, `"string","x-mcp-header":"Text"`, 1)
		}
		s.AddTool(&sdk.Tool{Name: name, Description: "about " + name, InputSchema: json.RawMessage(schema)}, fn)
	}
	add("search", func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		what := "search " + string(q.Params.Arguments)
		w.effect(what)
		if step := searches[what]; w.dir != "" && step != "" && w.note(step) == 0 && slices.Contains(deadly, step) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.keys = append(w.keys, fmt.Sprint(q.Params.Meta[mcptools.KeyName]))
		return text("found %s", q.Params.Arguments)
	})
	add("environment", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("%s secret=%q home=%q", os.Getenv("EXTRA"), os.Getenv("TEST_SECRET"), os.Getenv("HOME"))
	})
	add("die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if w.note("died") == 0 {
			os.Exit(3)
		}
		return text("alive")
	})
	add("hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		if w.hanged != nil {
			close(w.hanged)
		}
		return nil, context.Cause(ctx)
	})
	add("fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "out of paper"}}}, nil
	})
	add("refuse", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32603, Message: "not today"}
	})
	add("huge", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("%s", strings.Repeat("x", 300<<10))
	})
	add("monster", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("%s", strings.Repeat("x", 17<<20))
	})
	add("mixed", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1.0}, Content: []sdk.Content{
			&sdk.TextContent{Text: "see"},
			&sdk.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png"},
			&sdk.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"},
			&sdk.ResourceLink{URI: "file:///a", Name: "a"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b.txt", Text: "bee"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c.pdf", MIMEType: "application/pdf",
				Blob: []byte("%PDF-")}},
		}}, nil
	})
	add("structured", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1.0},
			Content: []sdk.Content{&sdk.TextContent{Text: `{"n": 1}`}}}, nil
	})
	add("ask", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Mode: "form",
			Message: "Which one?", RequestedSchema: json.RawMessage(`{"type":"object"}`)}}}, nil
	})
	for _, name := range []string{"build", "stuck", "asking", "routed"} {
		add(name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("no task") })
	}
	for method, answer := range map[string]func(id string) (map[string]any, error){
		"tasks/get": w.getTask, "tasks/result": w.taskResult, "tasks/cancel": w.cancelTask} {
		if err := sdk.AddReceivingCustomMethod(s, method,
			func(_ context.Context, _ *sdk.ServerSession, p *taskParams) (*anything, error) {
				r, err := answer(p.TaskID)
				return &anything{all: r}, err
			}); err != nil {
			panic(err)
		}
	}
	s.AddReceivingMiddleware(w.receive)
	return s
}

type taskParams struct {
	sdk.ParamsBase
	TaskID string `json:"taskId"`
}

// anything is a result that the SDK does not know.
type anything struct {
	sdk.ResultBase
	all map[string]any
}

func (a *anything) MarshalJSON() ([]byte, error) { return json.Marshal(a.all) }

// with is a result with other members.
func with(r sdk.Result, change func(all map[string]any)) (sdk.Result, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	change(all)
	return &anything{all: all}, nil
}

// receive makes a server of the SDK one that has tasks, and one that lists what it is told to.
func (w *world) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, q sdk.Request) (sdk.Result, error) {
		if call, ok := q.(*sdk.CallToolRequest); ok && w.dialect != "" {
			if slices.Contains([]string{"build", "stuck", "asking"}, call.Params.Name) {
				return w.start(call), nil
			}
		}
		r, err := next(ctx, method, q)
		if err != nil {
			return r, err
		}
		switch {
		case method == "tools/list":
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lists++
			return with(r, func(all map[string]any) {
				if w.tools != nil {
					all["tools"] = w.tools
				}
				if w.dialect != "old" {
					return
				}
				for _, t := range all["tools"].([]any) {
					if slices.Contains([]any{"build", "stuck", "asking"}, t.(map[string]any)["name"]) {
						t.(map[string]any)["execution"] = map[string]any{"taskSupport": "optional"}
					}
				}
			})
		case method == "initialize" && w.dialect == "old":
			return with(r, func(all map[string]any) {
				all["capabilities"].(map[string]any)["tasks"] = map[string]any{"cancel": struct{}{},
					"requests": map[string]any{"tools": map[string]any{"call": struct{}{}}}}
			})
		case method == "server/discover" && w.dialect == "new":
			return with(r, func(all map[string]any) {
				all["capabilities"].(map[string]any)["extensions"] = map[string]any{
					"io.modelcontextprotocol/tasks": struct{}{}}
			})
		}
		return r, err
	}
}

// start makes a task, a new one whenever it is called.
func (w *world) start(call *sdk.CallToolRequest) sdk.Result {
	w.effect(call.Params.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks == nil {
		w.tasks = map[string]time.Time{}
	}
	// The id is not for a header as it is.
	id := fmt.Sprintf("%s-%v-\u00e9", call.Params.Name, call.Params.Meta[mcptools.KeyName])
	w.tasks[id] = time.Now()
	w.keys = append(w.keys, fmt.Sprint(call.Params.Meta[mcptools.KeyName]))
	about := map[string]any{"taskId": id, "status": "working", "createdAt": time.Now(), "lastUpdatedAt": time.Now()}
	if w.dialect == "old" {
		about["pollInterval"] = w.hour.Milliseconds()
		return &anything{all: map[string]any{"task": about}}
	}
	about["resultType"], about["pollIntervalMs"] = "task", w.hour.Milliseconds()
	return &anything{all: about}
}

var errNoTask = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "task not found"}

// getTask describes a task: it takes two and a half hours, or for ever.
func (w *world) getTask(id string) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	began, ok := w.tasks[id]
	if !ok {
		return nil, errNoTask
	}
	about := map[string]any{"taskId": id, "status": "working", "statusMessage": "digging", "resultType": "complete"}
	switch {
	case slices.Contains(w.ended, id):
		about["status"] = "cancelled"
	case strings.HasPrefix(id, "asking"):
		about["status"], about["statusMessage"] = "input_required", "waiting for a name"
	case w.polled != nil:
		w.polled()
	case strings.HasPrefix(id, "stuck") || time.Since(began) < 5*w.hour/2:
	case w.dialect == "old":
		about["status"] = "completed"
	default:
		about["status"] = "completed"
		about["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "built"}}}
	}
	return about, nil
}

func (w *world) taskResult(id string) (map[string]any, error) {
	if about, err := w.getTask(id); err != nil || about["status"] != "completed" {
		return nil, errNoTask
	}
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": "built as of old"}}}, nil
}

func (w *world) cancelTask(id string) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.tasks[id]; !ok {
		return nil, errNoTask
	}
	w.ended = append(w.ended, id)
	return map[string]any{"resultType": "complete"}, nil
}

// beside is a server in this process.
type beside struct {
	world   *world
	running conc.WaitGroup
}

// transport serves one session.
func (b *beside) transport(context.Context) (sdk.Transport, error) {
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	if b.world.away > 0 {
		b.world.away--
		return nil, errors.New("the cable is out")
	}
	ours, theirs := sdk.NewInMemoryTransports()
	s := b.world.server()
	b.running.Go(func() { _ = s.Run(context.Background(), ours) })
	return theirs, nil
}

// script is a model that answers by what the conversation has come to, word by word.
type script struct {
	answers []agent.Response
	called  func(turn int, req agent.Request) // may be nil
}

func (s *script) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	turn := 0
	for _, m := range req.Messages {
		if m.Role == agent.Assistant {
			turn++
		}
	}
	if s.called != nil {
		s.called(turn+1, req)
	}
	if turn >= len(s.answers) {
		return agent.Response{}, handler.Permanent(errors.New("the script has no more answers"))
	}
	for _, word := range strings.SplitAfter(s.answers[turn].Message.Text(), " ") {
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
	}
	return s.answers[turn], context.Cause(ctx)
}

// says is an answer that ends, of 10 tokens.
func says(text string) agent.Response {
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd,
		Usage: agent.Usage{Input: 7, Output: 3}}
}

// wants is an answer that calls tools, of 10 tokens: name, arguments, name, arguments …
func wants(calls ...string) agent.Response {
	r := agent.Response{Stop: agent.StopTools, Usage: agent.Usage{Input: 7, Output: 3}}
	for pair := range slices.Chunk(calls, 2) {
		r.Message.Calls = append(r.Message.Calls, agent.ToolCall{ID: fmt.Sprintf("c%d", len(r.Message.Calls)+1),
			Name: pair[0], Arguments: json.RawMessage(pair[1])})
	}
	return r
}

// talking is a handler whose agent has the tools of a pool.
func talking(p *mcptools.Pool, model agent.Model) func(context.Context, *handler.Task, string) (agent.Result, error) {
	return func(ctx context.Context, t *handler.Task, prompt string) (agent.Result, error) {
		tools, err := p.Tools(ctx, t)
		if err != nil {
			return agent.Result{}, err
		}
		return agent.Run(ctx, t, agent.Config{Model: model, Tools: tools, Prompt: prompt})
	}
}

// told are the results of tools in a conversation, in lines.
func told(messages []agent.Message) (lines []string) {
	for _, m := range messages {
		if m.Role != agent.ToolRole {
			continue
		}
		line := m.Tool + ":"
		if m.Failed {
			line = "failed " + line
		}
		for _, p := range m.Parts {
			switch p.Type {
			case agent.PartText:
				line += " " + p.Text
			default:
				line += fmt.Sprintf(" [%s %s %s %d]", p.Type, p.Media, p.Name, len(p.Data))
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func wantTold(t testing.TB, messages []agent.Message, want ...string) {
	t.Helper()
	if lines := told(messages); !slices.Equal(lines, want) {
		t.Errorf("tools said\n%q\nwant\n%q", lines, want)
	}
}

func pool(t testing.TB, servers ...mcptools.Server) *mcptools.Pool {
	t.Helper()
	p, err := mcptools.New(mcptools.Config{Logger: quiet}, servers...)
	must.No(t, err)
	return p
}

func names(specs []agent.ToolSpec) []string {
	all := map[string]bool{}
	for _, s := range specs {
		all[s.Name] = true
	}
	return slices.Sorted(maps.Keys(all))
}
