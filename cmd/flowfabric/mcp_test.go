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

// A profile is what the program serves. Its token is not on the command line.
func TestMCPServesAProfile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv("FLOWFABRIC_URL", "redis://other")
	t.Setenv("FLOWFABRIC_TOKEN", "other")
	script := "#!/bin/sh\necho \"$FLOWFABRIC_URL $FLOWFABRIC_TOKEN: $*\"\n"
	must.No(t, os.WriteFile(filepath.Join(dir, mcpProgram), []byte(script), 0o700))
	command := func(stdin string, args ...string) (code int, out, problems string) {
		var o, p bytes.Buffer
		code = run(t.Context(), args, strings.NewReader(stdin), &o, &p)
		return code, o.String(), p.String()
	}
	for _, args := range []string{"prod --url https://flows.example.com --token - --namespace shop",
		"bare --url redis://a"} {
		if code, _, why := command("secret\n", strings.Fields("profile set "+args)...); code != exitOK {
			t.Fatalf("%s: exit %d: %s", args, code, why)
		}
	}
	for _, tc := range []struct {
		line, want string
		code       int
	}{
		{"mcp --profile prod -write", "https://flows.example.com secret: -write -namespace shop\n", exitOK},
		{"--profile=prod mcp -namespace=x", "https://flows.example.com secret: -namespace=x\n", exitOK},
		{"mcp -profile bare", "redis://a other: \n", exitOK},
		{"mcp -write", "redis://other other: -write\n", exitOK},
		{"mcp --profile prod --url redis://b", "--profile and --url exclude each other", exitUsage},
		{"mcp --profile nobody", "no profile is called \"nobody\"", exitUsage},
		{"mcp --profile", "needs an argument", exitUsage},
		{"mcp --profile=", "it is empty", exitUsage},
	} {
		code, out, why := command("", strings.Fields(tc.line)...)
		if code != tc.code || (out != tc.want && !strings.Contains(why, tc.want)) {
			t.Errorf("%s: exit %d: %s%s", tc.line, code, out, why)
		}
	}
}
