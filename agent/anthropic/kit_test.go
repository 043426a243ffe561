package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
)

func TestMessages(t *testing.T) {
	modeltest.Run(t, modeltest.Format{Write: writeMessage, CacheWrites: true,
		New: func(t *testing.T, url string, client *http.Client) agent.Model {
			t.Helper()
			model, err := anthropic.New(anthropic.Config{Model: "test-model", APIKey: modeltest.Key, BaseURL: url,
				HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			return model
		}})
}

// writeMessage writes an answer: a block for thoughts, which is signed at its end, one for texts, and one a call.
func writeMessage(w io.Writer, a modeltest.Answer) {
	sse := func(event string) { io.WriteString(w, wired(event)) }
	sse(fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":%q,`+
		`"content":[],"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,`+
		`"cache_creation_input_tokens":%d,"output_tokens":1}}}`, modeltest.ID,
		modeltest.Model, a.Usage.Input-a.Usage.CacheRead-a.Usage.CacheWrite, a.Usage.CacheRead, a.Usage.CacheWrite))
	places := map[string]int{}
	at := func(name, begun string) int {
		if _, ok := places[name]; !ok {
			places[name] = len(places)
			sse(block(places[name], begun))
		}
		return places[name]
	}
	piece := func(index int, kind, field, text string) {
		sse(delta(index, fmt.Sprintf(`{"type":%q,%q:%s}`, kind, field, modeltest.Quote(text))))
	}
	for _, p := range a.Pieces {
		switch {
		case p.Call != nil:
			index := at(fmt.Sprint(p.Call.Index),
				fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, p.Call.ID, p.Call.Name))
			piece(index, "input_json_delta", "partial_json", p.Call.Arguments)
		case p.Reasoning != "":
			piece(at("thought", `{"type":"thinking","thinking":"","signature":""}`), "thinking_delta", "thinking",
				p.Reasoning)
		default:
			piece(at("text", `{"type":"text","text":""}`), "text_delta", "text", p.Text)
		}
	}
	if a.Overloaded {
		sse(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	}
	if a.Stop == "" {
		return
	}
	if index, ok := places["thought"]; ok {
		piece(index, "signature_delta", "signature", modeltest.Signature)
	}
	for index := range places {
		sse(end(places[index]))
	}
	sse(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":%d,`+
		`"output_tokens_details":{"thinking_tokens":%d}}}`, map[agent.StopReason]string{agent.StopEnd: "end_turn",
		agent.StopTools: "tool_use", agent.StopLength: "max_tokens", agent.StopRefusal: "refusal"}[a.Stop],
		a.Usage.Output, a.Usage.Reasoning))
	sse(stopped)
}
