package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/openai/openai-go/v3/option"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

// sent makes a request and returns it as the service got it.
func sent(t *testing.T, cfg openai.Config, req agent.Request) (*http.Request, []byte) {
	t.Helper()
	var got *http.Request
	var body []byte
	model := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		events(chunk(`{}`, "stop"), done)(w, r)
	})
	if _, err := model.Generate(t.Context(), req, func(agent.Delta) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return got, body
}

// golden compares JSON with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(got), "", "\t"); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	path := "testdata/" + name
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
}

// conversation has all that a conversation may have, and what it should not have.
func conversation() agent.Request {
	return agent.Request{
		System: "Be brief.",
		Tools: []agent.ToolSpec{
			{Name: "weather", Description: "Weather of a city", Schema: &jsonschema.Schema{
				Type: "object", Required: []string{"zone", "city"},
				AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
				Properties: map[string]*jsonschema.Schema{"zone": {Type: "string"},
					"city": {Type: "string", Description: "<its name>"}},
				PropertyOrder: []string{"zone", "city"},
			}},
			{Name: "now"},
		},
		MaxTokens: 500,
		Messages: []agent.Message{
			{Role: agent.User, Parts: agent.Text("Weather?"), From: "alice"},
			{Role: agent.Assistant},
			{Role: agent.Assistant, Parts: agent.Text("I look."), Calls: []agent.ToolCall{
				{ID: "call_a", Name: "weather", Arguments: json.RawMessage(`{"city":"Köln & <Bonn>"}`)},
				{ID: "call_b", Name: "now"},
				{ID: strings.Repeat("long", 20), Name: "now", Arguments: json.RawMessage(`[1]`)},
				{ID: "call_d", Name: "no such tool!", Arguments: json.RawMessage(`"{\"a"`)},
			}, Private: json.RawMessage(`{"openai_reasoning":{"field":"reasoning_content","text":"Hm"}}`)},
			{Role: agent.ToolRole, Call: "call_b", Tool: "now", Parts: agent.Text("12:00")},
			{Role: agent.User, Parts: agent.Text("Hurry.")},
			{Role: agent.ToolRole, Call: "call_a", Tool: "weather", Parts: agent.Text("no such city"), Failed: true},
			{Role: agent.ToolRole, Call: strings.Repeat("long", 20), Tool: "now", Parts: agent.Text("")},
			{Role: agent.User, Parts: agent.Text(" ")},
			{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "call_e", Name: "now",
				Arguments: json.RawMessage(`{}`)}}, Private: json.RawMessage(`{"anthropic":{"blocks":[]}}`)},
			{Role: agent.ToolRole, Call: "call_e", Tool: "now", Parts: agent.Text("12:01")},
		},
	}
}

func TestRequest(t *testing.T) {
	r, body := sent(t, openai.Config{}, conversation())
	golden(t, "request.json", body)
	if got := r.Method + " " + r.URL.Path; got != "POST /v1/chat/completions" {
		t.Errorf("the call is %s", got)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+key {
		t.Errorf("the authorization is %q", got)
	}
}

func TestRequestOfAnOlderService(t *testing.T) {
	_, body := sent(t, openai.Config{
		MaxTokens: 100, LegacyMaxTokens: true, ReturnReasoning: true,
		Options: []option.RequestOption{option.WithJSONSet("temperature", 0), option.WithJSONDel("stream_options")},
	}, agent.Request{Messages: conversation().Messages[:7]})
	golden(t, "request_older.json", body)
}

func TestKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	t.Setenv("OPENAI_ADMIN_KEY", "sk-of-the-administrator")
	for configured, want := range map[string]string{key: "Bearer " + key, noKey: "Bearer sk-of-the-environment"} {
		r, _ := sent(t, openai.Config{APIKey: configured}, modeltest.Question)
		if r.Header.Get("Authorization") != want {
			t.Errorf("the authorization is %q, want %q", r.Header.Get("Authorization"), want)
		}
	}
}

func TestNewRefusesAnUnusableConfiguration(t *testing.T) {
	for _, cfg := range []openai.Config{{}, {Model: "m", MaxTokens: -1}, {Model: "m", BaseURL: "localhost:1234/v1"},
		{Model: "m", BaseURL: "http://sk-secret\x7f"}} {
		if _, err := openai.New(cfg); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := openai.New(openai.Config{Model: "m"}); err != nil {
		t.Error(err)
	}
}

// Images and PDFs go to the service as such, those of tools in a message of the user; what it does not take is named.
func TestRequestWithParts(t *testing.T) {
	_, body := sent(t, openai.Config{}, modeltest.Shown())
	golden(t, "request_parts.json", body)
}

// The key of a run's cache and the schema go to the service, which keeps the model to a schema that it can be kept to.
func TestRequestWithAKeyAndASchema(t *testing.T) {
	req := conversation()
	req.Cache = agent.Cache{Key: "3-0197", Marks: []int{0, 1}}
	req.Schema = &jsonschema.Schema{Type: "object", Required: []string{"b", "a"}, PropertyOrder: []string{"b", "a"},
		Properties:           map[string]*jsonschema.Schema{"b": {Type: "string"}, "a": {Type: "integer"}},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	_, body := sent(t, openai.Config{}, req)
	for _, want := range []string{`"prompt_cache_key":"3-0197"`, `"strict":true`, `"type":"json_schema"`,
		`"properties":{"b":{"type":"string"},"a":{"type":"integer"}}`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
	req.Schema.Required = nil
	if _, body = sent(t, openai.Config{}, req); strings.Contains(string(body), "strict") {
		t.Errorf("an open schema is strict: %s", body)
	}
	_, body = sent(t, openai.Config{LegacyMaxTokens: true},
		agent.Request{Messages: modeltest.Question.Messages, Cache: req.Cache})
	if strings.Contains(string(body), "prompt_cache_key") {
		t.Errorf("an older service gets %s", body)
	}
}
