package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// Guard is a target that protects what was reached: a ratio within one run, and never a time. The median is judged,
// against a bound that allows about half as much again as is usual, so that only what is really worse fails.
type Guard struct {
	Target
	Usual  float64 // the ratio when the bound was set, on two cores with Redis 7.0
	Reason string  // what is likely to have broken
}

// ceiling is the system that guards compare with: what the server and the client library can do at all, in the same
// rounds.
var ceiling = []string{"raw"}

// Guards are what the command guard checks. Processor time of the server is what depends least on what else the
// machine does.
var Guards = []Guard{
	{Target{Line: "submit, one by one", Scenario: "submit", Variant: "one goroutine", Figure: measure.ServerItem,
		Peers: ceiling, Bound: Bound{Most: 8.5}}, 5.6,
		"ff_create_execution makes more commands, or a lone submit makes more than one call"},
	{Target{Line: "submit, many goroutines", Scenario: "submit", Variant: "* goroutines", Figure: measure.ServerItem,
		Peers: ceiling, Bound: Bound{Most: 8.3}}, 5.3,
		"submits do not share calls any more, or a call costs more for each"},
	{Target{Line: "submit, batches", Scenario: "submit", Variant: "batches of *", Figure: measure.ServerItem,
		Peers: ceiling, Bound: Bound{Most: 26}}, 16.7,
		"a batch of submits goes to more calls, or a call costs more for each"},
	{Target{Line: "drain", Scenario: "drain", Figure: measure.ServerItem, Peers: ceiling, Bound: Bound{Most: 46}}, 30,
		"a worker does not claim or settle in batches any more, or a call costs more for each"},
	{Target{Line: "lifecycle", Scenario: "lifecycle", Figure: measure.ServerItem, Peers: ceiling,
		Bound: Bound{Most: 23}}, 14.8,
		"under mixed load batches are smaller, or workers are called too often"},
	{Target{Line: "latency", Scenario: "latency", Figure: measure.P50, Peers: ceiling, Bound: Bound{Most: 6.2}}, 3.9,
		"an idle worker is not woken at once any more, or claims later than it could"},
	{Target{Line: "latency", Scenario: "latency", Figure: measure.ServerItem, Peers: ceiling, Bound: Bound{Most: 10.5}},
		6.8, "one job makes more calls than it needs"},
	{Target{Line: "append", Scenario: "append", Figure: measure.RawRatio, Bound: Bound{Least: 0.27}}, 0.42,
		"frames are not appended in one call any more, or a call does more for each"},
}

// Check judges the guards, prints them and what is behind those that fail, and tells how many fail. What the run did
// not measure fails.
func Check(out io.Writer, guards []Guard, d Document) (failed int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "guard\tvariant\tfigure\tto\tnow\tusual\tbound\t")
	var reasons []string
	for _, g := range guards {
		for _, l := range Judge([]Target{g.Target}, []Document{d}) {
			verdict, now := "kept", spread(l.Value)
			switch l.Value.Min, l.Value.Max = l.Value.Median, l.Value.Median; {
			case l.Verdict == NotMeasured:
				verdict, now = "NOT MEASURED", ""
				reasons = append(reasons, fmt.Sprintf("%s: %s", g.Line, l.Why))
			case g.Bound.Judge(l.Value) != Met:
				verdict = "BROKEN"
				reasons = append(reasons, fmt.Sprintf("%s: %s", g.Line, g.Reason))
			}
			fmt.Fprintln(w, strings.Join([]string{g.Line, l.Variant, g.Figure, l.Peer, now, number(g.Usual),
				g.Bound.String(), verdict}, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	for _, r := range reasons {
		fmt.Fprintln(out, r)
	}
	return len(reasons), nil
}
