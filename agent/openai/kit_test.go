package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

func TestChatCompletions(t *testing.T) {
	modeltest.Run(t, modeltest.Format{New: kitModel(openai.New), Write: writeChat, CacheWrites: true,
		Returned: "Hm, rain?"})
}

func TestResponses(t *testing.T) {
	modeltest.Run(t, modeltest.Format{New: kitModel(openai.NewResponses), Write: writeResponse, CacheWrites: true})
}

// kitModel makes models for the questions that all formats are asked.
func kitModel(make func(openai.Config) (*openai.Model, error)) func(*testing.T, string, *http.Client) agent.Model {
	return func(t *testing.T, url string, client *http.Client) agent.Model {
		t.Helper()
		model, err := make(openai.Config{Model: "test-model", APIKey: modeltest.Key, BaseURL: url, HTTPClient: client,
			ReturnReasoning: true})
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
}

// sse writes an event.
func sse(w io.Writer, event string) { fmt.Fprintf(w, "data: %s\n\n", event) }

// writeChat writes an answer of Chat Completions, in which a thought is its own signature.
func writeChat(w io.Writer, a modeltest.Answer) {
	head := fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","model":%q,`, modeltest.ID, modeltest.Model)
	event := func(delta, finish string) {
		sse(w, head+fmt.Sprintf(`"choices":[{"index":0,"delta":%s,"finish_reason":%s}],"usage":null}`, delta, finish))
	}
	for _, p := range a.Pieces {
		switch {
		case p.Call != nil && p.Call.ID != "":
			event(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function",`+
				`"function":{"name":%q,"arguments":%s}}]}`, p.Call.Index, p.Call.ID, p.Call.Name,
				modeltest.Quote(p.Call.Arguments)), "null")
		case p.Call != nil:
			event(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, p.Call.Index,
				modeltest.Quote(p.Call.Arguments)), "null")
		case p.Reasoning != "":
			event(fmt.Sprintf(`{"reasoning_content":%s}`, modeltest.Quote(p.Reasoning)), "null")
		default:
			event(fmt.Sprintf(`{"content":%s,"refusal":null}`, modeltest.Quote(p.Text)), "null")
		}
	}
	if a.Overloaded {
		sse(w, `{"error":{"message":"The server had an error","type":"server_error","code":null}}`)
	}
	if a.Stop == "" {
		return
	}
	event(`{}`, map[agent.StopReason]string{agent.StopEnd: `"stop"`, agent.StopTools: `"tool_calls"`,
		agent.StopLength: `"length"`, agent.StopRefusal: `"content_filter"`}[a.Stop])
	sse(w, head+fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},`+
		`"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		a.Usage.Input, a.Usage.Output, a.Usage.CacheRead, a.Usage.CacheWrite, a.Usage.Reasoning))
	sse(w, done)
}

// writeResponse writes an answer of the Responses API: a reasoning item, a message, and calls.
func writeResponse(w io.Writer, a modeltest.Answer) {
	n := 0
	event := func(kind, rest string) {
		n++
		fmt.Fprintf(w, "event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":%d,%s}\n\n", kind,
			kind, n, rest)
	}
	head := fmt.Sprintf(`"response":{"id":%q,"object":"response","model":%q`, modeltest.ID, modeltest.Model)
	event("created", head+`,"status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}`)
	var whole []*strings.Builder // what the items come to
	var items []string           // the end of an item, with %s for that
	places := map[string]int{}
	begin := func(name, begun, ended string) int {
		if _, ok := places[name]; !ok {
			places[name] = len(items)
			event("output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, len(items), begun))
			whole, items = append(whole, &strings.Builder{}), append(items, ended)
		}
		return places[name]
	}
	piece := func(kind string, index int, text string) {
		whole[index].WriteString(text)
		event(kind+".delta", fmt.Sprintf(
			`"output_index":%d,"item_id":"x","content_index":0,"summary_index":0,"delta":%s`, index,
			modeltest.Quote(text)))
	}
	for _, p := range a.Pieces {
		switch {
		case p.Call != nil:
			call := fmt.Sprintf(`"id":"fc_1","type":"function_call","call_id":%q,"name":%q`, p.Call.ID, p.Call.Name)
			index := begin(fmt.Sprint(p.Call.Index), `{`+call+`,"status":"in_progress","arguments":""}`,
				`{`+call+`,"status":"completed","arguments":%s}`)
			piece("function_call_arguments", index, p.Call.Arguments)
		case p.Reasoning != "":
			index := begin("thought", `{"id":"rs_1","type":"reasoning","summary":[]}`,
				`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":%s}],"encrypted_content":"`+
					modeltest.Signature+`"}`)
			piece("reasoning_summary_text", index, p.Reasoning)
		default:
			item := `{"id":"msg_1","type":"message","role":"assistant",`
			index := begin("text", item+`"status":"in_progress","content":[]}`,
				item+`"status":"completed","content":[{"type":"output_text","annotations":[],"text":%s}]}`)
			piece(map[bool]string{true: "refusal", false: "output_text"}[a.Stop == agent.StopRefusal], index, p.Text)
		}
	}
	if a.Overloaded {
		event("failed", head+`,"status":"failed","error":{"code":"server_error","message":"The server had an error"}}`)
	}
	if a.Stop == "" {
		return
	}
	var output []string
	for index, ended := range items {
		item := fmt.Sprintf(ended, modeltest.Quote(whole[index].String()))
		output = append(output, item)
		event("output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
	}
	kind, why := "completed", "null"
	switch {
	case a.Stop == agent.StopLength:
		kind, why = "incomplete", `{"reason":"max_output_tokens"}`
	case a.Stop == agent.StopRefusal && len(a.Pieces) == 0:
		kind, why = "incomplete", `{"reason":"content_filter"}`
	}
	event(kind, head+fmt.Sprintf(
		`,"status":%q,"error":null,"incomplete_details":%s,"output":[%s],"usage":{"input_tokens":%d,`+
			`"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens":%d,`+
			`"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":0}}`,
		kind, why, strings.Join(output, ","), a.Usage.Input, a.Usage.CacheRead, a.Usage.CacheWrite,
		a.Usage.Output, a.Usage.Reasoning))
}
