package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/agent"
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

var question = agent.Request{Messages: []agent.Message{{Role: agent.User, Parts: agent.Text("hello")}}}

// heard collects deltas.
type heard struct {
	text, reasoning []string
	calls           []agent.Delta
}

func (h *heard) delta(d agent.Delta) error {
	if d.Text != "" {
		h.text = append(h.text, d.Text)
	}
	if d.Reasoning != "" {
		h.reasoning = append(h.reasoning, d.Reasoning)
	}
	if d.Call != nil {
		h.calls = append(h.calls, d)
	}
	return nil
}

// ask asks the question and fails the test on an error.
func ask(t *testing.T, model *openai.Model) (agent.Response, heard) {
	t.Helper()
	var h heard
	response, err := model.Generate(t.Context(), question, h.delta)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(h.text, ""), response.Message.Text(); got != want {
		t.Errorf("the deltas say %q, and the message %q", got, want)
	}
	modeltest.CheckCalls(t, h.calls, response.Message.Calls)
	return response, h
}

// fails asks the question and returns the error.
func fails(t *testing.T, model *openai.Model) error {
	t.Helper()
	response, err := model.Generate(context.WithoutCancel(t.Context()), question, func(agent.Delta) error {
		return nil
	})
	if err == nil {
		t.Fatalf("the answer is %+v, want an error", response)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), key) {
		t.Errorf("the error shows the key: %v", err)
	}
	return err
}
