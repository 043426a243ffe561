package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/agent/openai"
	"github.com/flowfabric/flowfabric-go/handler"
)

const thoughtItem = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2ln"}`

// answeredAtOnce is the last event of an answer, which has all items.
func answeredAtOnce(items string) string {
	return `{"type":"response.completed","response":{"id":"r","model":"m","output":[` + items + `]}}`
}

// sentResponse makes a request of the Responses API and returns it as the service got it.
func sentResponse(t *testing.T, cfg openai.Config, req agent.Request) (path string, body []byte) {
	t.Helper()
	model := respond(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		body, _ = io.ReadAll(r.Body)
		events(answeredAtOnce(""))(w, r)
	})
	if _, err := model.Generate(t.Context(), req, func(agent.Delta) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return path, body
}

// respond starts a service and returns a model of its Responses API.
func respond(t *testing.T, cfg openai.Config, answer http.HandlerFunc) *openai.Model {
	t.Helper()
	return serveWith(t, openai.NewResponses, cfg, answer)
}

func TestResponsesRequest(t *testing.T) {
	path, body := sentResponse(t, openai.Config{}, conversation())
	golden(t, "responses_request.json", body)
	if path != "POST /v1/responses" {
		t.Errorf("the call is %s", path)
	}
	_, body = sentResponse(t, openai.Config{MaxTokens: 7}, modeltest.Shown())
	golden(t, "responses_request_parts.json", body)
}

// Items go back as they came, but calls without their answer and thoughts with nothing behind them do not.
func TestResponsesRequestAfterThoughts(t *testing.T) {
	items := func(list string) json.RawMessage { return json.RawMessage(`{"openai_items":[` + list + `]}`) }
	calls := []agent.ToolCall{{ID: "call_a", Name: "now"}, {ID: "call_b", Name: "now"}}
	_, body := sentResponse(t, openai.Config{ReturnReasoning: true}, agent.Request{Messages: []agent.Message{
		{Role: agent.User, Parts: agent.Text("one")},
		{Role: agent.Assistant, Parts: agent.Text("I look."), Calls: calls, Private: items(thoughtItem +
			`,{"type":"message","id":"msg_1","role":"assistant","phase":"commentary",` +
			`"content":[{"type":"output_text","text":"I look."}]},` +
			thoughtItem + `,{"type":"function_call","call_id":"call_a"},{"type":"function_call","call_id":"gone"}`)},
		{Role: agent.ToolRole, Call: "call_a", Tool: "now", Parts: agent.Text("12:00")},
		{Role: agent.Assistant, Private: items(thoughtItem)},
		{Role: agent.User, Parts: agent.Text("two")},
		{Role: agent.Assistant, Parts: agent.Text("plain"), Private: json.RawMessage(`{"anthropic_blocks":[{}]}`)},
		{Role: agent.User, Parts: agent.Text("three")},
	}})
	golden(t, "responses_request_thoughts.json", body)
}

// A service that sends no pieces tells all at the end.
func TestResponsesWithoutPieces(t *testing.T) {
	model := respond(t, openai.Config{ReturnReasoning: true}, events(answeredAtOnce(
		`{"id":"rs_1","type":"reasoning","summary":[{"text":"Hm"},{"text":"so"}],"encrypted_content":"c2ln"},`+
			`{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"I look."}]},`+
			`{"id":"fc_1","type":"function_call","call_id":"call_a","name":"now","arguments":"{\"zone\":1}"}`)))
	response, h := modeltest.Ask(t, model)
	if len(h.Reasoning) != 2 || response.Message.Parts[0].Text != "Hm\n\nso" || response.Message.Text() != "I look." ||
		len(response.Message.Calls) != 1 || string(response.Message.Calls[0].Arguments) != `{"zone":1}` ||
		response.Stop != agent.StopTools || response.Message.Private == nil {
		t.Errorf("the answer is %+v", response)
	}
}

// Reasoning that the service neither stores nor hands out cannot go back.
func TestResponsesKeepOnlyWhatCanGoBack(t *testing.T) {
	plain := `{"type":"message","content":[]}`
	for items, kept := range map[string]bool{`{"id":"rs_1","type":"reasoning","summary":[]}`: false, plain: false,
		thoughtItem: true, `{"type":"message","phase":"final_answer","content":[]}`: true,
		`{"type":"web_search_call","id":"ws_1"},` + plain: true} {
		response, _ := modeltest.Ask(t, respond(t, openai.Config{ReturnReasoning: true}, events(answeredAtOnce(items))))
		if (response.Message.Private != nil) != kept {
			t.Errorf("of %s is kept %s", items, response.Message.Private)
		}
		response, _ = modeltest.Ask(t, respond(t, openai.Config{}, events(answeredAtOnce(items))))
		if response.Message.Private != nil {
			t.Errorf("without ReturnReasoning, of %s is kept %s", items, response.Message.Private)
		}
	}
}

func TestResponsesFailuresWithinTheStream(t *testing.T) {
	failed := func(code string) string {
		return `{"type":"response.failed","response":{"error":{"code":"` + code + `","message":"with ` + key + `"}}}`
	}
	for event, want := range map[string]handler.Failure{
		failed("server_error"):                        {Category: "model_overloaded"},
		failed("vector_store_timeout"):                {Category: "model_overloaded"},
		failed("rate_limit_exceeded"):                 {Category: "model_rate_limited"},
		failed("invalid_prompt"):                      {Category: "model_refused", Permanent: true},
		failed("image_too_large"):                     {Category: "model_refused", Permanent: true},
		`{"type":"response.cancelled","response":{}}`: {Category: "model_overloaded"},
		`{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}`: {Category: "model_rate_limited"},
		`{"type":"error","error":{"type":"server_error","message":"no"}}`:             {Category: "model_overloaded"},
		`{"type":"response.output_item.done","output_index":0,"item":{}}`:             {Category: "model_protocol"},
		`{"type":"response.output_text.delta","output_index":0,"delta":1}`:            {Category: "model_protocol"},
		answeredAtOnce(`{"type":"function_call","call_id":"a","name":""}`):            {Category: "model_protocol"},
		answeredAtOnce(`{"type":"function_call","name":"a"}`):                         {Category: "model_protocol"},
	} {
		modeltest.Check(t, modeltest.Fails(t, respond(t, openai.Config{}, events(event))), want)
	}
}

// The schema of an answer and the key of a run go along.
func TestResponsesSchemaAndCache(t *testing.T) {
	req := conversation()
	schema, err := jsonschema.For[struct {
		Polite bool `json:"polite"`
	}](nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Schema, req.Cache = schema, agent.Cache{Key: "run-1"}
	_, body := sentResponse(t, openai.Config{}, req)
	var got struct {
		Key  string `json:"prompt_cache_key"`
		Text struct {
			Format struct {
				Type   string         `json:"type"`
				Strict bool           `json:"strict"`
				Schema map[string]any `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Key != "run-1" || got.Text.Format.Type != "json_schema" ||
		!got.Text.Format.Strict || got.Text.Format.Schema["type"] != "object" {
		t.Errorf("%s, %v", body, err)
	}
}
