package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
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

var winnerPattern = regexp.MustCompile(`which was given one answer, the one of (tortoise|snail):\n`)

// One of the steady ones wins (the tortoise, unless this machine is very busy), the hare is cancelled, and what the
// last node was given is the winner's answer.
func TestRace(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, &tripwire{}, "-pace", "2ms", "-tokens", "40", "-mermaid")
		tracks, results, _ := strings.Cut(out, "\nThe others, as")
		won := winnerPattern.FindStringSubmatch(results)
		if won == nil {
			t.Fatalf("nobody has won:\n%s", out)
		}
		for _, want := range []string{
			`\n    hare +(was at token \d+ of 40 when its context ended: cancelled: |has run elsewhere).*\n +on record: cancelled, flow_cascade, sibling_quorum_satisfied\n`,
			`\n[^\n]*\bhare\b[^\n]*\bcancelled\b`, `\n[^\n]*\bpublish\b[^\n]*\bcompleted\b`,
			`\n[^\n]*\b` + won[1] + `\b[^\n]*\bcompleted\b`,
			`\nflowchart `, `any of 3 satisfied`,
		} {
			if !regexp.MustCompile(want).MatchString(results) {
				t.Errorf("no %q", want)
			}
		}
		for _, want := range []string{"hare, out of alice", "✓ all 40 tokens"} {
			if !strings.Contains(tracks, want) {
				t.Errorf("no %q", want)
			}
		}
		winner, err := providerNamed(won[1])
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := winner.passage("How should a man live?")
		if err != nil {
			t.Fatal(err)
		}
		want := won[1] + ": How should a man live? " + strings.Join(tokens[:40], "") + " The flow,"
		if got := strings.Join(strings.Fields(results), " "); !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
		if t.Failed() {
			t.Log(out)
		}
	})
}

// Ctrl-C ends the demo without an error, and the flow with it.
func TestInterrupt(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, &tripwire{text: "───\n"}, "-pace", "100ms")
		if !strings.HasSuffix(out, "You interrupted it, so the race was cancelled.\n") {
			t.Errorf("it ends otherwise:\n%s", out)
		}
		if environment == nil { // the server has ended with the demo
			return
		}
		c, err := client.Connect(t.Context(), client.Config{URL: environment["FLOWFABRIC_URL"]})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		seen := 0
		for f, err := range admin.New(c).Flows(t.Context(), admin.FlowQuery{Kind: "race"}) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; f.State != flowfabric.FlowCancelled {
				t.Errorf("flow %s is %s, want cancelled", f.ID, f.State)
			}
		}
		if seen != 1 {
			t.Errorf("%d flows, want 1", seen)
		}
	})
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-tokens", "0"}, {"-tokens", "401"}, {"-no-such-flag"}, {"-url", "ftp://nowhere"},
		{"-url", "redis://127.0.0.1:1"}} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "" }, &out, &errs); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
