package chat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// streamed are the chunks of a stream, and the places behind them.
func (s *stage) streamed(who, method, path string, body any) (lines []string, ids []string) {
	f := s.follow(who, method, path, body)
	for {
		data, at := f.line()
		if data == "" {
			return lines, ids
		}
		lines, ids = append(lines, data), append(ids, at)
	}
}

// A stream has the parts in their order, and a client that resumes behind any of them gets the rest, byte by byte.
func TestUIStream(t *testing.T) {
	thinking := saying("It is 4.")
	thinking.Message.Parts = append([]agent.Part{{Type: agent.PartReasoning, Text: "hm"}}, thinking.Message.Parts...)
	s := stageOf(t, agent.Config{Model: answers{calling("search", `{"text":"a"}`, `{"text":"bad"}`), thinking},
		Tools: []agent.Tool{search}, Parallel: 1}, nil)
	lines, ids := s.streamed("anna", http.MethodPost, "", say("c", "u1", "hello"))
	want := []string{`{"type":"start","messageId":"re-u1"}`, `{"type":"start-step"}`,
		`{"type":"tool-input-start","toolCallId":"c1","toolName":"search"}`,
		`{"type":"tool-input-available","toolCallId":"c1","toolName":"search","input":{"text":"a"}}`,
		`{"type":"tool-input-start","toolCallId":"c2","toolName":"search"}`,
		`{"type":"tool-input-available","toolCallId":"c2","toolName":"search","input":{"text":"bad"}}`,
		`{"type":"message-metadata","messageMetadata":{"model":"m","usage":{"inputTokens":7,"outputTokens":3,` +
			`"totalTokens":10}}}`, `{"type":"finish-step"}`,
		`{"type":"tool-output-available","toolCallId":"c1","output":"about a"}`,
		`{"type":"tool-output-error","toolCallId":"c2","errorText":"nothing is there"}`,
		`{"type":"start-step"}`, `{"type":"reasoning-start","id":"1"}`,
		`{"type":"reasoning-delta","id":"1","delta":"hm"}`, `{"type":"reasoning-end","id":"1"}`,
		`{"type":"text-start","id":"2"}`, `{"type":"text-delta","id":"2","delta":"It "}`,
		`{"type":"text-delta","id":"2","delta":"is "}`, `{"type":"text-delta","id":"2","delta":"4."}`,
		`{"type":"text-end","id":"2"}`,
		`{"type":"message-metadata","messageMetadata":{"model":"m","usage":{"inputTokens":14,"outputTokens":6,` +
			`"totalTokens":20}}}`, `{"type":"finish-step"}`, `{"type":"finish","finishReason":"stop"}`, `[DONE]`}
	if !slices.Equal(lines, want) {
		t.Errorf("the stream:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	places := 0
	for i, at := range ids {
		if at == "" || lines[i+1] == "[DONE]" {
			continue
		}
		places++
		rest, _ := s.streamed("anna", http.MethodGet, "/c/stream?after="+at, nil)
		if wanted := want[i+1:]; !slices.Equal(rest, wanted) {
			t.Errorf("behind %s:\n%s\nwant\n%s", lines[i], strings.Join(rest, "\n"), strings.Join(wanted, "\n"))
		}
	}
	if places < 8 {
		t.Errorf("%d places to come back to", places)
	}
	again, _ := s.streamed("anna", http.MethodPost, "", say("c", "u1", "hello"))
	if !slices.Equal(again, want) {
		t.Errorf("sent again:\n%s", strings.Join(again, "\n"))
	}
	for _, path := range []string{"/c/stream", "/nobody-has-begun-it/stream"} {
		if r := s.ask("anna", http.MethodGet, path, nil); r.status != http.StatusNoContent {
			t.Errorf("resume when nothing is answered, %s: %d", path, r.status)
		}
	}
	if r := s.ask("anna", http.MethodGet, "/c/stream?after=x!", nil); r.status != http.StatusBadRequest {
		t.Errorf("behind nothing: %d", r.status)
	}
	var now struct {
		State    doing          `json:"state"`
		Messages []shownMessage `json:"messages"`
	}
	if err := json.Unmarshal([]byte(s.ask("anna", http.MethodGet, "/c", nil).body), &now); err != nil ||
		now.State != doingIdle || len(now.Messages) != 2 || len(now.Messages[1].Parts) != 6 ||
		*now.Messages[1].Parts[5].Text != "It is 4." || now.Messages[1].Metadata.Usage.Total != 20 {
		t.Errorf("%v, %+v", err, now)
	}
}

// A stream of an answer that is made again ends with an abort, and a client that resumes gets the new answer.
func TestUIStreamIsVoid(t *testing.T) {
	g := newGated()
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		if len(req.Messages) == 1 {
			return calling("search", `{"text":"a"}`), nil
		}
		return g.Generate(ctx, req, delta)
	})
	s := stageOf(t, agent.Config{Model: model, Tools: []agent.Tool{search}}, nil)
	first := s.follow("anna", http.MethodPost, "", say("c", "u1", "hello"))
	<-g.began
	g.words <- "one "
	first.until("text-delta")
	tab := s.follow("anna", http.MethodGet, "/c/stream", nil)
	if p := tab.until("text-delta"); p.Delta != "one " {
		t.Errorf("a tab that comes in mid-word gets %+v", p)
	}
	again := s.follow("anna", http.MethodPost, "", map[string]any{"id": "c", "trigger": "regenerate-message"})
	for _, f := range []*following{first, tab} {
		text, types := f.rest()
		if text != "" || !slices.Equal(types, []string{"abort"}) {
			t.Errorf("%q, %q", text, types)
		}
	}
	<-g.began
	g.words <- "two"
	tab = s.follow("anna", http.MethodGet, "/c/stream", nil)
	close(g.words)
	for _, f := range []*following{again, tab} {
		if text, types := f.rest(); text != "two" || types[len(types)-1] != "finish" {
			t.Errorf("%q, %q", text, types)
		}
	}
}

// A stream ends where people are asked, and the events after their answer continue the same message.
func TestUIStreamOfApprovals(t *testing.T) {
	s := stageOf(t, agent.Config{Model: answers{calling("refund", `{"text":"1"}`), saying("done")},
		Tools: []agent.Tool{refund}}, nil)
	f := s.follow("anna", http.MethodPost, "", say("c", "u1", "pay"))
	asked := f.until("tool-approval-request")
	if text, types := f.rest(); text != "" || !slices.Equal(types, []string{"finish"}) {
		t.Errorf("behind the question: %q", types)
	}
	if r := s.ask("anna", http.MethodGet, "/c/stream", nil); r.status != http.StatusNoContent {
		t.Errorf("resume while people are asked: %d", r.status)
	}
	var shows struct{ Messages []shownMessage }
	if err := json.Unmarshal([]byte(s.ask("anna", http.MethodGet, "/c", nil).body), &shows); err != nil {
		t.Fatal(err)
	}
	p := shows.Messages[1].Parts[1]
	if p.State != "approval-requested" || p.Approval.ID != asked.ApprovalID ||
		!strings.Contains(string(p.Approval.Descriptor.Schema), "text") {
		t.Errorf("%+v", p)
	}
	tool := map[string]any{"type": "tool-refund", "toolCallId": "c1", "state": "approval-responded",
		"input": map[string]any{"text": "1"}, "approval": map[string]any{"id": asked.ApprovalID, "approved": true}}
	lines, _ := s.streamed("anna", http.MethodPost, "", map[string]any{"id": "c", "trigger": "submit-message",
		"messages": []any{userMessage("u1", "pay"), map[string]any{"id": "re-u1", "role": "assistant",
			"parts": []any{map[string]any{"type": "step-start"}, tool}}}})
	if want := []string{`{"type":"start","messageId":"re-u1"}`,
		`{"type":"tool-input-available","toolCallId":"c1","toolName":"refund","input":{"text":"1"}}`,
		`{"type":"tool-output-available","toolCallId":"c1","output":"paid 1"}`, `{"type":"start-step"}`,
		`{"type":"text-start","id":"1"}`, `{"type":"text-delta","id":"1","delta":"done"}`,
		`{"type":"text-end","id":"1"}`}; len(lines) < len(want) || !slices.Equal(lines[:len(want)], want) {
		t.Errorf("behind the answer:\n%s", strings.Join(lines, "\n"))
	}
}

// Who comes in mid-word, behind a question that somebody has answered, gets what follows it, from the beginning and
// behind any event.
func TestUIStreamBehindAnAnswer(t *testing.T) {
	g := newGated()
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		if len(req.Messages) == 1 {
			return calling("refund", `{"text":"1"}`), nil
		}
		return g.Generate(ctx, req, delta)
	})
	s := stageOf(t, agent.Config{Model: model, Tools: []agent.Tool{refund}}, nil)
	lines, ids := s.streamed("anna", http.MethodPost, "", say("c", "u1", "pay"))
	var asked piece
	if err := json.Unmarshal([]byte(lines[len(lines)-3]), &asked); err != nil || asked.ApprovalID == "" {
		t.Fatalf("%v, %q", err, lines)
	}
	body := map[string]any{"approvalId": asked.ApprovalID, "approved": true}
	if r := s.ask("anna", http.MethodPost, "/c/answer", body); r.status != http.StatusOK {
		t.Fatal(r)
	}
	<-g.began
	g.words <- "one "
	s.wait("anna", "c", func(now snapshot) bool {
		all := now.messages[1].events
		return all[len(all)-1].kind == kindText
	})
	tabs := []*following{s.follow("anna", http.MethodGet, "/c/stream", nil),
		s.follow("anna", http.MethodPost, "", say("c", "u1", "pay"))}
	for _, at := range ids {
		if at != "" {
			tabs = append(tabs, s.follow("anna", http.MethodGet, "/c/stream?after="+at, nil))
		}
	}
	g.words <- "two"
	close(g.words)
	for n, f := range tabs {
		if text, types := f.rest(); text != "one two" || !slices.Contains(types, "tool-output-available") {
			t.Errorf("tab %d gets %q, %q", n, text, types)
		}
	}
}

// slowly is a response that is read while it is written.
type slowly struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (s *slowly) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ResponseRecorder.Write(p)
}

func (s *slowly) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Body.String()
}

// A silent stream sends comments, and its headers tell proxies to forward it at once.
func TestUIStreamIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(agent.Config{
			Model: answers{saying("hi")}})))
		x := fftest.Submit(w, kindTalk, Conversation{})
		m, err := roomsOf(t, w).enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer m.leave()
		out := &slowly{ResponseRecorder: httptest.NewRecorder()}
		q := httptest.NewRequest(http.MethodGet, "/c/stream", nil)
		var group conc.WaitGroup
		s := newUIStream(&Handler{}, &request{w: out, q: q, id: "c"})
		group.Go(func() { s.follow(m.follow(place{answerTo: "u1"})) })
		x.AwaitSuspension()
		w.Sleep(2*heartbeat + time.Second)
		if got := out.text(); got != ": follow\n\n: \n\n: \n\n" {
			t.Errorf("%q", got)
		}
		sends(t, w, x, "u1", "hello")
		group.Wait()
		if got := out.text(); !strings.HasSuffix(got, "\n\ndata: [DONE]\n\n") ||
			!strings.Contains(got, `"delta":"hi"`) {
			t.Errorf("%q", got)
		}
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "X-Accel-Buffering": "no",
			"Cache-Control": "no-cache, no-transform", "X-Vercel-Ai-Ui-Message-Stream": "v1"} {
			if got := out.Result().Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}
