package anthropic_test

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
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
)

const (
	key   = modeltest.Key
	noKey = "none" // asks serve for a model without a key
)

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "ANTHROPIC_") {
			os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// serve starts a service and returns a model of it.
func serve(t *testing.T, cfg anthropic.Config, answer http.HandlerFunc) *anthropic.Model {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	cfg.Model, cfg.BaseURL, cfg.HTTPClient = "test-model", server.URL, server.Client()
	cfg.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	switch cfg.APIKey {
	case "":
		cfg.APIKey = key
	case noKey:
		cfg.APIKey = ""
	}
	model, err := anthropic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// events answers with a stream of events, whose names are their types.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		fmt.Fprint(w, wired(data...))
	}
}

// wired is a stream of events.
func wired(data ...string) string {
	var stream strings.Builder
	for _, d := range data {
		name, _, _ := strings.Cut(strings.TrimPrefix(d, `{"type":"`), `"`)
		fmt.Fprintf(&stream, "event: %s\ndata: %s\n\n", name, d)
	}
	return stream.String()
}

// begin reads the request and starts the stream.
func begin(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
}

// The events of the documented format.
const (
	started = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"test-model-2026","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":7,"cache_read_input_tokens":100,"output_tokens":1,"service_tier":"standard"}}}`
	ping    = `{"type":"ping"}`
	stopped = `{"type":"message_stop"}`
)

func block(index int, content string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, content)
}

func textBlock(index int) string { return block(index, `{"type":"text","text":"","citations":null}`) }

func toolBlock(index int, id, name string) string {
	return block(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name))
}

func delta(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func text(index int, s string) string {
	return delta(index, fmt.Sprintf(`{"type":"text_delta","text":%q}`, s))
}

func input(index int, s string) string {
	return delta(index, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, s))
}

func end(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func because(reason string) string {
	return fmt.Sprintf(
		`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15,"output_tokens_details":{"thinking_tokens":6}}}`,
		reason)
}

// says are the events of an answer of one text.
func says(s string) []string {
	return []string{started, textBlock(0), ping, text(0, s), end(0), because("end_turn"), stopped}
}

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
func ask(t *testing.T, model *anthropic.Model) (agent.Response, heard) {
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
func fails(t *testing.T, model *anthropic.Model) error {
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
