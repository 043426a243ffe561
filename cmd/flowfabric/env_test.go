package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// servers are what every command is run against.
var servers = map[string]func(t *testing.T) string{
	"embedded": func(t *testing.T) string { return testserver.Embedded(t) },
	"redis":    func(t *testing.T) string { return testserver.Redis(t) },
	"valkey":   func(t *testing.T) string { return testserver.Valkey(t) },
}

// tokenKey is a token key that follows from its kid.
func testKey(kid string) string {
	sum := sha256.Sum256([]byte(kid))
	return kid + ":" + hex.EncodeToString(sum[:])
}

// env is a small deployment with executions in many states, in which nothing moves by itself: its worker has stopped.
type env struct {
	*testing.T
	ctx    context.Context
	url    string
	engine *engine.Engine
	client *client.Client
	token  string            // opens the waitpoint of <asking>
	names  map[string]string // what commands say → what it is
}

var (
	echo   = handler.Define[map[string]any, map[string]any]("echo", flowfabric.Retries(0))
	broken = handler.Define[map[string]any, map[string]any]("broken", flowfabric.Retries(0))
	ask    = handler.Define[map[string]any, suspend.Answer]("ask", flowfabric.Retries(0))
)

// newEnv boots a store of four partitions and fills it.
func newEnv(t *testing.T, url string) *env {
	t.Helper()
	t.Setenv("FLOWFABRIC_URL", url)
	t.Setenv("FLOWFABRIC_TOKEN_KEYS", testKey("k1")+","+testKey("k2"))
	t.Setenv("FLOWFABRIC_BY", "tester")
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	w := &env{T: t, ctx: ctx, url: url, names: map[string]string{}}
	var err error
	if w.client, err = client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
		Partitions: 4, Logger: quiet, Creator: "tester"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	if w.engine, err = engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.engine.Close)
	w.work()
	w.wait("queued", "report", flowfabric.Priority(5), flowfabric.Tags(map[string]string{"team.region": "eu"}))
	w.wait("later", "report", flowfabric.Delay(24*time.Hour))
	w.wait("batch", "report", flowfabric.Lane("batch"))
	w.hold()
	return w
}

// wait submits what nobody runs.
func (w *env) wait(name, kind string, opts ...client.SubmitOption) {
	w.Helper()
	x, err := client.Submit(w.ctx, w.client, handler.Define[map[string]any, map[string]any](kind),
		map[string]any{"n": 1}, append(opts, flowfabric.IdempotencyKey(name))...)
	must.No(w, err)
	w.names[name] = x.ID().String()
}

// work runs a worker until three executions are where they should be: done, failed and asking.
func (w *env) work() {
	w.Helper()
	worker, err := runtime.New(runtime.Config{URL: w.url, Instance: "w1", Worker: "pool",
		Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(echo, func(ctx context.Context, t *handler.Task, in map[string]any) (map[string]any, error) {
			t.Logger().Info("rhymes\n\x1b[31m", "words", 2, "with", "the sea")
			t.Logger().Warn("slow disk", "path", "/data")
			if err := errors.Join(t.Progress(ctx, 50, "half"), t.Frame(ctx, "token", "hello"),
				t.Summary(ctx, map[string]any{"words": 2}), t.Frame(ctx, "token", "\x1b[31mworld")); err != nil {
				return nil, err
			}
			return in, nil
		}),
		handler.Bind(broken, func(context.Context, *handler.Task, map[string]any) (map[string]any, error) {
			return nil, handler.Permanent(errors.New("disk full"))
		}),
		handler.Bind(ask, func(ctx context.Context, t *handler.Task, _ map[string]any) (suspend.Answer, error) {
			token, err := t.Pending(ctx, "editor", time.Hour)
			if err != nil {
				return suspend.Answer{}, err
			}
			w.token = token.Reveal()
			return handler.Await[suspend.Answer](ctx, t, "editor", suspend.Within(48*time.Hour),
				suspend.Because(suspend.ReasonApproval))
		}))
	must.No(w, err)
	ctx, stop := context.WithCancel(w.ctx)
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })
	for _, name := range []string{"done", "failed"} {
		kind := map[string]*handler.Definition[map[string]any, map[string]any]{"done": echo, "failed": broken}[name]
		x, err := client.Submit(w.ctx, w.client, kind, map[string]any{"text": "tides"}, flowfabric.IdempotencyKey(name))
		must.No(w, err)
		w.names[name] = x.ID().String()
		if _, err := x.Result(w.ctx); (err == nil) != (name == "done") {
			w.Fatal(err)
		}
	}
	x, err := client.Submit(w.ctx, w.client, ask, map[string]any{}, flowfabric.IdempotencyKey("asking"))
	must.No(w, err)
	w.names["asking"] = x.ID().String()
	if _, err := x.AwaitSuspension(w.ctx); err != nil {
		w.Fatal(err)
	}
}

// hold claims one execution and keeps it.
func (w *env) hold() {
	w.Helper()
	w.wait("held", "held")
	id, err := flowfabric.ParseExecutionID(w.names["held"])
	must.No(w, err)
	request := engine.ClaimRequest{Partition: id.Partition(), Session: engine.NewSessionID("w2"), Number: 1,
		TTL: time.Hour, Max: 1}
	table, err := w.engine.ClaimNext(w.ctx, request)
	must.No(w, err)
	for _, r := range table.Routes {
		if r.Kind == "held" {
			if request.Subscription, err = w.engine.SetSubscription(w.ctx, id.Partition(),
				engine.Subscription{Classes: []uint64{r.ID}}); err != nil {
				w.Fatal(err)
			}
		}
	}
	claimed, err := w.engine.ClaimNext(w.ctx, request)
	if err != nil || len(claimed.Claims) != 1 {
		w.Fatalf("%+v, %v", claimed, err)
	}
}

// run executes one command line, for an hour at most if it says nothing else. A word may be quoted with ', and <name>
// in it is the id of that execution.
func (w *env) run(line, stdin string) (code int, stdout, stderr string) {
	w.Helper()
	args := words(w.Fatalf, line)
	for i, arg := range args {
		for name, id := range w.names {
			arg = strings.ReplaceAll(arg, "<"+name+">", id)
		}
		args[i] = strings.ReplaceAll(arg, "<token>", w.token)
	}
	if !strings.Contains(line, "--timeout") {
		args = append(args, "--timeout=1h")
	}
	var out, errOut bytes.Buffer
	code = run(w.ctx, args, strings.NewReader(stdin), &out, &errOut)
	return code, out.String(), errOut.String()
}

// words splits a line as a shell would.
func words(fatalf func(string, ...any), line string) (args []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var word strings.Builder
		for line != "" && line[0] != ' ' {
			if line[0] != '\'' {
				word.WriteByte(line[0])
				line = line[1:]
				continue
			}
			quoted, rest, ok := strings.Cut(line[1:], "'")
			if !ok {
				fatalf("unbalanced quotes: %s", line)
			}
			word.WriteString(quoted)
			line = rest
		}
		args = append(args, word.String())
	}
	return args
}

// What differs from run to run, and what stands for it. The replacements keep their width where columns depend on it.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`~[0-9a-f]{12}`), "~<session>"},
	{regexp.MustCompile(`\d{13,}-\d+`), "<cursor>"},
	{regexp.MustCompile(`("a\d+z)\d{13,}`), "$1<ms>"},
	{regexp.MustCompile(`ffl\d\.[\w-]+`), "<cursor>"},
	{regexp.MustCompile(`("left_ms":)\d+`), "$1<ms>"},
	{regexp.MustCompile(`\b1[78]\d{11}\b`), "<ms>"},
	{regexp.MustCompile(`\((in )?\d[\dhmsµ.]*( ago)?\)`), "(${1}<span>${2})"},
	// says so from a second after the worker's end
	{regexp.MustCompile(` But the partition's tick is overdue, [^"\n]*`), ""},
	{regexp.MustCompile(`"(took|lag|oldest)_ms":\d+`), `"${1}_ms":<n>`},
	{regexp.MustCompile(`from cli [\w.-]+`), "from cli <host>"},
	{regexp.MustCompile(`"from":"cli [\w.-]+"`), `"from":"cli <host>"`},
	{regexp.MustCompile(`"pid":\d+`), `"pid":<n>`},
	{regexp.MustCompile(`"host":"[^"]*"`), `"host":<host>`},
	{regexp.MustCompile(`"library_revision":\d+`), `"library_revision":<n>`},
	{regexp.MustCompile(`"partitions_overdue":\d+`), `"partitions_overdue":<n>`},
	{regexp.MustCompile(`\d+ overdue, 0 frozen, lag \d+ ms`), "<n> overdue, 0 frozen, lag <n> ms"},
	{regexp.MustCompile(`"(ended|failed)_per_s":[0-9.]+`), `"${1}_per_s":<n>`},
	{regexp.MustCompile(`[0-9.]+ (ended|failed)/s`), `<n> ${1}/s`},
	{regexp.MustCompile(`  +([0-9.]+m?s|-)( +)\d\.\d( +)\d\.\d `), "  <span>  <n>  <n> "},
	{regexp.MustCompile(`"token_fingerprint":"[0-9a-f]{16}"`), `"token_fingerprint":"<fingerprint>"`},
}

var anyUUID = regexp.MustCompile(`(\d+-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// normal takes out of an output what differs from run to run.
func (w *env) normal(text string) string {
	for name, id := range w.names {
		text = strings.ReplaceAll(text, id, "<"+name+">")
	}
	seen := map[string]string{}
	text = anyUUID.ReplaceAllStringFunc(text, func(found string) string {
		if seen[found] == "" {
			seen[found] = fmt.Sprintf("<uuid %d>", len(seen)+1)
		}
		return seen[found]
	})
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return text
}
