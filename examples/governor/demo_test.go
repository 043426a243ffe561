package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
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

// start runs the program to its end, which leaves no gate behind.
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
	if environment == nil { // the server has ended with the demo
		return out.String()
	}
	c, err := client.Connect(t.Context(), client.Config{URL: environment["FLOWFABRIC_URL"]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if gates, err := admin.New(c).Gates(t.Context()); err != nil || len(gates) != 0 {
		t.Errorf("%d gates are left, %v", len(gates), err)
	}
	return out.String()
}

// Without a gate a third of the calls is refused; with one none is until the service is overloaded.
func TestDemo(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, &tripwire{}, "-seconds", "6", "-rate", "12")
		for _, want := range []string{
			`\n    240 calls are answered, and 120 refused \(429\)`,
			`\n    second  small, weight 1 +middle, weight 2 +large, weight 3 +refused\n +1 `,
			`\n         6  `, `\n    large +■* +\d+\.\d% of the calls, by weight 50.0%\n`,
			`\n    \d+ calls, \d+% of what the service allows; 0 refused\.\n`,
		} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("no %q", want)
			}
		}
		if t.Failed() {
			t.Log(out)
		}
	})
}

// Ctrl-C ends the demo without an error, and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, &tripwire{text: "\n         1  "})
		if !strings.HasSuffix(out, "You interrupted it.\n\n") {
			t.Errorf("it ends otherwise:\n%s", out)
		}
	})
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-seconds", "5"}, {"-seconds", "51"}, {"-rate", "5"}, {"-rate", "61"}, {"-no-such-flag"}, {"a"},
		{"-url", "ftp://nowhere"}, {"-url", "redis://127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "" }, &out, &errs); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
