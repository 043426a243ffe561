package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

func TestCheck(t *testing.T) {
	guards := []report.Guard{
		{Target: report.Target{Line: "drain", Scenario: "drain", Figure: measure.ServerItem, Peers: []string{"raw"},
			Bound: report.Bound{Most: 10}}, Usual: 7, Reason: "batches broke"}}
	run := func(ours ...float64) report.Document {
		d := first()
		d.Results = []scenario.Result{result("drain", "", "flowfabric", map[string][]float64{measure.ServerItem: ours}),
			result("drain", "", "raw", map[string][]float64{measure.ServerItem: {1, 2, 4}})}
		return d
	}
	nobody := run(1, 1, 1)
	nobody.Results = nobody.Results[:1]
	for _, c := range []struct {
		run    report.Document
		failed int
		says   []string
	}{
		{run(9, 18, 400), 0, []string{"kept", "9 (9–100)"}}, // one bad round does not break it
		{run(9, 22, 44), 1, []string{"BROKEN", "drain: batches broke"}},
		{nobody, 1, []string{"NOT MEASURED", "drain: raw not in the run"}},
	} {
		var out bytes.Buffer
		failed, err := report.Check(&out, guards, c.run)
		if err != nil || failed != c.failed {
			t.Errorf("%d guards failed, want %d (%v)\n%s", failed, c.failed, err, &out)
		}
		for _, want := range c.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, &out)
			}
		}
	}
}

// A guard is a ratio, its bound allows about half as much again as is usual, and it says what may have broken.
func TestGuardsAreGenerousRatios(t *testing.T) {
	for _, g := range report.Guards {
		room := g.Bound.Most / g.Usual
		if g.Bound.Least > 0 {
			room = g.Usual / g.Bound.Least
		}
		if room < 1.3 || room > 1.6 || g.Reason == "" || len(g.Peers) == 0 && g.Figure != measure.RawRatio {
			t.Errorf("%s: %.2f of room, reason %q, peers %q", g.Line, room, g.Reason, g.Peers)
		}
	}
}
