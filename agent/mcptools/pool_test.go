package mcptools_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// program is the test's own program as a server over stdio.
func program(t *testing.T) mcptools.Server {
	t.Helper()
	self, err := os.Executable()
	must.No(t, err)
	return mcptools.Server{Name: "prog", Command: []string{self},
		Env: []string{asServer + "=" + t.TempDir(), "EXTRA=more"}, Exclude: []string{"s*e*d"}}
}

// A program is spoken to over stdio. What it answers, and how it fails, reaches the model; when it dies in a call, the
// next call starts it again.
func TestProgram(t *testing.T) {
	t.Setenv("TEST_SECRET", "of the worker")
	no := `{"text":""}`
	model := &script{answers: []agent.Response{
		wants("prog_search", `{"text":"a"}`, "prog_environment", no, "prog_fail", no, "prog_refuse", no,
			"prog_mixed", no, "prog_huge", no, "prog_ask", no, "prog_search", `{"word":"a"}`, "prog_structured", no),
		wants("prog_die", no), wants("prog_die", no), says("done")}}
	r, err := talk(t, model, program(t))
	must.No(t, err)
	lines := told(r.Messages)
	if len(lines) != 11 || !strings.HasPrefix(lines[9],
		"failed prog_die: the connection to the server prog was lost during the call, which may have happened: ") {
		t.Fatalf("%q", lines)
	}
	lines[9] = ""
	for i, want := range []string{`prog_search: found {"text":"a"}`,
		fmt.Sprintf(`prog_environment: more secret="" home=%q`, os.Getenv("HOME")), "failed prog_fail: out of paper",
		"failed prog_refuse: the server prog refuses the call: not today",
		`prog_mixed: see [image image/png  8] [file audio/wav  4] a resource: file:///a, a bee ` +
			`[file application/pdf c.pdf 5] {"n":1}`,
		"failed prog_huge: the result has 307200 bytes as JSON, more than 245760; ask for less",
		"failed prog_ask: the tool was not run: it asks for input from a user, which cannot be given here: Which one?",
		"failed prog_search: the arguments do not fit the schema: validating root: required: missing properties: " +
			`["text"]`,
		`failed prog_structured: there is no tool "prog_structured"`, "", "prog_die: alive"} {
		if lines[i] != want {
			t.Errorf("%d: %s\nwant\n%s", i, lines[i], want)
		}
	}
}

// With RetryAway the attempt fails, and the next one makes the call again.
func TestRetryAway(t *testing.T) {
	s := program(t)
	s.RetryAway = time.Millisecond
	r, err := talk(t, &script{answers: []agent.Response{wants("prog_die", `{"text":""}`), says("done")}}, s)
	must.No(t, err)
	wantTold(t, r.Messages, "prog_die: alive")
}

// A message that is too long ends the session, not the run.
func TestTooLong(t *testing.T) {
	r, err := talk(t, &script{answers: []agent.Response{wants("prog_monster", `{"text":""}`),
		wants("prog_search", `{"text":"b"}`), says("done")}}, program(t))
	must.No(t, err)
	lines := told(r.Messages)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "failed prog_monster: the connection to") ||
		lines[1] != `prog_search: found {"text":"b"}` {
		t.Errorf("%q", lines)
	}
}

// A call has a time limit, and the server is told.
func TestHang(t *testing.T) {
	w := &world{hanged: make(chan struct{})}
	model := &script{answers: []agent.Response{wants("a_hang", `{"text":""}`), says("done")}}
	r := talkBeside(t, model, w, func(s *mcptools.Server) { s.CallTimeout = 3 * time.Second })
	wantTold(t, r.Result.Messages, "failed a_hang: the tool hang did not answer within 3s; what it was to do may have "+
		"happened")
	if r.Elapsed < 3*time.Second {
		t.Error(r.Elapsed)
	}
	<-w.hanged
}

// A server that is away when its tools are listed fails the attempt, under a category of its own.
func TestAwayAtTheList(t *testing.T) {
	for name, s := range map[string]mcptools.Server{
		"no program": {Name: "none", Command: []string{"/nowhere/at/all"}},
		"no server":  {Name: "none", URL: "http://127.0.0.1:1/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			s.RetryAway = time.Millisecond
			_, err := talk(t, &script{}, s)
			if err == nil || !strings.Contains(err.Error(), "the server none cannot be reached") ||
				!strings.Contains(err.Error(), "mcp_away") {
				t.Error(err)
			}
		})
	}
}

// What a program wrote before it ended is in the error.
func TestLastWords(t *testing.T) {
	s := mcptools.Server{Name: "sh", Command: []string{"sh", "-c", "echo the disk is full >&2; exit 1"},
		RetryAway: time.Millisecond}
	if _, err := talk(t, &script{}, s); err == nil || !strings.Contains(err.Error(), "it wrote: the disk is full") {
		t.Error(err)
	}
}

// serve serves a world over HTTP.
func serve(t *testing.T, w *world, opts sdk.StreamableHTTPOptions, around func(http.Handler) http.Handler) string {
	t.Helper()
	s := w.server()
	h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &opts))
	if around != nil {
		h = around(h)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		for session := range s.Sessions() { // those that nobody came back to
			_ = session.Close()
		}
	})
	return web.URL
}

// Over HTTP each request has the headers; a server that has forgotten the session gets a new one, and a call that it
// refused because of that is made there.
func TestHTTP(t *testing.T) {
	for name, protocol := range map[string]string{"newest": "", "with sessions": "2025-11-25"} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			var tokens atomic.Int64
			var forget atomic.Bool
			url := serve(t, w, sdk.StreamableHTTPOptions{Stateless: protocol == ""}, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
					if !strings.HasPrefix(q.Header.Get("Authorization"), "Bearer t") {
						http.Error(out, "unauthorized", http.StatusUnauthorized)
						return
					}
					body, err := io.ReadAll(q.Body)
					if err != nil {
						return
					}
					q.Body = io.NopCloser(strings.NewReader(string(body)))
					if strings.Contains(string(body), "tools/call") && forget.Swap(false) {
						http.Error(out, "no such session", http.StatusNotFound)
						return
					}
					h.ServeHTTP(out, q)
				})
			})
			forget.Store(protocol != "")
			model := &script{answers: []agent.Response{wants("web_search", `{"text":"a"}`),
				wants("web_routed", `{"text":"b"}`), says("done")}}
			r, err := talk(t, model, mcptools.Server{Name: "web", URL: url, Protocol: protocol,
				Header: func(context.Context) (http.Header, error) {
					return http.Header{"Authorization": {fmt.Sprintf("Bearer t%d", tokens.Add(1))}}, nil
				}})
			must.No(t, err)
			wantTold(t, r.Messages, `web_search: found {"text":"a"}`, "web_routed: no task")
			if tokens.Load() < 3 || len(w.keys) != 1 || len(w.keys[0]) != 36 {
				t.Error(tokens.Load(), w.keys)
			}
		})
	}
}

// Tokens that cannot be made, and answers that are too long, are errors of a call and end nothing else.
func TestHTTPFails(t *testing.T) {
	for name, opts := range map[string]sdk.StreamableHTTPOptions{"stream": {Stateless: true},
		"json": {Stateless: true, JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, &world{}, opts, nil)
			var calls atomic.Int64
			model := &script{answers: []agent.Response{wants("web_monster", `{"text":""}`),
				wants("web_search", `{"text":"a"}`), says("done")}}
			r, err := talk(t, model, mcptools.Server{Name: "web", URL: url,
				Header: func(context.Context) (http.Header, error) {
					if calls.Add(1) == 1 {
						return nil, errors.New("no token")
					}
					return nil, nil
				}})
			must.No(t, err)
			lines := told(r.Messages)
			lost := "failed web_monster: the connection to the server web was lost"
			if len(lines) != 2 || !strings.HasPrefix(lines[0], lost) || lines[1] != `web_search: found {"text":"a"}` {
				t.Errorf("%.300q", lines)
			}
		})
	}
}

// What is wrong with a server is said when the pool is made.
func TestInvalid(t *testing.T) {
	good := mcptools.Server{Name: "a", URL: "https://example.com/mcp"}
	for want, change := range map[string]func(*mcptools.Server){
		"Name is not valid":         func(s *mcptools.Server) { s.Name = "a b" },
		"2 of Command, URL":         func(s *mcptools.Server) { s.Command = []string{"a"} },
		"0 of Command, URL":         func(s *mcptools.Server) { s.URL = "" },
		"URL is not an address":     func(s *mcptools.Server) { s.URL = "ftp://a" },
		"CallTimeout is -1ns":       func(s *mcptools.Server) { s.CallTimeout = -1 },
		"TaskLimit is 1ms":          func(s *mcptools.Server) { s.TaskLimit = time.Millisecond },
		"RetryAway is -1ns":         func(s *mcptools.Server) { s.RetryAway = -1 },
		"the pattern \"[\": syntax": func(s *mcptools.Server) { s.Exclude = []string{"["} },
	} {
		s := good
		change(&s)
		_, err := mcptools.New(mcptools.Config{}, s)
		if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := mcptools.New(mcptools.Config{}, good, good); !errors.Is(err, flowfabric.ErrConfig) {
		t.Error(err)
	}
	p := pool(t, good)
	p.Close()
	p.Close()
}
