package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/internal/demotest"
)

// acme is stopped before the call that does not fit, and goes on where it was when there is room, so that no token is
// paid twice; globex is not affected.
func TestDemo(t *testing.T) {
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		out := d.Output("-pace", "1ms", "-tokens", "45", "-limit", "23")
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
		d.NoGates()
	})
}

// Ctrl-C ends the demo without an error, and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		d.Interrupt("│", "You interrupted it.\n\n", "-pace", "50ms")
		d.NoGates()
	})
}

func TestBadFlags(t *testing.T) {
	demotest.Refuses(t, run, "-tokens 10", "-tokens 201", "-limit 9", "-limit 80", "a")
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
