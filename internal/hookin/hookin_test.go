package hookin

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "a secret that is long enough for all"

var (
	quiet     = slog.New(slog.DiscardHandler)
	whsec     = "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))
	tokenKeys = "k1:" + strings.Repeat("ab", 32)
	waits     = handler.Define[string, string]("wait")
)

func secretRef(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	must.No(t, os.WriteFile(name, []byte(text), 0o600))
	return "file:" + name
}

func mac(parts ...string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// signed is a request as its sender makes it.
func signed(scheme, id, body string) *http.Request {
	q := httptest.NewRequest(http.MethodPost, "/v1/hooks/"+scheme, strings.NewReader(body))
	at := strconv.FormatInt(time.Now().Unix(), 10)
	q.Header.Set("Content-Type", "application/json")
	switch scheme {
	case "stripe":
		q.Header.Set("Stripe-Signature", "t="+at+",v1="+hex.EncodeToString(mac(at, ".", body)))
	case "github":
		q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac(body)))
		q.Header.Set("X-GitHub-Delivery", id)
		q.Header.Set("X-GitHub-Event", "issues")
	case "slack":
		q.Header.Set("X-Slack-Request-Timestamp", at)
		q.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac("v0:", at, ":", body)))
	case "standard":
		q.Header.Set("webhook-id", id)
		q.Header.Set("webhook-timestamp", at)
		q.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac(id, ".", at, ".", body)))
	}
	return q
}

type env struct {
	t   *testing.T
	ctx context.Context
	url string
	c   *client.Client
	mux *http.ServeMux
}

// newEnv is a store and the hooks of a configuration, each named as its scheme.
func newEnv(t *testing.T, rules ...Rule) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	e := &env{t: t, ctx: ctx, url: testserver.Redis(t), mux: http.NewServeMux()}
	c, err := client.Connect(ctx, client.Config{URL: e.url, TokenKeys: tokenKeys, Partitions: 2, Logger: quiet})
	must.No(t, err)
	t.Cleanup(c.Close)
	e.c = c
	config := map[string]Hook{}
	for _, scheme := range []string{"stripe", "github", "slack", "standard"} {
		text := secret
		if scheme == "standard" {
			text = whsec
		}
		config[scheme] = Hook{Scheme: scheme, Secrets: []string{secretRef(t, text)}, Rules: rules}
	}
	hooks, err := Read(config, "default")
	must.No(t, err)
	e.mux.Handle("POST /v1/hooks/{name}", &Handler{Hooks: hooks, Client: c, Logger: quiet})
	return e
}

func (e *env) send(q *http.Request) (int, answer) {
	e.t.Helper()
	w := httptest.NewRecorder()
	e.mux.ServeHTTP(w, q.WithContext(e.ctx))
	var a answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		e.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Code, a
}

func (e *env) want(q *http.Request, code int, status, detail string) answer {
	e.t.Helper()
	got, a := e.send(q)
	if got != code || a.Status != status || !strings.Contains(a.Detail, detail) {
		e.t.Errorf("%d %+v, want %d %s %q", got, a, code, status, detail)
	}
	return a
}

// work runs handlers that wait for signals and messages.
func (e *env) work() {
	worker, err := runtime.New(runtime.Config{URL: e.url, TokenKeys: tokenKeys, Logger: quiet, DrainTimeout: -1},
		handler.Bind(waits, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			if in == "message" {
				m, err := handler.Receive[json.RawMessage](ctx, t, "inbox")
				return string(m), err
			}
			m, err := handler.Await[json.RawMessage](ctx, t, "paid", suspend.At("paid"))
			return string(m), err
		}))
	must.No(e.t, err)
	ctx, cancel := context.WithCancel(e.ctx)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	e.t.Cleanup(func() { cancel(); running.Wait() })
}

func (e *env) wait(in string, opts ...client.SubmitOption) *client.Execution[string] {
	e.t.Helper()
	x, err := client.Submit(e.ctx, e.c, waits, in, opts...)
	must.No(e.t, err)
	return x
}

func (e *env) suspended(x *client.Execution[string]) {
	e.t.Helper()
	testwait.Until(e.t, "it is suspended", func() bool {
		s, err := x.Get(e.ctx)
		must.No(e.t, err)
		return s.State.Public == flowfabric.Suspended
	})
}

func (e *env) count(kind string) int {
	e.t.Helper()
	page, err := admin.New(e.c).ListPage(e.ctx, admin.Filter{Kind: kind}, "", 100)
	must.No(e.t, err)
	return len(page.Items)
}

// Each scheme leads to a submission, once for each event, also when it is delivered again in other bytes.
func TestSubmit(t *testing.T) {
	e := newEnv(t, Rule{Event: "ignored.here", Submit: &Submit{Kind: "none"}},
		Rule{Event: "*", Input: "/data", Submit: &Submit{Kind: "note", Priority: 7,
			Tags: map[string]string{"app.customer": "/data/customer", "app.from": "hook"}}})
	body := func(id, more string) string {
		return `{"id":"` + id + `","event_id":"` + id + `","type":"invoice.paid","data":{"customer":4711` + more + `}}`
	}
	for i, scheme := range []string{"stripe", "github", "slack", "standard"} {
		a := e.want(signed(scheme, "evt_1", body("evt_1", "")), 200, "accepted", "")
		again := e.want(signed(scheme, "evt_1", body("evt_1", "")), 200, "duplicate", "")
		if again.Execution != a.Execution || a.Execution == "" {
			t.Errorf("%s: %+v, %+v", scheme, a, again)
		}
		e.want(signed(scheme, "evt_1", body("evt_1", `,"retry":1`)), 200, "duplicate", "")
		if got := e.count("note"); got != i+1 {
			t.Errorf("%s: %d executions, want %d", scheme, got, i+1)
		}
		id, err := flowfabric.ParseExecutionID(a.Execution)
		must.No(t, err)
		s, err := e.c.Execution(id).Get(e.ctx)
		must.No(t, err)
		input, err := e.c.Execution(id).Input(e.ctx)
		must.No(t, err)
		if s.Tags["app.customer"] != "4711" || s.Tags["app.from"] != "hook" || s.Creator != "webhook:"+scheme ||
			s.Priority != 7 || s.Namespace != "default" || string(input) != `{"customer":4711}` {
			t.Errorf("%+v, %s", s, input)
		}
	}
	e.want(signed("standard", "evt_2", body("evt_2", "")), 200, "accepted", "")
}

func TestSignal(t *testing.T) {
	e := newEnv(t, Rule{Event: "paid", Signal: &Signal{Execution: "/execution", Waitpoint: "paid", Name: "paid"}},
		Rule{Event: "token", Signal: &Signal{Token: "/token"}})
	e.work()
	x := e.wait("signal")
	e.suspended(x)
	body := `{"type":"paid","execution":"` + x.ID().String() + `"}`
	e.want(signed("standard", "evt_1", body), 200, "accepted", "")
	e.want(signed("standard", "evt_1", body), 200, "duplicate", "")
	if result, err := x.Result(e.ctx); err != nil || result != body {
		t.Errorf("%s, %v", result, err)
	}
	e.want(signed("standard", "evt_2", body), 200, "late", "")
	e.want(signed("standard", "evt_3", `{"type":"token","token":"nonsense"}`), 422, "failed", "")
	e.want(signed("standard", "evt_4", `{"type":"paid","execution":"nonsense"}`), 422, "failed", "does not fit")
	e.want(signed("standard", "evt_5", `{"type":"paid"}`), 422, "failed", "the body has nothing at /execution")
	other := e.wait("signal", flowfabric.Namespace("other"))
	e.want(signed("standard", "evt_6", `{"type":"paid","execution":"`+other.ID().String()+`"}`), 422, "failed",
		"not in the namespace of the hook")
}

func TestMessage(t *testing.T) {
	e := newEnv(t, Rule{Message: &Message{Execution: "/to/0/id", Mailbox: "inbox"}, Input: "/what"})
	x := e.wait("message")
	body := `{"to":[{"id":"` + x.ID().String() + `"}],"what":{"n":1}}`
	for _, status := range []string{"accepted", "duplicate", "duplicate"} {
		e.want(signed("github", "d1", body), 200, status, "")
	}
	m, err := x.Messages(e.ctx, 0)
	if err != nil || m.Total != 1 || string(m.Messages[0].Payload) != `{"n":1}` ||
		m.Messages[0].By != "webhook:github" {
		t.Errorf("%+v, %v", m, err)
	}
	e.work()
	if result, err := x.Result(e.ctx); err != nil || result != `{"n":1}` {
		t.Errorf("%s, %v", result, err)
	}
}

// Nothing is done for a request that is not signed, or that makes no sense.
func TestRefusals(t *testing.T) {
	e := newEnv(t, Rule{Event: "issues.opened", Submit: &Submit{Kind: "note"}},
		Rule{Event: "/deploy", Submit: &Submit{Kind: "note"}}, Rule{Event: "button", Submit: &Submit{Kind: "note"}})
	wrong := signed("stripe", "", `{"id":"evt_1","type":"x"}`)
	wrong.Body = http.NoBody
	e.want(wrong, 401, "refused", "the signature is missing, wrong or too old")
	unsigned := signed("github", "d1", "{}")
	unsigned.Header.Del("X-Hub-Signature-256")
	e.want(unsigned, 401, "refused", "the signature is missing, wrong or too old")
	e.want(httptest.NewRequest(http.MethodPost, "/v1/hooks/none", nil), 404, "refused", "no such hook")
	e.want(signed("github", "d1", "Hello, World!"), 400, "refused", "not JSON")
	e.want(signed("stripe", "", `{"type":"x"}`), 400, "refused", "no id")
	e.want(signed("stripe", "", `"`+strings.Repeat("x", 1<<20)+`"`), 413, "refused", "1048576 bytes")
	e.want(signed("github", "d2", `{"action":"closed"}`), 200, "ignored", "")
	if n := e.count("note"); n != 0 {
		t.Errorf("%d executions", n)
	}
	e.want(signed("github", "d3", `{"action":"opened"}`), 200, "accepted", "")
	a := e.want(signed("slack", "", `{"type":"url_verification","challenge":"c1"}`), 200, "accepted", "")
	if a.Challenge != "c1" {
		t.Errorf("%+v", a)
	}
	for _, form := range []url.Values{{"command": {"/deploy"}, "text": {"now"}}, {"payload": {`{"type":"button"}`}}} {
		q := signed("slack", "", form.Encode())
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		e.want(q, 200, "accepted", "")
	}
	if n := e.count("note"); n != 3 {
		t.Errorf("%d executions", n)
	}
}

// A store that is away is no refusal: the sender comes again.
func TestStoreIsAway(t *testing.T) {
	e := newEnv(t, Rule{Submit: &Submit{Kind: "note"}})
	e.c.Close()
	e.want(signed("github", "d1", "{}"), 503, "failed", "try again later")
}

func TestConfiguration(t *testing.T) {
	right := func() Hook {
		return Hook{Scheme: "standard", Secrets: []string{secretRef(t, whsec)},
			Rules: []Rule{{Submit: &Submit{Kind: "a"}}}}
	}
	if _, err := Read(map[string]Hook{"a": right()}, "default"); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Hook){
		`scheme is "none", want one of github, slack, standard, stripe`: func(h *Hook) { h.Scheme = "none" },
		"secrets has 0 entries": func(h *Hook) { h.Secrets = nil },
		"tolerance_ms has no place here": func(h *Hook) {
			h.Scheme, h.Tolerance = "github", flowfabric.Millis(time.Minute)
		},
		"tolerance_ms is 7200000, want 1000..3600000": func(h *Hook) { h.Tolerance = flowfabric.Millis(2 * time.Hour) },
		"namespace":                 func(h *Hook) { h.Namespace = "{}" },
		"rules has 0 entries":       func(h *Hook) { h.Rules = nil },
		"rules[0].input is \"data":  func(h *Hook) { h.Rules[0].Input = "data" },
		"rules[0].submit, signal":   func(h *Hook) { h.Rules[0].Submit = nil },
		"rules[0].submit.kind":      func(h *Hook) { h.Rules[0].Submit.Kind = "" },
		"rules[0].submit.lane":      func(h *Hook) { h.Rules[0].Submit.Lane = "{" },
		"rules[0].submit.priority":  func(h *Hook) { h.Rules[0].Submit.Priority = -1 },
		"rules[0].submit.tags":      func(h *Hook) { h.Rules[0].Submit.Tags = map[string]string{"x": "y"} },
		"rules[0].submit.tags.a.b":  func(h *Hook) { h.Rules[0].Submit.Tags = map[string]string{"a.b": "/~"} },
		"rules[0].signal wants":     func(h *Hook) { h.Rules[0] = Rule{Signal: &Signal{}} },
		"rules[0].signal.waitpoint": func(h *Hook) { h.Rules[0] = Rule{Signal: &Signal{Execution: "/a"}} },
		"rules[0].message.mailbox":  func(h *Hook) { h.Rules[0] = Rule{Message: &Message{Execution: "/a"}} },
	} {
		h := right()
		h.Rules = slices.Clone(h.Rules)
		change(&h)
		_, err := Read(map[string]Hook{"a": h}, "default")
		if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), "in.a: "+want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A pointer of a configuration never leads to a panic, nor out of the body.
func FuzzPlace(f *testing.F) {
	f.Add(`{"a":[1,{"b":"c"}]}`, "/a/1/b")
	f.Add(`[null,""]`, "/0")
	f.Add(`{"":{"/":1}}`, "//~1")
	f.Fuzz(func(t *testing.T, body, pointer string) {
		if !json.Valid([]byte(body)) || place("p", pointer, false) != nil {
			return
		}
		e := &event{body: json.RawMessage(body)}
		value, err := e.value(pointer)
		if err != nil || !strings.HasPrefix(pointer, "/") {
			return
		}
		part, err := e.at(pointer)
		if err != nil || !strings.Contains(body, string(part)) {
			t.Fatal(fmt.Errorf("%q is no part: %w", part, err))
		}
		var text string
		if json.Unmarshal(part, &text) == nil && text != value {
			t.Fatalf("%q, want %q", value, text)
		}
	})
}
