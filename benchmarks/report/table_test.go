package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

func TestTables(t *testing.T) {
	d := report.Document{Results: []scenario.Result{
		{Scenario: "append", System: "able", Server: "redis 7", Rounds: []scenario.Round{{}},
			Summary: map[string]measure.Spread{
				measure.Throughput: {Median: 123_456, Min: 1234, Max: 200_000},
				measure.ServerItem: {Median: 3.456, Min: 3.456, Max: 3.456}}},
		{Scenario: "append", System: "unable", Server: "redis 7",
			Rounds: []scenario.Round{{NotAvailable: "n/a: jobs put out no frames"}}},
		{Scenario: "idle", System: "able", Server: "redis 7",
			Summary: map[string]measure.Spread{measure.Workers: {Median: 64, Min: 64, Max: 64}}},
	}}
	var out bytes.Buffer
	if err := d.Print(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"append (redis 7)", "system /s srv µs", "able 123.5k (1234–200.0k) 3.46",
		"unable n/a: jobs put out no frames", "", "idle (redis 7)", "system workers", "able 64"}
	if text := strings.Join(got, "\n"); !strings.HasSuffix(text, strings.Join(want, "\n")) {
		t.Errorf("got\n%s\nwant at the end\n%s", text, strings.Join(want, "\n"))
	}
}
