package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	ours "github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// asCommand makes the test's own program the command.
const asCommand = "FLOWFABRIC_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

const tools = `{
  "name": "publisher",
  "instructions": "Write first, then publish.",
  "tools": [
    {
      "kind": "write-article",
      "description": "Writes an article about a topic.",
      "input": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
      "output": {"type": "string"},
      "priority": 5,
      "retention": "1h"
    },
    {
      "kind": "publish",
      "name": "publish_article",
      "description": "Publishes an article after somebody has agreed.",
      "input": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
      "waitpoints": {"note": {"message": "Any remarks?", "schema": {"type": "string"}}}
    }
  ]
}`

// keys sign the tokens of waitpoints on the server of a test.
const keys = "k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// start runs a server on a port, and a worker, until the test ends; and writes the file of tools.
func start(t *testing.T) (ctx context.Context, url, config string) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	type topic struct{ Topic string }
	worker, err := runtime.New(runtime.Config{URL: server.URL(), Logger: quiet, TokenKeys: keys},
		handler.Bind(handler.Define[topic, string]("write-article"),
			handler.Plain(func(_ context.Context, in topic) (string, error) { return "all about " + in.Topic, nil })),
		handler.Bind(handler.Define[topic, string]("publish"),
			func(ctx context.Context, t *handler.Task, in topic) (string, error) {
				note, err := handler.Await[string](ctx, t, "note")
				return in.Topic + ": " + note, err
			}))
	must.No(t, err)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); server.Close() })
	config = filepath.Join(t.TempDir(), "tools.json")
	must.No(t, os.WriteFile(config, []byte(tools), 0o600))
	return ctx, server.URL(), config
}

func text(r *mcp.CallToolResult) string { return r.Content[0].(*mcp.TextContent).Text }

// A client starts the command as its configuration says, and speaks to it over standard input and output.
func TestStdio(t *testing.T) {
	ctx, url, config := start(t)
	program, err := os.Executable()
	must.No(t, err)
	process := exec.CommandContext(ctx, program, "-config", config, "-by", "ada")
	process.Env = append(os.Environ(), asCommand+"=1", "FLOWFABRIC_URL="+url)
	var problems bytes.Buffer
	process.Stderr = &problems
	c := mcp.NewClient(&mcp.Implementation{Name: "desktop", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if q.Params.Message != "Any remarks?" {
				t.Errorf("asked %q", q.Params.Message)
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "low tide"}}, nil
		}})
	session, err := c.Connect(ctx, &mcp.CommandTransport{Command: process},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		t.Fatalf("%v: %s", err, &problems)
	}
	if got := session.InitializeResult(); got.ServerInfo.Name != "publisher" ||
		got.Instructions != "Write first, then publish." {
		t.Errorf("%+v", got)
	}
	listed, err := session.ListTools(ctx, nil)
	must.No(t, err)
	if len(listed.Tools) != 2 {
		t.Errorf("%d tools", len(listed.Tools))
	}
	r, err := session.CallTool(ctx,
		&mcp.CallToolParams{Name: "write-article", Arguments: map[string]any{"topic": "tides"}})
	must.No(t, err)
	if structured, _ := json.Marshal(r.StructuredContent); text(r) != "all about tides" ||
		string(structured) != `{"result":"all about tides"}` {
		t.Errorf("%s %s", text(r), structured)
	}
	r, err = session.CallTool(ctx,
		&mcp.CallToolParams{Name: "publish_article", Arguments: map[string]any{"topic": "tides"}})
	must.No(t, err)
	if text(r) != `tides: low tide` {
		t.Errorf("%s", text(r))
	}
	must.No(t, session.Close())
	if !process.ProcessState.Success() {
		t.Errorf("%s: %s", process.ProcessState, &problems)
	}
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(q)
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}
func (b *buffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.text.String() }

// Over HTTP, callers have the tokens of "flowfabric serve".
func TestHTTP(t *testing.T) {
	ctx, url, config := start(t)
	secret, entry, err := httpapi.NewToken("shop", httpapi.Producer, time.Time{})
	must.No(t, err)
	file := filepath.Join(t.TempDir(), "tokens.json")
	must.No(t, os.WriteFile(file, []byte("["+entry+"]"), 0o600))
	serving, stop := context.WithCancel(ctx)
	var problems buffer
	var running conc.WaitGroup
	code := -1
	running.Go(func() {
		code = run(serving, []string{"-config", config, "-url", url, "-http", "127.0.0.1:0", "-tokens", file}, nil, nil,
			&problems)
	})
	address := regexp.MustCompile(`url=(http://\S+/mcp)`)
	for !address.MatchString(problems.String()) {
		if ctx.Err() != nil {
			t.Fatal(problems.String())
		}
		time.Sleep(2 * time.Millisecond)
	}
	endpoint := address.FindStringSubmatch(problems.String())[1]
	if r, err := http.Post(endpoint, "application/json", strings.NewReader("{}")); err != nil ||
		r.StatusCode != http.StatusUnauthorized || r.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a token: %v %v", r, err)
	} else {
		_ = r.Body.Close()
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearer(secret)},
			MaxRetries: -1}, nil)
	must.No(t, err)
	r, err := session.CallTool(ctx,
		&mcp.CallToolParams{Name: "write-article", Arguments: map[string]any{"topic": "tides"}})
	must.No(t, err)
	if text(r) != "all about tides" {
		t.Errorf("%s", text(r))
	}
	must.No(t, session.Close())
	stop()
	running.Wait()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code != 0 {
		t.Errorf("exit %d: %s", code, problems.String())
	}
}

// The file of docs/how-to/mcp.md is one that the command takes.
func TestThePagesFile(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/mcp.md")
	must.No(t, err)
	block := regexp.MustCompile("(?s)```json\n(\\{\n  \"name\".*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no such file")
	}
	path := filepath.Join(t.TempDir(), "tools.json")
	must.No(t, os.WriteFile(path, block[1], 0o600))
	_, kinds, err := load(path)
	must.No(t, err)
	c, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: "embedded://", Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer c.Close()
	if _, err := ours.New(c, ours.Config{}, kinds...); err != nil || len(kinds) != 2 {
		t.Errorf("%d tools: %v", len(kinds), err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	_, url, config := start(t)
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "refused.json")
		must.No(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	one := func(fields string) string {
		return `{"tools":[{"kind":"k","description":"d","input":{"type":"object"}` + fields + `}]}`
	}
	for _, c := range []struct {
		want string
		args []string
		file string
	}{
		{want: "-write is for", args: []string{"-url", url, "-config", config, "-write"}},
		{want: "go with the URL of a store", args: []string{"-url", "http://127.0.0.1:1", "-by", "ada"}},
		{want: "no server is named", args: []string{"-url", "", "-config", config}},
		{want: "inside another program", args: []string{"-url", "embedded://", "-config", config}},
		{want: "no such file", args: []string{"-url", url, "-config", filepath.Join(dir, "none")}},
		{want: `"extra" is not a flag`, args: []string{"-url", url, "-config", config, "extra"}},
		{want: "is not a loopback address", args: []string{"-url", url, "-config", config, "-http", "0.0.0.0:0"}},
		{want: "missing port", args: []string{"-url", url, "-config", config, "-http", "localhost"}},
		{want: "flag provided but not defined", args: []string{"-colour"}},
		{want: "at least one is needed", file: `{}`},
		{want: `unknown field "tool"`, file: `{"tool":[]}`},
		{want: "line 2: invalid character", file: "{\n]"},
		{want: "something follows", file: `{} {}`},
		{want: "tools[0]: kind is missing", file: `{"tools":[{}]}`},
		{want: "tools[0] (k): input is missing", file: `{"tools":[{"kind":"k","description":"d"}]}`},
		{want: "tool k: a description is missing", file: `{"tools":[{"kind":"k","input":{"type":"object"}}]}`},
		{want: "tool k: output: ", file: one(`,"output":{"$ref":"#/$defs/none"}`)},
		{want: "Priority is 12000", file: one(`,"priority":12000`)},
		{want: `tasks: "always"`, file: one(`,"tasks":"always"`)},
		{want: `time: invalid duration "soon"`, file: one(`,"timeout":"soon"`)},
		{want: "waitpoint w: a schema is missing", file: one(`,"waitpoints":{"w":{"message":"m"}}`)},
		{want: "the kind has two tools",
			file: `{"tools":[{"kind":"k","description":"d","input":{"type":"object"}},{"kind":"k","description":"d","name":"l","input":{"type":"object"}}]}`},
	} {
		args := c.args
		if c.file != "" {
			args = []string{"-url", url, "-config", file(c.file)}
		}
		var problems buffer
		if code := run(t.Context(), args, io.NopCloser(strings.NewReader("")), nil, &problems); code != 2 ||
			!strings.Contains(problems.String(), c.want) {
			t.Errorf("%v %s: exit %d, want %q: %s", args, c.file, code, c.want, problems.String())
		}
	}
	t.Setenv("FLOWFABRIC_MCP_KEY", "short")
	var problems buffer
	if code := run(t.Context(), []string{"-url", url, "-config", config}, io.NopCloser(strings.NewReader("")), nil,
		&problems); code != 2 || !strings.Contains(problems.String(), "64 hex digits") {
		t.Errorf("exit %d: %s", code, problems.String())
	}
	problems = buffer{}
	t.Setenv("FLOWFABRIC_MCP_KEY", "")
	if code := run(t.Context(), []string{"-url", "redis://user:hunter2@127.0.0.1:1", "-config", config},
		io.NopCloser(strings.NewReader("")), nil, &problems); code != 1 ||
		strings.Contains(problems.String(), "hunter2") {
		t.Errorf("exit %d: %s", code, problems.String())
	}
}
