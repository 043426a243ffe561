package gemini_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/gemini"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
)

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "GOOGLE_") ||
			strings.HasPrefix(name, "GEMINI_") {
			os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func TestGemini(t *testing.T) {
	modeltest.Run(t, modeltest.Format{New: newModel, Write: write})
}

func newModel(t *testing.T, url string, client *http.Client) agent.Model {
	t.Helper()
	return configured(t, gemini.Config{Model: "gemini-3-test"}, url, client)
}

func configured(t *testing.T, cfg gemini.Config, url string, client *http.Client) *gemini.Model {
	t.Helper()
	cfg.Client = genai.ClientConfig{APIKey: modeltest.Key, HTTPClient: client,
		HTTPOptions: genai.HTTPOptions{BaseURL: url}}
	model, err := gemini.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// content is an event with a part, and the reason to stop as JSON.
func content(part, finish string) string {
	if finish != "" {
		finish = `,"finishReason":"` + finish + `"`
	}
	return fmt.Sprintf(
		`{"candidates":[{"content":{"parts":[%s],"role":"model"},"index":0%s}],"modelVersion":%q,"responseId":%q}`,
		part, finish, modeltest.Model, modeltest.ID)
}

// sse writes an event, with the ends of lines that the service has.
func sse(w io.Writer, event string) { fmt.Fprintf(w, "data: %s\r\n\r\n", event) }

// write writes an answer. A call comes whole, and a signature with the first call or text behind a thought.
func write(w io.Writer, a modeltest.Answer) {
	signature := ""
	var calls []modeltest.Call
	for _, p := range a.Pieces {
		switch {
		case p.Call != nil && p.Call.Index < len(calls):
			calls[p.Call.Index].Arguments += p.Call.Arguments
		case p.Call != nil:
			calls = append(calls, *p.Call)
		case p.Reasoning != "":
			sse(w, content(fmt.Sprintf(`{"text":%s,"thought":true}`, modeltest.Quote(p.Reasoning)), ""))
			signature = `,"thoughtSignature":"` + modeltest.Signature + `"`
		default:
			sse(w, content(fmt.Sprintf(`{"text":%s%s}`, modeltest.Quote(p.Text), signature), ""))
			signature = ""
		}
	}
	for _, c := range calls {
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		sse(w, content(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}%s}`, c.ID, c.Name, c.Arguments,
			signature), ""))
		signature = ""
	}
	if a.Overloaded {
		sse(w, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`)
	}
	if a.Stop == "" {
		return
	}
	finish := map[agent.StopReason]string{agent.StopEnd: "STOP", agent.StopTools: "STOP",
		agent.StopLength: "MAX_TOKENS", agent.StopRefusal: "SAFETY"}[a.Stop]
	sse(w, strings.TrimSuffix(content("", finish), "}")+fmt.Sprintf(
		`,"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,`+
			`"thoughtsTokenCount":%d}}`,
		a.Usage.Input, a.Usage.CacheRead, a.Usage.Output-a.Usage.Reasoning, a.Usage.Reasoning))
}
