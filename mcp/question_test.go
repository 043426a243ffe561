package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// asksUser is a client whose user answers with this.
func asksUser(action string, content map[string]any, asked *atomic.Pointer[sdk.ElicitParams]) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context,
		q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		if asked != nil {
			asked.Store(q.Params)
		}
		return &sdk.ElicitResult{Action: action, Content: content}, nil
	}}
}

// A client that can ask its user does so in the middle of a call, in either way the protocol knows.
func TestACallAsksTheUser(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize, Local: principals["ada"]}, kinds()...)
	url := e.serve(t, s)
	connects := map[string]func(*testing.T, *sdk.ClientOptions) *sdk.ClientSession{
		"http": func(t *testing.T, o *sdk.ClientOptions) *sdk.ClientSession { return e.connect(t, url, "ada", o) },
		"now":  func(t *testing.T, o *sdk.ClientOptions) *sdk.ClientSession { return e.beside(t, s, o, "") },
		"2025": func(t *testing.T, o *sdk.ClientOptions) *sdk.ClientSession { return e.beside(t, s, o, "2025-11-25") },
	}
	for _, c := range []struct {
		name, tool, action string
		content            map[string]any
		message, result    string
	}{
		{"approves", "publish", "accept", map[string]any{"choice": "approve", "comment": "good"}, "Publish tides?",
			"approve by ada: good"},
		{"declines", "publish", "decline", nil, "Publish tides?", "reject by ada: "},
		{"signs", "sign", "accept", map[string]any{"name": "Ada", "sure": true}, "Please sign.",
			`{"name":"Ada","sure":true}`},
		{"notes", "note", "accept", map[string]any{"value": "low tide"}, "note waits for an answer (note).",
			"low tide"},
	} {
		for via, connect := range connects {
			t.Run(c.name+"/"+via, func(t *testing.T) {
				var asked atomic.Pointer[sdk.ElicitParams]
				var arguments any = struct{}{}
				if c.tool == "publish" {
					arguments = Topic{Topic: "tides"}
				}
				r, err := connect(t, asksUser(c.action, c.content, &asked)).CallTool(e.ctx,
					&sdk.CallToolParams{Name: c.tool, Arguments: arguments})
				must.No(t, err)
				if text(r) != c.result || asked.Load().Message != c.message {
					t.Errorf("%q, asked %+v", text(r), asked.Load())
				}
			})
		}
	}
}

// A question that is dismissed stays with the execution.
func TestADismissedQuestionStaysOpen(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize}, kinds()...)
	session := e.connect(t, e.serve(t, s), "ada", asksUser("cancel", nil, nil))
	r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "publish", Arguments: Topic{Topic: "dunes"}})
	must.No(t, err)
	if !r.IsError || !strings.HasPrefix(text(r), "unanswered: ") {
		t.Fatalf("%q", text(r))
	}
	id, err := flowfabric.ParseExecutionID(r.Meta["flowfabric/execution"].(string))
	must.No(t, err)
	x, err := e.client.Execution(id).Get(e.ctx)
	must.No(t, err)
	if x.State.Public != flowfabric.Suspended {
		t.Errorf("it is %s", x.State.Public)
	}
	must.No(t, e.client.Execution(id).Cancel(e.ctx))
}

// Of two questions, the answer to one counts although the other is dismissed, and the other is asked again.
func TestTwoQuestions(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize, Local: principals["ada"]}, kinds()...)
	url := e.serve(t, s)
	for via, connect := range map[string]func(*sdk.ClientOptions) *sdk.ClientSession{
		"http": func(o *sdk.ClientOptions) *sdk.ClientSession { return e.connect(t, url, "ada", o) },
		"2025": func(o *sdk.ClientOptions) *sdk.ClientSession { return e.beside(t, s, o, "2025-11-25") },
	} {
		r, err := connect(&sdk.ClientOptions{ElicitationHandler: func(_ context.Context,
			q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			value := any("one")
			if q.Params.Message == "Second?" {
				value = 2
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"value": value}}, nil
		}}).CallTool(e.ctx, &sdk.CallToolParams{Name: "duo", Arguments: struct{}{}})
		must.No(t, err)
		if got := text(r); !strings.Contains(got, `first=\"one\"`) || !strings.Contains(got, `second=2`) {
			t.Errorf("%s: %s", via, got)
		}
	}

	session := e.connect(t, url, "ada", &sdk.ClientOptions{ElicitationHandler: func(_ context.Context,
		q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		if q.Params.Message == "Second?" {
			return &sdk.ElicitResult{Action: "cancel"}, nil
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"value": "one"}}, nil
	}})
	r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "duo", Arguments: struct{}{}})
	must.No(t, err)
	if !strings.HasPrefix(text(r), "unanswered: ") {
		t.Fatalf("%s", text(r))
	}
	id, err := flowfabric.ParseExecutionID(r.Meta["flowfabric/execution"].(string))
	must.No(t, err)
	record, err := e.client.Execution(id).Suspension(e.ctx)
	must.No(t, err)
	for _, w := range record.Waitpoints {
		if got := w.Matched == 1; got != (w.Key == "first") {
			t.Errorf("waitpoint %s: %d signals count", w.Key, w.Matched)
		}
	}
	must.No(t, e.client.Execution(id).Cancel(e.ctx))
}

// When somebody else answers, the client's form goes away and the call returns.
func TestAnotherAnswersFirst(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{}, kinds()...)
	shown := make(chan struct{})
	gone := make(chan struct{})
	session := e.beside(t, s, &sdk.ClientOptions{ElicitationHandler: func(ctx context.Context,
		_ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		close(shown)
		<-ctx.Done()
		close(gone)
		return nil, ctx.Err()
	}}, "2025-11-25")
	var calling conc.WaitGroup
	calling.Go(func() {
		r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "publish", Arguments: Topic{Topic: "storms"}})
		if err != nil || text(r) != "approve by zoe: " {
			t.Errorf("%v %v", r, err)
		}
	})
	<-shown
	e.answer(t, "Publish storms?", "zoe")
	calling.Wait()
	<-gone
}

// answer approves the open question of this title.
func (e *env) answer(t *testing.T, title, by string) {
	t.Helper()
	e.until(t, title, func() bool {
		page, err := admin.New(e.client).Approvals(e.ctx, admin.ApprovalFilter{}, "", 100)
		must.No(t, err)
		for _, x := range page.Items {
			if x.Question != nil && x.Question.Title == title {
				_, err := e.client.Execution(x.ID).Approve(e.ctx, "approval", map[string]any{"choice": "approve"},
					flowfabric.By(by), signal("approve"))
				must.No(t, err)
				return true
			}
		}
		return false
	})
}

// Those who may not answer wait until somebody else does.
func TestProducersDoNotAnswer(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize},
		mcp.Tool(publish, "Publishes."), mcp.Tool(sign, "Signs.", mcp.AnsweredElsewhere()))
	url := e.serve(t, s)
	session := e.connect(t, url, "pat", asksUser("accept", map[string]any{"choice": "approve"}, nil))
	var calling conc.WaitGroup
	calling.Go(func() {
		r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "publish", Arguments: Topic{Topic: "reefs"}})
		if err != nil || text(r) != "approve by zoe: " {
			t.Errorf("%v %v", r, err)
		}
	})
	e.answer(t, "Publish reefs?", "zoe")
	calling.Wait()

	for _, token := range []string{"pat", "ada"} {
		name := map[string]string{"pat": "publish", "ada": "sign"}[token]
		var arguments any = struct{}{}
		if name == "publish" {
			arguments = Topic{Topic: "bays"}
		}
		w := &wire{e: e, url: url, token: token}
		id := w.task(t, name, arguments)
		e.until(t, "suspended", func() bool {
			return strings.HasPrefix(w.get(t, id)["statusMessage"].(string), "waiting for an answer")
		})
		got := w.get(t, id)
		if got["status"] != "working" || got["inputRequests"] != nil {
			t.Errorf("%s is asked: %v", token, got)
		}
		w.call(t, "tasks/cancel", map[string]any{"taskId": id})
	}
}

// An execution that waits for a message asks for it, and a producer may send it.
func TestMessages(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize, Local: principals["pat"]}, kinds()...)
	url := e.serve(t, s)
	words := []string{"low", "tide", "bye"}
	for via, connect := range map[string]func(*sdk.ClientOptions) *sdk.ClientSession{
		"http": func(o *sdk.ClientOptions) *sdk.ClientSession { return e.connect(t, url, "pat", o) },
		"2025": func(o *sdk.ClientOptions) *sdk.ClientSession { return e.beside(t, s, o, "2025-11-25") },
	} {
		var turn atomic.Int64
		session := connect(&sdk.ClientOptions{ElicitationHandler: func(_ context.Context,
			q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if q.Params.Message != "chat waits for a message (turn)." {
				t.Errorf("asked %q", q.Params.Message)
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"value": words[turn.Add(1)-1]}}, nil
		}})
		r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "chat", Arguments: struct{}{}})
		must.No(t, err)
		if text(r) != "low tide " {
			t.Errorf("%s: %q", via, text(r))
		}
	}

	w := &wire{e: e, url: url, token: "pat"}
	id := w.task(t, "chat", struct{}{})
	answer := func(word string) any {
		return map[string]any{"action": "accept", "content": map[string]any{"value": word}}
	}
	first := w.reaches(t, id, "input_required")["inputRequests"].(map[string]any)
	for key := range first {
		for range 2 { // the second is a repeat
			w.call(t, "tasks/update",
				map[string]any{"taskId": id, "inputResponses": map[string]any{key: answer("high")}})
		}
	}
	e.until(t, "another question", func() bool {
		now, _ := w.get(t, id)["inputRequests"].(map[string]any)
		for key := range now {
			return first[key] == nil
		}
		return false
	})
	for _, word := range []string{"water", "bye"} { // whatever it does
		w.call(t, "tasks/update",
			map[string]any{"taskId": id, "inputResponses": map[string]any{"mailbox:turn": answer(word)}})
	}
	done := w.reaches(t, id, "completed")
	if result, _ := json.Marshal(done["result"]); !strings.Contains(string(result), `"text":"high water "`) {
		t.Errorf("%s", result)
	}
	if ack := w.call(t, "tasks/update", map[string]any{"taskId": id,
		"inputResponses": map[string]any{"mailbox:turn": answer("late")}}); ack["resultType"] != "complete" {
		t.Errorf("%v", ack)
	}
	id = w.task(t, "stuck", struct{}{})
	if code := w.refused(t, "tasks/update",
		map[string]any{"taskId": id, "inputResponses": map[string]any{"mailbox:": answer("x")}}); code != -32602 {
		t.Errorf("no mailbox: %v", code)
	}
	w.call(t, "tasks/cancel", map[string]any{"taskId": id})
}

// A client that hangs up ends its call and not the execution.
func TestADisconnectEndsTheCallAlone(t *testing.T) {
	started := make(chan flowfabric.ExecutionID, 1)
	release := make(chan struct{})
	slow := handler.Define[struct{}, string]("slow", flowfabric.Retries(0))
	e := start(t, handler.Bind(slow, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
		started <- t.ID()
		select {
		case <-release:
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}))
	s := e.server(t, mcp.Config{Authorize: authorize}, mcp.Tool(slow, "Is slow."))
	ended := make(chan struct{}, 1)
	s.SDK().AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, q sdk.Request) (sdk.Result, error) {
			if method == "tools/call" {
				defer func() { ended <- struct{}{} }()
			}
			return next(ctx, method, q)
		}
	})
	url := e.serve(t, s)
	hangsUp := func(t *testing.T, via string, call func(context.Context) error, end func() error) {
		t.Helper()
		ctx, hangUp := context.WithCancel(e.ctx)
		defer hangUp()
		var calling conc.WaitGroup
		calling.Go(func() {
			if call(ctx) == nil {
				t.Errorf("%s: a result", via)
			}
		})
		id := <-started
		hangUp()
		calling.Wait()
		must.No(t, end())
		select {
		case <-ended: // while the execution runs
		case <-e.ctx.Done():
			t.Fatal(via + ": the call goes on without its client")
		}
		release <- struct{}{}
		got, err := e.client.Execution(id).Result(e.ctx)
		if err != nil || string(got) != `"done"` {
			t.Errorf("%s: %s, %v", via, got, err)
		}
	}
	for via, connect := range map[string]func() *sdk.ClientSession{
		"http": func() *sdk.ClientSession { return e.connect(t, url, "ada", nil) },
		"now":  func() *sdk.ClientSession { return e.beside(t, s, nil, "") },
		"2025": func() *sdk.ClientSession { return e.beside(t, s, nil, "2025-11-25") },
	} {
		session := connect()
		hangsUp(t, via, func(ctx context.Context) error {
			_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "slow", Arguments: struct{}{}})
			return err
		}, session.Close)
	}
	hangsUp(t, "http 2025", func(ctx context.Context) error { // which says nothing before it hangs up
		body := strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
		must.No(t, err)
		for name, value := range map[string]string{"Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Authorization": "Bearer ada",
			"Mcp-Protocol-Version": "2025-06-18"} {
			q.Header.Set(name, value)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		_, err = io.ReadAll(r.Body)
		return err
	}, func() error { return nil })
}

// wire speaks the protocol without a library.
type wire struct {
	e          *env
	url, token string
	undeclared bool
	header     map[string]string
}

// post sends one request and returns the status and the response.
func (w *wire) post(t *testing.T, method string, params map[string]any) (int, map[string]any) {
	t.Helper()
	extensions := map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
	if w.undeclared {
		extensions = map[string]any{}
	}
	params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "wire", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{},
			"extensions": extensions}}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	must.No(t, err)
	q, err := http.NewRequestWithContext(w.e.ctx, http.MethodPost, w.url, bytes.NewReader(body))
	must.No(t, err)
	for name, value := range map[string]string{"Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Authorization": "Bearer " + w.token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
		q.Header.Set(name, value)
	}
	if name, ok := params["name"].(string); ok {
		q.Header.Set("Mcp-Name", name)
	}
	if name, ok := params["taskId"].(string); ok {
		q.Header.Set("Mcp-Name", name)
	}
	for name, value := range w.header {
		q.Header.Set(name, value)
	}
	r, err := http.DefaultClient.Do(q)
	must.No(t, err)
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	must.No(t, err)
	var m map[string]any
	for _, line := range strings.Split(string(answer), "\n") {
		line = strings.TrimPrefix(line, "data: ")
		if strings.HasPrefix(line, "{") {
			must.No(t, json.Unmarshal([]byte(line), &m))
		}
	}
	return r.StatusCode, m
}

// call is the result of a request.
func (w *wire) call(t *testing.T, method string, params map[string]any) map[string]any {
	t.Helper()
	status, m := w.post(t, method, params)
	result, ok := m["result"].(map[string]any)
	if !ok {
		t.Fatalf("%s: %d %v", method, status, m)
	}
	return result
}

// refused is the code of the error that answers a request.
func (w *wire) refused(t *testing.T, method string, params map[string]any) float64 {
	t.Helper()
	_, m := w.post(t, method, params)
	fault, ok := m["error"].(map[string]any)
	if !ok {
		t.Fatalf("%s: %v", method, m)
	}
	return fault["code"].(float64)
}

func (w *wire) task(t *testing.T, tool string, arguments any) string {
	t.Helper()
	r := w.call(t, "tools/call", map[string]any{"name": tool, "arguments": arguments})
	id, ok := r["taskId"].(string)
	if !ok || r["resultType"] != "task" || r["status"] != "working" {
		t.Fatalf("%v", r)
	}
	return id
}

func (w *wire) get(t *testing.T, id string) map[string]any {
	t.Helper()
	return w.call(t, "tasks/get", map[string]any{"taskId": id})
}

// reaches waits until the task has a status.
func (w *wire) reaches(t *testing.T, id, status string) (task map[string]any) {
	t.Helper()
	w.e.until(t, status, func() bool { task = w.get(t, id); return task["status"] == status })
	return task
}

// Several questions are all shown, and arguments may be changed; what does not fit leaves its question open.
func TestSeveralQuestionsAreShown(t *testing.T) {
	pay := handler.Define[struct{}, string]("pay", flowfabric.Retries(0))
	e := start(t, handler.Bind(pay, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
		answers, err := t.AskAll(ctx, "all", []suspend.Question{
			{Key: "pay", Title: "Pay?", Arguments: json.RawMessage(`{"cents":5}`),
				Schema: json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer"}}}`)},
			{Key: "ship", Title: "Ship?"}})
		if err != nil {
			return "", err
		}
		return answers[0].Choice + string(answers[0].Arguments) + " " + answers[1].Choice, nil
	}))
	s := e.server(t, mcp.Config{Authorize: authorize}, mcp.Tool(pay, "Pays."))
	url := e.serve(t, s)
	for typed, want := range map[string]string{`{"cents":5}`: "approve reject",
		`{"cents":4}`: `approve{"cents":4} reject`} {
		session := e.connect(t, url, "ada", &sdk.ClientOptions{ElicitationHandler: func(_ context.Context,
			q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if q.Params.Message == "Pay?" {
				return &sdk.ElicitResult{Action: "accept",
					Content: map[string]any{"choice": "approve", "arguments": typed}}, nil
			}
			return &sdk.ElicitResult{Action: "decline"}, nil
		}})
		r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: "pay", Arguments: struct{}{}})
		must.No(t, err)
		if text(r) != want {
			t.Errorf("%s: %q, want %q", typed, text(r), want)
		}
	}
}
