package chat

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// mapped is an event of a conversation; frame names the frame or tail event that causes it.
type mapped struct {
	what, frame string
	before      []event // told before it
	e           event
}

// mapping has one event of each kind.
func mapping() []mapped {
	call := agent.ToolCall{ID: "c1", Name: "search", Arguments: json.RawMessage(`{"a":1}`)}
	began := []event{{kind: kindBegan, message: "re-u"}, {kind: kindStep, step: 1}}
	in := func(events ...event) []event {
		all := append([]event{}, began...)
		for _, e := range events {
			e.message = "re-u"
			all = append(all, e)
		}
		return all
	}
	text := event{kind: kindText, part: "1", first: true, text: "a"}
	thought := event{kind: kindThought, part: "1", first: true, text: "a"}
	starts, called := event{kind: kindCalling, call: call}, event{kind: kindCalled, step: 1, number: 1, call: call}
	said := func(m agent.Message) agent.Message {
		m.Role, m.Call, m.Tool, m.Parts = agent.ToolRole, "c1", "search", agent.Text("b")
		return m
	}
	ask := &asking{ID: "w", Key: "approve 1.1 search", Question: suspend.Question{Title: "May it?"}}
	usage := agent.Usage{Input: 7, Output: 3}
	last := func(e event) event { e.last, e.at = true, "a1"; return e }
	return []mapped{
		{"the user says something", "frame message, of the user", nil, event{kind: kindSaid, message: "u",
			said: agent.Message{Role: agent.User, ID: "u", Parts: agent.Text("hi")}}},
		{"the assistant begins", "its first frame", nil, began[0]},
		{"an answer begins", "its first frame", began[:1], began[1]},
		{"a text begins", "frame token", in(), text},
		{"a piece of it", "frame token", in(text), event{kind: kindText, part: "1", text: "b"}},
		{"the text ends", "the next frame", in(text), event{kind: kindPartEnd, part: "1"}},
		{"a thought begins", "frame reasoning", in(), thought},
		{"a piece of it", "frame reasoning", in(thought), event{kind: kindThought, part: "1", text: "b"}},
		{"the thought ends", "the next frame", in(thought), event{kind: kindPartEnd, part: "1", thought: true}},
		{"a call begins", "frame call, or message", in(), starts},
		{"a piece of its arguments", "frame arguments", in(starts), event{kind: kindArguments, call: call,
			text: `{"a`}},
		{"a call is whole", "frame message, of the assistant", in(starts), called},
		{"an image or a file", "frame message, of the assistant", in(), event{kind: kindFile,
			file: agent.Part{Type: agent.PartFile, Media: "text/plain", Data: []byte("a")}}},
		{"an answer is whole", "frame usage", in(text, event{kind: kindPartEnd, part: "1"}), event{kind: kindAnswer,
			step: 1, usage: usage, total: usage, stop: agent.StopEnd, model: "m"}},
		{"a call has a result", "frame result, or message of the tool", in(starts, called), event{kind: kindResult,
			step: 1, call: call, said: said(agent.Message{})}},
		{"the call failed", "frame result, or message of the tool", in(starts, called), event{kind: kindResult, step: 1,
			call: call, said: said(agent.Message{Failed: true})}},
		{"people rejected the call", "frame message, of the tool", in(starts, called), event{kind: kindResult, step: 1,
			call: call, said: said(agent.Message{Failed: true, Denied: true})}},
		{"people changed its arguments first", "frame result, or message of the tool", in(starts, called), event{
			kind: kindResult, step: 1, call: call, said: said(agent.Message{Edited: &agent.Edited{By: "anna",
				Arguments: json.RawMessage(`{"a":2}`)}})}},
		{"a sub-agent has answered", "frame message, of a child", in(starts, called), event{kind: kindResult, step: 1,
			call: call, said: said(agent.Message{}), preliminary: true}},
		{"the answer with the call was broken off", "frame message without the call", in(event{kind: kindCalling,
			call: agent.ToolCall{ID: "c1", Name: "search"}}), event{kind: kindResult, preliminary: true,
			call: agent.ToolCall{ID: "c1", Name: "search"}, said: said(agent.Message{Failed: true})}},
		{"people are asked about a call", "suspended, approve N.M TOOL", in(starts, called), last(event{
			kind: kindAsked, ask: ask, call: call})},
		{"people are asked another question", "suspended, with a question", in(), last(event{kind: kindQuestion,
			ask: ask})},
		{"the question about a call is over", "resumed, or the result", in(starts, called, event{kind: kindAsked,
			ask: ask, call: call}), event{kind: kindAnswered, ask: ask, call: call}},
		{"another question is over", "resumed", in(event{kind: kindQuestion, ask: ask}), event{kind: kindAnswered,
			ask: ask}},
		{"somebody stopped the answer", "frame turn, stop", in(), event{kind: kindStopped, halt: &halted{Act: "stop",
			By: "anna", Reason: "enough"}}},
		{"a message interrupted the answer", "frame turn, interrupt", in(), event{kind: kindStopped,
			halt: &halted{Act: "interrupt"}}},
		{"a source", "frame source: url, title, or media_type", in(), event{kind: kindSource,
			value: json.RawMessage(`{"url":"https://a.example"}`)}},
		{"a document as a source", "frame source: media_type, title, filename", in(), event{kind: kindSource,
			value: json.RawMessage(`{"media_type":"text/plain","title":"A"}`)}},
		{"data of the application", "frame data-NAME", in(), event{kind: kindData, name: "NAME", id: "1",
			value: json.RawMessage(`{"c":20}`)}},
		{"temporary data of the application", "frame data-NAME, best effort", in(), event{kind: kindData, name: "NAME",
			value: json.RawMessage(`{"c":20}`), preliminary: true}},
		{"the summary document", "a delta of the document", in(), event{kind: kindState,
			value: json.RawMessage(`{"n":1}`),
			patch: json.RawMessage(`{"n":1}`)}},
		{"an answer is retried", "retry", in(), event{kind: kindNotice, name: noticeRetry, when: time.Unix(1, 0)}},
		{"a limit is near", "frame message from limit of …", in(), event{kind: kindNotice, name: noticeLimit,
			text: "2 model calls are left"}},
		{"frames are missing", "gap", in(), event{kind: kindNotice, name: noticeGap}},
		{"earlier events are void", "attempt or resumed, if it repeats frames", in(text),
			last(event{kind: kindDropped})},
		{"it is the user's turn", "suspended on the mailbox", in(), last(event{kind: kindIdle, stop: agent.StopEnd})},
		{"the execution completed", "end", in(), last(event{kind: kindEnded, state: flowfabric.Completed,
			stop: agent.StopEnd})},
		{"the execution failed", "end", in(), last(event{kind: kindEnded, state: flowfabric.Failed, text: "secret"})},
		{"the execution was cancelled", "end", in(), last(event{kind: kindEnded, state: flowfabric.Cancelled})},
	}
}

// types are the types of the parts of a stream of Server-Sent Events.
func types(t *testing.T, stream string) (list []string) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var c struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		list = append(list, c.Type)
	}
	return list
}

// aisdk lists the chunks of the AI SDK for an event.
func (m mapped) aisdk(t *testing.T) []string {
	h := &Handler{cfg: Config{ShowError: func(flowfabric.Category, string) string { return masked }}}
	c := &request{w: httptest.NewRecorder(), q: httptest.NewRequest(http.MethodGet, "/c/stream", nil), id: "c"}
	s := newUIStream(h, c)
	for _, e := range m.before {
		if s.add(&told{event: e}, nil) {
			t.Fatalf("%s: the stream has ended before", m.what)
		}
	}
	s.out.Reset()
	e := m.e
	if e.message == "" && len(m.before) > 0 {
		e.message = "re-u"
	}
	s.add(&told{event: e}, nil)
	if strings.Contains(s.out.String(), "secret") {
		t.Errorf("%s tells the text of an error", m.what)
	}
	return types(t, s.out.String())
}

// agui is what the stream of AG-UI has of a thing.
func (m mapped) agui() (list []string) {
	w := newAGUIWriter(inline, func(flowfabric.Category, string) string { return masked })
	w.snapshot(snapshot{doing: doingAnswer}, nil)
	for _, e := range m.before {
		w.write(e)
	}
	w.taken()
	w.write(m.e)
	for _, e := range w.taken() {
		list = append(list, e.Type)
	}
	switch {
	case w.again:
		list = append(list, aguiMessages)
	case w.asking, w.idle, w.over && !strings.Contains(strings.Join(list, " "), aguiRunError):
		list = append(list, aguiRunFinished)
	}
	return list
}

const mappingHead = `# Events of chat front ends

` + "`TestMapping`" + ` in package chat writes this page from the writers of the protocols. FLOWFABRIC_GOLDEN=write
updates it.

A conversation is one execution. The agent and the application append frames to its stream
([package stream](../how-to/stream.md)). One piece of code makes events of the conversation from them, and each
protocol has a writer for these events. The table lists all of them. A Durable Stream has our own events, one message
each, named as in the column From.

- **A message of the user** has the id that its sender gave it. **A message of the assistant** is all answers up to
  the user's next message. Its id is re- and the id of the message that it answers, also after it is regenerated.
- **A client that resumes** behind an event (its SSE id, as Last-Event-ID or ` + "`?after=`" + `) gets exactly the rest.
  Without an id it gets the message from its beginning, under the same id.
- **Void events** end the AI SDK's stream with an abort and no finish: the worker was lost during the answer, or
  somebody regenerates it. The front end resumes, and gets the current message. AG-UI gets a snapshot of the
  messages, and continues.
- **A stream of the AI SDK ends** when it is the user's turn, when people are asked and have not answered yet, when
  the user sends another message, and when the execution ends.
- **Tools** are static parts of the AI SDK, tool-NAME. The output is the JSON object or array that the tool
  returned, else a text.
- **Frames of an application** are shown if their type begins with data-, or is source. All others stay inside. The
  summary document is shown to everybody who may read the conversation.
- **Errors are masked.** Config.ShowError decides which text people see.

| What happens | From | AI SDK | AG-UI |
|---|---|---|---|
`

// The reference page agrees with the writers.
func TestMapping(t *testing.T) {
	var page bytes.Buffer
	page.WriteString(mappingHead)
	kinds := map[kind]bool{}
	for _, m := range mapping() {
		kinds[m.e.kind] = true
		cell := func(list []string) string {
			if len(list) == 0 {
				return "–"
			}
			return strings.Join(list, ", ")
		}
		page.WriteString("| " + m.what + " | " + m.frame + " | " + cell(m.aisdk(t)) + " | " + cell(m.agui()) + " |\n")
	}
	for k := kindSaid; k <= kindEnded; k++ {
		if !kinds[k] {
			t.Errorf("kind %d is not in the table", k)
		}
	}
	const path = "../docs/reference/chat.md"
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(is, page.Bytes()) {
		t.Errorf("%s differs from the writers; update it with FLOWFABRIC_GOLDEN=write:\n%s", path, &page)
	}
}
