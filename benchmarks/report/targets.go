package report

import "github.com/flowfabric/flowfabric-go/benchmarks/measure"

// tuned are the peers whose best latency the target of latency is about: those that are quick by default count, too.
var tuned = []string{"asynq", "asynq-tuned", "river", "river-tuned", "bullmq"}

// flat is what the ratio of a cost to another should be that is the same.
var flat = Bound{Least: 0.85, Most: 1.15}

const growthNote = "Compared with the fewest that waited in the same round, 10,000 unless the settings say otherwise (-growth 10000,100000,1000000 for all of it)."

// Targets are the project's, line by line.
var Targets = []Target{
	{Line: "drain ≥ 4× asynq (which retains what is done, too)", Scenario: "drain", Figure: measure.Throughput, Peers: []string{"asynq"}, Bound: Bound{Least: 4}},
	{Line: "drain ≥ 2.5× River, tuned", Scenario: "drain", Figure: measure.Throughput, Peers: []string{"river-tuned"}, Bound: Bound{Least: 2.5}},
	{Line: "drain ≥ 6× BullMQ", Scenario: "drain", Figure: measure.Throughput, Peers: []string{"bullmq"}, Bound: Bound{Least: 6}},
	{Line: "drain ≥ 15× the reference library", Scenario: "drain", Figure: measure.Throughput, Peers: []string{"reference"}, Bound: Bound{Least: 15},
		Note: "The reference library cannot be run here. 2,100 jobs/s were published for it, on another day; a rate of another day makes no ratio."},

	{Line: "lifecycle ≥ 3.5× asynq", Scenario: "lifecycle", Figure: measure.Throughput, Peers: []string{"asynq"}, Bound: Bound{Least: 3.5}},
	{Line: "lifecycle ≥ 10× River", Scenario: "lifecycle", Figure: measure.Throughput, Peers: []string{"river", "river-tuned"}, Bound: Bound{Least: 10},
		Note: "To the quicker one of its two configurations."},
	{Line: "lifecycle ≥ 4× BullMQ", Scenario: "lifecycle", Figure: measure.Throughput, Peers: []string{"bullmq"}, Bound: Bound{Least: 4}},

	{Line: "submit, many goroutines ≥ 1.3× asynq", Scenario: "submit", Variant: "* goroutines", Figure: measure.Throughput, Peers: []string{"asynq"}, Bound: Bound{Least: 1.3}},
	{Line: "submit, one goroutine ≥ 0.9× asynq", Scenario: "submit", Variant: "one goroutine", Figure: measure.Throughput, Peers: []string{"asynq"}, Bound: Bound{Least: 0.9}},
	{Line: "submit, bulk of 1,000 ≥ River in bulk", Scenario: "submit", Variant: "batches of *", Figure: measure.Throughput, Peers: []string{"river", "river-tuned"},
		Bound: Bound{Least: 1}, Note: "To the quicker one of its two configurations."},

	{Line: "4 KiB drain ≥ 3× asynq", Scenario: "payload", Variant: "4096 B", Figure: measure.Throughput, Peers: []string{"asynq"}, Bound: Bound{Least: 3}},

	{Line: "submit → handler, idle worker: p50 < 1 ms", Scenario: "latency", Figure: measure.P50, Bound: Bound{Most: 1}},
	{Line: "submit → handler, idle worker: p50 ≤ 1/4 of the best peer", Scenario: "latency", Figure: measure.P50, Peers: tuned, Bound: Bound{Most: 0.25},
		Note: "Of asynq, River and BullMQ in every configuration, the one with the least median."},
	{Line: "suspend → signal → handler: p50 < 2 ms", Scenario: "suspend", Figure: measure.P50, Bound: Bound{Most: 2}},

	{Line: "chains of ten ≥ 500/s", Scenario: "flow", Variant: "chains of 10", Figure: measure.Throughput, Bound: Bound{Least: 500}},
	{Line: "stage of a chain: p50 < 2 ms", Scenario: "flow", Variant: "chains of 10, one at a time", Figure: measure.P50, Bound: Bound{Most: 2}},
	{Line: "stage of 1 → 1,000 → join: p50 < 2 ms", Scenario: "flow", Variant: "1 → * → join", Want: Settings{Members: 1000}, Figure: measure.P50, Bound: Bound{Most: 2},
		Note: "64 handlers share 1,000 jobs that become ready at once, so most of it is waiting for a handler."},

	{Line: "append, 32 frames a call ≥ 0.65× raw pipelined XADD", Scenario: "append", Want: Settings{Batch: 32}, Figure: measure.RawRatio, Bound: Bound{Least: 0.65},
		Note: "The raw part is in the same round."},
	{Line: "tail, 1,000 followers on one connection: p50 < 1 ms", Scenario: "tail", Variant: "1000 followers of 1000 jobs", Figure: measure.P50, Bound: Bound{Most: 1}},

	{Line: "idle, 64 workers, 64 partitions: < 200 calls/s", Scenario: "idle", Want: Settings{Workers: 64, Partitions: 64}, Figure: measure.CallsSec, Bound: Bound{Most: 200},
		Note: "The target counts calls that arrive at the server. What it executes inside them as well is in the next line."},
	{Line: "— commands/s, those inside functions too", Scenario: "idle", Want: Settings{Workers: 64, Partitions: 64}, Figure: measure.CmdsSec},
	{Line: "idle, 64 workers, 64 partitions: < 1 % of a core", Scenario: "idle", Want: Settings{Workers: 64, Partitions: 64}, Figure: measure.ServerCPU, Bound: Bound{Most: 1}},

	{Line: "memory, completed ≤ 1/7 of the reference library", Scenario: "memory", Figure: measure.Done, Bound: Bound{Most: 7900/7 - 256}, Constant: true,
		Note: "7,900 B were published for it, not in this run; the payload of 256 B is counted on our side, the harsher reading. Bytes do not depend on the day."},

	{Line: "growth to 10⁶ waiting: server time per job within ±15 %", Scenario: "growth", Variant: "*, 1000000 waiting", Figure: measure.OfFirst, Bound: flat,
		Note: growthNote},
	{Line: "growth to 10⁵ waiting, on the way there", Scenario: "growth", Variant: "*, 100000 waiting", Figure: measure.OfFirst, Bound: flat, Note: growthNote},
	{Line: "growth to 256 partitions: server time per job within ±15 %", Scenario: "partitions", Variant: "[sd]*, * partitions", Figure: measure.OfFirst, Bound: flat,
		Note: "Compared with one partition in the same round."},

	{Line: "client processor time in drain < 10 µs per job", Scenario: "drain", Figure: measure.ClientItem, Bound: Bound{Most: 10},
		Note: "The whole process, harness, runtime, log and metrics included."},
}

// Budgets are those of sizes that the cost scenario does not judge itself.
var Budgets = []Target{
	{Line: "waiting ≤ 700 B + payload", Scenario: "memory", Figure: measure.Waiting, Bound: Bound{Most: 700}},
	{Line: "done ≤ 900 B + payload", Scenario: "memory", Figure: measure.Done, Bound: Bound{Most: 900}},
	{Line: "suspended ≤ 2,000 B + payload", Scenario: "suspend", Figure: measure.Parked, Bound: Bound{Most: 2000}},
}
