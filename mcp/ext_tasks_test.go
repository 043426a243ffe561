package mcp_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
)

// The official client of the Tasks extension, in processes of its own: one starts, another one comes back.
func TestOfficialTasksClient(t *testing.T) {
	dir, program := needNode(t)
	e := start(t)
	key := []byte(strings.Repeat("k", 32))
	serve := func() string {
		return e.serve(t, e.server(t,
			mcp.Config{Authorize: authorize, TaskKey: key, PollInterval: 50 * time.Millisecond}, kinds()...))
	}
	url := serve()
	run := func(token, command, argument string, result any) string {
		t.Helper()
		process := exec.CommandContext(e.ctx, program, filepath.Join(dir, "tasks.mjs"), url, token, command, argument)
		process.Dir = dir
		var problems strings.Builder
		process.Stderr = &problems
		out, err := process.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, problems.String())
		}
		if err := json.Unmarshal(out, result); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}

	var reference struct{ TaskID, Generation string }
	text := run("ada", "start", "tides", &reference)
	if reference.Generation != "v2" || reference.TaskID == "" {
		t.Fatal(text)
	}
	execution, _, _ := strings.Cut(reference.TaskID, ".")
	id, err := flowfabric.ParseExecutionID(execution)
	must.No(t, err)
	e.until(t, "suspended", func() bool {
		x, err := e.client.Execution(id).Get(e.ctx)
		must.No(t, err)
		if x.State.Public.Terminal() {
			t.Fatalf("it is %s: %s %s", x.State.Public, x.Failure.Message, x.CancelReason)
		}
		return x.State.Public == flowfabric.Suspended
	})

	var codes []float64
	run("grace", "steal", text, &codes)
	if !slices.Equal(codes, []float64{-32602, -32602, -32602}) {
		t.Errorf("another caller: %v", codes)
	}

	url = serve() // the server of the first process is not needed any more
	var resumed struct {
		Statuses []string
		Text     string
	}
	run("ada", "resume", text, &resumed)
	if resumed.Text != "approve by ada: seen: Publish tides?" || !slices.Contains(resumed.Statuses, "input_required") ||
		resumed.Statuses[len(resumed.Statuses)-1] != "completed" {
		t.Errorf("%+v", resumed)
	}

	var stopped struct{ Status, Outcome string }
	run("ada", "cancel", "", &stopped)
	if stopped.Status != "cancelled" || stopped.Outcome != "cancelled" {
		t.Errorf("%+v", stopped)
	}

	var ended struct {
		Status  string
		IsError bool
		Code    float64
	}
	run("ada", "fail", "category", &ended)
	if ended.Status != "completed" || !ended.IsError {
		t.Errorf("%+v", ended)
	}
	run("ada", "fail", "panic", &ended)
	if ended.Status != "failed" || ended.Code != -32603 {
		t.Errorf("%+v", ended)
	}

	var answer string
	run("ada", "plain", "storms", &answer)
	if answer != "approve by ada: seen: Publish storms?" {
		t.Errorf("%q", answer)
	}
}
