package anthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// sent makes a request and returns it as the service got it.
func sent(t *testing.T, cfg anthropic.Config, req agent.Request) (*http.Request, []byte) {
	t.Helper()
	var got *http.Request
	var body []byte
	model := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		events(says("x")...)(w, r)
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

// lastMessage is the last message of a request.
func lastMessage(t *testing.T, body string) string {
	t.Helper()
	var request struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &request); err != nil || len(request.Messages) == 0 {
		t.Fatalf("%s: %v", body, err)
	}
	return string(request.Messages[len(request.Messages)-1])
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
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
					"city": {Ref: "#/$defs/city"}},
				PropertyOrder: []string{"zone", "city"},
				Defs:          map[string]*jsonschema.Schema{"city": {Type: "string"}},
			}},
			{Name: "now"},
		},
		MaxTokens: 500,
		Messages: []agent.Message{
			{Role: agent.User, Parts: agent.Text("Weather?"), From: "alice"},
			{Role: agent.User, Parts: agent.Text("In Köln.")},
			{Role: agent.Assistant},
			{Role: agent.Assistant, Parts: agent.Text("I look."), Calls: []agent.ToolCall{{
				ID: "toolu_a", Name: "weather",
				Arguments: json.RawMessage(`{"city":"Köln"}`)}}, Private: json.RawMessage(kept)},
			{Role: agent.ToolRole, Call: "toolu_a", Tool: "weather", Parts: agent.Text("rain")},
			{Role: agent.Assistant, Parts: agent.Text("More."), Calls: []agent.ToolCall{
				{ID: "toolu_b", Name: "now"},
				{ID: "functions.now:0", Name: "now", Arguments: json.RawMessage(`[1]`)},
				{ID: "toolu_d", Name: "no such tool!", Arguments: json.RawMessage(`"{\"a"`)},
				{ID: "toolu_e", Name: "now", Arguments: json.RawMessage(`null`)},
			}, Private: json.RawMessage(`{"openai_reasoning":{"field":"reasoning","text":"Hm"}}`)},
			{Role: agent.ToolRole, Call: "functions.now:0", Tool: "now", Parts: agent.Text("no"), Failed: true},
			{Role: agent.User, Parts: agent.Text("Hurry.")},
			{Role: agent.ToolRole, Call: "toolu_b", Tool: "now", Parts: agent.Text("12:00")},
			{Role: agent.ToolRole, Call: "toolu_e", Tool: "now", Parts: agent.Text(" ")},
			{Role: agent.User, Parts: agent.Text(" ")},
			{Role: agent.User, Parts: agent.Text("Well?")},
		},
	}
}

func TestRequest(t *testing.T) {
	r, body := sent(t, anthropic.Config{}, conversation())
	golden(t, "request.json", body)
	if got := r.Method + " " + r.URL.Path; got != "POST /v1/messages" {
		t.Errorf("the call is %s", got)
	}
	if r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("the header is %v", r.Header)
	}
}

func TestRequestAfterThoughts(t *testing.T) {
	said := func(private string) agent.Message {
		return agent.Message{Role: agent.Assistant, Private: json.RawMessage(private)}
	}
	_, body := sent(t, anthropic.Config{MaxTokens: 100, Options: []option.RequestOption{option.WithJSONSet("thinking",
		map[string]any{"type": "adaptive"})}}, agent.Request{Messages: []agent.Message{
		{Role: agent.Assistant, Parts: agent.Text("Hello!")}, // the model began
		{Role: agent.User, Parts: agent.Text("one")},
		// nothing may go back
		said(`{"anthropic_blocks":[{"type":"thinking","thinking":"nothing else","signature":"c2ln"}]}`),
		{Role: agent.User, Parts: agent.Text("two")},
		said(
			`{"anthropic_blocks":[{"type":"thinking","thinking":"unsigned","signature":""},{"type":"text","text":"cut"},{"type":"redacted_thinking","data":"x"},{"type":"thinking","thinking":"in mid-thought","signature":""}]}`),
		{Role: agent.User, Parts: agent.Text("three")},
		{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "toolu_b", Name: "now"}},
			Private: json.RawMessage(
				`{"anthropic_blocks":[{"type":"thinking","thinking":"x","signature":"c2ln"},{"type":"text","text":" "},{"type":"tool_use","id":"toolu_gone"}]}`)},
		{Role: agent.ToolRole, Call: "toolu_b", Parts: agent.Text("12:00")},
		{Role: agent.Assistant, Parts: agent.Text("plain"), Private: json.RawMessage(`"of nobody"`)},
		{Role: agent.User, Parts: agent.Text("four")},
	}})
	golden(t, "request_thoughts.json", body)
}

func TestKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-environment")
	for configured, want := range map[string]string{key: key, noKey: "sk-ant-environment"} {
		r, _ := sent(t, anthropic.Config{APIKey: configured}, modeltest.Question)
		if r.Header.Get("X-Api-Key") != want {
			t.Errorf("the key is %q, want %q", r.Header.Get("X-Api-Key"), want)
		}
	}
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "a-token-of-the-environment")
	r, _ := sent(t, anthropic.Config{APIKey: key}, modeltest.Question)
	if r.Header.Get("X-Api-Key") != key || r.Header.Get("Authorization") != "" {
		t.Errorf("beside the key goes the authorization %q", r.Header.Get("Authorization"))
	}
}

func TestNoRedirectTakesTheKeyAlong(t *testing.T) {
	other := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was called") }))
	defer other.Close()
	service := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer service.Close()
	model, err := anthropic.New(anthropic.Config{Model: "m", APIKey: key, BaseURL: service.URL})
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Check(t, modeltest.Fails(t, model), handler.Failure{Category: "model_refused", Permanent: true})
}

func TestNewRefusesAnUnusableConfiguration(t *testing.T) {
	for _, cfg := range []anthropic.Config{{}, {Model: "m", MaxTokens: -1}, {Model: "m", BaseURL: "localhost:1234"},
		{Model: "m", BaseURL: "http://sk-secret\x7f"}} {
		if _, err := anthropic.New(cfg); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := anthropic.New(anthropic.Config{Model: "m"}); err != nil {
		t.Error(err)
	}
}

// Images, PDFs and texts go to the service as such, also as results of tools; what it does not take is named.
func TestRequestWithParts(t *testing.T) {
	_, body := sent(t, anthropic.Config{}, modeltest.Shown())
	golden(t, "request_parts.json", body)
}
