package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExitCodes covers every command line that ends by itself.
func TestExitCodes(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	for _, tc := range []struct {
		line, env   string
		code        int
		out, errOut string // what must appear
	}{
		{line: "", out: "Executions:"},
		{line: "--help", out: "Exit codes"},
		{line: "dev --help", out: "127.0.0.1:7700"},
		{line: "version", out: "protocol 1"},
		{line: "nonsense", code: 2, errOut: "unknown command"},
		{line: "--nonsense", code: 2, errOut: "unknown flag"},
		{line: "dev extra", code: 2, errOut: "unknown command"},
		{line: "dev --addr", code: 2, errOut: "needs an argument"},
		{line: "dev --addr 0.0.0.0:7700", code: 2, errOut: "loopback"},
		{line: "dev", env: "production", code: 2, errOut: "FLOWFABRIC_ENV"},
		{line: "dev --addr " + busy.Addr().String(), code: 1, errOut: "in use"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Setenv("FLOWFABRIC_ENV", tc.env)
			var out, errOut bytes.Buffer
			code := run(t.Context(), strings.Fields(tc.line), strings.NewReader(""), &out, &errOut)
			if code != tc.code || !strings.Contains(out.String(), tc.out) || !strings.Contains(errOut.String(), tc.errOut) {
				t.Errorf("exit %d, want %d\nstdout (want %q): %s\nstderr (want %q): %s", code, tc.code, tc.out, &out, tc.errOut, &errOut)
			}
			if code == exitOK && errOut.Len() > 0 {
				t.Errorf("success wrote to stderr: %s", &errOut)
			}
		})
	}
}

// TestDev runs the server as a user does: read the URL it prints, create work with a delay, see the tick
// promote it, interrupt.
func TestDev(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var done sync.WaitGroup
	code := -1
	done.Go(func() {
		code = run(ctx, []string{"dev", "--addr", "127.0.0.1:0"}, strings.NewReader(""), writer, io.Discard)
		_ = writer.Close()
	})
	defer done.Wait()
	defer interrupt()

	text := make([]byte, 4096)
	n, err := reader.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`export FLOWFABRIC_URL=(redis://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(string(text[:n]))
	if match == nil || !strings.Contains(string(text[:n]), "development only") {
		t.Fatalf("unexpected announcement: %s", text[:n])
	}
	eng, err := engine.Open(t.Context(), engine.Config{URL: match[1]})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	// One after the other in partitions of their own: the first may be seen by the ticks of the start, the
	// last only because its bell is heard.
	for partition := range uint16(8) {
		promote(t, eng, partition)
	}

	interrupt()
	done.Wait()
	if code != exitOK {
		t.Errorf("exit code %d after an interrupt, want 0", code)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(match[1], "redis://")); err == nil {
		t.Error("the port still answers")
	}
}

// promote creates a delayed execution and waits until the tick has made it claimable.
func promote(t *testing.T, eng *engine.Engine, partition uint16) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	item := engine.NewExecution{
		ID: flowfabric.NewExecutionID(partition), Namespace: flowfabric.DefaultNamespace, Lane: flowfabric.DefaultLane,
		Kind: "greet", Delay: 50 * time.Millisecond, Payload: []byte("{}"),
	}
	created, err := eng.CreateExecutions(ctx, partition, []engine.NewExecution{item})
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	for look := time.NewTicker(5 * time.Millisecond); ; <-look.C {
		snapshot, err := eng.ReadExecution(ctx, item.ID)
		if err != nil {
			t.Fatalf("waiting for the delay to pass: %v", err)
		}
		if snapshot.State.Public == flowfabric.Waiting {
			return
		}
	}
}
