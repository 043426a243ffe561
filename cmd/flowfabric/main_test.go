package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) {
	if line := os.Getenv(asCommand); line != "" {
		os.Exit(run(context.Background(), strings.Fields(line), os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// TestExitCodes covers every command line that ends by itself.
func TestExitCodes(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	defer func() { _ = busy.Close() }()
	for _, tc := range []struct {
		line, env   string
		code        int
		out, errOut string // what must appear
	}{
		{line: "", out: "Executions:"},
		{line: "--help", out: "Exit codes"},
		{line: "dev --help", out: "127.0.0.1:7700"},
		{line: "version", out: "protocol " + strconv.Itoa(limits.Protocol)},
		{line: "nonsense", code: 2, errOut: "unknown command"},
		{line: "--nonsense", code: 2, errOut: "unknown flag"},
		{line: "dev extra", code: 2, errOut: "unknown command"},
		{line: "dev --addr", code: 2, errOut: "needs an argument"},
		{line: "dev --addr 0.0.0.0:7700", code: 2, errOut: "loopback"},
		{line: "dev --addr 127.0.0.1:0 --http 0.0.0.0:0", code: 2, errOut: "loopback"},
		{line: "dev --addr 127.0.0.1:0 --http :0", code: 2, errOut: "loopback"},
		{line: "serve --trusted-proxy nonsense", code: 2, errOut: "--trusted-proxy"},
		{line: "dev", env: "production", code: 2, errOut: "FLOWFABRIC_ENV"},
		{line: "dev --addr " + busy.Addr().String(), code: 1, errOut: "in use"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Setenv("FLOWFABRIC_ENV", tc.env)
			var out, errOut bytes.Buffer
			code := run(t.Context(), strings.Fields(tc.line), strings.NewReader(""), &out, &errOut)
			if code != tc.code || !strings.Contains(out.String(), tc.out) ||
				!strings.Contains(errOut.String(), tc.errOut) {
				t.Errorf("exit %d, want %d\nstdout (want %q): %s\nstderr (want %q): %s", code, tc.code, tc.out, &out,
					tc.errOut, &errOut)
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
	must.No(t, err)
	match := regexp.MustCompile(`export FLOWFABRIC_URL=(redis://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(
		string(text[:n]))
	if match == nil || !strings.Contains(string(text[:n]), "development only") {
		t.Fatalf("unexpected announcement: %s", text[:n])
	}
	eng, err := engine.Open(t.Context(), engine.Config{CallTimeout: time.Hour, URL: match[1]})
	must.No(t, err)
	defer eng.Close()
	// One after the other in partitions of their own: the first may be seen by the ticks of the start, the
	// last only because its bell is heard.
	for partition := range uint16(8) {
		promote(t, eng, partition)
	}

	page := regexp.MustCompile(`Dashboard +(http://127\.0\.0\.1:\d+/)\n`).FindStringSubmatch(string(text[:n]))
	if page == nil {
		t.Fatalf("no dashboard: %s", text[:n])
	}
	if status, body := get(t, page[1]+"metrics", ""); status != 200 ||
		!regexp.MustCompile(`(?m)^flowfabric_tick_effects_total\{effect="promoted"\} [78]$`).MatchString(body) {
		t.Errorf("metrics: %d\n%s", status, body)
	}
	http.DefaultClient.CloseIdleConnections()

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
	ctx := t.Context()
	item := engine.NewExecution{
		ID: mint.ID(partition), Start: flowfabric.Start{Namespace: limits.DefaultNamespace,
			Lane: limits.DefaultLane,
			Kind: "greet", Delay: flowfabric.Millis(50 * time.Millisecond)}, Payload: []byte("{}"),
	}
	created, err := eng.CreateExecutions(ctx, partition, []engine.NewExecution{item})
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	testwait.Until(t, "the delay has passed", func() bool {
		snapshot, err := eng.ReadExecution(ctx, item.ID)
		if err != nil {
			t.Fatalf("waiting for the delay to pass: %v", err)
		}
		return snapshot.State.Public == flowfabric.Waiting
	})
}

// An error that names what it was given must not give a secret away, nor does anything that is printed before.
func TestRedaction(t *testing.T) {
	key := strings.Repeat("ab", 32)
	token := "3.0197f3a0-0000-7000-8000-000000000000.0197f3a0-0000-7000-8000-000000000001.k1:" + key
	for _, args := range [][]string{
		{"ls", "--url", "redis://user:pa/ss@127.0.0.1:1"}, {"ls", "--url", "redis://:pass@127.0.0.1:x"},
		{"ls", "--url", "redis://127.0.0.1:1?password=pass"},
		{"redis://:pass@127.0.0.1:1"}, {"ls", "redis://user:pa ss@127.0.0.1:1"},
		{"ls", "--url", "redis://user:pass@127.0.0.1:1"}, {"ls", "--url", "nonsense://u:pass@h"},
		{token}, {"show", token}, {"signal", token, token}, {"signal", token + "0"},
		{"signal", "--url", "redis://user:pass@127.0.0.1:1", token}, {"ls", "--" + token},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			var out bytes.Buffer
			if code := run(t.Context(), append(args, more...), strings.NewReader(""), &out, &out); code == exitOK {
				t.Errorf("%q succeeded", args)
			}
			for _, secret := range []string{"pass", "pa/ss", "pa ss", key[:60]} {
				if strings.Contains(strings.ReplaceAll(out.String(), "password", ""), secret) {
					t.Errorf("%q prints %s: %s", args, secret, &out)
				}
			}
		}
	}
}

// Exit codes of what no golden session shows: no server, no rights, no time, an interrupt.
func TestExitCodesOfServers(t *testing.T) {
	srv := testserver.Start(t, testserver.ServerRedis, testserver.TCP())
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	_ = closed.Close()
	w := newEnv(t, testserver.Embedded(t))
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, tc := range []struct {
		ctx  context.Context
		line string
		want int
	}{
		{w.ctx, "ls --url redis://" + closed.Addr().String(), exitUnreachable},
		{w.ctx, "doctor --url redis://" + closed.Addr().String(), exitUnreachable},
		{w.ctx, "ls --url redis://nobody:wrong@" + srv.Address(), exitDenied},
		{w.ctx, "ls --url embedded://", exitUsage},
		{w.ctx, "ls --timeout 0s", exitUsage},
		{w.ctx, "ls --timeout 1ns", exitTimeout},
		{w.ctx, "tail <queued> --timeout 50ms", exitTimeout},
		{w.ctx, "submit report --key queued --input '{\"n\":1}' --wait --timeout 50ms", exitTimeout},
		{w.ctx, "show <done> --by '" + strings.Repeat("x", 65) + "'", exitUsage},
		{w.ctx, "ls --url " + srv.URL(), exitUsage}, // never booted: looking does not boot it
		{interrupted, "ls", exitInterrupted},
		{interrupted, "tail <queued>", exitInterrupted},
	} {
		w.ctx = tc.ctx
		if code, out, errOut := w.run(tc.line, ""); code != tc.want {
			t.Errorf("%s: exit %d, want %d\n%s%s", tc.line, code, tc.want, out, errOut)
		}
	}
}

// A command on a store that nobody ever used says that, and nothing of the library's configuration.
func TestNeverBooted(t *testing.T) {
	url := testserver.Start(t, testserver.ServerValkey, testserver.TCP()).URL()
	for _, line := range []string{"ls", "check", "repair", "lane pause batch", "freeze 0", "top --once",
		"show 1-00000000-0000-4000-8000-000000000000"} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), append(strings.Fields(line), "--url", url), strings.NewReader(""), &out, &errOut)
		if want := "flowfabric: nothing was ever submitted to this store: check --url, or start a worker\n"; code !=
			exitUsage || errOut.String() != want {
			t.Errorf("%s: exit %d, %s%s", line, code, &out, &errOut)
		}
	}
}

// A wait that takes too long says so in the words of the command line, and under which id the work goes on.
func TestTimeoutOfAWait(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	var line string
	for limit := 700 * time.Millisecond; ; limit *= 2 {
		line = fmt.Sprintf("submit report --key queued --input '{\"n\":1}' --wait --timeout %s", limit)
		_, out, errOut := w.run(line, "")
		first, rest, told := strings.Cut(errOut, "\n")
		if !told || rest == "" {
			continue // a slow machine has not submitted it in this time
		}
		if out != "" || first != "submitted "+w.names["queued"] ||
			!strings.Contains(rest, "--timeout "+limit.String()+" ran out") || strings.Contains(rest, "context") {
			t.Errorf("stdout %q, stderr %q", out, errOut)
		}
		line = strings.Replace(line, limit.String(), (10 * limit).String(), 1)
		break
	}
	for _, line := range []string{line + " --json", strings.Replace(line, "--wait", "--tail --json", 1)} {
		_, _, errOut := w.run(line, "")
		var f failure
		if err := json.Unmarshal([]byte(errOut), &f); err != nil || f.ID != w.names["queued"] ||
			f.Exit != exitTimeout || !strings.Contains(f.Error, "ran out") {
			t.Errorf("%s: %s", line, errOut)
		}
	}
}

// What goes on by itself ends with success when it is interrupted.
func TestInterrupts(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	for _, args := range [][]string{{"tail", w.names["held"]}, {"top", "--interval", "100ms", "--json"}} {
		ctx, interrupt := context.WithCancel(w.ctx)
		reader, writer := io.Pipe()
		var done sync.WaitGroup
		code := -1
		done.Go(func() {
			code = run(ctx, args, strings.NewReader(""), writer, io.Discard)
			_ = writer.Close()
		})
		lines := 0
		for scan := bufio.NewScanner(reader); scan.Scan(); {
			if lines++; lines == 2 || args[0] == "tail" {
				interrupt()
			}
		}
		interrupt()
		done.Wait()
		if code != exitOK || lines == 0 {
			t.Errorf("%v: exit %d after %d lines", args, code, lines)
		}
	}
}

// No colours where nobody sees them; control characters of others never reach a terminal.
func TestPage(t *testing.T) {
	write := func(colour bool) string {
		p := &page{colour: colour}
		p.table([]string{"A", "B"}, [][]any{{styled(red, "x\x1b[2J"), 1}, {"", "Ünïcode"}})
		p.facts("name", "v", "none", "", "kind", styled(bold, "k"))
		p.say("%s", "two\nlines")
		return p.String()
	}
	if got, want := write(false),
		"A           B\n\"x\\x1b[2J\"  1\n-           Ünïcode\nname  v\nkind  k\ntwo\n    lines\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	coloured := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(write(true), "")
	if coloured != write(false) || strings.Count(write(true), "\x1b[31m") != 1 ||
		strings.Contains(write(true), "\x1b[2J") {
		t.Errorf("in colour:\n%q", write(true))
	}
}
