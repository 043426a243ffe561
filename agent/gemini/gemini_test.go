package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/gemini"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/handler"
)

func ignore(agent.Delta) error { return nil }

// serve starts a service and returns a model of it.
func serve(t *testing.T, cfg gemini.Config, answer http.HandlerFunc) *gemini.Model {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return configured(t, cfg, server.URL, server.Client())
}

// events answers with a stream of events.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range data {
			sse(w, d)
		}
	}
}

// sent makes a request and compares it with a file of testdata, as the service got it.
func sent(t *testing.T, cfg gemini.Config, req agent.Request, golden string) *http.Request {
	t.Helper()
	var got *http.Request
	var body []byte
	model := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		events(content("", "STOP"))(w, r)
	})
	if _, err := model.Generate(t.Context(), req, ignore); err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(body), "", "\t"); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	path := "testdata/" + golden
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("the request is not %s (FLOWFABRIC_GOLDEN=write writes it):\n%s", path, pretty.Bytes())
	}
	return got
}

// conversation has all that a conversation may have, and what it should not have.
func conversation() agent.Request {
	png := agent.Part{Type: agent.PartImage, Media: "image/png", Data: []byte("png")}
	gif := agent.Part{Type: agent.PartImage, Media: "image/gif", Data: []byte("gif")}
	pdf := agent.Part{Type: agent.PartFile, Media: "application/pdf", Name: "terms.pdf", Data: []byte("pdf")}
	film := agent.Part{Type: agent.PartFile, Media: "video/mp4", Name: "b.mp4", Data: []byte("mp4")}
	text := func(text string) agent.Part { return agent.Part{Type: agent.PartText, Text: text} }
	return agent.Request{
		System: "Be brief.", MaxTokens: 500,
		Tools: []agent.ToolSpec{{Name: "weather", Description: "Weather of a city", Schema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"city": {Type: "string"}}}}, {Name: "now"}},
		Messages: []agent.Message{
			{Role: agent.Assistant, Parts: agent.Text("Hello!")}, // the model began
			{Role: agent.User, Parts: []agent.Part{text("Look:"), png, gif, pdf, film}, From: "alice"},
			{Role: agent.Assistant, Parts: agent.Text("I look."), Calls: []agent.ToolCall{
				{ID: "a", Name: "weather", Arguments: json.RawMessage(`{"city":"Köln"}`)},
				{ID: "b", Name: "now", Arguments: json.RawMessage(`[1]`)}, {ID: "c", Name: "now"}},
				Private: json.RawMessage(`{"anthropic_blocks":[{}]}`)},
			{Role: agent.ToolRole, Call: "b", Tool: "now", Parts: agent.Text("no"), Failed: true},
			{Role: agent.User, Parts: agent.Text("Hurry.")},
			{Role: agent.ToolRole, Call: "a", Tool: "weather", Parts: []agent.Part{text("rain"), png, film}},
			{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "d", Name: "now"}, {ID: "e", Name: "now"}},
				Private: json.RawMessage(`{"gemini_parts":[{"text":"Hm","thought":true},` +
					`{"text":"So","signature":"c2ln"},` +
					`{"call":"d","signature":"c2ln"},{"call":"gone","signature":"c2ln"},` +
					`{"other":{"executableCode":{"code":"1","language":"PYTHON"}}}]}`)},
			{Role: agent.ToolRole, Call: "d", Tool: "now", Parts: agent.Text("12:00")},
			{Role: agent.ToolRole, Call: "e", Tool: "now", Parts: agent.Text("12:01")},
		},
	}
}

func TestRequest(t *testing.T) {
	r := sent(t, gemini.Config{Model: "gemini-3-test"}, conversation(), "request.json")
	if got := r.Method + " " + r.URL.String(); got !=
		"POST /v1beta/models/gemini-3-test:streamGenerateContent?alt=sse" ||
		r.Header.Get("X-Goog-Api-Key") != modeltest.Key {
		t.Errorf("the call is %s with %v", got, r.Header)
	}
	sent(t, gemini.Config{Model: "gemini-2.5-flash", MaxTokens: 7, Configure: func(c *genai.GenerateContentConfig) {
		c.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
		c.HTTPOptions = &genai.HTTPOptions{Timeout: genai.Ptr(time.Nanosecond)}
	}}, agent.Request{Messages: conversation().Messages[:6]}, "request_before3.json")
}

// What is signed in an empty part is the text before it, as in an answer that is not streamed.
func TestAnswerOfParts(t *testing.T) {
	model := serve(t, gemini.Config{Model: "m"}, events(content(`{"text":"Hm","thought":true}`, ""),
		content(`{"text":"So"},{"text":", well"}`, ""), content(`{"text":"","thoughtSignature":"c2ln"}`, ""),
		content(`{"executableCode":{"code":"1"}}`, ""), content(`{"functionCall":{"name":"now","args":null}}`, ""),
		content(`{"functionCall":{"name":"now","args":{"a":12345678901234567890}},"thoughtSignature":"dHdv"}`, "STOP")))
	var calls []agent.Delta
	got, err := model.Generate(t.Context(), modeltest.Question, func(d agent.Delta) error {
		if d.Call != nil {
			calls = append(calls, d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	modeltest.CheckCalls(t, calls, got.Message.Calls)
	want := agent.Message{Role: agent.Assistant,
		Parts: []agent.Part{{Type: agent.PartReasoning, Text: "Hm"}, {Type: agent.PartText, Text: "So, well"}},
		Calls: []agent.ToolCall{{ID: "call0_answer-1", Name: "now", Arguments: json.RawMessage(`{}`)},
			{ID: "call1_answer-1", Name: "now", Arguments: json.RawMessage(`{"a":12345678901234567890}`)}},
		Private: json.RawMessage(`{"gemini_parts":[{"text":"Hm","thought":true},` +
			`{"text":"So, well","signature":"c2ln"},` +
			`{"other":{"executableCode":{"code":"1"}}},{"call":"call0_answer-1"},` +
			`{"signature":"dHdv","call":"call1_answer-1"}]}`)}
	if !reflect.DeepEqual(got.Message, want) || got.Stop != agent.StopTools {
		t.Errorf("the answer is %+v\n%s", got, got.Message.Private)
	}
}

func TestReasonToStop(t *testing.T) {
	for event, want := range map[string]agent.StopReason{
		content(`{"text":"So"}`, "OTHER"):             agent.StopEnd,
		content(`{"text":"So"}`, "A_NEW_ONE"):         agent.StopEnd,
		content("", "RECITATION"):                     agent.StopRefusal,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`: agent.StopRefusal,
	} {
		got, err := serve(t, gemini.Config{Model: "m"}, events(event)).Generate(t.Context(), modeltest.Question, ignore)
		if err != nil || got.Stop != want {
			t.Errorf("%s: it stopped by %q, %v, want %q", event, got.Stop, err, want)
		}
	}
	_, err := serve(t, gemini.Config{Model: "m"}, events(content("", "MALFORMED_FUNCTION_CALL"))).Generate(t.Context(),
		modeltest.Question, ignore)
	modeltest.Check(t, err, handler.Failure{Category: "model_protocol"})
}

// The service tells the pause in the details of an error, and errors before a stream in a list.
func TestThePauseOfAnError(t *testing.T) {
	said := `{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},` +
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7.5s"}]}}`
	pause := 7500 * time.Millisecond
	for name, answer := range map[string]http.HandlerFunc{"within the answer": events(said),
		"before it": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429); fmt.Fprint(w, "["+said+"]") }} {
		_, err := serve(t, gemini.Config{Model: "m"}, answer).Generate(t.Context(), modeltest.Question, ignore)
		modeltest.Check(t, err, handler.Failure{Category: "model_rate_limited", RetryAfter: &pause})
		var e *gemini.Error
		if !errors.As(err, &e) || e.Status != 429 || e.Code != "RESOURCE_EXHAUSTED" || e.Message != "Quota" {
			t.Errorf("%s: the error is %+v", name, e)
		}
	}
}

func TestNoRedirectTakesTheKeyAlong(t *testing.T) {
	other := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was called") }))
	defer other.Close()
	model := serve(t, gemini.Config{Model: "m"},
		http.RedirectHandler(other.URL, http.StatusTemporaryRedirect).ServeHTTP)
	_, err := model.Generate(t.Context(), modeltest.Question, ignore)
	modeltest.Check(t, err, handler.Failure{Category: "model_refused", Permanent: true})
}

func TestNew(t *testing.T) {
	for _, cfg := range []gemini.Config{{}, {Model: "m"}, {Model: "m", MaxTokens: -1},
		{Model: "m", Client: genai.ClientConfig{APIKey: "sk-secret",
			HTTPOptions: genai.HTTPOptions{BaseURL: "localhost"}}},
		{Model: "m", Client: genai.ClientConfig{APIKey: "sk-secret", Project: "p"}}} {
		if _, err := gemini.New(cfg); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	client := &http.Client{Timeout: time.Hour}
	model := configured(t, gemini.Config{Model: "m-1"}, "http://localhost:1", client)
	if provider, name := model.Describe(); provider != "gcp.gemini" || name != "m-1" || client.Timeout != time.Hour ||
		client.Transport != nil {
		t.Errorf("%s, %s; the client is now %+v", provider, name, client)
	}
}
