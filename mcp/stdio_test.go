package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
)

// Tasks work over stdio as they do over HTTP. When the input ends, so does the server.
func TestTasksOverStdio(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{}, kinds()...)
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	var serving conc.WaitGroup
	serving.Go(func() {
		if err := s.Run(e.ctx, &sdk.IOTransport{Reader: in, Writer: out}); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	lines := bufio.NewScanner(answers)
	next := 0
	call := func(method string, params map[string]any, extensions string) (result, fault map[string]any) {
		t.Helper()
		next++
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": json.RawMessage(extensions)}}
		request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": next, "method": method, "params": params})
		must.No(t, err)
		_, err = fmt.Fprintf(requests, "%s\n", request)
		must.No(t, err)
		for lines.Scan() {
			var m struct {
				ID            int
				Result, Error map[string]any
			}
			must.No(t, json.Unmarshal(lines.Bytes(), &m))
			if m.ID == next {
				return m.Result, m.Error
			}
		}
		t.Fatal(lines.Err())
		return nil, nil
	}
	const declared, undeclared = `{"io.modelcontextprotocol/tasks":{}}`, `{}`
	created, _ := call("tools/call", map[string]any{"name": "stuck", "arguments": struct{}{}}, declared)
	id, ok := created["taskId"].(string)
	if !ok {
		t.Fatal(created)
	}
	if _, fault := call("tasks/get", map[string]any{"taskId": id}, undeclared); fault["code"] != -32021.0 {
		t.Errorf("undeclared: %v", fault)
	}
	listen := map[string]any{"notifications": map[string]any{"taskIds": []string{id}}}
	if _, fault := call("subscriptions/listen", listen, undeclared); fault["code"] != -32021.0 {
		t.Errorf("undeclared: %v", fault)
	}
	if result, _ := call("subscriptions/listen", listen, declared); result == nil {
		t.Error("a subscription is refused")
	}
	if result, fault := call("tasks/cancel", map[string]any{"taskId": id},
		declared); result["resultType"] != "complete" {
		t.Errorf("%v %v", result, fault)
	}
	e.until(t, "cancelled", func() bool {
		task, _ := call("tasks/get", map[string]any{"taskId": id}, declared)
		return task["status"] == "cancelled"
	})

	// A call waits; the client leaves.
	_, err := io.WriteString(requests,
		`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"note","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+
			"\n")
	must.No(t, err)
	must.No(t, requests.Close())
	var rest conc.WaitGroup
	rest.Go(func() { _, _ = io.Copy(io.Discard, answers) })
	serving.Wait()
	_ = out.Close()
	rest.Wait()
}
