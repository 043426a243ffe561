package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
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

// tripwire is what the program prints to; a text in it ends the program, as Ctrl-C would.
type tripwire struct {
	bytes.Buffer
	text string
	end  func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.text != "" && strings.Contains(w.String(), w.text) {
		w.end()
	}
	return n, err
}

// start runs the program to its end.
func start(t *testing.T, environment map[string]string, tripwireText string, args ...string) string {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	out := &tripwire{text: tripwireText, end: cancel}
	if err := run(ctx, args, func(name string) string { return environment[name] }, out, os.Stderr); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out.String()
}

// ranked counts the words of all parts but the two that are never counted, in another way than the example does.
func ranked(t *testing.T, letters int) (words int, lines []string) {
	t.Helper()
	texts, err := split()
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for i, text := range texts {
		if i+1 == broken || i+1 == stuck {
			continue
		}
		for _, word := range regexp.MustCompile(`[\p{L}']*\p{L}[\p{L}']*`).FindAllString(text, -1) {
			words++
			if word = strings.Trim(strings.ToLower(word), "'"); len(word) >= letters {
				times[word]++
			}
		}
	}
	for word := range times {
		lines = append(lines, word)
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Or(times[b]-times[a], strings.Compare(a, b)) })
	for i, word := range lines {
		lines[i] = fmt.Sprintf("%2d. %-12s %3d ", i+1, word, times[word])
	}
	return words, lines
}

// 48 of 50 parts are counted, among them those that failed at first; the result is theirs and nobody else's.
func TestMapReduce(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		out := start(t, environment, "", "-pace", "1ms", "-top", "5", "-text", "-mermaid")
		words, lines := ranked(t, 5)
		for _, want := range append(slices.Clone(lines[:5]),
			"part-07: the tokenizer is busy; it is tried again.", "part-21: the", "part-42: the",
			"part-13: the text is damaged; no retry would help.",
			"part-37 was cut off; its context ended because of this: cancelled: the execution was cancelled.",
			fmt.Sprintf("was given 48 of 50 counts, all but part-13 and part-37: %d words.", words),
			"; nodes: 1 cancelled, 1 failed, 49 completed.", "completed after ", "\nflowchart ",
		) {
			if !strings.Contains(out, want) {
				t.Errorf("no %q", want)
			}
		}
		if strings.Contains(out, lines[5]) {
			t.Errorf("a sixth word is shown: %q", lines[5])
		}
		counted := map[string]bool{}
		for _, row := range regexp.MustCompile(`(?m)^(?:counted)? +((?:\d\d ?)+)$`).FindAllStringSubmatch(out, -1) {
			for _, part := range strings.Fields(row[1]) {
				counted[part] = true
			}
		}
		if len(counted) != enough || counted["13"] || counted["37"] {
			t.Errorf("%d parts were counted: %v", len(counted), counted)
		}
		for n := range parts {
			if strings.Count(out, nodeName(n+1)) < 2 {
				t.Errorf("%s is not in text and diagram", nodeName(n+1))
			}
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
		out := start(t, environment, "\ncounted", "-pace", "20ms")
		if !strings.HasSuffix(out, "You interrupted it, so the flow was cancelled.\n") {
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
		for f, err := range admin.New(c).Flows(t.Context(), admin.FlowQuery{Kind: "map-reduce"}) {
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
	for _, args := range [][]string{{"-top", "0"}, {"-letters", "0"}, {"extra"}, {"-no-such-flag"},
		{"-url", "ftp://nowhere"}, {"-url", "redis://127.0.0.1:1"}} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "" }, &out, &errs); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
