// Package tutorial_test walks through docs/tutorial.md with the programs that it shows.
package tutorial_test

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// program starts one of the programs and returns its output. It is killed with the test.
func program(t *testing.T, env []string, name string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

// until reads to the first occurrence of a text, and returns everything up to it.
func until(t *testing.T, out *bufio.Reader, text string) string {
	t.Helper()
	var seen strings.Builder
	for !strings.HasSuffix(seen.String(), text) {
		b, err := out.ReadByte()
		if err != nil {
			t.Fatalf("%v after %q, want %q", err, seen.String(), text)
		}
		seen.WriteByte(b)
	}
	return seen.String()
}

// A worker is killed while it writes. The next one repeats the text and not the outline, a person approves, and the
// producer has it all.
func TestTutorial(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	env := []string{"FLOWFABRIC_URL=" + server.URL(), "FLOWFABRIC_TOKEN_KEYS=dev:" + strings.Repeat("07", 32)}
	context.AfterFunc(ctx, server.Close) // whoever still waits sees it

	first, log := program(t, env, "worker")
	_, out := program(t, env, "producer", "tides")
	id, err := flowfabric.ParseExecutionID(
		regexp.MustCompile(`\d+-[0-9a-f-]{36}`).FindString(until(t, out, "attempt 1: ")))
	if err != nil {
		t.Fatal(err)
	}
	until(t, out, "rise and ")
	until(t, log, "model: outline of tides\nmodel: write\n")
	_ = first.Process.Kill()

	_, log = program(t, env, "worker")
	until(t, out, "attempt 2: ")
	if said := until(t, out, "below it "); !strings.HasPrefix(said, "tides rise and fall") {
		t.Errorf("the second attempt said %q", said)
	}
	if said := until(t, log, "model: write\n"); strings.Contains(said, "outline") {
		t.Errorf("the second worker did the outline again: %q", said)
	}

	c, err := client.Connect(ctx, client.Config{URL: server.URL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Execution(id).AwaitSuspension(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Execution(id).Approve(ctx, "editor", map[string]string{"choice": "approve", "by": "anna"},
		flowfabric.By("anna")); err != nil {
		t.Fatal(err)
	}
	until(t, out, "approved by anna: tides rise and fall twice a day")
}
