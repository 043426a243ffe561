package report_test

import (
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/bounds"
	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// result has a round for every value of every figure.
func result(name, variant, system string, figures map[string][]float64) scenario.Result {
	r := scenario.Result{Scenario: name, Variant: variant, System: system, Server: "redis 7.0.15"}
	var all []measure.Figures
	for figure, values := range figures {
		for i, v := range values {
			if i == len(r.Rounds) {
				r.Rounds = append(r.Rounds, scenario.Round{Figures: measure.Figures{}})
			}
			r.Rounds[i].Figures[figure] = v
		}
	}
	for _, round := range r.Rounds {
		all = append(all, round.Figures)
	}
	r.Summary = measure.Summary(all)
	return r
}

func missing(name, system, why string) scenario.Result {
	return scenario.Result{Scenario: name, System: system, Rounds: []scenario.Round{{NotAvailable: "n/a: " + why}}}
}

// first is a run of jobs, second one of other things: what a report of two groups of scenarios is made of. No figure
// in them was measured.
func first() report.Document {
	return report.Document{
		Format: report.Format, Began: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Took: 600,
		Machine: report.Machine{CPU: "Abacus 1", Cores: 2, GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Kernel: "6.1",
			Load: 0.1, Go: "go1.26.8"},
		Modules: map[string]string{"github.com/redis/rueidis": "v1.0.79", "github.com/hibiken/asynq": "v0.26.0"},
		Systems: []report.System{{"flowfabric", "v1.0.0, library 7"}, {"asynq", "v0.26.0"}, {"river-tuned", "v0.1"}},
		Settings: report.Settings{Server: "redis-server", Scenarios: []string{"drain", "latency"}, Rounds: 3,
			Items: 20_000, Payload: 256, Concurrency: 64, Partitions: 64, Batch: 32, Workers: 64, Members: 1000},
		Results: []scenario.Result{
			result("drain", "", "flowfabric",
				map[string][]float64{measure.Throughput: {40_000, 50_000, 60_000}, measure.ServerItem: {20, 20, 20},
					measure.ClientItem: {9, 11, 9}}),
			result("drain", "", "asynq",
				map[string][]float64{measure.Throughput: {8000, 10_000, 10_000}, measure.ServerItem: {80, 81, 82},
					measure.ClientItem: {100, 105, 110}}),
			missing("drain", "river-tuned", "postgres: not installed"),
			result("sleep", "2ms, 64 handlers", "flowfabric", map[string][]float64{measure.OfIdeal: {0.7, 0.7, 0.7}}),
			result("sleep", "10ms, 64 handlers", "flowfabric",
				map[string][]float64{measure.OfIdeal: {0.97, 0.98, 0.96}}),
			result("sleep", "10ms, 256 handlers", "flowfabric",
				map[string][]float64{measure.OfIdeal: {0.9, 0.94, 0.92}}),
			result("sleep", "50ms, 1000 handlers", "flowfabric",
				map[string][]float64{measure.OfIdeal: {0.1, 0.1, 0.1}}),
			result("submit", "one goroutine", "flowfabric",
				map[string][]float64{measure.Throughput: {8000, 9100, 12_000}}),
			result("submit", "one goroutine", "asynq",
				map[string][]float64{measure.Throughput: {10_000, 10_000, 10_000}}),
			result("submit", "64 goroutines", "flowfabric",
				map[string][]float64{measure.Throughput: {30_000, 30_000, 30_000}}),
			result("submit", "64 goroutines", "asynq",
				map[string][]float64{measure.Throughput: {40_000, 37_500, 30_000}}),
			result("latency", "", "flowfabric",
				map[string][]float64{measure.P50: {0.5, 0.5, 0.6}, measure.P99: {2, 3, 4},
					measure.OfCall: {2.5, 2.9, 3.1}}),
			result("latency", "", "asynq",
				map[string][]float64{measure.P50: {1000, 1100, 1200}, measure.P99: {1400, 1500, 1600}}),
			result("latency", "", "river-tuned",
				map[string][]float64{measure.P50: {3, 3, 3}, measure.P99: {18, 19, 20}}),
		},
	}
}

func second() report.Document {
	d := first()
	d.Began = d.Began.Add(time.Hour)
	d.Systems = []report.System{{"flowfabric", "v1.0.0, library 7"}}
	d.Results = []scenario.Result{
		result("idle", "", "flowfabric", map[string][]float64{measure.CallsSec: {90, 100, 110},
			measure.CmdsSec: {4000, 5000, 6000}, measure.ServerCPU: {1.2, 1.3, 1.4}, measure.AllCPU: {2.2, 2.3, 2.4}}),
		result("memory", "", "flowfabric",
			map[string][]float64{measure.Waiting: {600, 600, 600}, measure.Done: {700, 710, 720}}),
		result("claims", "32 a call", "flowfabric",
			map[string][]float64{measure.Throughput: {90_000, 100_000, 95_000}}),
		result("claims", "32 a call, settled", "flowfabric",
			map[string][]float64{measure.Throughput: {50_000, 48_000, 47_000}}),
	}
	d.Cost = &cost.Report{Server: "redis 7.0.15", Items: 20_000, Rounds: 3, Payload: 256,
		Costs: []cost.Cost{{Operation: "create", PerCall: 1, Micros: 30, Commands: 12},
			{Operation: "lifecycle", PerCall: 1, Micros: 79, Budget: 80, Commands: 30},
			{Operation: "tick", PerCall: 1, Micros: 14, Budget: 12, Commands: 5}},
		Sizes: []cost.Size{{State: "waiting", Bytes: 600, Budget: 700}}}
	d.Bounds = &bounds.Report{Server: "redis 7.0.15", Rounds: 3, Members: 1000,
		Calls: []bounds.Call{{Case: "a join of 1,000", Function: "ff_resolve", Calls: 10, Longest: 3.1, Median: 2,
			Commands: 1200, Met: true}}}
	return d
}
