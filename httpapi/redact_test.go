package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/failed"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

const sesame = "open-sesame-4711"

// sayings are what programs say with the secret in it: "tells" in all places, "fails-with", "cancels-with" in how it
// ends, "hangs-with" while it runs.
func (a *api) sayings() {
	t := a.t
	say := func(ctx context.Context, t *handler.Task) error {
		_, err := handler.Step(ctx, t, "look", func(context.Context) (string, error) { return sesame, nil })
		t.Logger().Info("said "+sesame, "to", sesame)
		return errors.Join(err, t.Progress(ctx, 50, "at "+sesame), t.Frame(ctx, "token", "say "+sesame),
			t.FrameBytes(ctx, stream.Frame{Type: "item", Encoding: stream.JSON,
				Payload: []byte(`{"a":"` + sesame + `"}`)}),
			t.FrameBytes(ctx, stream.Frame{Type: "blob", Encoding: stream.Bytes, Payload: []byte(sesame)}),
			t.Live(ctx, "note", "now "+sesame, time.Minute), t.Summary(ctx, map[string]string{"said": sesame}),
			t.Flush(ctx))
	}
	free := make(chan struct{})
	kind := func(name string) handler.Definition[map[string]string, map[string]string] {
		return *handler.Define[map[string]string, map[string]string](name)
	}
	tells, fails, cancels, hangs := kind("tells"), kind("fails-with"), kind("cancels-with"), kind("hangs-with")
	w, err := runtime.New(runtime.Config{URL: a.store.URL(), Concurrency: 8, Namespaces: []string{"*"},
		Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(&tells,
			func(ctx context.Context, t *handler.Task, in map[string]string) (map[string]string, error) {
				if t.Attempt() == 1 {
					return nil, handler.RetryAfter(0, errors.New("no "+sesame))
				}
				return in, say(ctx, t)
			}),
		handler.Bind(&fails,
			func(ctx context.Context, t *handler.Task, _ map[string]string) (map[string]string, error) {
				if err := say(ctx, t); err != nil {
					return nil, err
				}
				_, err := handler.Step(ctx, t, "ink", func(context.Context) (bool, error) {
					return false, errors.New("no " + sesame)
				})
				return nil, handler.Permanent(err)
			}),
		handler.Bind(&cancels, func(context.Context, *handler.Task, map[string]string) (map[string]string, error) {
			return nil, handler.Cancel("no " + sesame)
		}),
		handler.Bind(&hangs,
			func(ctx context.Context, t *handler.Task, _ map[string]string) (map[string]string, error) {
				if err := say(ctx, t); err != nil {
					return nil, err
				}
				select { // a worker that stops waits for its handlers
				case <-free:
				case <-ctx.Done():
				}
				return nil, context.Cause(ctx)
			}))
	must.No(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("worker: %v", err)
		}
	})
	t.Cleanup(func() { close(free); stop(); running.Wait() })
}

// said makes an execution that has said the secret, in each of the ways; their paths.
func (a *api) said() (paths []string) {
	for _, x := range [][2]string{{"tells", "completed"}, {"fails-with", "failed"}, {"cancels-with", "cancelled"},
		{"hangs-with", "active"}} {
		kind, state := x[0], x[1]
		path := a.submit(`{"kind":"` + kind + `","lane":"default","input":{"word":"` + sesame + `"}}`)
		a.until(path, state)
		if state == "active" {
			testwait.Until(a.t, "it has said all", func() bool {
				return into[stream.Summary](a.t, a.as("viewer", "GET", path+"/summary", "", 200)).Version > 0
			})
			a.as("producer", "POST", path+"/messages", `{"mailbox":"user","payload":{"word":"`+sesame+`"}}`, 200)
			a.as("producer", "POST", path+"/messages",
				`{"mailbox":"user","base64":"`+base64.StdEncoding.EncodeToString([]byte(sesame))+`"}`, 200)
		}
		paths = append(paths, path)
	}
	return paths
}

// crawl calls every route that reads, in every way that it answers, and returns by operation what came. What follows
// more than an execution that has ended, as all but the last have, is cut after some time.
func crawl(t *testing.T, h http.Handler, executions []string) map[string][]byte {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	defer server.CloseClientConnections()
	found := map[string][]byte{}
	var mu sync.Mutex
	var calls conc.WaitGroup
	get := func(name, path string) {
		calls.Go(func() {
			ctx, cancel := testwait.Context(t, t.Context())
			defer cancel()
			follows := strings.HasPrefix(name, "follow") || strings.HasPrefix(name, "readStream")
			if follows && !slices.ContainsFunc(executions[:len(executions)-1], func(x string) bool {
				return strings.HasPrefix(path, x)
			}) {
				// timed: it does not end by itself; the streams of executions that have ended say what must be seen
				ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
			}
			q, _ := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
			q.Header.Set("Authorization", "Bearer "+secrets["admin"])
			answer, err := http.DefaultClient.Do(q)
			if err != nil {
				return // a long poll that has nothing
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode >= 500 && name != "readyz" {
				// the probe has a short time, too short for a slow machine
				body = append(body, " status 500"...)
			}
			mu.Lock()
			defer mu.Unlock()
			found[name] = append(found[name], body...)
		})
	}
	for _, r := range routes {
		if r.method != http.MethodGet {
			continue
		}
		if !strings.Contains(r.path, "executions/{id}") {
			get(r.name, strings.NewReplacer("{id}", "1-x", "{key}", "k").Replace(r.path))
			continue
		}
		for _, x := range executions {
			path := strings.Replace(r.path, "/v1/executions/{id}", x, 1)
			get(r.name, strings.ReplaceAll(path, "{key}", "look"))
			switch r.name {
			case "listFrames":
				get(r.name, path+"?attempt=2")
			case "readStream":
				for _, as := range []string{"events", "json", "text", "bytes"} {
					for _, how := range []string{"", "&offset=-1", "&live=long-poll&offset=-1", "&live=sse&offset=-1"} {
						get(r.name+" "+as, path+"?as="+as+how)
					}
				}
			}
		}
	}
	get("listExecutions", "/v1/executions?error="+sesame[:6])
	calls.Wait()
	http.DefaultClient.CloseIdleConnections()
	return found
}

// tells tells whether an answer has the secret, also in base64.
func tells(body []byte) bool {
	return bytes.Contains(body, []byte(sesame)) ||
		bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString([]byte(sesame))[:20]))
}

// speaking are the routes that show what programs said.
var speaking = []string{"getExecution", "listExecutions", "listSteps", "listMessages", "getInput", "getResult",
	"getHistory", "explain", "getSummary", "listFrames", "followExecution", "getTranscript",
	"listLogs", "followLogs", "readStream", "readStream events", "readStream json",
	"readStream text", "readStream bytes"}

// with is another handler over the same connection.
func (a *api) with(redact func(Redaction) []byte) *Handler {
	a.t.Helper()
	cfg := a.h.cfg
	cfg.Redact = redact
	h, err := New(cfg)
	must.No(a.t, err)
	a.t.Cleanup(h.Close)
	return h
}

// What a redactor replaces leaves over no route that reads, whatever the form; readers without it, who share the
// streams, and workers get the real thing.
func TestRedact(t *testing.T) {
	a := newAPI(t)
	a.sayings()
	paths := a.said()
	seen := map[string]Redaction{}
	var mu sync.Mutex
	hidden := a.with(func(r Redaction) []byte {
		mu.Lock()
		defer mu.Unlock()
		if seen[r.What] = r; len(r.Payload) == 0 {
			t.Errorf("nothing of %s is to be redacted", r.What)
		}
		for {
			i := bytes.Index(r.Payload, []byte(sesame))
			if i < 0 {
				return r.Payload
			}
			copy(r.Payload[i:], strings.Repeat("*", len(sesame))) // in place
		}
	})
	for name, body := range crawl(t, hidden, paths) {
		if tells(body) {
			t.Errorf("%s shows the secret: %s", name, body)
		}
		if bytes.Contains(body, []byte(" status 500")) {
			t.Errorf("%s: %s", name, body)
		}
		if name != "readStream bytes" && slices.Contains(speaking, name) && !bytes.Contains(body, []byte("***")) {
			t.Errorf("%s shows nothing: %s", name, body)
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got,
		[]string{"failure", "frame", "input", "log", "message", "progress", "result", "step", "summary"}) {
		t.Errorf("%q", got)
	}
	for what, r := range seen {
		if r.Namespace != "default" || r.Lane != "default" || r.Kind == "" || r.Execution.IsZero() ||
			r.Reader.Name != "the-admin" || r.Reader.Role != Admin {
			t.Errorf("%s: %+v", what, r)
		}
	}
	plain := crawl(t, a.h, paths)
	for _, name := range speaking {
		if !tells(plain[name]) {
			t.Errorf("%s does not show what is stored: %s", name, plain[name])
		}
	}
	a.server.Config.Handler = hidden
	left := into[executionPage](t, a.as("viewer", "GET", "/v1/executions?error="+sesame, "", 200))
	if len(left.Items) != 0 {
		t.Errorf("a filter finds what is not shown: %+v", left)
	}
	if left = into[executionPage](t, a.as("viewer", "GET", "/v1/executions?error=NO%20**", "", 200)); len(left.Items) !=
		1 {
		t.Errorf("a filter does not find what is shown: %+v", left)
	}
	group := into[apiv1.Failures](t, a.as("viewer", "GET", "/v1/failures", "", 200)).Items[0]
	if !strings.Contains(group.Shape, "***") || strings.Contains(group.Shape, "sesame") {
		t.Errorf("a group shows %q", group.Shape)
	}
	told := strings.Replace(group.Shape, strings.Repeat("*", len(sesame)), failed.Shape(sesame), 1)
	for shape, want := range map[string]int{group.Key: 1, group.Shape: 1, told: 0} {
		if left = into[executionPage](t, a.as("viewer", "GET", "/v1/executions?shape="+url.QueryEscape(shape), "",
			200)); len(left.Items) != want {
			t.Errorf("shape %s finds %+v", shape, left)
		}
	}
	a.as("operator", "POST", "/v1/executions:bulk?shape=open", `{"action":"hold","dry_run":true}`, 400)
	a.as("operator", "POST", "/v1/executions:bulk?error=open", `{"action":"hold","dry_run":true}`, 400)
	a.as("operator", "POST", "/v1/executions:bulk?kind=none", `{"action":"hold","dry_run":true}`, 200)
	token := into[streamTokenAnswer](t, a.as("viewer", "POST", paths[0]+"/stream-token", `{}`, 201)).AccessToken
	if g := a.as("", "GET", paths[0]+"/stream?access_token="+token, "", 200); tells(g.body) ||
		g.header.Get("ETag") != "" || g.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v", g.body, g.header)
	}
	if got := seen["frame"].Reader; got.Name != "stream" || got.Role != Viewer {
		t.Errorf("%+v", got)
	}
	token = into[streamTokenAnswer](t, a.as("operator", "POST", paths[0]+"/stream-token",
		`{"write":true,"name":"the-operator"}`, 201)).AccessToken
	delete(seen, "frame")
	if g := a.as("", "GET", paths[0]+"/stream?access_token="+token, "", 200); tells(g.body) {
		t.Errorf("%s", g.body)
	}
	if got := seen["frame"].Reader; got.Name != "stream" || got.Role != Viewer {
		t.Errorf("%+v", got)
	}
	work := a.remote("worker", "http-work")
	a.submit(`{"kind":"http-work","input":"` + sesame + `"}`)
	if g := a.as("worker", "POST", "/v1/workers/"+work.session+":claim", `{}`, 200); !tells(g.body) {
		t.Errorf("a worker gets %s", g.body)
	}
	ended := a.submit(`{"kind":"later","delay_ms":3600000}`)
	a.as("operator", "POST", ended+":cancel", `{"reason":"it was `+sesame+`"}`, 204)
	for _, path := range []string{ended, ended + "/result", ended + "/history", ended + "/why"} {
		if g := a.as("viewer", "GET", path, "", 200); !tells(g.body) {
			t.Errorf("what a person gave as the reason is hidden: %s", g.body)
		}
	}
}

// What a redactor withholds, or makes into something that is no JSON, leaves answers that are well formed.
func TestWithheld(t *testing.T) {
	a := newAPI(t)
	a.sayings()
	var path string
	for _, p := range a.said() {
		if into[flowfabric.Snapshot](t, a.as("viewer", "GET", p, "", 200)).Kind == "tells" {
			path = p
		}
	}
	a.as("operator", "PUT", "/v1/schedules/tells",
		`{"kind":"tells","every_ms":3600000,"input":{"a":"`+sesame+`"}}`, 200)
	for _, tc := range []struct {
		with, text, value string
		redact            func(Redaction) []byte
	}{
		{"nothing", withheld, `"[withheld]"`, func(Redaction) []byte { return nil }},
		{"no JSON", "<b>", `"\u003cb\u003e"`, func(Redaction) []byte { return []byte("<b>") }},
		{"an empty text", "", `""`, func(Redaction) []byte { return []byte{} }},
	} {
		t.Run(tc.with, func(t *testing.T) {
			h := a.with(tc.redact)
			a.server.Config.Handler = h
			stored := func(path string) []byte {
				w, q := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
				q.Header.Set("Authorization", "Bearer "+secrets["viewer"])
				h.ServeHTTP(w, q)
				return w.Body.Bytes()
			}
			if p := into[flowfabric.Payload](t, a.as("viewer", "GET", path+"/input", "", 200)); string(p) != tc.value {
				t.Errorf("%+v", p)
			}
			if r := into[result](t, a.as("viewer", "GET", path+"/result", "", 200)); string(*r.Output) !=
				tc.value {
				t.Errorf("%+v", r)
			}
			if s := into[stream.Summary](t, a.as("viewer", "GET", path+"/summary", "", 200)); string(s.Document) !=
				tc.value || s.Version == 0 {
				t.Errorf("%+v", s)
			}
			frames := into[framePage](t, a.as("viewer", "GET", path+"/frames?attempt=2", "", 200)).Items
			if len(frames) != 3 || string(frames[0].Payload) != tc.text || string(frames[1].Payload) != tc.text ||
				string(frames[2].Payload) != tc.text {
				t.Errorf("%+v", frames)
			}
			if x := into[flowfabric.Snapshot](t, a.as("viewer", "GET", path, "", 200)); x.Progress.Message != tc.text ||
				x.AttemptLog[0].Message != tc.text {
				t.Errorf("%+v", x)
			}
			if list := into[[]json.RawMessage](t, got{body: stored(path + "/stream?as=json")}); len(list) != 3 ||
				string(list[0]) != tc.value || string(list[1]) != tc.value {
				t.Errorf("%s", list)
			}
			if body := stored(path + "/stream?as=text"); string(body) != tc.text+tc.text {
				t.Errorf("%s", body)
			}
			if g := a.as("operator", "GET", "/v1/settings", "", 200); tells(g.body) ||
				!strings.Contains(string(g.body), "its input is withheld") {
				t.Errorf("%s", g.body)
			}
			if all, _ := a.follow(path+"/events", nil, nil); !strings.HasSuffix(names(all), "end") {
				t.Errorf("%s", names(all))
			}
		})
	}
}

// A redactor that panics lets nothing out: no answer, no rest of a stream, no log.
func TestRedactPanics(t *testing.T) {
	a := newAPI(t)
	a.sayings()
	paths := a.said()
	for _, when := range []string{"always", "later"} {
		calls := map[string]int{}
		var mu sync.Mutex
		h := a.with(func(r Redaction) []byte {
			mu.Lock()
			defer mu.Unlock()
			if calls[r.What]++; when == "always" || calls[r.What] > 1 {
				panic("cannot redact " + string(r.Payload))
			}
			return nil
		})
		for name, body := range crawl(t, h, paths) {
			if tells(body) {
				t.Errorf("%s shows the secret: %s", name, body)
			}
			if when == "always" && slices.Contains(speaking, name) && !bytes.Contains(body, []byte(" status 500")) &&
				!bytes.Contains(body, []byte("event: problem")) {
				t.Errorf("%s does not fail: %s", name, body)
			}
		}
	}
	if strings.Contains(a.logs.String(), sesame) || !strings.Contains(a.logs.String(), "Config.Redact panicked") {
		t.Errorf("the log: %.2000s", a.logs.String())
	}
}
