package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// The rounds of two programs are judged in pairs, what only one of them measures is left out, and a slow round that
// both met changes no ratio.
func TestInTurns(t *testing.T) {
	document := func(chains, micros float64, more ...scenario.Result) report.Document {
		d := first()
		d.Results = append(more, result("flow", "chains of 10", "flowfabric",
			map[string][]float64{measure.Throughput: {chains}}))
		d.Cost = &cost.Report{Costs: []cost.Cost{{Operation: "suspend", PerCall: 1, Micros: micros}}}
		return d
	}
	alone := result("tail", "", "flowfabric", map[string][]float64{measure.P50: {1}})
	d := report.InTurns(
		[]report.Document{document(160, 50), document(80, 100, alone), document(320, 55)},
		[]report.Document{document(100, 100, alone), document(50, 200), document(200, 100)})
	for target, want := range map[string]float64{"chains of ten": 1.6, "server µs to suspend": 0.5} {
		if l := judge(t, target, d); l.Verdict != report.Met || l.Peer != report.Before || l.Rounds != 3 ||
			l.Value.Median != want {
			t.Errorf("%s: %+v", target, l)
		}
	}
	var out bytes.Buffer
	if err := report.PrintTurns(&out, d); err != nil || !strings.Contains(out.String(), "1.60 (1.60–1.60)") ||
		strings.Contains(out.String(), "tail") {
		t.Errorf("%v in\n%s", err, &out)
	}
}
