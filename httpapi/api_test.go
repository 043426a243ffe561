package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a handler over an embedded server with a worker, and what was asked of it.
type api struct {
	t       *testing.T
	h       *Handler
	store   *embedded.Server
	server  *httptest.Server
	client  *client.Client
	release chan struct{} // lets a handler of kind "stuck" go on
	logs    *lockedBuffer
	why     string // of each change of as that takes a reason and has none; "": none has

	mu   sync.Mutex
	seen map[string]bool // operation and status
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Tokens of the tests, one of each role, and one that is bound to a namespace.
var secrets = map[string]string{}

func testTokens(t *testing.T) *Tokens {
	t.Helper()
	var entries []string
	for _, r := range []Role{Viewer, Producer, Operator, Admin, Worker} {
		secret, entry, err := NewToken("the-"+string(r), r, time.Time{})
		must.No(t, err)
		secrets[string(r)] = secret
		entries = append(entries, entry)
	}
	secret, entry, err := NewToken("the-blue", Admin, time.Time{}, "blue")
	must.No(t, err)
	secrets["blue"] = secret
	entries = append(entries, entry)
	if secret, entry, err = NewToken("the-red", Admin, time.Time{}, "red"); err != nil {
		t.Fatal(err)
	}
	secrets["red"] = secret
	tokens, err := ParseTokens("[" + strings.Join(append(entries, entry), ",") + "]")
	must.No(t, err)
	return tokens
}

func newAPI(t *testing.T, change ...func(*Config)) *api {
	t.Helper()
	dev, err := embedded.Start(t.Context(), embedded.Config{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(dev.Close)
	url := dev.URL()
	const keys = "k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
		TokenKeys: keys, Partitions: 4, Logger: quiet})
	must.No(t, err)
	a := &api{t: t, store: dev, client: c, release: make(chan struct{}), logs: &lockedBuffer{}, seen: map[string]bool{}}
	echo := handler.Define[json.RawMessage, json.RawMessage]("echo")
	fails := handler.Define[json.RawMessage, json.RawMessage]("fails")
	talks := handler.Define[int, string]("talks")
	stuck := handler.Define[json.RawMessage, string]("stuck")
	asks := handler.Define[json.RawMessage, string]("asks")
	w, err := runtime.New(runtime.Config{URL: url, TokenKeys: keys, Concurrency: 32, Namespaces: []string{"*"},
		AppVersion: "1.4", Labels: map[string]string{"zone": "a"}, Logger: quiet},
		handler.Bind(echo, func(_ context.Context, _ *handler.Task, in json.RawMessage) (json.RawMessage, error) {
			return in, nil
		}),
		handler.Bind(fails, func(_ context.Context, _ *handler.Task, in json.RawMessage) (json.RawMessage, error) {
			message := "no ink"
			_ = json.Unmarshal(in, &message) // other inputs say nothing about it
			return nil, handler.Permanent(errors.New(message))
		}),
		handler.Bind(talks, func(ctx context.Context, t *handler.Task, n int) (string, error) {
			for i := range n {
				if err := t.Frame(ctx, "token", fmt.Sprintf("word %d ", i)); err != nil {
					return "", err
				}
			}
			return "said", t.Summary(ctx, map[string]any{"words": n})
		}),
		handler.Bind(stuck, func(ctx context.Context, t *handler.Task, _ json.RawMessage) (string, error) {
			if err := t.Frame(ctx, "token", "before"); err != nil {
				return "", err
			}
			select {
			case <-a.release:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
			return "free", t.Frame(ctx, "token", "after")
		}),
		handler.Bind(asks, func(ctx context.Context, t *handler.Task, _ json.RawMessage) (string, error) {
			if _, err := handler.Step(ctx, t, "draft", func(context.Context) (string, error) {
				return "dear", nil
			}); err != nil {
				return "", err
			}
			answer, err := handler.Await[string](ctx, t, "approval")
			return answer, err
		}),
		handler.Bind(handler.Define[json.RawMessage, string]("drafts", flowfabric.Retries(1)),
			func(ctx context.Context, t *handler.Task, _ json.RawMessage) (string, error) {
				if err := t.Frame(ctx, "token", "draft"); err != nil {
					return "", err
				}
				if t.Attempt() == 1 {
					return "", handler.RetryAfter(0, errors.New("no ink"))
				}
				answer, err := handler.Await[string](ctx, t, "approval")
				if err != nil {
					return "", err
				}
				return answer, t.Frame(ctx, "token", "final")
			}),
		handler.Bind(handler.Define[json.RawMessage, []suspend.Answer]("decides several"),
			func(ctx context.Context, t *handler.Task, _ json.RawMessage) ([]suspend.Answer, error) {
				return t.AskAll(ctx, "all", []suspend.Question{{Key: "pay", Title: "Pay?", Assignee: "ops",
					Arguments: json.RawMessage(`{"cents":5}`), Within: time.Hour,
					Schema: json.RawMessage(`{"type":"object","required":["cents"],
						"properties":{"cents":{"type":"integer"}}}`)},
					{Key: "ship", Title: "Ship it?", Assignee: "ops"}})
			}),
		handler.Bind(handler.Define[json.RawMessage, suspend.Answer]("decides"),
			func(ctx context.Context, t *handler.Task, _ json.RawMessage) (suspend.Answer, error) {
				return t.Ask(ctx, "ship",
					suspend.Question{Title: "Ship it?", Text: "42 tests", Assignee: "ops",
						Choices: []suspend.Choice{{Name: "go", Label: "Ship"}, {Name: "stop"}}})
			}))
	must.No(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("worker: %v", err)
		}
	})
	cfg := Config{Admin: admin.New(c), Authorize: testTokens(t).Authorize,
		Logger: slog.New(slog.NewTextHandler(a.logs, nil))}
	for _, f := range change {
		f(&cfg)
	}
	if a.h, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewServer(a.h)
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
		a.h.Close()
		http.DefaultClient.CloseIdleConnections()
		stop()
		running.Wait()
		c.Close()
	})
	return a
}

// got is an answer.
type got struct {
	status int
	header http.Header
	body   []byte
}

// request is a call; the role may be "" for none.
type request struct {
	method, path, role, body string
	header                   http.Header
}

// do makes a call and holds the answer against the document.
func (a *api) do(q request) got {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), q.method, a.server.URL+q.path, strings.NewReader(q.body))
	must.No(a.t, err)
	r.Header = q.header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if q.body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.role != "" {
		r.Header.Set("Authorization", "Bearer "+secrets[q.role])
	}
	answer, err := http.DefaultClient.Do(r)
	must.No(a.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.No(a.t, err)
	a.check(q, answer, body)
	return got{answer.StatusCode, answer.Header, body}
}

// as makes a call and wants a status.
func (a *api) as(role, method, path, body string, want int) got {
	a.t.Helper()
	if r := routeOf(method, path); a.why != "" && r != nil && !slices.Contains(r.need, Worker) &&
		!strings.Contains(body, `"reason"`) {
		switch {
		case method == http.MethodDelete &&
			slices.ContainsFunc(r.query, func(p param) bool { return p.name == "reason" }):
			next := "?"
			if strings.Contains(path, next) {
				next = "&"
			}
			path += next + "reason=" + url.QueryEscape(a.why)
		case r.body != nil && schemaOf(r.body, true).Properties["reason"] != nil:
			body = strings.Replace(`{"reason":"`+a.why+`",`+strings.TrimPrefix(strings.TrimSpace(body), "{"), ",}", "}",
				1)
			if !strings.HasSuffix(body, "}") { // it had no body
				body = strings.TrimSuffix(body, ",") + "}"
			}
		}
	}
	g := a.do(request{method: method, path: path, role: role, body: body})
	if g.status != want {
		a.t.Fatalf("%s %s as %s: %d, want %d: %s", method, path, role, g.status, want, g.body)
	}
	return g
}

// into decodes an answer.
func into[T any](t *testing.T, g got) (v T) {
	t.Helper()
	if err := json.Unmarshal(g.body, &v); err != nil {
		t.Fatalf("%s: %v", g.body, err)
	}
	return v
}

// routeOf finds the route of a call in the table: one with the action, or one without any, whose last part may have a
// colon.
func routeOf(method, path string) *route {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	last, did, _ := cutLast(parts[len(parts)-1], ":")
	for _, exact := range []bool{true, false} {
		for _, r := range routes {
			want := strings.Split(r.path, "/")
			n := len(want) - 1
			if r.method == method && strings.HasSuffix(want[n], "...}") && n < len(parts) &&
				slices.Equal(want[:n], parts[:n]) {
				return r
			}
			if r.method != method || len(want) != len(parts) {
				continue
			}
			fits := true
			for i := range want {
				base, action, _ := strings.Cut(want[i], ":")
				switch {
				case !strings.HasPrefix(base, "{"):
					fits = fits && want[i] == parts[i]
				case i == len(want)-1:
					fits = fits && last != "" && (exact && action == did || !exact && action == "")
				}
			}
			if fits {
				return r
			}
		}
	}
	return nil
}

// check holds an answer against the document: its status, its media type, and every member of it.
func (a *api) check(q request, answer *http.Response, body []byte) {
	a.t.Helper()
	media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if answer.Header.Get("X-Request-Id") == "" {
		a.t.Errorf("%s %s: no request id", q.method, q.path)
	}
	if answer.StatusCode >= 400 {
		if media != "application/problem+json" {
			a.t.Errorf("%s %s: %d with media %q: %s", q.method, q.path, answer.StatusCode, media, body)
		}
		a.valid(q, of[problem](), body)
		return
	}
	r := routeOf(q.method, q.path)
	if r == nil {
		a.t.Errorf("%s %s is answered %d and is no route", q.method, q.path, answer.StatusCode)
		return
	}
	i := slices.IndexFunc(r.answers, func(x answerOf) bool { return x.status == answer.StatusCode })
	if i < 0 {
		a.t.Errorf("%s: status %d is not in the document: %s", r.name, answer.StatusCode, body)
		return
	}
	a.mu.Lock()
	a.seen[fmt.Sprint(r.name, " ", answer.StatusCode)] = true
	a.mu.Unlock()
	want := r.answers[i]
	switch {
	case want.media != "":
		if media != want.media {
			a.t.Errorf("%s: media %q", r.name, media)
		}
	case want.body != nil:
		a.valid(q, want.body, body)
	case r.name != "getOpenAPI" && len(body) > 0 && want.media == "":
		a.t.Errorf("%s: a body where the document has none: %s", r.name, body)
	}
}

// answerOf lets the name of the type stand where a variable hides it.
type answerOf = answer

var resolved sync.Map // reflect.Type → *jsonschema.Resolved

// valid holds a body against the schema of its type, in which no other members are allowed.
func (a *api) valid(q request, t reflect.Type, body []byte) {
	a.t.Helper()
	schema, ok := resolved.Load(t)
	if !ok {
		s, err := schemaOf(t, true).Resolve(nil)
		must.No(a.t, err)
		schema, _ = resolved.LoadOrStore(t, s)
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		a.t.Errorf("%s %s: %v: %s", q.method, q.path, err, body)
		return
	}
	if err := schema.(*jsonschema.Resolved).Validate(v); err != nil {
		a.t.Errorf("%s %s: the answer is not what the document says: %v\n%s", q.method, q.path, err, body)
	}
}

// submit creates an execution and returns its path.
func (a *api) submit(body string) string {
	a.t.Helper()
	made := into[submitted](a.t, a.as("producer", "POST", "/v1/executions", body, http.StatusCreated))
	return "/v1/executions/" + made.ID
}

// until asks until the execution is in a state.
func (a *api) until(path, state string) flowfabric.Snapshot {
	a.t.Helper()
	var x flowfabric.Snapshot
	testwait.Progress(a.t, path+" is "+state, func() (bool, any) {
		x = into[flowfabric.Snapshot](a.t, a.as("viewer", "GET", path, "", http.StatusOK))
		return string(x.Public) == state, string(x.Public)
	})
	return x
}

// sse is one event of a stream.
type sse struct {
	id, name string
	data     stream.TailEvent
	text     string // of an overview
}

// follow reads events until the stream ends, or until the one that last says.
func (a *api) follow(path string, header http.Header, last func(sse) bool) (all []sse, status int) {
	a.t.Helper()
	ctx, cancel := testwait.Context(a.t, a.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", a.server.URL+path, nil)
	must.No(a.t, err)
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Header.Get("Authorization") == "" && !strings.Contains(path, "access_token") {
		r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
	}
	answer, err := http.DefaultClient.Do(r)
	must.No(a.t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(answer.Body)
		a.check(request{method: "GET", path: path}, answer, body)
		return nil, answer.StatusCode
	}
	a.check(request{method: "GET", path: path}, answer, nil)
	lines, e := bufio.NewScanner(answer.Body), sse{}
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" && e.name != "":
			all = append(all, e)
			if last != nil && last(e) {
				return all, answer.StatusCode
			}
			e = sse{}
		case strings.HasPrefix(line, "id: "):
			e.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			schema := of[stream.TailEvent]()
			switch {
			case strings.Contains(path, "/logs/events"):
				schema, e.text = of[stream.LogLine](), line[6:]
			case strings.HasPrefix(path, "/v1/events"):
				schema = of[flowfabric.FeedEvent]()
			case strings.HasPrefix(path, "/v1/overview"):
				schema, e.text = of[watchedOverview](), line[6:]
			}
			a.valid(request{path: path}, schema, []byte(line[6:]))
			must.No(a.t, json.Unmarshal([]byte(line[6:]), &e.data))
		}
	}
	return all, answer.StatusCode
}

func names(all []sse) string {
	var words []string
	for _, e := range all {
		words = append(words, e.name)
	}
	return strings.Join(words, " ")
}

func TestMakesItsDocument(t *testing.T) {
	const path = "openapi.json"
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		must.No(t, os.WriteFile(path, document(), 0o644))
	}
	if committed, err := os.ReadFile(path); err != nil || !bytes.Equal(committed, document()) {
		t.Errorf("%s is not what the routes say (%v); write it again with FLOWFABRIC_GOLDEN=write", path, err)
	}
	ids := map[string]bool{}
	for _, r := range routes {
		if ids[r.name] || r.name == "" || r.summary == "" || r.handle == nil || len(r.answers) == 0 {
			t.Errorf("%s %s: name %q, summary %q", r.method, r.path, r.name, r.summary)
		}
		ids[r.name] = true
	}
}

// Every route is called, and every status that the document promises comes; no answer has a member that the document
// lacks.
func TestEveryRoute(t *testing.T) {
	a := newAPI(t)
	a.why = "it is time"
	a.as("", "GET", "/healthz", "", 200)
	a.as("", "GET", "/readyz", "", 200)
	if g := a.as("", "GET", "/v1/openapi.json", "", 200); !bytes.Equal(g.body, document()) {
		t.Error("another document is served")
	}

	done := a.submit(
		`{"kind":"echo","input":{"a":[1,"é",null]},"lane":"default","priority":5,"tags":{"team.name":"data"},"retries":1,"timeout_ms":60000,
		"deadline_ms":3600000,"retention_s":{"completed":3600},"limits":[{"key":"tenant-1","concurrency":5}],"idempotency_key":"order-1"}`)
	g := a.do(request{method: "GET", path: done + "/result", role: "viewer",
		header: http.Header{"Prefer": {"wait=30"}}})
	if r := into[result](t, g); g.status != 200 || r.State != "completed" ||
		string(*r.Output) != `{"a":[1,"é",null]}` || g.header.Get("Preference-Applied") != "wait=30" {
		t.Errorf("%d %s", g.status, g.body)
	}
	x := into[flowfabric.Snapshot](t, a.as("viewer", "GET", done, "", 200))
	if x.Public != "completed" || x.Kind != "echo" || x.Priority != 5 || x.Tags["team.name"] != "data" ||
		x.Creator != "the-producer" || x.KeyHeld != "retained" || x.EndedAt.IsZero() {
		t.Errorf("%+v", x)
	}
	if in := into[flowfabric.Payload](t, a.as("viewer", "GET", done+"/input", "", 200)); string(in) !=
		`{"a":[1,"é",null]}` {
		t.Errorf("%s", in)
	}
	again := a.do(request{method: "POST", path: "/v1/executions", role: "producer",
		body: `{"kind":"echo","input":{"a":[1,"é",null]}}`, header: http.Header{"Idempotency-Key": {`"order-1"`}}})
	if m := into[submitted](t, again); again.status != 200 || !m.Duplicate || again.header.Get("Location") != done {
		t.Errorf("%d %s", again.status, again.body)
	}
	if p := into[problem](t, a.as("producer", "POST", "/v1/executions",
		`{"kind":"echo","input":1,"idempotency_key":"order-1"}`, 409)); p.Code != "idempotency_conflict" {
		t.Errorf("%+v", p)
	}
	many := into[batchAnswer](t, a.as("producer", "POST", "/v1/executions:batch",
		`{"items":[{"kind":"echo","input":1},{"kind":"{bad}"},{"kind":"echo","unique_key":"u"},{"kind":"echo","namespace":"{}"}]}`,
		200))
	if many.Items[0].ID == "" || many.Items[1].Problem == nil || many.Items[1].Problem.Code != "invalid_input" ||
		many.Items[2].Problem != nil || many.Items[3].Problem == nil {
		t.Errorf("%+v", many)
	}

	for _, tags := range []string{`{"kind":"echo","tags":{"nodot":"x"}}`, `{"set":{"nodot":"x"}}`} {
		path, role := "/v1/executions", "producer"
		if strings.Contains(tags, "set") {
			path, role = "/v1/executions/"+many.Items[0].ID+":tags", "operator"
		}
		if p := into[problem](t, a.as(role, "POST", path, tags, 400)); p.Code != "invalid_tag_key" {
			t.Errorf("%s: %+v", tags, p)
		}
	}

	failed := a.submit(`{"kind":"fails"}`)
	if r := into[result](t, a.do(request{method: "GET", path: failed + "/result", role: "viewer",
		header: http.Header{"Prefer": {"respond-async, wait=30"}}})); r.State != "failed" ||
		r.Failure == nil || r.Failure.Message != "no ink" {
		t.Errorf("%+v", r)
	}
	if h := into[history](t, a.as("viewer", "GET", failed+"/history", "", 200)); len(h.Items) < 3 ||
		h.Items[0].Kind != "created" {
		t.Errorf("%+v", h)
	}
	if l := into[stepList](t, a.as("viewer", "GET", failed+"/steps", "", 200)); len(l.Items) != 0 {
		t.Errorf("%+v", l)
	}
	a.as("viewer", "GET", failed+"/steps/none", "", 404)
	a.as("operator", "POST", failed+":replay", `{"reason":"more ink","from_scratch":true}`, 204)
	a.until(failed, "failed")
	page := into[executionPage](t, a.as("viewer", "GET",
		"/v1/executions?state=failed&category=handler_error&kind=fails&limit=1&error=INK", "", 200))
	if len(page.Items) != 1 || page.Items[0].ID.String() != failed[len("/v1/executions/"):] ||
		page.Items[0].Failure.Message != "no ink" {
		t.Errorf("%+v", page)
	}
	a.failureGroups(page.Items[0].ID)
	fork := into[client.Forked](t, a.as("operator", "POST", failed+":fork",
		`{"reason":"other ink","input":{"other":1}}`, 200))
	shown := into[flowfabric.Snapshot](t, a.as("viewer", "GET", "/v1/executions/"+fork.ID.String(), "", 200))
	if !strings.HasSuffix(failed, shown.ForkOf.ID.String()) || shown.InputBytes != len(`{"other":1}`) {
		t.Errorf("%+v, %+v", fork, shown)
	}
	a.as("admin", "POST", failed+":purge", "", 204)
	a.as("viewer", "GET", failed, "", 410)
	a.as("viewer", "GET", failed+"/steps", "", 410)
	a.as("viewer", "GET", failed+"/steps/none", "", 410)

	talk := a.submit(`{"kind":"talks","input":3}`)
	all, _ := a.follow(talk+"/events", nil, nil)
	if got := names(all); got != "attempt frame frame frame frame attempt_end end" ||
		string(all[2].data.Frame.Payload) != "word 1 " || all[6].data.State != "completed" {
		t.Errorf("%s", got)
	}
	rest, _ := a.follow(talk+"/events", http.Header{"Last-Event-ID": {all[2].id}}, nil)
	if got := names(rest); got != "frame frame attempt_end end" || rest[0].id != all[3].id {
		t.Errorf("behind the second frame: %s", got)
	}
	if _, status := a.follow(talk+"/events?after="+all[6].id, nil, nil); status != http.StatusNoContent {
		t.Errorf("behind the end: %d", status)
	}
	if s := into[stream.Summary](t, a.as("viewer", "GET", talk+"/summary", "", 200)); string(s.Document) !=
		`{"words":3}` || s.Version != 1 {
		t.Errorf("%+v", s)
	}
	frames := into[framePage](t, a.as("viewer", "GET", talk+"/frames?limit=2", "", 200))
	more := into[framePage](t, a.as("viewer", "GET", talk+"/frames?limit=2&after="+frames.Cursor, "", 200))
	last := into[framePage](t, a.as("viewer", "GET", talk+"/frames?after="+frames.Items[0].ID.String()+"&until="+
		frames.Cursor, "", 200))
	if len(last.Items) != 1 || last.Items[0].Sequence != 2 {
		t.Errorf("%+v", last)
	}
	a.as("viewer", "GET", talk+"/frames?until=never", "", 400)
	if len(frames.Items) != 2 || len(more.Items) != 1 || more.Items[0].Sequence != 3 {
		t.Errorf("%+v %+v", frames, more)
	}

	later := a.submit(`{"kind":"echo","delay_ms":3600000,"unique_key":"later","key_window_ms":60000}`)
	a.as("viewer", "GET", later+"/result", "", 202)
	a.as("operator", "POST", later+":delay", `{"delay_ms":7200000,"reason":"not yet"}`, 204)
	a.as("operator", "POST", later+":priority", `{"priority":9}`, 204)
	a.as("operator", "POST", later+":tags", `{"set":{"a.b":"c"}}`, 204)
	if e := into[flowfabric.Explanation](t, a.as("viewer", "GET", later+"/why", "", 200)); e.State != "delayed" ||
		e.Sentence == "" || e.At.IsZero() {
		t.Errorf("%+v", e)
	}
	a.as("operator", "POST", later+":run-now", `{}`, 204)
	a.until(later, "completed")
	put := into[submitted](t, a.as("producer", "POST", "/v1/executions",
		`{"kind":"nobody","input":1,"debounce_key":"k","debounce_ms":3600000,"debounce_max_ms":7200000}`, 201))
	off := into[submitted](t, a.as("producer", "POST", "/v1/executions",
		`{"kind":"nobody","input":2,"debounce_key":"k","debounce_ms":3600000,"debounce_max_ms":7200000}`, 200))
	if put.Replaced || put.Duplicate || !off.Replaced || !off.Duplicate || off.ID != put.ID {
		t.Errorf("%+v %+v", put, off)
	}
	if x := into[flowfabric.Snapshot](t, a.as("viewer", "GET", "/v1/executions/"+put.ID, "", 200)); x.KeyHeld !=
		"until_claimed" || x.Replaced != 1 || x.DelayUntil.IsZero() {
		t.Errorf("%+v", x)
	}
	if e := into[flowfabric.Explanation](t, a.as("viewer", "GET", "/v1/executions/"+put.ID+"/why", "",
		200)); e.Reason !=
		"debounced" {
		t.Errorf("%+v", e)
	}
	idle := a.submit(`{"kind":"nobody","delay_ms":3600000}`)
	a.as("operator", "POST", idle+":hold", `{"reason":"wait"}`, 409) // it is delayed
	a.as("operator", "POST", idle+":run-now", "", 204)
	a.until(idle, "waiting")
	a.as("operator", "POST", idle+":hold", `{"reason":"wait"}`, 204)
	a.as("operator", "POST", idle+":unhold", "", 204)
	for _, already := range []bool{false, true} {
		s := into[client.Stopped](t, a.as("producer", "POST", idle+":stop", `{"reason":"not so"}`, 200))
		if s.Already != already || s.By != "the-producer" {
			t.Errorf("%+v", s)
		}
	}
	a.as("producer", "POST", idle+":cancel", `{"reason":"not needed"}`, 204)
	a.as("producer", "POST", idle+":stop", `{}`, 409)
	if r := into[result](t, a.as("viewer", "GET", idle+"/result", "", 200)); r.State != "cancelled" ||
		r.By != "the-producer" || r.Source != "operator_override" || r.Reason != "not needed" {
		t.Errorf("%+v", r)
	}
	stuck := a.submit(`{"kind":"stuck"}`)
	a.until(stuck, "active")
	a.as("operator", "POST", stuck+":revoke", `{"reason":"too long"}`, 204)
	close(a.release)
	a.until(stuck, "completed")

	other := a.submit(`{"kind":"asks"}`)
	a.until(other, "suspended")
	a.as("producer", "POST", other+":rewind", `{"step":"none"}`, 400)
	a.as("producer", "POST", other+":rewind", `{"step":"draft","attempt":7}`, 409)
	if r := into[client.Rewound](t, a.as("producer", "POST", other+":rewind",
		`{"step":"draft","attempt":1,"message":{"text":"again"},"reason":"too dear"}`, 200)); r.Attempt != 2 ||
		!slices.Equal(r.Dropped, []string{"draft"}) {
		t.Errorf("%+v", r)
	}
	for into[flowfabric.Snapshot](t, a.as("viewer", "GET", other, "", 200)).Attempts < 2 {
	}
	a.until(other, "suspended")
	a.as("producer", "POST", other+":cancel", "", 204)
	ask := a.submit(`{"kind":"asks"}`)
	a.until(ask, "suspended")
	if v := into[flowfabric.Payload](t, a.as("viewer", "GET", ask+"/steps/draft", "", 200)); string(v) != `"dear"` {
		t.Errorf("%+v", v)
	}
	points := into[waitpointList](t, a.as("viewer", "GET", ask+"/waitpoints", "", 200))
	if len(points.Items) != 1 || points.Items[0].Key != "approval" {
		t.Fatalf("%+v", points)
	}
	if d := into[suspend.Delivered](t, a.as("operator", "POST", ask+"/waitpoints/approval:answer",
		`{"payload":"yes","idempotency_key":"once"}`, 200)); d.Duplicate || d.Signal.IsZero() {
		t.Errorf("%+v", d)
	}
	a.until(ask, "completed")
	second := a.submit(`{"kind":"asks"}`)
	a.until(second, "suspended")
	id, err := flowfabric.ParseExecutionID(second[len("/v1/executions/"):])
	must.No(t, err)
	record, err := a.client.Execution(id).Suspension(t.Context())
	must.No(t, err)
	token, err := admin.New(a.client).ReissueToken(t.Context(), id, record.Waitpoints[0].ID, flowfabric.By("test"))
	must.No(t, err)
	a.as("producer", "POST", "/v1/signals", `{"token":"`+token.Reveal()+`","payload":"yes"}`, 200)
	a.until(second, "completed")
	a.as("viewer", "POST", second+"/stream-token", `{"life_s":60}`, 201)

	kept := into[admin.Index](t, a.as("admin", "POST", "/v1/index:set",
		`{"all":true,"tags":["a.b"],"reason":"to find"}`, 200))
	if !kept.All || len(kept.Tags) != 1 || !kept.Tags[0].Ready {
		t.Errorf("%+v", kept)
	}
	a.as("admin", "POST", "/v1/index:set", `{"tags":["A"]}`, 400)
	a.as("operator", "POST", "/v1/index:set", `{"all":true}`, 403)
	if again := into[admin.Index](t, a.as("viewer", "GET", "/v1/index", "", 200)); !reflect.DeepEqual(again, kept) {
		t.Errorf("%+v, want %+v", again, kept)
	}
	if n := into[admin.Counts](t, a.as("viewer", "GET", "/v1/executions:count", "", 200)); len(n.States) == 0 {
		t.Errorf("%+v", n)
	}
	a.as("viewer", "GET", "/v1/executions:count?tag=c.d=e", "", 409)
	if l := into[laneList](t, a.as("viewer", "GET", "/v1/lanes", "", 200)); len(l.Items) == 0 {
		t.Error("no lanes")
	}
	if s := into[apiv1.Times](t, a.as("viewer", "GET", "/v1/times", "", 200)); len(s.Steps) != 60 {
		t.Errorf("%d steps of an hour", len(s.Steps))
	}
	if s := into[apiv1.Schemas](t, a.as("viewer", "GET", "/v1/schemas", "", 200)); s.Namespace != "default" {
		t.Errorf("schemas of namespace %q", s.Namespace)
	}
	if q := into[queueList](t, a.as("viewer", "GET", "/v1/queues?namespace=default", "", 200)); len(q.Items) == 0 {
		t.Error("no queues")
	}
	if w := into[workerList](t, a.as("viewer", "GET", "/v1/workers", "", 200)); len(w.Items) != 1 ||
		!w.Items[0].Alive || w.Items[0].Version != "1.4" || w.Items[0].Labels["zone"] != "a" {
		t.Errorf("%+v", w)
	}
	a.as("viewer", "GET", "/v1/versions", "", 200)
	a.as("viewer", "GET", "/v1/me", "", 200)
	a.as("viewer", "GET", "/v1/overview", "", 200)
	a.follow("/v1/overview/events", nil, func(sse) bool { return true })
	a.jobLogs()
	a.flowsAndSchedules()
	a.bulkAndFeed()
	a.mailboxes()
	a.work()
	a.links()
	a.gatesAndPartitions()
	a.durableReads()
	a.writtenStreams()
	a.everyChangeIsNoted()
	for _, r := range routes {
		for _, x := range r.answers {
			if !a.seen[fmt.Sprint(r.name, " ", x.status)] {
				t.Errorf("%s was never answered %d", r.name, x.status)
			}
		}
	}
}

// flowsAndSchedules calls the routes of what a program in Go has made.
func (a *api) flowsAndSchedules() {
	t, ctx := a.t, a.t.Context()
	echo, fails := handler.Define[int, int]("echo"), handler.Define[int, int]("fails")
	f := flow.New("pair")
	first := flow.Add(f, "first", echo, 1)
	flow.Add(f, "second", fails, 2, flow.After(first))
	made, err := client.SubmitFlow(ctx, a.client, f)
	must.No(t, err)
	if _, err := made.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	path := "/v1/flows/" + made.ID().String()
	v := into[client.FlowSnapshot](t, a.as("viewer", "GET", path, "", 200))
	if v.State != "failed" || len(v.Nodes) != 2 || v.Nodes[1].Node != "second" || len(v.Nodes[1].Edges) != 1 ||
		v.Nodes[1].Category != "handler_error" {
		t.Errorf("%+v", v)
	}
	if g := a.as("viewer", "GET", path+"/graph", "", 200); !strings.Contains(string(g.body), "flowchart") {
		t.Errorf("%s", g.body)
	}
	if page := into[flowPage](t, a.as("viewer", "GET", "/v1/flows?kind=pair&state=failed", "", 200)); len(page.Items) !=
		1 || page.Items[0].Members != 2 {
		t.Errorf("%+v", page)
	}
	if r := into[admin.FlowReplayed](t, a.as("operator", "POST", path+":replay", `{"reason":"again"}`,
		200)); r.Runnable !=
		1 {
		t.Errorf("%+v", r)
	}
	if _, err := made.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	a.as("producer", "POST", path+":cancel", `{}`, 409) // it has ended
	idle := flow.New("idle")
	flow.Add(idle, "only", handler.Define[int, int]("nobody"), 1)
	waits, err := client.SubmitFlow(ctx, a.client, idle)
	must.No(t, err)
	a.as("blue", "GET", "/v1/flows/"+waits.ID().String(), "", 404)
	a.as("blue", "POST", "/v1/flows/"+waits.ID().String()+":cancel", `{}`, 404)
	a.as("producer", "POST", "/v1/flows/"+waits.ID().String()+":cancel", `{"policy":"cancel_all","reason":"no"}`, 200)
	a.as("viewer", "GET", "/v1/flows/nonsense", "", 400)

	if _, err := client.Schedule(ctx, a.client, "night:ly", schedule.Cron("0 3 * * *", "UTC"), echo, 1); err != nil {
		t.Fatal(err)
	}
	const graph = `{"kind":"shape","idempotency_key":"g1","tags":{"a.b":"c"},"nodes":[{"name":"a","kind":"echo","input":1},{"name":"b","kind":"fails","input":2,"retries":0},
		{"name":"c","kind":"echo","input":3,"after":["a","b"],"policy":"any","cancel_rest":true},{"name":"d","kind":"echo","inputs":{"left":"a"},"after":["c"],"priority":3}]}`
	shape := into[flowMade](t, a.as("producer", "POST", "/v1/flows", graph, 201))
	if len(shape.Nodes) != 4 || shape.Duplicate {
		t.Errorf("%+v", shape)
	}
	if again := into[flowMade](t, a.as("producer", "POST", "/v1/flows", graph, 200)); again.ID != shape.ID ||
		!again.Duplicate {
		t.Errorf("%+v", again)
	}
	a.until("/v1/executions/"+shape.Nodes["d"], "completed")
	if v := into[client.FlowSnapshot](t, a.as("viewer", "GET", "/v1/flows/"+shape.ID, "", 200)); v.State !=
		"completed" || v.Nodes[2].Group.Policy != "any" || v.Tags["a.b"] != "c" || v.Creator != "the-producer" {
		t.Errorf("%+v", v)
	}
	a.growth()
	for body, field := range map[string]string{
		`{"kind":"s","nodes":[]}`: "/nodes",
		`{"kind":"s","nodes":[{"name":"a","kind":"echo","after":["b"]},{"name":"b","kind":"echo"}]}`:                         "/nodes/0/after/0",
		`{"kind":"s","nodes":[{"name":"a","kind":"echo"},{"name":"a","kind":"echo"}]}`:                                       "/nodes/1/name",
		`{"kind":"s","nodes":[{"name":"a","kind":"echo","inputs":{"x":"y"}}]}`:                                               "/nodes/0/inputs/x",
		`{"kind":"s","nodes":[{"name":"a","kind":"echo","policy":"some"}]}`:                                                  "/nodes/0/policy",
		`{"kind":"s","nodes":[{"name":"a","kind":"echo","k":2}]}`:                                                            "/nodes/0/policy",
		`{"kind":"s","nodes":[{"name":"a","kind":"echo"},{"name":"b","kind":"echo","after":["a"],"policy":"quorum","k":2}]}`: "",
	} {
		if p := into[problem](t, a.as("producer", "POST", "/v1/flows", body, 400)); p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if s := into[client.ScheduleSet](t, a.as("operator", "PUT", "/v1/schedules/hourly",
		`{"every_ms":3600000,"kind":"echo","input":5,"overlap":"skip","lane":"side"}`, 200)); s.Already ||
		s.Next.IsZero() {
		t.Errorf("%+v", s)
	}
	if s := into[client.ScheduleSet](t, a.as("operator", "PUT", "/v1/schedules/hourly",
		`{"every_ms":3600000,"kind":"echo","input":5,"overlap":"skip","lane":"side"}`, 200)); !s.Already {
		t.Errorf("%+v", s)
	}
	if s := into[admin.ScheduleInfo](t, a.as("viewer", "GET", "/v1/schedules/hourly", "", 200)); s.Name != "hourly" ||
		len(s.Upcoming) != 5 {
		t.Errorf("%+v", s)
	}
	a.as("blue", "PUT", "/v1/schedules/hourly", `{"cron":"0 3 * * *","kind":"echo"}`, 409)
	a.as("operator", "PUT", "/v1/schedules/hourly", `{"cron":"0 3 * *","kind":"echo"}`, 400)
	a.as("operator", "PUT", "/v1/schedules/hourly", `{"kind":"echo"}`, 400)
	a.as("operator", "DELETE", "/v1/schedules/hourly", "", 204)
	a.schedulesOfOwners()
	a.fromSchedules()
	a.editsSchedules()
	a.triggers()
	if l := into[scheduleList](t, a.as("viewer", "GET", "/v1/schedules", "", 200)); len(l.Items) != 1 ||
		l.Items[0].Kind != "echo" || len(l.Items[0].Upcoming) != 5 {
		t.Errorf("%+v", l)
	}
	if l := into[scheduleList](t, a.as("blue", "GET", "/v1/schedules", "", 200)); len(l.Items) != 0 {
		t.Errorf("%+v", l)
	}
	a.as("blue", "POST", "/v1/schedules/night:ly:pause", "", 404)
	a.as("operator", "POST", "/v1/schedules/night:ly:pause", "", 204)
	if l := into[scheduleList](t, a.as("viewer", "GET", "/v1/schedules", "", 200)); !l.Items[0].Paused ||
		l.Items[0].PausedBy != "the-operator" {
		t.Errorf("%+v", l)
	}
	a.as("operator", "POST", "/v1/schedules/night:ly:resume", "{}", 204)
	a.as("operator", "DELETE", "/v1/schedules/night:ly", "", 204)
	a.as("operator", "DELETE", "/v1/schedules/night:ly", "", 404)
}

// growth adds nodes to an open flow: cleanup, and what is for failures.
func (a *api) growth() {
	t := a.t
	grown := into[flowMade](t, a.as("producer", "POST", "/v1/flows",
		`{"kind":"grown","open":true,"nodes":[{"name":"a","kind":"echo","input":1}]}`, 201))
	path := "/v1/flows/" + grown.ID
	const more = `{"nodes":[{"name":"b","kind":"echo","input":2,"inputs":{"left":"a"}},{"name":"clean","kind":"echo","input":3,"after":["a","b"],"policy":"ended"},
		{"name":"undo","kind":"echo","input":4,"after":["b"],"policy":"failed"}]}`
	for range 2 {
		if added := into[flowMade](t, a.as("producer", "POST", path+"/nodes", more, 200)); len(added.Nodes) != 3 ||
			added.ID != grown.ID {
			t.Errorf("%+v", added)
		}
	}
	clean := into[flowMade](t, a.as("producer", "POST", path+"/nodes", more, 200)).Nodes["clean"]
	a.until("/v1/executions/"+clean, "completed")
	a.as("blue", "POST", path+"/nodes", more, 404)
	a.as("producer", "POST", path+"/nodes", `{"nodes":[{"name":"x","kind":"echo","after":["nobody"]}]}`, 400)
	a.as("producer", "POST", path+"/nodes", `{"nodes":[{"name":"x","kind":"echo","policy":"ended"}]}`, 400)
	if p := into[problem](t, a.as("producer", "POST", path+"/nodes", `{"nodes":[]}`, 400)); p.Field != "/nodes" {
		t.Errorf("%+v", p)
	}
	a.as("operator", "POST", path+":seal", `{}`, 204)
	a.as("producer", "POST", path+"/nodes", `{"nodes":[{"name":"x","kind":"echo"}]}`, 409)
	v := into[client.FlowSnapshot](t, a.as("viewer", "GET", path, "", 200))
	if v.State != "completed" || v.Nodes[2].Group.Policy != "ended" || v.Nodes[3].Public != "skipped" ||
		v.Nodes[3].Group.Policy != "failed" {
		t.Errorf("%+v", v)
	}
}

// schedulesOfOwners declares schedules with an end, a flow among them, and leaves none.
func (a *api) schedulesOfOwners() {
	t := a.t
	const night = `{"cron":"0 3 * * *","until":"2099-12-31T00:00:00Z","max_runs":7,"jitter_ms":60000,"kind":"echo","input":1}`
	const pair = `{"every_ms":3600000,"kind":"pair","nodes":[{"name":"a","kind":"nobody"},{"name":"b","kind":"nobody","after":["a"]}],"first_run_now":true}`
	const path = "/v1/schedule-owners/billing"
	if m := into[client.ScheduleSync](t, a.as("operator", "PUT", path, `{"schedules":{"n":`+night+`,"p":`+pair+`}}`,
		200)); fmt.Sprint(m) != "{[n p] [] [] []}" {
		t.Errorf("%+v", m)
	}
	l := into[scheduleList](t, a.as("viewer", "GET", "/v1/schedules", "", 200))
	at := func(name string) admin.ScheduleInfo {
		return l.Items[slices.IndexFunc(l.Items, func(s admin.ScheduleInfo) bool { return s.Name == name })]
	}
	n, p := at("n"), at("p")
	if n.Owner != "billing" || n.Until.IsZero() || n.Runs != 7 || *n.RunsLeft != 7 ||
		n.Jitter != flowfabric.Millis(time.Minute) ||
		n.Ended != "" || len(n.Upcoming) != 5 {
		t.Errorf("%+v", n)
	}
	if p.Nodes != 2 || p.Kind != "pair" || p.Lane != "" || p.RunsLeft != nil || p.Next.IsZero() {
		t.Errorf("%+v", p)
	}
	if s := into[client.ScheduleSet](t, a.as("operator", "PUT", "/v1/schedules/n",
		`{"cron":"0 3 * * *","kind":"echo","until":"2020-01-01T00:00:00Z"}`, 200)); !s.Next.IsZero() {
		t.Errorf("%+v", s)
	}
	if m := into[client.ScheduleSync](t, a.as("operator", "PUT", path, `{"schedules":{"n":`+night+`}}`,
		200)); fmt.Sprint(m) != "{[] [n] [] [p]}" {
		t.Errorf("%+v", m)
	}
	if p := into[problem](t, a.as("operator", "PUT", "/v1/schedule-owners/shop", `{"schedules":{"n":`+night+`}}`,
		409)); p.Code != "schedule_owned" {
		t.Errorf("%+v", p)
	}
	for body, field := range map[string]string{
		`{"schedules":{"n":{"kind":"echo"}}}`: "/schedules/n/cron",
		`{"schedules":{"n":{"every_ms":1000,"kind":"f","lane":"l",` +
			`"nodes":[{"name":"a","kind":"echo"}]}}}`: "/schedules/n/nodes",
		`{"schedules":{"n":{"every_ms":1000,"kind":"f","nodes":[{"name":"a","kind":"echo","after":["b"]}]}}}`: "/schedules/n/nodes/0/after/0",
		`{"schedules":{"n":{"every_ms":1000,"kind":"f","jitter_ms":-1}}}`:                                     "",
	} {
		if p := into[problem](t, a.as("operator", "PUT", path, body, 400)); p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	a.as("blue", "PUT", path, `{"schedules":{}}`, 403)
	if m := into[client.ScheduleSync](t, a.as("operator", "PUT", path, `{"schedules":{}}`, 200)); fmt.Sprint(m) !=
		"{[] [] [] [n]}" {
		t.Errorf("%+v", m)
	}
}

// bulkAndFeed calls what is about many executions.
func (a *api) bulkAndFeed() {
	t := a.t
	for range 3 {
		a.submit(`{"kind":"later","delay_ms":3600000,"tags":{"test.bulk":"1"}}`)
	}
	const many = "/v1/executions:bulk?tag=test.bulk=1"
	if r := into[admin.BulkResult](t, a.as("operator", "POST", many, `{"action":"cancel","dry_run":true}`,
		200)); r.Matched !=
		3 || r.Done != 0 {
		t.Errorf("%+v", r)
	}
	a.as("operator", "POST", many, `{"action":"purge"}`, 403)
	a.as("operator", "POST", many, `{"action":"explode"}`, 400)
	if r := into[admin.BulkResult](t, a.as("blue", "POST", many, `{"action":"cancel"}`, 200)); r.Matched != 0 {
		t.Errorf("%+v", r)
	}
	if r := into[admin.BulkResult](t, a.as("operator", "POST", many, `{"action":"cancel","reason":"enough"}`,
		200)); r.Done !=
		3 || r.Cursor != "" {
		t.Errorf("%+v", r)
	}
	if r := into[admin.BulkResult](t, a.as("admin", "POST", many+"&state=cancelled", `{"action":"purge"}`,
		200)); r.Done !=
		3 {
		t.Errorf("%+v", r)
	}

	talk := a.submit(`{"kind":"talks","input":3}`)
	a.until(talk, "completed")
	if tr := into[transcript](t, a.as("viewer", "GET", talk+"/transcript", "", 200)); tr.Text !=
		"word 0 word 1 word 2 " || len(tr.Frames) != 4 || tr.Position == "" {
		t.Errorf("%+v", tr)
	}
	ask := a.submit(`{"kind":"asks"}`)
	a.until(ask, "suspended")
	page := into[approvalPage](t, a.as("viewer", "GET", "/v1/approvals?kind=asks", "", 200))
	if len(page.Items) != 1 || page.Items[0].ID.String() != ask[len("/v1/executions/"):] ||
		len(page.Items[0].Waitpoints) != 1 || page.Items[0].Name != "approval" {
		t.Errorf("%+v", page)
	}
	if page := into[approvalPage](t, a.as("blue", "GET", "/v1/approvals", "", 200)); len(page.Items) != 0 {
		t.Errorf("%+v", page)
	}
	a.questions()
	a.as("operator", "POST", "/v1/lanes/side:set", `{"state":"paused"}`, 204)
	a.as("operator", "POST", "/v1/lanes/side:set", `{"state":"asleep"}`, 400)
	a.as("blue", "POST", "/v1/lanes/side:set", `{"state":"paused","namespace":"default"}`, 403)

	seen := make(chan struct{})
	var submitting conc.WaitGroup
	submitting.Go(func() {
		for again := time.NewTicker(100 * time.Millisecond); ; { // what comes before anybody asked is not recorded
			select {
			case <-again.C:
				a.submit(`{"kind":"echo","input":7,"tags":{"test.feed":"1"}}`)
			case <-seen:
				again.Stop()
				return
			}
		}
	})
	all, _ := a.follow("/v1/events?leases=true&signals=true&tag=test.feed=1", nil, func(e sse) bool {
		return e.name == "end"
	})
	close(seen)
	submitting.Wait()
	if last := all[len(all)-1]; last.name != "end" || last.data.State != "completed" || all[0].id == "" {
		t.Errorf("%+v", all)
	}
	again, _ := a.follow("/v1/events?tag=test.feed=1&after="+all[0].id, nil, func(e sse) bool {
		return e.name == "end"
	})
	if len(again) == 0 {
		t.Error("nothing after the first event")
	}
	workers := into[workerList](t, a.as("viewer", "GET", "/v1/workers", "", 200))
	a.as("blue", "POST", "/v1/workers/"+workers.Items[0].Instance+":mark-dead", `{}`, 403)
	a.as("operator", "POST", "/v1/workers/"+workers.Items[0].Instance+":mark-dead", `{"reason":"test"}`, 200)
	a.as("operator", "POST", "/v1/workers/nobody:mark-dead", `{}`, 404)
}
