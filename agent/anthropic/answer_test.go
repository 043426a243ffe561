package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
)

func TestToolCallsInPieces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []string
		reason string
		want   []string // id, name, arguments
	}{
		{"interleaved", []string{toolBlock(1, "toolu_a", "weather"), toolBlock(2, "toolu_b", "time"), input(1, ""),
			input(1, `{"city":`), input(2, `{"zone":"C`), input(1, `"Köln"}`), end(1), input(2, `ET"}`), end(2)},
			"tool_use", []string{`toolu_a weather {"city":"Köln"}`, `toolu_b time {"zone":"CET"}`}},
		{"no arguments", []string{toolBlock(0, "toolu_a", "now"), end(0)}, "tool_use", []string{`toolu_a now {}`}},
		{"empty arguments", []string{toolBlock(0, "toolu_a", "now"), input(0, ""), end(0)}, "tool_use",
			[]string{`toolu_a now {}`}},
		{"arguments at the beginning",
			[]string{block(0, `{"type":"tool_use","id":"toolu_a","name":"now","input":{"zone":"CET"}}`), end(0)},
			"tool_use", []string{`toolu_a now {"zone":"CET"}`}},
		{"arguments that are no object", []string{toolBlock(0, "toolu_a", "now"), input(0, `[1]`), end(0)}, "tool_use",
			[]string{`toolu_a now [1]`}},
		{"arguments that were cut", []string{toolBlock(0, "toolu_a", "now"), input(0, `{"zone":"C`), end(0)},
			"max_tokens", []string{`toolu_a now "{\"zone\":\"C"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, _ := modeltest.Ask(t, serve(t, anthropic.Config{},
				events(append(append([]string{started}, tt.events...), because(tt.reason), stopped)...)))
			var got []string
			for _, c := range response.Message.Calls {
				got = append(got, fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Arguments))
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("calls are %q, want %q", got, tt.want)
			}
			if want := map[string]agent.StopReason{"tool_use": agent.StopTools,
				"max_tokens": agent.StopLength}[tt.reason]; response.Stop != want {
				t.Errorf("it stopped by %q, want %q", response.Stop, want)
			}
			if _, err := json.Marshal(response.Message); err != nil || response.Message.Private != nil {
				t.Errorf("the message has the private part %s, and is recorded with %v", response.Message.Private, err)
			}
		})
	}
}

func TestReasonToStop(t *testing.T) {
	for reason, want := range map[string]agent.StopReason{
		"end_turn": agent.StopEnd, "stop_sequence": agent.StopEnd, "tool_use": agent.StopEnd,
		"a new one": agent.StopEnd, "max_tokens": agent.StopLength, "model_context_window_exceeded": agent.StopLength,
		"refusal": agent.StopRefusal,
	} {
		t.Run(reason, func(t *testing.T) {
			response, _ := modeltest.Ask(t, serve(t, anthropic.Config{},
				events(started, textBlock(0), text(0, "So"), end(0), because(reason), stopped)))
			if response.Stop != want || response.Message.Text() != "So" {
				t.Errorf("it stopped by %q with %q, want %q", response.Stop, response.Message.Text(), want)
			}
		})
	}
	t.Run("a refusal without a word", func(t *testing.T) {
		response, _ := modeltest.Ask(t, serve(t, anthropic.Config{}, events(started, because("refusal"), stopped)))
		if response.Stop != agent.StopRefusal || response.Message.Text() != "" || response.Message.Private != nil {
			t.Errorf("the answer is %+v", response)
		}
	})
}

// thinks is an answer with all kinds of blocks.
var thinks = []string{
	started,
	block(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, `{"type":"thinking_delta","thinking":"Hm"}`),
	delta(0, `{"type":"thinking_delta","thinking":", so"}`),
	delta(0, `{"type":"signature_delta","signature":"c2ln"}`), end(0),
	block(1, `{"type":"redacted_thinking","data":"c2VjcmV0"}`), end(1),
	textBlock(2), text(2, "I look."), delta(2,
		`{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x","document_index":0}}`), end(2),
	block(3, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), input(3, `{"query":`),
	input(3, `"x"}`), end(3),
	block(4,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"x","encrypted_content":"ZW5j"}]}`),
	end(4),
	toolBlock(5, "toolu_a", "weather"), input(5, `{"city":"x"}`), end(5),
	delta(2, `{"type":"a_new_delta","x":1}`), `{"type":"a_new_event"}`,
}

const kept = `{"anthropic_blocks":[{"type":"thinking","thinking":"Hm, so","signature":"c2ln"},{"type":"redacted_thinking","data":"c2VjcmV0"},` +
	`{"type":"text","text":"I look.","citations":[{"type":"char_location","cited_text":"x","document_index":0}]},` +
	`{"id":"srvtoolu_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},` +
	`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"x","encrypted_content":"ZW5j"}]},` +
	`{"type":"tool_use","id":"toolu_a"}]}`

func TestThinkingIsKept(t *testing.T) {
	response, h := modeltest.Ask(t, serve(t, anthropic.Config{},
		events(append(thinks, because("tool_use"), stopped)...)))
	if got := strings.Join(h.Reasoning, "|"); got != "Hm|, so" {
		t.Errorf("it thinks %q", got)
	}
	if got := string(response.Message.Private); got != kept {
		t.Errorf("it keeps\n%s, want\n%s", got, kept)
	}
	if len(response.Message.Calls) != 1 || response.Message.Text() != "I look." || len(response.Message.Parts) != 2 ||
		response.Message.Parts[0].Text != "Hm, so" || response.Message.Parts[0].Type != agent.PartReasoning {
		t.Errorf("the message is %+v", response.Message)
	}
}

func TestCitationsAreKept(t *testing.T) {
	response, _ := modeltest.Ask(t,
		serve(t, anthropic.Config{}, events(started, block(0,
			`{"type":"text","text":"It ","citations":[{"type":"char_location","cited_text":"a"}]}`), text(0, "rains."),
			delta(0, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"b"}}`), end(0),
			because("end_turn"), stopped)))
	want :=
		`{"anthropic_blocks":[{"type":"text","text":"It rains.","citations":[{"type":"char_location","cited_text":"a"},{"type":"char_location","cited_text":"b"}]}]}`
	if got := string(response.Message.Private); got != want || response.Message.Text() != "It rains." {
		t.Errorf("it says %q and keeps %s, want %s", response.Message.Text(), got, want)
	}
}

func TestPausedAnswerGoesOn(t *testing.T) {
	var bodies []string
	model := serve(t, anthropic.Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if len(bodies) == 1 {
			events(started, textBlock(0), text(0, "First "), end(0),
				block(1, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`),
				input(1, `{"query":"x"}`), end(1), because("pause_turn"), stopped)(w, r)
			return
		}
		events(says("second.")...)(w, r)
	})
	response, _ := modeltest.Ask(t, model)
	if response.Message.Text() != "First second." || response.Stop != agent.StopEnd {
		t.Errorf("the answer is %+v", response)
	}
	if want := (agent.Usage{Input: 264, Output: 30, CacheRead: 200, CacheWrite: 14, Reasoning: 12}); response.Usage !=
		want {
		t.Errorf("usage is %+v, want %+v", response.Usage, want)
	}
	if want :=
		`{"content":[{"text":"First ","type":"text"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}],"role":"assistant"}`; len(bodies) !=
		2 || !sameJSON(t, lastMessage(t, bodies[1]), want) {
		t.Errorf("the requests are %q", bodies)
	}
	t.Run("not for ever", func(t *testing.T) {
		requests := 0
		model := serve(t, anthropic.Config{}, func(w http.ResponseWriter, r *http.Request) {
			requests++
			events(started, textBlock(0), text(0, "x"), end(0), because("pause_turn"), stopped)(w, r)
		})
		if response, _ := modeltest.Ask(t, model); requests != 10 || response.Stop != agent.StopLength ||
			response.Message.Text() != strings.Repeat("x", 10) {
			t.Errorf("after %d requests the answer is %+v", requests, response)
		}
	})
}

func TestSplitCharactersStayWhole(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pieces []string
		want   []string
	}{
		{"bytes over events", []string{"a\xf0\x9f", "\x98\x80b"}, []string{"a", "😀b"}},
		{"surrogates over events", []string{`a\ud83d`, `\ude00b`}, []string{"a", "😀b"}},
		{"never completed", []string{"a\xf0\x9f"}, []string{"a", "\uFFFD"}},
		{"invalid", []string{"a\xff\xfe", "\xfdb"}, []string{"a\uFFFD", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream := []string{started, textBlock(0)}
			for _, p := range tt.pieces {
				stream = append(stream, delta(0, `{"type":"text_delta","text":"`+p+`"}`))
			}
			_, h := modeltest.Ask(t, serve(t, anthropic.Config{},
				events(append(stream, end(0), because("end_turn"), stopped)...)))
			if !reflect.DeepEqual(h.Text, tt.want) {
				t.Errorf("the deltas are %q, want %q", h.Text, tt.want)
			}
		})
	}
	t.Run("arguments", func(t *testing.T) {
		response, _ := modeltest.Ask(t, serve(t, anthropic.Config{}, events(started, toolBlock(0, "toolu_a", "x"),
			delta(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\\\"\xf0\x9f\"}"),
			delta(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"\x98\x80\\\"}\"}"), because("tool_use"),
			stopped)))
		if got := string(response.Message.Calls[0].Arguments); got != `{"a":"😀"}` {
			t.Errorf("the arguments are %q", got)
		}
	})
	t.Run("every byte in a write of its own", func(t *testing.T) {
		model := serve(t, anthropic.Config{}, func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			stream := strings.ReplaceAll(": ping\n\n"+wired(says("Grüße, 世界 😀")...), "\n", "\r\n")
			for i := range len(stream) {
				_, _ = w.Write([]byte{stream[i]})
				w.(http.Flusher).Flush()
			}
		})
		if response, _ := modeltest.Ask(t, model); response.Message.Text() != "Grüße, 世界 😀" {
			t.Errorf("the text is %q", response.Message.Text())
		}
	})
}

func TestUsageOfLaterEventsCounts(t *testing.T) {
	response, _ := modeltest.Ask(t, serve(t, anthropic.Config{}, events(
		`{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":null,"cache_creation_input_tokens":1}}`,
		stopped)))
	if want := (agent.Usage{Input: 6, Output: 2, CacheWrite: 1}); response.Usage != want {
		t.Errorf("usage is %+v, want %+v", response.Usage, want)
	}
	response, _ = modeltest.Ask(t,
		serve(t, anthropic.Config{}, events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, stopped)))
	if response.Usage != (agent.Usage{}) {
		t.Errorf("usage is %+v, want none", response.Usage)
	}
}

// FuzzAnswer feeds events of any shape, one a line: what comes out can be recorded, and the deltas are the message.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(strings.Join(append(thinks, because("tool_use"), stopped), "\n")))
	f.Add([]byte(strings.Join(says("a😀"), "\n")))
	f.Add([]byte(started + "\n" + textBlock(0) + "\n" + delta(0, "{\"type\":\"text_delta\",\"text\":\"a\xf0\x9f\"}") +
		"\n" + because("pause_turn") + "\n" + stopped))
	f.Add([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h modeltest.Heard
		response, blocks, err := anthropic.Assemble(strings.Split(string(in), "\n"), h.Delta)
		for _, piece := range append(h.Text, h.Reasoning...) {
			if !utf8.ValidString(piece) || piece == "" {
				t.Fatalf("a delta is %q", piece)
			}
		}
		if err != nil {
			return
		}
		if got := strings.Join(h.Text, ""); got != response.Message.Text() {
			t.Fatalf("the deltas say %q, and the message %q", got, response.Message.Text())
		}
		modeltest.CheckCalls(t, h.Calls, response.Message.Calls)
		ids := map[string]bool{}
		for _, c := range response.Message.Calls {
			if c.Name == "" || c.ID == "" || ids[c.ID] || !json.Valid(c.Arguments) {
				t.Fatalf("calls are %+v", response.Message.Calls)
			}
			ids[c.ID] = true
		}
		if response.Stop == "" || blocks < len(ids) {
			t.Fatalf("it stopped by %q, and %d blocks of %d calls go back", response.Stop, blocks, len(ids))
		}
		if !utf8.Valid(response.Message.Private) {
			t.Fatalf("the private part is %q", response.Message.Private)
		}
		if _, err := json.Marshal(response); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOneModelServesManyRuns(t *testing.T) {
	model := serve(t, anthropic.Config{}, events(says("x")...))
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if response, _ := modeltest.Ask(t, model); response.Message.Text() != "x" {
				t.Errorf("the text is %q", response.Message.Text())
			}
		})
	}
}
