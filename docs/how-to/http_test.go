package howto_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// The commands of http.md are one session, and do what the page says.
func TestHTTPSession(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("the session of http.md needs %s", tool)
		}
	}
	type topic struct {
		Topic string `json:"topic"`
	}
	ctx, c := start(t, runtime.Config{},
		handler.Bind(handler.Define[topic, string]("write-article"),
			func(ctx context.Context, t *handler.Task, in topic) (string, error) {
				return "all about " + in.Topic, t.Frame(ctx, "word", in.Topic)
			}),
		handler.Bind(handler.Define[string, string]("release"),
			func(ctx context.Context, t *handler.Task, _ string) (string, error) {
				return handler.Await[string](ctx, t, "approval")
			}),
		handler.Bind(handler.Define[string, string]("chat"),
			func(ctx context.Context, t *handler.Task, name string) (string, error) {
				text, err := handler.Receive[string](ctx, t, "user")
				return name + " said " + text, err
			}))
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open, Logger: quiet})
	must(t, err)
	server := httptest.NewServer(api)
	defer server.Close()
	text, err := os.ReadFile("http.md")
	must(t, err)
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		script.WriteString(block[1] + "echo; echo ---\n")
	}
	command := exec.CommandContext(ctx, "bash", "-c", script.String())
	command.Env = append(os.Environ(), "API="+server.URL)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), `{"number":1,"waiting":1,"duplicate":false}`) {
		t.Errorf("no message was sent: %s", out)
	}
	parts := strings.Split(string(out), "---\n")
	for i, want := range []string{"", `"duplicate":false`, `"text":"tides"`, `"access_token":`,
		`"access_token":`, "tides", `[{"by":"ann","text":"hello"}]`,
		`"output":{"value":"all about tides"}`, `"output":{"value":"ship it"}`, `"output":{"value":"Ann said hello"}`,
		`"sentence":"It ended completed`, `"field":"/prioritty"`} {
		if i >= len(parts) || !strings.Contains(parts[i], want) {
			t.Errorf("block %d: want %s in %q", i, want, parts[min(i, len(parts)-1)])
		}
	}
}

// Viewers see no payloads of the kinds that are not named.
func TestHTTPRedacts(t *testing.T) {
	secret := handler.Define[string, string]("open-account")
	ctx, c := start(t, runtime.Config{},
		handler.Bind(secret, func(_ context.Context, _ *handler.Task, in string) (string, error) { return in, nil }))
	authorize := func(*http.Request) (httpapi.Principal, error) {
		return httpapi.Principal{Name: "anna", Role: httpapi.Viewer}, nil
	}
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: authorize,
		Redact: func(r httpapi.Redaction) []byte {
			if r.Reader.Role == httpapi.Admin || r.Kind == "write-article" {
				return r.Payload
			}
			return nil // withheld: the reader sees "[withheld]"
		}})
	must(t, err)
	x, err := client.Submit(ctx, c, secret, "DE89 3704")
	must(t, err)
	_, err = x.Result(ctx)
	must(t, err)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest("GET", "/v1/executions/"+x.ID().String()+"/input", nil))
	if got := strings.TrimSpace(w.Body.String()); got != `{"value":"[withheld]"}` {
		t.Error(got)
	}
}
