package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/modeltest"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

func TestToolCallsInPieces(t *testing.T) {
	first := func(index int, id, name string) string {
		return chunk(fmt.Sprintf(
			`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, index, id,
			name), "null")
	}
	more := func(index int, arguments string) string {
		return chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, index, arguments), "null")
	}
	end := func(reason string) string { return chunk(`{}`, reason) }
	for _, tt := range []struct {
		name   string
		events []string
		want   []string // id, name, arguments
	}{
		{"interleaved", []string{first(0, "call_a", "weather"), first(1, "call_b", "time"), more(0, `{"city":`),
			more(1, `{"zone":"C`), more(0, `"Köln"}`), more(1, `ET"}`), end("tool_calls")},
			[]string{`call_a weather {"city":"Köln"}`, `call_b time {"zone":"CET"}`}},
		{"no arguments", []string{first(0, "call_a", "now"), end("tool_calls")}, []string{`call_a now {}`}},
		{"arguments that are no object", []string{first(0, "call_a", "now"), more(0, `[1]`), end("tool_calls")},
			[]string{`call_a now [1]`}},
		{"arguments that are no JSON", []string{first(0, "call_a", "now"), more(0, `{"a`), end("length")},
			[]string{`call_a now "{\"a"`}},
		{"stop in place of tool_calls", []string{first(0, "call_a", "now"), end("stop")}, []string{`call_a now {}`}},
		{"a list in one event",
			[]string{chunk(
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}]}`,
				"tool_calls")},
			[]string{`a x {}`, `b y {}`}},
		{"all of the same number",
			[]string{chunk(
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]}`,
				"tool_calls")},
			[]string{`a x {}`, `b y {}`}},
		{"no number and no id",
			[]string{chunk(
				`{"tool_calls":[{"function":{"name":"x","arguments":"{}"}},{"function":{"name":"y","arguments":{"a":1}}}]}`,
				"tool_calls")},
			[]string{`chatcmpl-1_call0 x {}`, `chatcmpl-1_call1 y {"a":1}`}},
		{"an id twice", []string{first(0, "a", "x"), first(1, "a", "y"), end("tool_calls")},
			[]string{`a x {}`, `a_call1 y {}`}},
		{"name and id in each piece",
			[]string{first(0, "a", "x"),
				chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}`, "tool_calls")},
			[]string{`a x {}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, _ := modeltest.Ask(t, serve(t, openai.Config{}, events(append(tt.events, done)...)))
			var got []string
			for _, c := range response.Message.Calls {
				got = append(got, fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Arguments))
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("calls are %q, want %q", got, tt.want)
			}
			if want := agent.StopTools; response.Stop != want && tt.name != "arguments that are no JSON" {
				t.Errorf("it stopped by %q, want %q", response.Stop, want)
			}
			if _, err := json.Marshal(response.Message); err != nil {
				t.Errorf("the message cannot be recorded: %v", err)
			}
		})
	}
}

func TestReasonToStop(t *testing.T) {
	for _, tt := range []struct {
		name, delta, finish string
		want                agent.StopReason
		text                string
	}{
		{"refusal in the message", `{"refusal":"I cannot."}`, "stop", agent.StopRefusal, "I cannot."},
		{"filter", `{"content":"So"}`, "content_filter", agent.StopRefusal, "So"},
		{"length", `{"content":"So"}`, "length", agent.StopLength, "So"},
		{"length of another service", `{"content":"So"}`, "model_length", agent.StopLength, "So"},
		{"a reason of another service", `{"content":"So"}`, "eos_token", agent.StopEnd, "So"},
		{"tools, but none", `{"content":"So"}`, "tool_calls", agent.StopEnd, "So"},
		{"nothing said", `{}`, "stop", agent.StopEnd, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, _ := modeltest.Ask(t,
				serve(t, openai.Config{}, events(chunk(tt.delta, "null"), chunk(`{}`, tt.finish), done)))
			if response.Stop != tt.want || response.Message.Text() != tt.text {
				t.Errorf("it stopped by %q with %q, want %q with %q", response.Stop, response.Message.Text(), tt.want,
					tt.text)
			}
		})
	}
}

func TestReasoningOfCompatibleServices(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []string
		kept   string
	}{
		{"reasoning_content", []string{chunk(`{"reasoning_content":"Hm","content":null}`, "null"),
			chunk(`{"reasoning_content":", so","content":""}`, "null"), text("Yes")},
			`{"openai_reasoning":{"field":"reasoning_content","text":"Hm, so"}}`},
		{"reasoning", []string{chunk(`{"reasoning":"Hm"}`, "null"), chunk(`{"reasoning":", so"}`, "null"), text("Yes")},
			`{"openai_reasoning":{"field":"reasoning","text":"Hm, so"}}`},
		{"a list of contents",
			[]string{chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm, so"}]}]}`, "null"),
				chunk(`{"content":[{"type":"text","text":"Yes"}]}`, "null")},
			`{"openai_reasoning":{"field":"reasoning_content","text":"Hm, so"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, keep := range []bool{false, true} {
				response, h := modeltest.Ask(t, serve(t, openai.Config{ReturnReasoning: keep},
					events(append(tt.events, chunk(`{}`, "stop"), done)...)))
				if got := strings.Join(h.Reasoning, ""); got != "Hm, so" || response.Message.Text() != "Yes" {
					t.Errorf("it thinks %q and says %q", got, response.Message.Text())
				}
				if got := response.Message.Parts[0]; got.Type != agent.PartReasoning || got.Text != "Hm, so" {
					t.Errorf("the message has the part %+v", got)
				}
				if want := map[bool]string{true: tt.kept}[keep]; string(response.Message.Private) != want {
					t.Errorf("it keeps %s, want %s", response.Message.Private, want)
				}
			}
		})
	}
}

func TestUsageOfCompatibleServices(t *testing.T) {
	for _, tt := range []struct {
		name, usage string
		want        agent.Usage
	}{
		{"none", `null`, agent.Usage{}},
		{"unreadable", `{"prompt_tokens":"many"}`, agent.Usage{}},
		{"negative", `{"prompt_tokens":-1,"completion_tokens":2}`, agent.Usage{Output: 2}},
		{"reasoning apart",
			`{"prompt_tokens":10,"completion_tokens":2,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":5}}`,
			agent.Usage{Input: 10, Output: 7, Reasoning: 5}},
		{"cache hits apart", `{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":6}`,
			agent.Usage{Input: 10, Output: 2, CacheRead: 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, _ := modeltest.Ask(t, serve(t, openai.Config{},
				events(text("x"), chunk(`{}`, "stop"), `{"choices":null,"usage":`+tt.usage+`}`, done)))
			if response.Usage != tt.want {
				t.Errorf("usage is %+v, want %+v", response.Usage, tt.want)
			}
		})
	}
	t.Run("the last report counts", func(t *testing.T) {
		report := func(n int) string {
			return fmt.Sprintf(
				`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":%d}}`,
				n)
		}
		response, _ := modeltest.Ask(t, serve(t, openai.Config{}, events(report(1), report(2), report(3), done)))
		if want := (agent.Usage{Input: 5, Output: 3}); response.Usage != want {
			t.Errorf("usage is %+v, want %+v", response.Usage, want)
		}
	})
}

func TestSplitCharactersStayWhole(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"bytes over events", []string{"{\"choices\":[{\"delta\":{\"content\":\"a\xf0\x9f\"}}]}",
			"{\"choices\":[{\"delta\":{\"content\":\"\x98\x80b\"}}]}"}, []string{"a", "😀b"}},
		{"surrogates over events", []string{`{"choices":[{"delta":{"content":"a\ud83d"}}]}`,
			`{"choices":[{"delta":{"content":"\ude00b"}}]}`}, []string{"a", "😀b"}},
		{"never completed", []string{"{\"choices\":[{\"delta\":{\"content\":\"a\xf0\x9f\"}}]}"},
			[]string{"a", "\uFFFD"}},
		{"invalid", []string{"{\"choices\":[{\"delta\":{\"content\":\"a\xff\xfe\xfdb\"}}]}"}, []string{"a\uFFFDb"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, h := modeltest.Ask(t, serve(t, openai.Config{}, events(append(tt.events, chunk(`{}`, "stop"), done)...)))
			if !reflect.DeepEqual(h.Text, tt.want) {
				t.Errorf("the deltas are %q, want %q", h.Text, tt.want)
			}
		})
	}
	t.Run("every byte in a write of its own", func(t *testing.T) {
		model := serve(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			stream := ": ping\r\n\r\nevent: message\r\ndata: " + chunk(`{"content":"Grüße, 世界 😀"}`, "stop") +
				"\r\n\r\ndata: [DONE]\r\n\r\n"
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

func TestOddStreamsThatAreWhole(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"pings and comments": func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprintf(w,
				": OPENROUTER PROCESSING\n\n:\n\nevent: ping\n\nid: 1\nretry: 10\ndata: %s\n\ndata:\n\ndata:%s\n\ndata: [DONE]\n\n",
				text("x"), chunk(`{}`, "stop"))
		},
		"no mark at the end": events(text("x"), chunk(`{}`, "stop")),
		"the mark without line": func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprintf(w, "data: %s\n\ndata: [DONE]", chunk(`{"content":"x"}`, "stop"))
		},
		"an error that is null": events(
			`{"error":null,"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`, done),
		"data over two lines": func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			fmt.Fprint(w,
				"data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		},
		"another choice": events(
			`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`,
			done),
		"no content type": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk(`{"content":"x"}`, "stop"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if response, _ := modeltest.Ask(t, serve(t, openai.Config{}, answer)); response.Message.Text() != "x" {
				t.Errorf("the text is %q, want x", response.Message.Text())
			}
		})
	}
}

// FuzzAnswer feeds events of any shape, one a line: what comes out can be recorded, and the deltas are the message.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(text("a\xf0\x9f") + "\n" + text("\x98\x80") + "\n" + chunk(`{}`, "stop") + "\n[DONE]"))
	f.Add([]byte(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"a\":"}}]}`, "null") +
		"\n" + chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`, "tool_calls")))
	f.Add([]byte(`{"error":{"code":"overloaded","message":"x"}}`))
	f.Add([]byte(
		`{"choices":[{"delta":{"content":[{"thinking":[{"text":"a"}]},{"text":"b"}],"reasoning":"c","refusal":"d"},"finish_reason":"length"}],"usage":{"prompt_tokens":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h modeltest.Heard
		response, err := openai.Assemble(strings.Split(string(in), "\n"), h.Delta)
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
		if response.Stop == "" {
			t.Fatal("no reason to stop")
		}
		modeltest.CheckCalls(t, h.Calls, response.Message.Calls)
		ids := map[string]bool{}
		for _, c := range response.Message.Calls {
			if c.Name == "" || ids[c.ID] || !json.Valid(c.Arguments) {
				t.Fatalf("calls are %+v", response.Message.Calls)
			}
			ids[c.ID] = true
		}
		if _, err := json.Marshal(response); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOneModelServesManyRuns(t *testing.T) {
	model := serve(t, openai.Config{}, events(text("x"), chunk(`{}`, "stop"), done))
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if response, _ := modeltest.Ask(t, model); response.Message.Text() != "x" {
				t.Errorf("the text is %q", response.Message.Text())
			}
		})
	}
}
