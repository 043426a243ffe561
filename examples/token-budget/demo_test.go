package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// servers are what the program runs on, as the environment names them.
func servers(t *testing.T, test func(t *testing.T, environment map[string]string)) {
	t.Run("embedded", func(t *testing.T) { test(t, nil) })
	t.Run("redis", func(t *testing.T) { test(t, map[string]string{"FLOWFABRIC_URL": testserver.Redis(t)}) })
}

// tripwire is what the program prints to; it calls do when a text has come, once.
type tripwire struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.text != "" && strings.Contains(w.String(), w.text) {
		w.text = ""
		w.do()
	}
	return n, err
}

// start runs the program to its end.
func start(t *testing.T, environment map[string]string, out *tripwire, args ...string) string {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	if out.text != "" {
		out.do = cancel
	}
	if err := run(ctx, args, func(name string) string { return environment[name] }, out, os.Stderr); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Error("control codes in plain output")
	}
	return out.String()
}

// left is nothing: neither gates nor what was attached.
func left(t *testing.T, environment map[string]string) {
	t.Helper()
	if environment == nil { // the server has ended with the demo
		return
	}
	c, err := client.Connect(t.Context(), client.Config{URL: environment["FLOWFABRIC_URL"]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if gates, err := admin.New(c).Gates(t.Context()); err != nil || len(gates) != 0 {
		t.Errorf("%d gates are left, %v", len(gates), err)
	}
	if all, err := admin.New(c).Gated(t.Context()); err != nil || len(all.Attached) != 0 {
		t.Errorf("attached: %v, %v", all.Attached, err)
	}
}

// acme is stopped before the call that does not fit, and goes on where it was when there is room, so that no token is
// paid twice; globex is not affected.
func TestDemo(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, &tripwire{}, "-pace", "1ms", "-tokens", "45", "-limit", "23")
		before, after, _ := strings.Cut(out, "\n2. ")
		for _, want := range []string{
			`\n    acme +■ stopped after 20 tokens, before the next call\n`, `\n    globex +✓ all 45 tokens\n`,
			`\n    acme +why: It waits for gate acme: 20 of 23 tokens are used, and 10 more do not fit\..*\n`,
			`\n    acme +waiting_gate, attempt 1\n +budget: 20 of 23 tokens used, 0 reserved\n`,
			`\n    globex +completed, attempt 1\n +budget: 45 of 450 tokens used, 0 reserved\n`,
		} {
			if !regexp.MustCompile(want).MatchString(before) {
				t.Errorf("no %q", want)
			}
		}
		for _, want := range []string{
			`\n    acme 2 +■ stopped after 0 tokens, before the next call\n`,
			`\n    acme 2 +why: It waits for gate acme: .*\n`,
			`(?s)raises the limit to 135.*\n    acme +✓ all 45 tokens\n`, `\n    acme 2 +✓ all 11 tokens\n`,
			`\n    acme +completed, attempt 1\n`,
			`\n    acme 2 +completed, attempt 1\n +budget: 56 of 135 tokens used, 0 reserved\n`,
		} {
			if !regexp.MustCompile(want).MatchString(after) {
				t.Errorf("no %q", want)
			}
		}
		if t.Failed() {
			t.Log(out)
		}
		left(t, environment)
	})
}

// Ctrl-C ends the demo without an error, and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, &tripwire{text: "│"}, "-pace", "50ms")
		if !strings.HasSuffix(out, "You interrupted it.\n\n") {
			t.Errorf("it ends otherwise:\n%s", out)
		}
		left(t, environment)
	})
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-tokens", "10"}, {"-tokens", "201"}, {"-limit", "9"}, {"-limit", "80"}, {"-no-such-flag"}, {"a"},
		{"-url", "ftp://nowhere"}, {"-url", "redis://127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "" }, &out, &errs); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

// The handler by itself: it makes no call that does not fit, and a call costs what it used, not what was reserved.
func TestHandler(t *testing.T) {
	budget := admission.Gate{Name: "b", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{dimension: {Hard: 29}}}
	g := NewGenerator(Model{Pace: time.Second})
	r := fftest.Run(t, Generate, g.Handle, Prompt{Book: "alice", Tokens: 40}, fftest.Gates(budget))
	r.Want(fftest.Want{Failure: "budget_exceeded"})
	if got := r.Spent["b"][dimension]; got != 20 {
		t.Errorf("%d %s spent, want 20", got, dimension)
	}
	if len(r.Frames) != 20 || len(r.Attempts) != 1 || r.Elapsed < 20*time.Second {
		t.Errorf("%d frames in %d attempts and %s", len(r.Frames), len(r.Attempts), r.Elapsed)
	}
	r = fftest.Run(t, Generate, g.Handle, Prompt{Book: "alice", Tokens: 13}, fftest.Gates(budget))
	r.Want(fftest.Want{State: flowfabric.Completed})
	if got := r.Spent["b"][dimension]; got != 13 {
		t.Errorf("%d %s spent, want 13", got, dimension)
	}
	for _, in := range []Prompt{{Book: "alice"}, {Book: "none", Tokens: 1}, {Book: "alice", Tokens: maxTokens + 1},
		{Book: "alice", Tokens: 1, Skip: -1}} {
		fftest.Run(t, Generate, g.Handle, in).Want(fftest.Want{State: flowfabric.Failed})
	}
}
