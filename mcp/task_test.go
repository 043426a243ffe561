package mcp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
)

func signal(name string) client.ApproveOption { return client.SignalName(name) }

func (e *env) wire(t *testing.T, cfg mcp.Config, token string) *wire {
	t.Helper()
	cfg.Authorize = authorize
	return &wire{e: e, url: e.serve(t, e.server(t, cfg, kinds()...)), token: token}
}

func TestAnExecutionIsATask(t *testing.T) {
	e := start(t)
	began := time.Now().Truncate(time.Millisecond)
	w := e.wire(t, mcp.Config{PollInterval: 50 * time.Millisecond, Retention: time.Hour}, "ada")
	id := w.task(t, "write-article", Topic{Topic: "tides"})
	task := w.reaches(t, id, "completed")
	result := task["result"].(map[string]any)
	if structured, _ := json.Marshal(result["structuredContent"]); string(
		structured) != `{"text":"all about tides","title":"tides"}` || result["resultType"] != "complete" {
		t.Errorf("%v", result)
	}
	if ttl := task["ttlMs"].(float64); ttl < 3_600_000 || ttl > 7_200_000 || task["pollIntervalMs"] != 50.0 ||
		task["resultType"] != "complete" {
		t.Errorf("%v", task)
	}
	created, err := time.Parse(time.RFC3339Nano, task["createdAt"].(string))
	must.No(t, err)
	updated, err := time.Parse(time.RFC3339Nano, task["lastUpdatedAt"].(string))
	must.No(t, err)
	if updated.Before(created) || created.Before(began) {
		t.Errorf("created %s, updated %s", created, updated)
	}
}

func TestFailuresOfTasks(t *testing.T) {
	e := start(t)
	w := e.wire(t, mcp.Config{}, "ada")
	task := w.reaches(t, w.task(t, "broken", map[string]any{"input": "category"}), "completed")
	if result := task["result"].(map[string]any); result["isError"] != true {
		t.Errorf("%v", task)
	}
	task = w.reaches(t, w.task(t, "broken", map[string]any{"input": "panic"}), "failed")
	if fault := task["error"].(map[string]any); fault["code"] != -32603.0 || task["result"] != nil ||
		strings.Contains(fault["message"].(string), "secret") {
		t.Errorf("%v", task)
	}
	task = w.reaches(t, w.task(t, "broken", map[string]any{"input": "cancel"}), "cancelled")
	if task["statusMessage"] != "not today" {
		t.Errorf("%v", task)
	}
	if r := w.call(t, "tools/call", map[string]any{"name": "broken", "arguments": map[string]any{}}); r["isError"] !=
		true || r["resultType"] != "complete" {
		t.Errorf("bad arguments: %v", r)
	}
}

func TestATaskAsks(t *testing.T) {
	e := start(t)
	w := e.wire(t, mcp.Config{}, "ada")
	id := w.task(t, "publish", Topic{Topic: "tides"})
	task := w.reaches(t, id, "input_required")
	asked := task["inputRequests"].(map[string]any)
	if len(asked) != 1 || task["statusMessage"] != "waiting for an answer: Publish tides?" || task["ttlMs"] != nil {
		t.Fatalf("%v", task)
	}
	key := slices.Collect(maps.Keys(asked))[0]
	form, _ := json.Marshal(asked[key])
	if want :=
		`{"method":"elicitation/create","params":{"message":"Publish tides?","mode":"form","requestedSchema":{"properties":{"choice":{"enum":["approve","reject"],"enumNames":["Approve","Reject"],"title":"Decision","type":"string"},"comment":{"title":"Comment","type":"string"}},"required":["choice"],"type":"object"}}}`; string(form) !=
		want {
		t.Errorf("%s", form)
	}
	update := func(answer any) map[string]any {
		return map[string]any{"taskId": id,
			"inputResponses": map[string]any{key: answer, "another": map[string]any{"ignored": true}}}
	}
	for _, bad := range []any{map[string]any{"action": "accept", "content": map[string]any{"choice": "maybe"}},
		map[string]any{"action": "accept"}, map[string]any{"action": "shrug"}, 7} {
		if code := w.refused(t, "tasks/update", update(bad)); code != -32602 {
			t.Errorf("%v: %v", bad, code)
		}
	}
	if ack := w.call(t, "tasks/update", update(map[string]any{"action": "cancel"})); ack["resultType"] != "complete" ||
		w.get(t, id)["status"] != "input_required" {
		t.Errorf("dismissed: %v", ack)
	}
	w.call(t, "tasks/update",
		update(map[string]any{"action": "accept", "content": map[string]any{"choice": "approve", "comment": "good"}}))
	task = w.reaches(t, id, "completed")
	if result, _ := json.Marshal(task["result"]); !strings.Contains(string(result), "approve by ada: good") {
		t.Errorf("%s", result)
	}
	// too late: ignored
	w.call(t, "tasks/update", update(map[string]any{"action": "accept", "content": map[string]any{"choice": "reject"}}))
}

func TestATaskIsCancelled(t *testing.T) {
	e := start(t)
	w := e.wire(t, mcp.Config{}, "ada")
	id := w.task(t, "stuck", struct{}{})
	e.until(t, "progress", func() bool { return w.get(t, id)["statusMessage"] == "digging" })
	for range 2 {
		if ack := w.call(t, "tasks/cancel", map[string]any{"taskId": id}); ack["resultType"] != "complete" ||
			ack["status"] != nil {
			t.Errorf("%v", ack)
		}
	}
	task := w.reaches(t, id, "cancelled")
	if task["statusMessage"] != "tasks/cancel" {
		t.Errorf("%v", task)
	}
	execution, _, _ := strings.Cut(id, ".")
	x, err := flowfabric.ParseExecutionID(execution)
	must.No(t, err)
	got, err := e.client.Execution(x).Get(e.ctx)
	must.No(t, err)
	if got.CancelledBy != "ada" || got.Creator != "ada" {
		t.Errorf("cancelled by %s, created by %s", got.CancelledBy, got.Creator)
	}
}

// A task is its caller's, and an id that was changed in any way is nobody's.
func TestTasksOfOthersAreNotFound(t *testing.T) {
	e := start(t)
	cfg := mcp.Config{TaskKey: []byte(strings.Repeat("k", 32))}
	w := e.wire(t, cfg, "ada")
	id := w.task(t, "publish", Topic{Topic: "tides"})
	methods := []string{"tasks/get", "tasks/update", "tasks/cancel"}
	params := func(id string) map[string]any {
		return map[string]any{"taskId": id, "inputResponses": map[string]any{}}
	}
	for _, method := range methods {
		if code := (&wire{e: e, url: w.url, token: "grace"}).refused(t, method, params(id)); code != -32602 {
			t.Errorf("%s of another: %v", method, code)
		}
		execution, mac, _ := strings.Cut(id, ".")
		for _, forged := range []string{"", execution, execution + ".", execution + "." + mac[:len(mac)-4], "x" + id,
			execution + "." + strings.Repeat("A", len(mac))} {
			if code := w.refused(t, method, params(forged)); code != -32602 {
				t.Errorf("%s of %q: %v", method, forged, code)
			}
		}
	}
	if same := e.wire(t, cfg, "ada").reaches(t, id, "input_required"); same["taskId"] != id {
		// another process with the key
		t.Errorf("%v", same)
	}
	if code := e.wire(t, mcp.Config{}, "ada").refused(t, "tasks/get", params(id)); code != -32602 {
		t.Errorf("without the key: %v", code)
	}
	w.call(t, "tasks/cancel", map[string]any{"taskId": id})
}

func TestTasksNeedTheCapability(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize}, mcp.Tool(write, "Writes.", mcp.Tasks(mcp.TasksRequired)),
		mcp.Tool(shout, "Shouts.", mcp.Tasks(mcp.TasksNever)), mcp.Tool(note, "Notes."))
	w := &wire{e: e, url: e.serve(t, s), token: "ada", undeclared: true}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if code := w.refused(t, method, map[string]any{"taskId": "x"}); code != -32021 {
			t.Errorf("%s: %v", method, code)
		}
	}
	if code := w.refused(t, "tools/call",
		map[string]any{"name": "write-article", "arguments": Topic{Topic: "tides"}}); code != -32021 {
		t.Errorf("a tool that needs tasks: %v", code)
	}
	if code := w.refused(t, "subscriptions/listen",
		map[string]any{"notifications": map[string]any{"taskIds": []string{"x"}}}); code != -32021 {
		t.Errorf("notifications of tasks: %v", code)
	}
	w.undeclared = false
	if r := w.call(t, "subscriptions/listen",
		map[string]any{"notifications": map[string]any{"taskIds": []string{"x"}}}); r == nil {
		t.Error("no answer")
	}
	if r := w.call(t, "tools/call", map[string]any{"name": "shout_loud",
		"arguments": map[string]any{"input": "a"}}); r["resultType"] != "complete" || r["taskId"] != nil {
		t.Errorf("a tool without tasks: %v", r)
	}
	for _, gone := range []string{"tasks/result", "tasks/list"} {
		if code := w.refused(t, gone, map[string]any{"taskId": "x"}); code != -32601 {
			t.Errorf("%s: %v", gone, code)
		}
	}
	w.header = map[string]string{"Mcp-Name": "another"}
	if status, m := w.post(t, "tasks/get", map[string]any{"taskId": "x"}); status != http.StatusBadRequest ||
		m["error"].(map[string]any)["code"] != -32020.0 || m["id"] != 7.0 {
		t.Errorf("%d %v", status, m)
	}
	w.header = map[string]string{"Mcp-Name": "=?base64?eA==?="}
	if code := w.refused(t, "tasks/get", map[string]any{"taskId": "x"}); code != -32602 {
		t.Errorf("an encoded header: %v", code)
	}
}

func TestWhoMayCall(t *testing.T) {
	e := start(t)
	w := e.wire(t, mcp.Config{}, "nobody")
	call := map[string]any{"name": "publish", "arguments": Topic{Topic: "tides"}}
	if status, _ := w.post(t, "tools/call", call); status != http.StatusUnauthorized {
		t.Errorf("a stranger: %d", status)
	}
	w.token = "viewer"
	if status, _ := w.post(t, "tools/call", call); status != http.StatusForbidden {
		t.Errorf("a viewer: %d", status)
	}
	w.header = map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
	w.token = "ada"
	if status, _ := w.post(t, "tools/call", call); status != http.StatusForbidden {
		t.Errorf("another site: %d", status)
	}
	w.header, w.token = nil, "acme"
	id := w.task(t, "publish", Topic{Topic: "tides"})
	w.reaches(t, id, "input_required")
	execution, _, _ := strings.Cut(id, ".")
	x, err := flowfabric.ParseExecutionID(execution)
	must.No(t, err)
	got, err := e.client.Execution(x).Get(e.ctx)
	must.No(t, err)
	if got.Route.Namespace != "acme" {
		t.Errorf("namespace %s", got.Route.Namespace)
	}
	old := principals["acme"]
	moved := old
	moved.Namespaces = []string{"globex"}
	principals["acme"] = moved
	defer func() { principals["acme"] = old }()
	if code := w.refused(t, "tasks/get", map[string]any{"taskId": id}); code != -32602 {
		t.Errorf("after the namespace was taken away: %v", code)
	}
	must.No(t, e.client.Execution(x).Cancel(e.ctx))
}

func TestAKeyMeetsTheFirstExecution(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize},
		mcp.Tool(publish, "Publishes.", mcp.Key(func(arguments json.RawMessage) string { return string(arguments) })))
	url := e.serve(t, s)
	var ids []string
	for _, token := range []string{"ada", "ada", "grace"} {
		w := &wire{e: e, url: url, token: token}
		id, _, _ := strings.Cut(w.task(t, "publish", Topic{Topic: "key"}), ".")
		ids = append(ids, id)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("%v", ids)
	}
	for _, text := range ids {
		id, err := flowfabric.ParseExecutionID(text)
		must.No(t, err)
		must.No(t, e.client.Execution(id).Cancel(e.ctx))
	}
}

// A client may give a call a key. It counts for the caller, and not where the tool has a key of its own.
func TestAClientGivesAKey(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize}, mcp.Tool(shout, "Says it louder."),
		mcp.Tool(write, "Writes.", mcp.Submit(flowfabric.IdempotencyKey("one"))))
	url := e.serve(t, s)
	call := func(token, tool, key string, arguments map[string]any) string {
		t.Helper()
		r, err := e.connect(t, url, token, nil).CallTool(e.ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments,
			Meta: sdk.Meta{"io.flowfabric/idempotency-key": key}})
		must.No(t, err)
		return text(r)
	}
	a, b := map[string]any{"input": "a"}, map[string]any{"input": "b"}
	if got := call("ada", "shout_loud", "k", a); got != "a!" {
		t.Error(got)
	}
	if got := call("ada", "shout_loud", "k", b); !strings.Contains(got, "conflict") { // met, with another payload
		t.Error(got)
	}
	for _, other := range [][2]string{{"grace", "k"}, {"ada", "l"}, {"ada", ""}, {"ada", strings.Repeat("k", 257)}} {
		if got := call(other[0], "shout_loud", other[1], b); got != "b!" {
			t.Errorf("%q: %s", other, got)
		}
	}
	got := call("ada", "write-article", "k", map[string]any{"topic": "tides"})
	if !strings.Contains(got, "about tides") {
		t.Error(got)
	}
}

func TestWhatNewRefuses(t *testing.T) {
	e := start(t)
	for want, try := range map[string]func() error{
		"a description is missing": func() error {
			_,
				err := mcp.New(e.client, mcp.Config{}, mcp.Tool(write, " "))
			return err
		},
		"the kind has two tools": func() error {
			_, err := mcp.New(e.client, mcp.Config{}, mcp.Tool(write, "a"), mcp.Tool(write, "b", mcp.Name("c")))
			return err
		},
		`has the name "publish", too`: func() error {
			_, err := mcp.New(e.client, mcp.Config{}, mcp.Tool(publish, "a"), mcp.Tool(write, "b", mcp.Name("publish")))
			return err
		},
		"is not 1..64": func() error {
			_, err := mcp.New(e.client, mcp.Config{}, mcp.Tool(write, "a", mcp.Name("b c")))
			return err
		},
		"TaskKey has 3 bytes": func() error {
			_,
				err := mcp.New(e.client, mcp.Config{TaskKey: []byte("abc")})
			return err
		},
		"Authorize is missing": func() error { _, err := e.server(t, mcp.Config{}).HTTP(); return err },
		"forms have text": func() error {
			_, err := mcp.New(e.client, mcp.Config{},
				mcp.Tool(write, "a", mcp.Waitpoint[struct{ X Article }]("w", "m")))
			return err
		},
		"input: a schema is missing": func() error {
			_, err := mcp.New(e.client, mcp.Config{},
				mcp.RawTool(handler.Define[json.RawMessage, json.RawMessage]("k"), "d", nil, nil))
			return err
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), flowfabric.ErrConfig.Error()) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
