package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestMCPRunsAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	var out, problems bytes.Buffer
	mcp := func(args ...string) int {
		out.Reset()
		problems.Reset()
		return run(t.Context(), append(args[:len(args):len(args)], "--config", "tools.json"),
			strings.NewReader("input\n"), &out, &problems)
	}
	if code := mcp("mcp"); code != exitFailed || strings.Count(problems.String(), "\n") != 1 ||
		!strings.Contains(problems.String(), "which is not in PATH; in a clone of the repository: cd mcp ") {
		t.Errorf("exit %d: %s", code, &problems)
	}
	script := "#!/bin/sh\nread line\necho \"$line: $*\"\necho problem >&2\nexit 3\n"
	must.No(t, os.WriteFile(filepath.Join(dir, mcpProgram), []byte(script), 0o700))
	if code := mcp("mcp"); code != 3 || out.String() != "input: --config tools.json\n" ||
		problems.String() != "problem\n" {
		t.Errorf("exit %d: %q %q", code, &out, &problems)
	}
	if code := mcp("--url", "redis://a", "mcp"); code != 3 ||
		out.String() != "input: --url redis://a --config tools.json\n" {
		t.Errorf("exit %d: %q %q", code, &out, &problems)
	}
}
