package main

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// perJob are bounds of what a job may cost in counts, which load does not change, but through the size of batches: a
// worker or client that is kept from running makes smaller ones. Hence the least of all rounds is judged, and bounds
// lie between what is usual and what it would be without batches: without those, drain makes 2 calls and 25 commands
// a job, lifecycle 3 and 36. Objects are those of the whole process, a third more than usual: that is a copy, a closure
// or a log record too many on every job. A job at a time shows what a call costs that is made for one.
var perJob = []struct {
	scenario, variant      string
	calls, commands, alloc float64 // at most
}{
	{"submit", "one goroutine", 1.1, 13, 16},   // usual: 1, 10, 11.7
	{"submit", "32 goroutines", 0.5, 8, 12},    // 0.04, 0.4, 8.8: one call for all that wait
	{"submit", "batches of 1000", 0.05, 4, 10}, // 0.01, 0.1, 7.2: calls of 100
	{"drain", "", 1, 16, 22},                   // 0.07, 1.7, 14.5: claims and settles in batches
	{"drain", "bytes", 1, 16, 16},              // 0.06, 1.7, 10.3
	{"lifecycle", "", 1.5, 24, 38},             // 0.2, 3.1, 26
	{"latency", "", 4.5, 60, 48},               // 3.1, 38, 37
	{"suspend", "", 4.5, 60, 105},              // 3, 41, 82: a signal, and the rest of the job
}

func TestJobsStayCheap(t *testing.T) {
	d, _ := measured(t, strings.Fields("-scenarios submit,drain,lifecycle,latency,suspend -n 2000 -samples 100 "+
		"-rounds 3 -partitions 4 -c 32 -settle 100ms")...)
	for _, want := range perJob {
		seen := false
		for _, r := range d.Results {
			if r.Scenario != want.scenario || r.Variant != want.variant {
				continue
			}
			seen = true
			for figure, most := range map[string]float64{measure.CallsItem: want.calls, measure.CmdsItem: want.commands,
				measure.AllocItem: want.alloc} {
				if got := r.Summary[figure].Min; got <= 0 || got > most {
					t.Errorf("%s %s: %s is %.2f in the best round, want more than 0 and %v or less", r.Scenario,
						r.Variant, figure, got, most)
				}
			}
		}
		if !seen {
			t.Errorf("%s %s was not measured", want.scenario, want.variant)
		}
	}
}

// What guards compare is measured; whether they hold is not asked of so short a run.
func TestGuardMeasuresWhatItCompares(t *testing.T) {
	needRedis(t)
	var out, progress strings.Builder
	err := run(t.Context(), append([]string{"guard"}, strings.Fields("-n 300 -rounds 1 -samples 10 -partitions 4")...),
		&out, &progress)
	if err != nil && !strings.Contains(err.Error(), "guards do not hold") {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "NOT MEASURED") || !strings.Contains(text, "lifecycle") {
		t.Errorf("%s", text)
	}
}
