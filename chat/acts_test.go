package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// A first message begins a conversation, a repeated POST follows the answer, and a later one continues it, whether the
// front end sends its whole history or the newest message.
func TestSubmit(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, nil)
	for range 2 {
		if got := s.tell("ann", "c/1", "u1", "hello you"); got != "1: hello you" {
			t.Errorf("%q", got)
		}
	}
	whole := map[string]any{"id": "c/1", "messages": []any{userMessage("u1", "hello you"),
		assistantMessage("re-u1", "1: hello you"), userMessage("u2", "more")}}
	for range 2 {
		if got, _ := s.follow("ann", http.MethodPost, "", whole).rest(); got != "2: more" {
			t.Errorf("%q", got)
		}
	}
	s.records("ann", "c/1", "user u1: hello you", "assistant : 1: hello you", "user u2: more", "assistant : 2: more")
	whole["messages"] = []any{userMessage("u1", "hello me"), assistantMessage("re-u1", "1: hello you"),
		userMessage("u3", "more")}
	if r := s.ask("ann", http.MethodPost, "", whole); r.status != http.StatusConflict || r.code != codeHistory {
		t.Errorf("%+v", r)
	}
	if r := s.ask("ben", http.MethodGet, "/c%2F1", nil); r.status != http.StatusNotFound || r.code != codeNoChat {
		t.Errorf("of another owner: %+v", r)
	}
	one := map[string]any{"id": "c/1", "message": userMessage("u4", "last")}
	if got, _ := s.follow("ann", http.MethodPost, "", one).rest(); got != "3: last" {
		t.Errorf("%q", got)
	}
}

// Two tabs that begin the same conversation at once begin one, and both are heard. The owner of another one has a
// conversation of its own under the same id.
func TestBegunTwice(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, func(cfg *Config) {
		cfg.Begin = func(_ context.Context, q *http.Request, owner, id string) (Conversation,
			[]client.SubmitOption, error) {
			return Conversation{Data: json.RawMessage(fmt.Sprintf(`{"by":%q}`, q.Header.Get("Tab")))},
				[]client.SubmitOption{flowfabric.Tags(map[string]string{"app.x": owner + id})}, nil
		}
	})
	s.tabs(func(_, _ string, types []string) {
		if len(types) == 0 || types[len(types)-1] != "finish" {
			t.Errorf("%q", types)
		}
	}, "u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7")
	s.tell("ben", "c", "u1", "mine")
	s.idle("ann", "c")
	var users []string
	for _, line := range s.recorded("ann", "c") {
		if strings.HasPrefix(line, "user") {
			users = append(users, line)
		}
	}
	slices.Sort(users)
	if len(users) != 8 || users[7] != "user u7: u7" {
		t.Errorf("%q", users)
	}
	page, err := s.chat.admin.ListPage(t.Context(), admin.Filter{Kind: "talk", WithTags: true}, "", 0)
	if err != nil || len(page.Items) != 2 || page.Items[0].Tags["app.x"] == "" || page.Items[0].Tags[tagID] != "c" {
		t.Errorf("%+v, %v", page.Items, err)
	}
}

// A stop keeps what was said, and another tab may stop. Of a stop and the last word one comes first; then there is
// nothing to stop.
func TestStop(t *testing.T) {
	g := newGated()
	s := stageOf(t, agent.Config{Model: g}, nil)
	f := s.midWord(g, "tell me")
	if r := s.ask("ben", http.MethodPost, "/c/stop", nil); r.code != codeNoChat {
		t.Errorf("by another owner: %+v", r)
	}
	if r := s.ask("ann", http.MethodPost, "/c/stop", map[string]any{"reason": "enough"}); r.status != 200 ||
		!strings.Contains(r.body, `"stopped":true`) {
		t.Errorf("%+v", r)
	}
	if _, types := f.rest(); !slices.Contains(types, "abort") {
		t.Errorf("%q", types)
	}
	s.idle("ann", "c")
	if r := s.ask("ann", http.MethodPost, "/c/stop", nil); r.status != 200 ||
		!strings.Contains(r.body, `"stopped":false`) {
		t.Errorf("again: %+v", r)
	}
	s.records("ann", "c", "user u1: tell me", "assistant : half ")
}

// Two tabs that stop and send at once, again and again: each message is answered, once.
func TestStopAndSendAtOnce(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, nil)
	s.tell("ann", "c", "u", "begin")
	const rounds = 10
	for n := range rounds {
		var stops conc.WaitGroup
		for range 2 {
			stops.Go(func() {
				if r := s.ask("ann", http.MethodPost, "/c/stop", nil); r.status != http.StatusOK {
					t.Errorf("%+v", r)
				}
			})
		}
		s.tabs(func(id, _ string, types []string) {
			if len(types) == 0 {
				t.Errorf("%s: nothing", id)
			}
		}, fmt.Sprint("a", n), fmt.Sprint("b", n))
		stops.Wait()
	}
	s.idle("ann", "c")
	if users := s.users("ann", "c"); users != 1+2*rounds {
		t.Errorf("%d messages of the user, want %d", users, 1+2*rounds)
	}
}

// An answer is made again, by its id or the last one, and a message is edited, also one whose answer is being made.
// What lies in an earlier link stays.
func TestRegenerateAndEdit(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	s := stageOf(t, agent.Config{MaxTurns: 4, Model: agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		mu.Lock()
		calls++
		n := calls
		mu.Unlock()
		text := fmt.Sprintf("%d: %s", n, req.Messages[len(req.Messages)-1].Text())
		return agent.Response{Message: agent.Message{Parts: agent.Text(text)}}, delta(agent.Delta{Text: text})
	})}, nil)
	again := func(message string) (string, []string) {
		body := map[string]any{"id": "c", "messages": []any{}, "trigger": "regenerate-message"}
		if message != "" {
			body["messageId"] = message
		}
		return s.follow("ann", http.MethodPost, "", body).rest()
	}
	s.tell("ann", "c", "u1", "one")
	s.tell("ann", "c", "u2", "two")
	if got, _ := again(""); got != "3: two" {
		t.Errorf("the last one: %q", got)
	}
	if got, _ := again("re-u1"); got != "4: one" {
		t.Errorf("the first one: %q", got)
	}
	if got, _ := again("u1"); got != "5: one" {
		t.Errorf("by the message of the user: %q", got)
	}
	edit := map[string]any{"id": "c", "messages": []any{userMessage("u1", "uno")}, "trigger": "submit-message",
		"messageId": "u1"}
	for _, want := range []string{"6: uno", "6: uno"} { // and replayed
		if got, _ := s.follow("ann", http.MethodPost, "", edit).rest(); got != want {
			t.Errorf("the edit: %q, want %q", got, want)
		}
	}
	s.records("ann", "c", "user u1: uno", "assistant : 6: uno")
	for n := range 4 { // the next link
		s.tell("ann", "c", fmt.Sprint("v", n), "x")
	}
	old := map[string]any{"id": "c", "trigger": "regenerate-message", "messageId": "re-u1"}
	if r := s.ask("ann", http.MethodPost, "", old); r.status != http.StatusConflict || r.code != codeTooOld {
		t.Errorf("of the link before: %+v", r)
	}
	old["messageId"] = "re-zz"
	if r := s.ask("ann", http.MethodPost, "", old); r.status != http.StatusNotFound {
		t.Errorf("of no message: %+v", r)
	}
	if got, _ := again(""); got != "11: x" {
		t.Errorf("in the next link: %q", got)
	}
}

// Tabs that want another answer at once get the same one.
func TestRegenerateAtOnce(t *testing.T) {
	g := newGated()
	s := stageOf(t, agent.Config{Model: g}, nil)
	first := s.follow("ann", http.MethodPost, "", say("c", "u1", "one"))
	<-g.began
	g.words <- "first"
	g.words <- ""
	first.rest()
	again := map[string]any{"id": "c", "trigger": "regenerate-message", "messageId": "re-u1"}
	said := []message{{id: "u1", role: agent.User}} // before a word of the new answer is told
	if of, err := answered(said, "re-u1"); of != "u1" || err != nil {
		t.Errorf("%q, %v", of, err)
	}
	var tabs conc.WaitGroup
	follow := make(chan struct{}, 8)
	for range 4 {
		tabs.Go(func() {
			defer func() { follow <- struct{}{} }() // also if it was refused
			f := s.follow("ann", http.MethodPost, "", again)
			follow <- struct{}{}
			if got, _ := f.rest(); got != "second" {
				t.Errorf("%q", got)
			}
		})
	}
	<-g.began
	for range 4 {
		<-follow
	}
	g.words <- "second"
	g.words <- ""
	tabs.Wait()
	s.records("ann", "c", "user u1: one", "assistant : second")
}

// A message whose answer is being made is edited: the answer is stopped, and made for the other words.
func TestEditWhileAnswering(t *testing.T) {
	g := newGated()
	s := stageOf(t, agent.Config{Model: g}, nil)
	s.midWord(g, "one")
	var editing conc.WaitGroup
	edit := map[string]any{"id": "c", "messages": []any{userMessage("u1", "uno")}, "messageId": "u1"}
	editing.Go(func() {
		if got, _ := s.follow("ann", http.MethodPost, "", edit).rest(); got != "whole" {
			t.Errorf("%q", got)
		}
	})
	if said := <-g.began; said != "uno" {
		t.Errorf("the model was asked about %q", said)
	}
	g.words <- "whole"
	g.words <- ""
	editing.Wait()
	s.records("ann", "c", "user u1: uno", "assistant : whole")
}

type payback struct {
	Cents int `json:"cents" jsonschema:"how much"`
}

// approving is an agent whose tool needs a person.
func approving(ran func(cents int)) agent.Config {
	tool := agent.NewTool("refund", "pays back", func(_ context.Context, in payback) (string, error) {
		ran(in.Cents)
		return fmt.Sprintf("paid %d", in.Cents), nil
	}, agent.Needs(func(payback) agent.Decision { return agent.Decision{Ask: true} }))
	return agent.Config{Tools: []agent.Tool{tool}, Model: agent.ModelFunc(func(_ context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == agent.User {
			calls := []agent.ToolCall{{ID: "c1", Name: "refund", Arguments: []byte(`{"cents":5}`)}}
			if last.Text() == "two" {
				calls = append(calls, agent.ToolCall{ID: "c2", Name: "refund", Arguments: []byte(`{"cents":6}`)})
			}
			return agent.Response{Message: agent.Message{Calls: calls}}, nil
		}
		text := "done: " + last.Text()
		return agent.Response{Message: agent.Message{Parts: agent.Text(text)}}, delta(agent.Delta{Text: text})
	})}
}

// People answer a call in the history that the front end sends, or beside it, and may change its arguments. A repeated
// answer changes nothing, and a different one is told who was first.
func TestApprovals(t *testing.T) {
	var mu sync.Mutex
	var paid []int
	s := stageOf(t, approving(func(cents int) {
		mu.Lock()
		defer mu.Unlock()
		paid = append(paid, cents)
	}), nil)
	responded := func(id string, approved bool) map[string]any {
		return map[string]any{"id": "c", "messages": []any{userMessage("u1", "one"), map[string]any{"id": "re-u1",
			"role": "assistant", "parts": []any{map[string]any{"type": "tool-refund", "toolCallId": "c1",
				"state": "approval-responded", "approval": map[string]any{"id": id, "approved": approved}}}}}}
	}
	asked := s.follow("ann", http.MethodPost, "", say("c", "u1", "one")).until("tool-approval-request")
	for range 2 { // and replayed
		text, types := s.follow("ann", http.MethodPost, "", responded(asked.ApprovalID, true)).rest()
		if text != "done: paid 5" || slices.Contains(types, "tool-approval-request") {
			t.Errorf("%q, %q", text, types)
		}
	}
	if r := s.ask("ann", http.MethodPost, "", responded(asked.ApprovalID, false)); r.code != codeAnswered ||
		!strings.Contains(r.body, "ann has decided otherwise: approve") {
		t.Errorf("otherwise: %+v", r)
	}
	answer := func(body map[string]any) reply { return s.ask("ann", http.MethodPost, "/c/answer", body) }
	asked = s.follow("ann", http.MethodPost, "", say("c", "u2", "one")).until("tool-approval-request")
	if r := answer(map[string]any{"approvalId": asked.ApprovalID, "approved": true,
		"arguments": map[string]any{"cents": "many"}}); r.status != http.StatusUnprocessableEntity ||
		r.code != codeArguments || !strings.Contains(r.body, "cents") {
		t.Errorf("arguments that do not fit: %+v", r)
	}
	if r := answer(map[string]any{"approvalId": "none", "approved": true}); r.status != http.StatusNotFound {
		t.Errorf("no question: %+v", r)
	}
	if r := answer(map[string]any{"approvalId": asked.ApprovalID, "choice": "perhaps"}); r.status !=
		http.StatusUnprocessableEntity {
		t.Errorf("no choice: %+v", r)
	}
	for range 2 {
		if r := answer(map[string]any{"approvalId": asked.ApprovalID, "approved": true,
			"arguments": map[string]any{"cents": 3}}); r.status != http.StatusOK {
			t.Errorf("changed: %+v", r)
		}
	}
	if r := answer(map[string]any{"approvalId": asked.ApprovalID, "approved": true,
		"arguments": map[string]any{"cents": 4}}); r.code != codeAnswered {
		t.Errorf("changed otherwise: %+v", r)
	}
	s.idle("ann", "c")
	asked = s.follow("ann", http.MethodPost, "", say("c", "u3", "one")).until("tool-approval-request")
	if r := answer(map[string]any{"approvalId": asked.ApprovalID, "approved": false, "reason": "too much"}); r.status !=
		http.StatusOK {
		t.Errorf("rejected: %+v", r)
	}
	s.idle("ann", "c")
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(paid, []int{5, 3}) {
		t.Errorf("paid %v", paid)
	}
	if got := s.recorded("ann", "c"); !strings.Contains(got[len(got)-1], "rejected by ann: too much") {
		t.Errorf("%q", got)
	}
}

// While people are asked a message is refused, unless the agent is one that messages interrupt.
func TestMessageWhileAsking(t *testing.T) {
	for _, busy := range []agent.WhileBusy{"", agent.Interrupt} {
		a := approving(func(int) {})
		a.WhileBusy = busy
		s := stageOf(t, a, nil)
		s.follow("ann", http.MethodPost, "", say("c", "u1", "one")).until("tool-approval-request")
		s.asking("ann", "c")
		if busy == "" {
			if r := s.ask("ann", http.MethodPost, "", say("c", "u2", "one")); r.status != http.StatusConflict ||
				r.code != codeUnanswered {
				t.Errorf("%+v", r)
			}
			continue
		}
		s.follow("ann", http.MethodPost, "", say("c", "u2", "one")).until("tool-approval-request")
		if got := s.recorded("ann", "c"); len(got) < 4 || !strings.Contains(got[2], "a message came before") {
			t.Errorf("%q", got)
		}
	}
}

// A conversation of many links is one for the front end. What the server does not keep any more, it may have.
func TestLinksOfAConversation(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo), MaxTurns: 2}, nil)
	var history []any
	for n := range 7 {
		id, text := fmt.Sprint("u", n), fmt.Sprint("hi ", n)
		history = append(history, userMessage(id, text))
		got, _ := s.follow("ann", http.MethodPost, "", map[string]any{"id": "c", "messages": history}).rest()
		if got != fmt.Sprintf("%d: %s", n+1, text) {
			t.Errorf("%q", got)
		}
		history = append(history, assistantMessage("re-"+id, got))
	}
	x, err := s.client.Execution(s.id("ann", "c")).Get(t.Context())
	if err != nil || x.Continues != 3 {
		t.Errorf("%d links before, %v", x.Continues, err)
	}
	var shown struct {
		Messages []struct {
			ID    string
			Parts []struct{ Text string }
		}
	}
	r := s.ask("ann", http.MethodGet, "/c", nil)
	if err := json.Unmarshal([]byte(r.body), &shown); err != nil || len(shown.Messages) != len(history) ||
		shown.Messages[0].ID != "u0" || shown.Messages[13].ID != "re-u6" {
		t.Errorf("%s, %v", r.body, err)
	}
}

// With EditHistory the history of a front end that has gone another way is an edit.
func TestEditHistory(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, func(cfg *Config) { cfg.EditHistory = true })
	for n := range 3 {
		s.tell("ann", "c", fmt.Sprint("u", n), fmt.Sprint("hi ", n))
	}
	body := map[string]any{"id": "c", "messages": []any{userMessage("u0", "hi 0"), assistantMessage("re-u0", "1: hi 0"),
		userMessage("v1", "other")}}
	for range 2 {
		if got, _ := s.follow("ann", http.MethodPost, "", body).rest(); got != "2: other" {
			t.Errorf("%q", got)
		}
	}
	s.records("ann", "c", "user u0: hi 0", "assistant : 1: hi 0", "user v1: other", "assistant : 2: other")
}

// Of two calls one is decided by another tab: its answer is known while the other question is open.
func TestApprovalsOfTwoTabs(t *testing.T) {
	s := stageOf(t, approving(func(int) {}), nil)
	f := s.follow("ann", http.MethodPost, "", say("c", "u1", "two"))
	first := f.until("tool-approval-request")
	s.asking("ann", "c")
	answer := func(id string, approved bool) reply {
		return s.ask("ann", http.MethodPost, "/c/answer", map[string]any{"approvalId": id, "approved": approved})
	}
	if r := answer(first.ApprovalID, true); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	if r := answer(first.ApprovalID, true); r.status != http.StatusOK {
		t.Errorf("again: %+v", r)
	}
	if r := answer(first.ApprovalID, false); r.code != codeAnswered {
		t.Errorf("otherwise: %+v", r)
	}
	now := s.now("ann", "c")
	for _, a := range now.asks {
		if a.ID != first.ApprovalID {
			if r := answer(a.ID, false); r.status != http.StatusOK {
				t.Errorf("%+v", r)
			}
		}
	}
	s.idle("ann", "c")
	if got := s.recorded("ann", "c"); len(got) != 5 || !strings.Contains(got[2], "paid 5") ||
		!strings.Contains(got[3], "rejected") {
		t.Errorf("%q", got)
	}
}

// The answer to one of several questions does not wait for answers to the others.
func TestOneOfSeveralAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(approving(func(int) {}))))
		x := fftest.Submit(w, kindTalk, Conversation{Messages: []agent.Message{{Role: agent.User, ID: "u1",
			Parts: agent.Text("two")}}})
		asked := x.AwaitSuspension().Waitpoints
		if len(asked) != 2 {
			t.Fatalf("%d questions", len(asked))
		}
		h := &Handler{client: w.Client(), rooms: roomsOf(t, w)}
		c := &request{q: httptest.NewRequest(http.MethodPost, "/c/answer", nil), id: "c", owner: "ann"}
		page, err := h.rooms.enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer page.leave()
		for len(page.snapshot().asks) < len(asked) {
			w.Sleep(time.Second)
		}
		began := time.Now()
		for _, q := range asked {
			if _, err := h.decide(c, x.ID(), decide(q.Key, true, "", nil)); err != nil {
				t.Fatal(err)
			}
			if err := h.seen(c, x.ID(), q.Key); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited >= patience { // in virtual time
			t.Errorf("the answers took %v", waited)
		}
	})
}

// A message replays a conversation that has failed, expired, or ended because nobody wrote, also if two tabs send one
// at once. A cancelled one has ended for good.
func TestMessagesToWhatHasEnded(t *testing.T) {
	var mu sync.Mutex
	broken := true
	s := stageOf(t, agent.Config{Idle: 200 * time.Millisecond, Model: agent.ModelFunc(func(ctx context.Context,
		req agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return agent.Response{}, handler.Permanent(fmt.Errorf("the service is away"))
		}
		return echo(ctx, req, delta)
	})}, nil)
	_, types := s.follow("ann", http.MethodPost, "", say("c", "u1", "one")).rest()
	if !slices.Contains(types, "error") {
		t.Errorf("%q", types)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	both := func(n int) {
		s.tabs(func(_, text string, types []string) {
			if !strings.Contains(text, fmt.Sprint(n)) {
				t.Errorf("%q, %q", text, types)
			}
		}, fmt.Sprint("a", n), fmt.Sprint("b", n))
	}
	both(1) // after the failure
	for n := 2; n < 4; n++ {
		s.ended("ann", "c", flowfabric.Completed)
		both(n) // after the rest
	}
	if users := s.users("ann", "c"); users != 7 {
		t.Errorf("%d messages of the user, want 7", users)
	}
	if err := s.client.Execution(s.id("ann", "c")).Cancel(t.Context()); err != nil {
		s.ended("ann", "c", flowfabric.Completed)
		s.follow("ann", http.MethodPost, "", say("c", "z", "z")).rest()
		_ = s.client.Execution(s.id("ann", "c")).Cancel(t.Context())
	}
	if r := s.ask("ann", http.MethodPost, "", say("c", "last", "x")); r.status != http.StatusGone ||
		r.code != codeEnded {
		t.Errorf("cancelled: %+v", r)
	}
}

// A worker loses the execution during an answer, as one that is killed does: the answer is made again, and readers that
// resume see it whole.
func TestWorkerIsLost(t *testing.T) {
	g := newGated()
	s := stageOf(t, agent.Config{Model: g}, nil)
	f := s.midWord(g, "tell me")
	if err := s.chat.admin.Revoke(t.Context(), s.id("ann", "c"), ""); err != nil {
		t.Fatal(err)
	}
	<-g.began
	g.words <- "another"
	if _, types := f.rest(); slices.Contains(types, "finish") {
		t.Errorf("%q", types)
	}
	f = s.follow("ann", http.MethodGet, "/c/stream", nil)
	if p := f.until("text-delta"); p.Delta != "another" {
		t.Errorf("%q", p.Delta)
	}
	g.words <- " one"
	g.words <- ""
	if text, _ := f.rest(); text != " one" {
		t.Errorf("%q", text)
	}
	s.records("ann", "c", "user u1: tell me", "assistant : another one")
}

// A web server dies during an answer: another one on the same store continues. A browser that closes stops nothing.
func TestServerDies(t *testing.T) {
	g := newGated()
	s := stageOf(t, agent.Config{Model: g}, nil)
	f := s.midWord(g, "tell me")
	s.chat.Close()
	f.rest()
	if r := s.ask("ann", http.MethodGet, "/c/stream", nil); r.status != http.StatusServiceUnavailable {
		t.Errorf("a handler that was closed: %+v", r)
	}
	s.chat, s.url = s.open()
	f = s.follow("ann", http.MethodGet, "/c/stream", nil)
	if p := f.until("text-delta"); p.Delta != "half " {
		t.Errorf("%q", p.Delta)
	}
	f.close()
	g.words <- "and half"
	g.words <- ""
	s.idle("ann", "c")
	s.records("ann", "c", "user u1: tell me", "assistant : half and half")
	if r := s.ask("ann", http.MethodGet, "/c/stream", nil); r.status != http.StatusNoContent {
		t.Errorf("nothing is being answered: %+v", r)
	}
}

// A message that comes while the execution comes to rest stays in its mailbox; the stream of its answer brings the
// conversation back.
func TestMessageOnTheWayToRest(t *testing.T) {
	entered, sent := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := stageOf(t, agent.Config{}, nil)
	s.fire()
	s.workAs(func(ctx context.Context, task *handler.Task, in Conversation) (agent.Result, error) {
		first := false
		once.Do(func() { first = true })
		if first { // it has looked for the last time, and has not ended yet
			close(entered)
			<-sent
			return agent.Result{}, nil
		}
		return Run(ctx, task, in, agent.Config{Model: agent.ModelFunc(echo)})
	})
	var asking conc.WaitGroup
	asking.Go(func() {
		if got := s.tell("ann", "c", "u1", "wait"); got != "1: wait" {
			t.Errorf("%q", got)
		}
	})
	<-entered
	testwait.Until(t, "the message is in the mailbox", func() bool { return s.waiting("ann", "c") > 0 })
	close(sent)
	asking.Wait()
}

// The agent gets a message again that a rewind has dropped, when the front end repeats it.
func TestDroppedMessageComesAgain(t *testing.T) {
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(echo)}, nil)
	s.tell("ann", "c", "u1", "one")
	s.tell("ann", "c", "u2", "two")
	again := map[string]any{"id": "c", "trigger": "regenerate-message", "messageId": "re-u1"}
	if got, _ := s.follow("ann", http.MethodPost, "", again).rest(); got != "1: one" {
		t.Errorf("%q", got)
	}
	for range 2 {
		if got := s.tell("ann", "c", "u2", "two"); got != "2: two" {
			t.Errorf("%q", got)
		}
	}
	s.records("ann", "c", "user u1: one", "assistant : 1: one", "user u2: two", "assistant : 2: two")
}

// An answer that failed before it was recorded is made again by a request to regenerate it, or by an edit of its
// message, also of a message that the agent never got.
func TestAgainBehindAFailure(t *testing.T) {
	down := make(chan bool, 1)
	down <- true
	s := stageOf(t, agent.Config{Model: agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		now := <-down
		down <- now
		if now {
			return agent.Response{}, handler.Permanent(errors.New("down"))
		}
		return echo(ctx, req, delta)
	})}, nil)
	turn := func(off bool) {
		<-down
		down <- off
	}
	again := func(body map[string]any) {
		t.Helper()
		if _, types := s.follow("ann", http.MethodPost, "", body).rest(); !slices.Equal(types, []string{"error"}) {
			t.Errorf("%q", types)
		}
		s.ended("ann", "c", flowfabric.Failed)
	}
	another := map[string]any{"id": "c", "trigger": "regenerate-message"}
	edit := func(id, text string) map[string]any {
		body := say("c", id, text)
		body["messageId"] = id
		return body
	}
	again(say("c", "u1", "hi"))
	again(another)
	again(say("c", "u2", "two"))
	if r := s.ask("ann", http.MethodPost, "", edit("u1", "hello")); r.status != http.StatusGone || r.code != codeEnded {
		t.Errorf("%+v", r)
	}
	turn(false)
	if got, _ := s.follow("ann", http.MethodPost, "", another).rest(); got != "1: hi" {
		t.Errorf("%q", got)
	}
	s.wait("ann", "c", func(now snapshot) bool { return now.doing == doingIdle && len(now.messages) == 4 })
	turn(true)
	again(say("c", "u3", "three"))
	turn(false)
	if got, _ := s.follow("ann", http.MethodPost, "", edit("u3", "other")).rest(); got != "3: other" {
		t.Errorf("%q", got)
	}
}
