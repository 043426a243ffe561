package main

import (
	"regexp"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/demotest"
)

// Without a gate a third of the calls is refused; with one none is until the service is overloaded.
func TestDemo(t *testing.T) {
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		out := d.Output("-seconds", "6", "-rate", "12")
		d.NoGates()
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
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		d.Interrupt("\n         1  ", "You interrupted it.\n\n")
		d.NoGates()
	})
}

func TestBadFlags(t *testing.T) {
	demotest.Refuses(t, run, "-seconds 5", "-seconds 51", "-rate 5", "-rate 61", "a")
}
