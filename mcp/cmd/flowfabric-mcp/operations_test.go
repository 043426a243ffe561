package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// Without a file the tools operate the system: they read, and with -write they change it, in the name of -by and of
// the assistant.
func TestOperations(t *testing.T) {
	ctx, url, _ := start(t)
	program, err := os.Executable()
	must.No(t, err)
	connect := func(args ...string) *mcp.ClientSession {
		process := exec.CommandContext(ctx, program, append(args, "-by", "ada")...)
		process.Env = append(os.Environ(), asCommand+"=1", "FLOWFABRIC_URL="+url)
		var problems bytes.Buffer
		process.Stderr = &problems
		session, err := mcp.NewClient(&mcp.Implementation{Name: "copilot", Version: "7.1"}, nil).Connect(ctx,
			&mcp.CommandTransport{Command: process}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
		if err != nil {
			t.Fatalf("%v: %s", err, &problems)
		}
		return session
	}
	tools := func(s *mcp.ClientSession) (names []string) {
		listed, err := s.ListTools(ctx, nil)
		must.No(t, err)
		for _, tool := range listed.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	reads := connect()
	if names := tools(reads); !slices.Contains(names, "list_executions") || slices.Contains(names, "set_lane") {
		t.Errorf("read-only: %v", names)
	}
	must.No(t, reads.Close())
	writes := connect("-write")
	set, err := writes.CallTool(ctx, &mcp.CallToolParams{Name: "set_lane",
		Arguments: map[string]any{"key": "default", "state": "paused", "reason": "a test", "confirm": true}})
	must.No(t, err)
	trail, err := writes.CallTool(ctx, &mcp.CallToolParams{Name: "list_trail"})
	must.No(t, err)
	if said := text(trail); set.IsError || !strings.Contains(said, `"by":"ada","from":"assistant copilot 7.1"`) ||
		!strings.Contains(said, `"why":"a test"`) {
		t.Errorf("%s; %s", text(set), said)
	}
	must.No(t, writes.Close())
	bound := connect("-write", "-namespace", "acme")
	if names := tools(bound); slices.Contains(names, "list_gates") || !slices.Contains(names, "set_lane") {
		t.Errorf("bound: %v", names)
	}
	must.No(t, bound.Close())
}
