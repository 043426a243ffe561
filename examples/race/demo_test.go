package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/demotest"
)

var winnerPattern = regexp.MustCompile(`which was given one answer, the one of (tortoise|snail):\n`)

// One of the steady ones wins (the tortoise, unless this machine is very busy), the hare is cancelled, and what the
// last node was given is the winner's answer.
func TestRace(t *testing.T) {
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		out := d.Output("-pace", "2ms", "-tokens", "40", "-mermaid")
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
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		d.Interrupt("───\n", "You interrupted it, so the race was cancelled.\n", "-pace", "100ms")
		d.OneFlowCancelled("race")
	})
}

func TestBadFlags(t *testing.T) { demotest.Refuses(t, run, "-tokens 0", "-tokens 401") }
