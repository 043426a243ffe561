package report_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

func TestCompare(t *testing.T) {
	older, newer := first(), first()
	newer.Results[0] = result("drain", "", "flowfabric", map[string][]float64{
		measure.Throughput: {61_000, 62_000, 63_000}, measure.ServerItem: {21, 21, 21},
		measure.ClientItem: {8, 10, 12}})
	newer.Results = slices.Delete(newer.Results, 1, 2) // asynq's drain
	c := report.Compare(older, newer)
	got := map[string]report.Difference{}
	for _, d := range c.Differences {
		if d.System == "flowfabric" && d.Scenario == "drain" {
			got[d.Figure] = d
		}
	}
	for figure, want := range map[string]struct {
		ratio   float64
		verdict string
	}{
		measure.Throughput: {1.24, "better"},
		measure.ServerItem: {1.05, "worse"},
		measure.ClientItem: {10.0 / 9, ""}, // the ranges overlap
	} {
		if d := got[figure]; d.Ratio != want.ratio || d.Verdict() != want.verdict {
			t.Errorf("%s: %v %q, want %v %q", figure, d.Ratio, d.Verdict(), want.ratio, want.verdict)
		}
	}
	if len(c.Warnings) != 0 {
		t.Errorf("the runs are alike, but: %v", c.Warnings)
	}
	if !slices.Equal(c.Only, []string{"old: drain of asynq"}) {
		t.Errorf("in one run only: %v", c.Only)
	}
	var out bytes.Buffer
	if err := c.Print(&out, 0.06); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Two runs are not one run", "better", "not in both: old: drain of asynq",
		"Figures shown: 2, with ranges that do not overlap: 1."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), measure.ServerItem) { // 5 %
		t.Errorf("a difference below the threshold in\n%s", &out)
	}
}

func TestCompareWarns(t *testing.T) {
	older, newer := first(), first()
	newer.Machine.CPU, newer.Machine.Load = "Abacus 2", 3
	newer.Settings.Payload, newer.Settings.Scenarios = 4096, nil
	newer.Systems = []report.System{{"flowfabric", "v2"}, newer.Systems[1], newer.Systems[2]}
	newer.Modules = map[string]string{"github.com/redis/rueidis": "v1.0.80", "github.com/hibiken/asynq": "v0.26.0"}
	newer.Results[0].Server = "valkey 8.0.1"
	newer.Results = append(newer.Results[:3], newer.Results[7:]...)
	got := report.Compare(older, newer).Warnings
	want := []string{"machine: cpu differs: Abacus 1 → Abacus 2", "load at the beginning differs: 0.1 → 3.0",
		"setting: payload_bytes differs: 256 → 4096", "version of flowfabric differs: v1.0.0, library 7 → v2",
		"server of flowfabric differs: redis 7.0.15 → valkey 8.0.1",
		"library github.com/redis/rueidis differs: v1.0.79 → v1.0.80"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What was nothing and is something has no ratio; what was nothing and is nothing has not changed.
func TestCompareNothing(t *testing.T) {
	older, newer := first(), first()
	older.Results = older.Results[:1]
	older.Results[0] = result("drain", "", "flowfabric",
		map[string][]float64{measure.CallsItem: {0, 0}, measure.CmdsItem: {0, 0}})
	newer.Results = []scenario.Result{result("drain", "", "flowfabric",
		map[string][]float64{measure.CallsItem: {0, 0}, measure.CmdsItem: {1, 1}})}
	var out bytes.Buffer
	if err := report.Compare(older, newer).Print(&out, 0.01); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "∞") || !strings.Contains(text, "Figures shown: 1,") ||
		strings.Contains(text, measure.CallsItem) {
		t.Errorf("%s", text)
	}
}
