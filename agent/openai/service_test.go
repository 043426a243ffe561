package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

const (
	key   = modeltest.Key
	noKey = "none" // asks serve for a model without a key
)

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OPENAI_") {
			os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// serve starts a service and returns a model of it.
func serve(t *testing.T, cfg openai.Config, answer http.HandlerFunc) *openai.Model {
	t.Helper()
	return serveWith(t, openai.New, cfg, answer)
}

// serveWith starts a service and makes a model of it.
func serveWith(t *testing.T, make func(openai.Config) (*openai.Model, error), cfg openai.Config,
	answer http.HandlerFunc) *openai.Model {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	cfg.Model, cfg.BaseURL, cfg.HTTPClient = "test-model", server.URL+"/v1", server.Client()
	switch cfg.APIKey {
	case "":
		cfg.APIKey = key
	case noKey:
		cfg.APIKey = ""
	}
	model, err := make(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// events answers with a stream of events.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		for _, d := range data {
			fmt.Fprintf(w, "data: %s\n\n", d)
		}
	}
}

// begin reads the request and starts the stream.
func begin(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
}

// chunk is an event with one choice.
func chunk(delta, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return fmt.Sprintf(
		`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"test-model-2026","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null}`,
		delta, finish)
}

func text(s string) string { return chunk(fmt.Sprintf(`{"content":%q}`, s), "null") }

const done = "[DONE]"
