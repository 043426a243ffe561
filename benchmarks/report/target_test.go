package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Ratios pair round with round: here the machine became twice as fast with every round, and the ratio is the same in
// all.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	a := result("drain", "", "a", map[string][]float64{measure.Throughput: {400, 800, 1600}})
	b := result("drain", "", "b", map[string][]float64{measure.Throughput: {100, 200, 400}})
	if got := report.Ratios(a, b, measure.Throughput); !slices.Equal(got, []float64{4, 4, 4}) {
		t.Errorf("ratios %v, want 4 in every round", got)
	}
	b.Rounds[1] = scenario.Round{NotAvailable: "n/a"}
	b.Rounds[2].Figures[measure.Throughput] = 0
	if got := report.Ratios(a, b, measure.Throughput); !slices.Equal(got, []float64{4}) {
		t.Errorf("ratios %v, want that of the only round with both", got)
	}
	if got := report.Ratios(a, b, "unheard of"); len(got) != 0 {
		t.Errorf("ratios %v of a figure that nobody has", got)
	}
}

func TestVerdicts(t *testing.T) {
	least, most, both := report.Bound{Least: 2}, report.Bound{Most: 2}, report.Bound{Least: 0.85, Most: 1.15}
	for _, c := range []struct {
		bound    report.Bound
		min, max float64
		want     report.Verdict
	}{
		{least, 2, 3, report.Met}, {least, 1, 1.9, report.Missed}, {least, 1.9, 2.1, report.Noise},
		{most, 1, 2, report.Met}, {most, 2.1, 3, report.Missed}, {most, 1, 2.1, report.Noise},
		{both, 0.9, 1.1, report.Met}, {both, 0.5, 0.8, report.Missed}, {both, 1.2, 2, report.Missed},
		{both, 1, 1.2, report.Noise}, {both, 0.5, 2, report.Noise},
		{report.Bound{}, 1, 2, report.Shown},
	} {
		if got := c.bound.Judge(measure.Spread{Median: (c.min + c.max) / 2, Min: c.min, Max: c.max}); got != c.want {
			t.Errorf("%v–%v against %q: %q, want %q", c.min, c.max, c.bound, got, c.want)
		}
	}
}

// judge finds the only line of a target, which is named by how it begins.
func judge(t *testing.T, begin string, runs ...report.Document) report.Line {
	t.Helper()
	i := slices.IndexFunc(report.Targets, func(t report.Target) bool { return strings.HasPrefix(t.Line, begin) })
	if i < 0 {
		t.Fatalf("there is no target %q", begin)
	}
	lines := report.Judge(report.Targets[i:i+1], runs)
	if len(lines) != 1 {
		t.Fatalf("%d lines of %q: %+v", len(lines), begin, lines)
	}
	return lines[0]
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		target  string
		verdict report.Verdict
		peer    string
		median  float64
	}{
		{"drain ≥ 4× asynq", report.Met, "asynq", 5},
		{"submit, one goroutine", report.Met, "asynq", 0.91},
		{"submit, many goroutines", report.Missed, "asynq", 0.8},
		{"submit → handler, idle worker: p50", report.Noise, "", 2.9},
		{"handlers of 2 ms", report.Missed, "", 0.7},
		{"client µs per drained job", report.Noise, "", 9},
	} {
		l := judge(t, c.target, first())
		if l.Verdict != c.verdict || l.Peer != c.peer || l.Value.Median != c.median || l.Run != 1 || l.Rounds != 3 {
			t.Errorf("%s: %q to %q by %+v, want %q to %q by %v", c.target, l.Verdict, l.Peer, l.Value, c.verdict,
				c.peer, c.median)
		}
	}
}

func TestWhyATargetWasNotMeasured(t *testing.T) {
	for target, want := range map[string]string{
		"drain ≥ 2× River":           "river-tuned: n/a: postgres: not installed",
		"drain ≥ 2.5× BullMQ":        "bullmq, bullmq-2 not in the run",
		"lifecycle ≥ 2.5× BullMQ":    "no run has scenario lifecycle",
		"submit, bulk of 1,000":      "submit has no variant \"batches of *\" in the run",
		"append, 32 frames a call ≥": "no run has scenario append",
	} {
		if l := judge(t, target, first()); l.Verdict != report.NotMeasured || l.Why != want || l.Run != 0 {
			t.Errorf("%s: %q because %q, want because %q", target, l.Verdict, l.Why, want)
		}
	}
}

// A run under other settings is not what the targets are about.
func TestTargetsOfOtherSettings(t *testing.T) {
	d := first()
	d.Settings.Payload = 64
	if l := judge(t, "drain ≥ 4× asynq", d); l.Verdict != report.NotMeasured ||
		l.Why != "the run has -payload 64, the target is about 256" {
		t.Errorf("%q because %q", l.Verdict, l.Why)
	}
	d = first()
	d.Settings.Work = "1ms"
	if l := judge(t, "drain ≥ 4× asynq", d); l.Verdict != report.NotMeasured || !strings.Contains(l.Why, "-work 1ms") {
		t.Errorf("%q because %q", l.Verdict, l.Why)
	}
	d = second()
	d.Settings.Workers = 8
	if l := judge(t, "idle, 64 workers, 64 partitions", d); l.Verdict != report.NotMeasured ||
		l.Why != "the run has -workers 8, the target is about 64" {
		t.Errorf("%q because %q", l.Verdict, l.Why)
	}
}

// Every variant that a target is about has a line; the first of those that are compared has nothing to be compared
// with.
func TestTargetsOfSeveralVariants(t *testing.T) {
	d := first()
	d.Results = []scenario.Result{
		result("partitions", "submit, 1 partitions", "flowfabric", map[string][]float64{measure.ServerItem: {10, 10}}),
		result("partitions", "submit, 64 partitions", "flowfabric",
			map[string][]float64{measure.ServerItem: {11, 11}, measure.OfFirst: {1.1, 1.1}}),
		result("partitions", "drain, 256 partitions", "flowfabric",
			map[string][]float64{measure.ServerItem: {15, 15}, measure.OfFirst: {1.5, 1.5}}),
		result("partitions", "idle, 256 partitions", "flowfabric", map[string][]float64{measure.CallsSec: {15, 15}}),
	}
	i := slices.IndexFunc(report.Targets, func(t report.Target) bool { return t.Scenario == "partitions" })
	lines := report.Judge(report.Targets[i:i+1], []report.Document{d})
	if len(lines) != 2 || lines[0].Variant != "submit, 64 partitions" || lines[0].Verdict != report.Met ||
		lines[1].Verdict != report.Missed {
		t.Errorf("%+v", lines)
	}
}

// A ratio is never taken between runs: the peer is in one of them only, the subject in the other.
func TestRunsAreNotMixed(t *testing.T) {
	ours, theirs := first(), first()
	ours.Results, theirs.Results = ours.Results[:1], theirs.Results[1:2]
	if l := judge(t, "drain ≥ 4× asynq", ours, theirs); l.Verdict != report.NotMeasured {
		t.Errorf("FlowFabric of one run was divided by asynq of another: %+v", l)
	}
	i := slices.IndexFunc(report.Targets, func(t report.Target) bool { return strings.HasPrefix(t.Line, "drain ≥ 4×") })
	lines := report.Judge(report.Targets[i:i+1], []report.Document{first(), theirs, first()})
	if len(lines) != 2 || lines[0].Run != 1 || lines[1].Run != 3 {
		t.Errorf("want a line for each run that has both: %+v", lines)
	}
}

// Every target names what scenarios have: a misspelt one would never be measured, and nobody would notice.
func TestTargetsNameWhatThereIs(t *testing.T) {
	for _, target := range report.Targets {
		if target.Scenario == "cost" || target.Scenario == "bounds" {
			continue
		}
		if !slices.ContainsFunc(scenario.All, func(s scenario.Scenario) bool { return s.Name == target.Scenario }) {
			t.Errorf("%s: there is no scenario %q", target.Line, target.Scenario)
		}
	}
}

// The report has one line of a target: of the last run that measured it, the variant that does worst.
func TestWorstOfTheLastRun(t *testing.T) {
	earlier, later := first(), first()
	for i, r := range earlier.Results {
		if r.Scenario == "sleep" {
			earlier.Results[i] = result("sleep", r.Variant, r.System,
				map[string][]float64{measure.OfIdeal: {0.01, 0.01, 0.01}})
		}
	}
	var text strings.Builder
	report.Markdown(&text, []report.Document{earlier, later, second()}, false)
	var lines []string
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "handlers of 10 ms") || strings.Contains(line, "a waiting execution") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "worst of 2: 10ms, 256 handlers") ||
		!strings.Contains(lines[0], "0.92 (0.90–0.94)") || !strings.Contains(lines[0], "| within noise | 2 |") ||
		!strings.Contains(lines[1], "| 600 |") || !strings.Contains(lines[1], "**not met** | 3 |") {
		t.Errorf("%q", lines)
	}
}
