package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

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
