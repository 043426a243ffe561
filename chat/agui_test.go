package chat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// aguiLines is what a client of AG-UI gets of events, one a line, behind what a snapshot of what went before says.
func aguiLines(t *testing.T, before snapshot, events ...event) (told string, lines []string) {
	t.Helper()
	w := newAGUIWriter(func(p agent.Part) string { return "files/" + p.Blob },
		func(flowfabric.Category, string) string { return masked })
	messages, _ := w.snapshot(before, nil)
	data, err := json.Marshal(messages)
	must.No(t, err)
	w.document = before.document
	for _, e := range events {
		w.write(e)
		for _, e := range w.taken() {
			lines = append(lines, string(aguiJSON(e)))
		}
		if w.again {
			return string(data), append(lines, "anew")
		}
	}
	return string(data), lines
}

var pay = agent.ToolCall{ID: "c1", Name: "pay", Arguments: json.RawMessage(`{"cents":5}`)}

func said(id, text string) event {
	return event{kind: kindSaid, message: id, said: agent.Message{Role: agent.User, ID: id, Parts: agent.Text(text)}}
}

func of(k kind, e event) event { e.kind = k; return e }

func result(text string) event {
	return event{kind: kindResult, call: pay, said: agent.Message{Role: agent.ToolRole, Call: "c1", Tool: "pay",
		Parts: agent.Text(text)}}
}

func TestAGUIEvents(t *testing.T) {
	ask := &asking{ID: "w1", Key: "approve 1.1 pay", Question: suspend.Question{Title: "pay: cents 5",
		Arguments: pay.Arguments, Schema: json.RawMessage(`{"type":"object"}`)}}
	began := event{kind: kindBegan, message: "re-u1"}
	for _, c := range []struct {
		name   string
		events []event
		want   []string
	}{
		{"a message of somebody else", []event{said("u1", "hello")}, []string{
			`{"type":"TEXT_MESSAGE_START","messageId":"u1","role":"user"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"u1","delta":"hello"}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"u1"}`}},
		{"a message with a file", []event{{kind: kindSaid, message: "u1", said: agent.Message{Role: agent.User,
			Parts: []agent.Part{{Type: agent.PartImage, Data: []byte("x")}}}}}, []string{"anew"}},
		{"text, in two answers", []event{began, of(kindStep, event{step: 4}),
			of(kindText, event{text: "a", part: "1", first: true}), of(kindText, event{text: "b", part: "1"}),
			of(kindPartEnd, event{part: "1"}), of(kindAnswer, event{model: "m"}),
			of(kindStep, event{step: 5}), of(kindText, event{text: "c", part: "2", first: true}),
			of(kindIdle, event{})}, []string{`{"type":"STEP_STARTED","stepName":"answer 1"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"re-u1","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1","delta":"a"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1","delta":"b"}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"re-u1"}`, `{"type":"STEP_FINISHED","stepName":"answer 1"}`,
			`{"type":"STEP_STARTED","stepName":"answer 2"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"re-u1.2","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1.2","delta":"c"}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"re-u1.2"}`, `{"type":"STEP_FINISHED","stepName":"answer 2"}`}},
		{"thoughts, then text", []event{began, of(kindThought, event{text: "hm", part: "1", first: true}),
			of(kindText, event{text: "a", part: "2", first: true}), of(kindEnded, event{state: flowfabric.Completed})},
			[]string{`{"type":"REASONING_START","messageId":"re-u1.reasoning"}`,
				`{"type":"REASONING_MESSAGE_START","messageId":"re-u1.reasoning","role":"reasoning"}`,
				`{"type":"REASONING_MESSAGE_CONTENT","messageId":"re-u1.reasoning","delta":"hm"}`,
				`{"type":"REASONING_MESSAGE_END","messageId":"re-u1.reasoning"}`,
				`{"type":"REASONING_END","messageId":"re-u1.reasoning"}`,
				`{"type":"TEXT_MESSAGE_START","messageId":"re-u1","role":"assistant"}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1","delta":"a"}`,
				`{"type":"TEXT_MESSAGE_END","messageId":"re-u1"}`}},
		{"a call piece by piece, and its result twice", []event{began, of(kindCalling, event{call: pay}),
			of(kindArguments, event{call: pay, text: `{"cents"`}), of(kindArguments, event{call: pay, text: `: 5}`}),
			of(kindCalled, event{call: pay}), result("paid"), result("paid")}, []string{
			`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"pay","parentMessageId":"re-u1"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"cents\""}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":": 5}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c1"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"result-c1","role":"tool","toolCallId":"c1","content":"paid"}`}},
		{"a call at once, and another result", []event{began, of(kindCalled, event{call: pay}), result("paid"),
			result("not paid")}, []string{
			`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"pay","parentMessageId":"re-u1"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"cents\":5}"}`,
			`{"type":"TOOL_CALL_END","toolCallId":"c1"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"result-c1","role":"tool","toolCallId":"c1","content":"paid"}`,
			"anew"}},
		{"other arguments than those that came", []event{began,
			of(kindArguments, event{call: pay, text: `{"cents":6}`}),
			of(kindCalled, event{call: pay})}, []string{
			`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"pay","parentMessageId":"re-u1"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"cents\":6}"}`,
			`{"type":"TOOL_CALL_END","toolCallId":"c1"}`, "anew"}},
		{"a result that failed, of a call that was changed", []event{began, {kind: kindResult, call: pay,
			said: agent.Message{Role: agent.ToolRole, Call: "c1", Failed: true, Parts: agent.Text("no"),
				Edited: &agent.Edited{By: "ann", Arguments: json.RawMessage(`{"cents":4}`)}}}}, []string{
			`{"type":"TOOL_CALL_RESULT","messageId":"result-c1","role":"tool","toolCallId":"c1","content":"no",` +
				`"metadata":{"failed":true,"edited":{"by":"ann","arguments":{"cents":4}}}}`}},
		{"what a call has come to so far", []event{began, {kind: kindResult, call: pay, preliminary: true,
			said: agent.Message{Role: agent.ToolRole, Call: "c1", Parts: agent.Text("half")}}}, []string{
			`{"type":"CUSTOM","name":"tool_progress","value":{"toolCallId":"c1","content":"half"}}`}},
		{"questions are told when the run ends", []event{began, of(kindAsked, event{call: pay, ask: ask})}, nil},
		{"files, sources, data", []event{began,
			of(kindFile, event{file: agent.Part{Media: "image/png", Blob: "b", Name: "n"}}),
			of(kindSource, event{value: json.RawMessage(`{"url":"https://example.com"}`)}),
			of(kindData, event{name: "weather", id: "x", value: json.RawMessage(`7`)}),
			of(kindData, event{name: "tick", preliminary: true, value: json.RawMessage(`7`)})}, []string{
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"re-u1.file.1",` +
				`"content":{"filename":"n","mediaType":"image/png","url":"files/b"},"activityType":"file"}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"re-u1.source.2","content":{"url":"https://example.com"},` +
				`"activityType":"source"}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"re-u1.weather.x","content":{"value":7},"activityType":"weather"}`,
			`{"type":"CUSTOM","name":"tick","value":7}`}},
		{"state", []event{of(kindState, event{value: json.RawMessage(`{"a":1}`)}),
			of(kindState, event{value: json.RawMessage(`{"a":1,"b":"0123456789012345678901234567890123456789"}`)}),
			of(kindState, event{value: json.RawMessage(`{"a":2,"b":"0123456789012345678901234567890123456789"}`)}),
			of(kindState, event{value: json.RawMessage(`{"b":"0123456789012345678901234567890123456789","a":2}`)})},
			[]string{`{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}`,
				`{"type":"STATE_SNAPSHOT","snapshot":{"a":1,"b":"0123456789012345678901234567890123456789"}}`,
				`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/a","value":2}]}`}},
		{"a retry", []event{of(kindNotice, event{name: noticeRetry, text: "busy", when: time.Unix(1, 0)})}, []string{
			`{"type":"CUSTOM","name":"notice.retry","value":{"text":"busy","when":"1970-01-01T00:00:01Z"}}`}},
		{"an answer that is made again", []event{began, of(kindText, event{text: "a", part: "1", first: true}),
			of(kindDropped, event{message: "re-u1"})}, []string{
			`{"type":"TEXT_MESSAGE_START","messageId":"re-u1","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1","delta":"a"}`, "anew"}},
		{"a failure", []event{began, of(kindText, event{text: "a", part: "1", first: true}),
			of(kindEnded, event{state: flowfabric.Failed, text: "the key is sk-123"})}, []string{
			`{"type":"TEXT_MESSAGE_START","messageId":"re-u1","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1","delta":"a"}`,
			`{"type":"TEXT_MESSAGE_END","messageId":"re-u1"}`,
			`{"type":"RUN_ERROR","message":"An error occurred.","code":"failed"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, lines := aguiLines(t, snapshot{}, c.events...)
			if got, want := strings.Join(lines, "\n"), strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Events behind a snapshot during an answer continue the messages of the snapshot.
func TestAGUISnapshot(t *testing.T) {
	s := snapshot{doing: doingAnswer, messages: []message{
		{id: "u1", role: agent.User, said: agent.Message{Role: agent.User, ID: "u1", Parts: agent.Text("hello")}},
		{id: "re-u1", role: agent.Assistant, events: []event{
			{kind: kindBegan, message: "re-u1"}, {kind: kindStep, step: 1}, {kind: kindThought, text: "hm"},
			{kind: kindPartEnd}, {kind: kindText, text: "I pay"}, {kind: kindPartEnd}, {kind: kindCalled, call: pay},
			{kind: kindAnswer, usage: agent.Usage{Input: 1}}, result("paid"), {kind: kindStep, step: 2},
			{kind: kindText, text: "Do"}}}}}
	told, lines := aguiLines(t, s, of(kindText, event{text: "ne"}), of(kindAnswer, event{model: "m",
		usage: agent.Usage{Output: 1}}), of(kindIdle, event{}))
	if want := `[{"id":"u1","role":"user","content":"hello"},` +
		`{"id":"re-u1.reasoning","role":"reasoning","content":"hm"},` +
		`{"id":"re-u1","role":"assistant","content":"I pay","toolCalls":[{"id":"c1","type":"function",` +
		`"function":{"name":"pay","arguments":"{\"cents\":5}"}}]},` +
		`{"id":"result-c1","role":"tool","content":"paid","toolCallId":"c1"},` +
		`{"id":"re-u1.2","role":"assistant","content":"Do"}]`; told != want {
		t.Errorf("the snapshot is\n%s\nwant\n%s", told, want)
	}
	if got, want := strings.Join(lines, "\n"), `{"type":"TEXT_MESSAGE_START","messageId":"re-u1.2","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"re-u1.2","delta":"ne"}
{"type":"TEXT_MESSAGE_END","messageId":"re-u1.2"}`; got != want {
		t.Errorf("then\n%s\nwant\n%s", got, want)
	}
	var has []aguiSent
	must.No(t, json.Unmarshal([]byte(told), &has))
	w := newAGUIWriter(inline, nil)
	behind := func(has []aguiSent) (told []string, beginning bool) {
		_, beginning = w.snapshot(s, func(m []aguiMessage) bool { return aguiSame(m, has, nil) })
		for _, e := range w.taken() {
			told = append(told, e.Type)
		}
		return told, beginning
	}
	if told, ok := behind(has); !ok || told != nil {
		t.Errorf("a client with these messages: %v, %v", ok, told)
	}
	has[2].ToolCalls[0].Function.Arguments = `{"cents": 5}`
	if told, ok := behind(has[:3]); !ok || !slices.Equal(told, []string{aguiCallResult, aguiStepStart, aguiTextStart,
		aguiText}) {
		t.Errorf("a client without the last messages: %v, %v", ok, told)
	}
	if told, ok := behind(nil); !ok || len(told) < 10 {
		t.Errorf("a client without messages: %v, %v", ok, told)
	}
	if has[4].text = "D"; aguiSame(nil, has, nil) {
		t.Error("a client with other messages has none")
	}
	if told, ok := behind(has); ok || told != nil {
		t.Errorf("a client with other messages: %v, %v", ok, told)
	}
}

// A conversation that has failed says so to every run, whatever the client has of it.
func TestAGUIFailed(t *testing.T) {
	end := event{kind: kindEnded, state: flowfabric.Failed, text: "sk-123"}
	s := snapshot{doing: doingEnded, state: flowfabric.Failed, messages: []message{{id: "u1", role: agent.User,
		events: []event{said("u1", "hello"), end}}}}
	for _, has := range []bool{true, false} {
		w := newAGUIWriter(inline, func(flowfabric.Category, string) string { return "" })
		w.snapshot(s, func(m []aguiMessage) bool { return has && len(m) == 1 })
		if told := w.taken(); len(told) != 1 || told[0].Type != aguiRunError || told[0].Message != masked || !w.failed {
			t.Errorf("has it: %v: %+v", has, told)
		}
	}
	s.doing = doingIdle // it was brought back
	w := newAGUIWriter(inline, nil)
	w.snapshot(s, func(m []aguiMessage) bool { return len(m) == 1 })
	if told := w.taken(); told != nil || w.over {
		t.Errorf("brought back: %v", told)
	}
}

// A run that the end of the server breaks off has not come to an end, and says so.
func TestAGUIServerEnds(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Config{URL: testserver.Embedded(t),
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer c.Close()
	h, err := New(c, kindTalk, Config{Who: func(*http.Request) (string, error) { return "ann", nil }})
	must.No(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	body := `{"threadId":"t","runId":"r","messages":[{"id":"u1","role":"user","content":"hello"}]}`
	answer, err := http.Post(server.URL+"/agui", "application/json", strings.NewReader(body))
	must.No(t, err)
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	line, err := in.ReadString('\n')
	must.No(t, err)
	if !strings.Contains(line, aguiRunStarted) {
		t.Fatalf("the first event is %s", line)
	}
	h.Close() // no worker has heard the message
	rest, err := io.ReadAll(in)
	must.No(t, err)
	if text := string(rest); !strings.Contains(text, aguiRunError) || strings.Contains(text, aguiRunFinished) {
		t.Errorf("then it says %s", text)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAGUIInterrupts(t *testing.T) {
	q := suspend.Question{Title: "pay: cents 5", Text: "cents: 5", Assignee: "ann", Arguments: pay.Arguments,
		Schema: json.RawMessage(`{"type":"object"}`)}
	w := newAGUIWriter(inline, nil)
	w.snapshot(snapshot{}, nil)
	w.write(event{kind: kindAsked, call: pay, ask: &asking{ID: "w1", Key: "approve 1.1 pay", Question: q}})
	if w.asking {
		t.Fatal("the run ends before all questions were told")
	}
	w.write(event{kind: kindQuestion, last: true, ask: &asking{ID: "w2", Key: "which", Question: suspend.Question{
		Title: "Which?", Choices: []suspend.Choice{{Name: "a", Label: "A"}, {Name: "b"}}}}})
	got, err := json.Marshal(w.asked)
	must.No(t, err)
	if want := `[{"id":"w1","reason":"tool_call","message":"pay: cents 5","toolCallId":"c1","responseSchema":` +
		`{"properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object"},"reason":{"type":"string"}},` +
		`"required":["approved"],"type":"object"},` +
		`"metadata":{"assignee":"ann","key":"approve 1.1 pay","text":"cents: 5"}},` +
		`{"id":"w2","reason":"input_required","message":"Which?","responseSchema":{"properties":{"choice":` +
		`{"enum":["a","b"],"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"b"}],"type":"string"},` +
		`"comment":{"type":"string"}},"required":["choice"],"type":"object"},"metadata":{"key":"which"}}]`; !w.asking ||
		string(got) != want {
		t.Fatalf("asking: %v, got\n%s\nwant\n%s", w.asking, got, want)
	}
	w.write(event{kind: kindAnswered, ask: &asking{ID: "w1"}})
	if len(w.asked) != 1 || w.asked[0].ID != "w2" {
		t.Fatalf("open are %v", w.asked)
	}
}

func TestAGUIInput(t *testing.T) {
	open := []asking{{ID: "w1", Question: suspend.Question{Arguments: pay.Arguments}}, {ID: "w2",
		Question: suspend.Question{Choices: []suspend.Choice{{Name: "a"}, {Name: "b"}}}}}
	for _, c := range []struct{ name, resume, want string }{
		{"approved, changed", `[{"interruptId":"w1","status":"resolved","payload":{"approved":true,
			"editedArgs":{"cents":4},"reason":"less"}},{"interruptId":"w2","status":"resolved","payload":"b"}]`,
			`w1 approve less {"cents":4}; w2 b  `},
		{"rejected arguments do not count", `[{"interruptId":"w1","status":"resolved","payload":{"approved":false,
			"editedArgs":{"cents":4}}},
			{"interruptId":"w2","status":"resolved","payload":{"choice":"a","comment":"why"}}]`,
			`w1 reject  ; w2 a why `},
		{"a boolean", `[{"interruptId":"w1","status":"resolved","payload":true},
			{"interruptId":"w2","status":"resolved","payload":"a"}]`, `w1 approve  ; w2 a  `},
		{"cancelled", `[{"interruptId":"w1","status":"cancelled"},
			{"interruptId":"w2","status":"resolved","payload":"a"}]`,
			`w1 reject  ; w2 a  `},
		{"one that is over, too", `[{"interruptId":"w0","status":"resolved","payload":true},
			{"interruptId":"w1","status":"resolved","payload":true},
			{"interruptId":"w2","status":"resolved","payload":"a"}]`, `w0 approve  ; w1 approve  ; w2 a  `},
		{"one is missing", `[{"interruptId":"w1","status":"resolved","payload":true}]`, codeUnanswered},
		{"no choice of the question", `[{"interruptId":"w1","status":"resolved","payload":true},
			{"interruptId":"w2","status":"resolved","payload":true}]`, codeInvalid},
		{"nothing that says anything", `[{"interruptId":"w1","status":"resolved","payload":{"x":1}},
			{"interruptId":"w2","status":"resolved","payload":"a"}]`, codeInvalid},
		{"no payload", `[{"interruptId":"w1","status":"resolved"},
			{"interruptId":"w2","status":"resolved","payload":"a"}]`, codeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in aguiInput
			text := `{"threadId":"t","runId":"r","forwardedProps":7,"resume":` + c.resume + `}`
			must.No(t, json.Unmarshal([]byte(text), &in))
			must.No(t, in.check())
			got := ""
			all, err := in.decisions(open)
			if err != nil {
				got = problemOf(err).Code
			}
			for i, d := range all {
				if i > 0 {
					got += "; "
				}
				got += strings.Join([]string{d.ask, d.choice, d.comment, string(d.arguments)}, " ")
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The messages of a client are those of front ends: what the assistant has answered is one of them.
func TestAGUIHistory(t *testing.T) {
	for _, c := range []struct{ name, messages, want string }{
		{"two turns", `[{"id":"u1","role":"user","content":"hello"},
			{"id":"re-u1.reasoning","role":"reasoning","content":"hm"},
			{"id":"re-u1","role":"assistant","content":"I pay","toolCalls":[]},
			{"id":"result-c1","role":"tool","content":"x"},
			{"id":"re-u1.2","role":"assistant","content":"Done"},{"id":"re-u1.file.1","role":"activity","content":{}},
			{"id":"u2","role":"user","content":[{"type":"text","text":"and "},{"type":"text","text":"this"},
			{"type":"image","source":{"type":"data","value":"eA==","mimeType":"image/png"},
				"metadata":{"filename":"a.png"}},
			{"type":"document","source":{"type":"url","value":"data:text/plain,hi"}}]}]`,
			`user u1 hello 1; assistant re-u1 I payDone 0; user u2 and this 4`},
		{"words of the client's own", `[{"id":"g","role":"assistant","content":"Welcome"},
			{"id":"u1","role":"user","content":"hi"}]`, `assistant g Welcome 0; user u1 hi 1`},
		{"instructions", `[{"id":"s","role":"system","content":"be rude"}]`, codeInvalid},
		{"no id", `[{"role":"user","content":"hi"}]`, codeInvalid},
		{"an address elsewhere", `[{"id":"u","role":"user","content":[{"type":"image","source":{"type":"url",
			"value":"https://example.com/x.png"}}]}]`, codeInvalid},
		{"a file of a service", `[{"id":"u","role":"user","content":[{"type":"image","source":{"type":"file",
			"value":"f"}}]}]`, codeInvalid},
		{"no bytes", `[{"id":"u","role":"user","content":[{"type":"image","source":{"type":"data","value":"%",
			"mimeType":"image/png"}}]}]`, codeInvalid},
		{"a part of no type", `[{"id":"u","role":"user","content":[{"type":"hologram"}]}]`, codeInvalid},
		{"no content", `[{"id":"u","role":"user","content":7}]`, codeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in aguiInput
			must.No(t, json.Unmarshal([]byte(`{"messages":`+c.messages+`}`), &in))
			fronts, err := in.fronts()
			var got []string
			for _, f := range fronts {
				got = append(got, fmt.Sprint(f.role, " ", f.id, " ", f.text, " ", len(f.parts)))
			}
			if err != nil {
				got = []string{problemOf(err).Code}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %s, want %s", strings.Join(got, "; "), c.want)
			}
		})
	}
}
