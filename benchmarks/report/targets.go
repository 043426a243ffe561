package report

import "github.com/flowfabric/flowfabric-go/benchmarks/measure"

// The peers, in every configuration: the ratio is taken to the one that did best.
var (
	asynq  = []string{"asynq"} // which retains what is done, too
	river  = []string{"river-tuned"}
	rivers = []string{"river", "river-tuned"}
	bullmq = []string{"bullmq", "bullmq-2"}
	before = []string{Before} // this program, at the revision that the run names
	anyone = []string{"asynq", "asynq-tuned", "river", "river-tuned", "bullmq", "bullmq-2"}
)

// flat is what the ratio of a cost to that of the fewest may be.
var flat = Bound{Most: 1.2}

const (
	growthNote = "Compared with the fewest in the same round."
	sleepNote  = "Of what so many handlers can do at most in that time."
	memoryNote = "The input of 256 B is not in the figure."
)

// Targets are the project's, line by line.
var Targets = []Target{
	{Line: "drain ≥ 4× asynq", Scenario: "drain", Figure: measure.Throughput, Peers: asynq, Bound: Bound{Least: 4}},
	{Line: "drain ≥ 2× River, tuned", Scenario: "drain", Figure: measure.Throughput, Peers: river,
		Bound: Bound{Least: 2}},
	{Line: "drain ≥ 2.5× BullMQ", Scenario: "drain", Figure: measure.Throughput, Peers: bullmq,
		Bound: Bound{Least: 2.5}},

	{Line: "lifecycle ≥ 4× asynq", Scenario: "lifecycle", Figure: measure.Throughput, Peers: asynq,
		Bound: Bound{Least: 4}},
	{Line: "lifecycle ≥ 7× River, tuned", Scenario: "lifecycle", Figure: measure.Throughput, Peers: river,
		Bound: Bound{Least: 7}},
	{Line: "lifecycle ≥ 2.5× BullMQ", Scenario: "lifecycle", Figure: measure.Throughput, Peers: bullmq,
		Bound: Bound{Least: 2.5}},

	{Line: "handlers of 10 ms ≥ 0.93 of the ideal", Scenario: "sleep", Variant: "10ms, [26]*", Figure: measure.OfIdeal,
		Bound: Bound{Least: 0.93}, Note: sleepNote},
	{Line: "handlers of 50 ms ≥ 0.97 of the ideal", Scenario: "sleep", Variant: "50ms, [26]*", Figure: measure.OfIdeal,
		Bound: Bound{Least: 0.97}, Note: sleepNote},
	{Line: "handlers of 2 ms ≥ 0.75 of the ideal", Scenario: "sleep", Variant: "2ms, [26]*", Figure: measure.OfIdeal,
		Bound: Bound{Least: 0.75}, Note: sleepNote},
	{Line: "handlers that take time: never below a peer", Scenario: "sleep", Variant: "*", Figure: measure.Throughput,
		Peers: anyone, Bound: Bound{Least: 1}},

	{Line: "submit, many goroutines ≥ 1.3× asynq", Scenario: "submit", Variant: "* goroutines",
		Figure: measure.Throughput, Peers: asynq, Bound: Bound{Least: 1.3}},
	{Line: "submit, one goroutine ≥ 0.8× asynq", Scenario: "submit", Variant: "one goroutine",
		Figure: measure.Throughput, Peers: asynq, Bound: Bound{Least: 0.8}},
	{Line: "submit, bulk of 1,000 ≥ River in bulk", Scenario: "submit", Variant: "batches of *",
		Figure: measure.Throughput, Peers: rivers, Bound: Bound{Least: 1}},

	{Line: "submit → handler, idle worker: p50 ≤ 3 empty calls", Scenario: "latency", Figure: measure.OfCall,
		Bound: Bound{Most: 3}, Note: "After pauses of 5 ms in the one run and 50 ms in another."},
	{Line: "a lone job ≤ 3 calls", Scenario: "latency", Figure: measure.CallsItem, Bound: Bound{Most: 3}},
	{Line: "a lone job ≤ 24 commands", Scenario: "latency", Figure: measure.CmdsItem, Bound: Bound{Most: 24}},

	{Line: "chains of ten ≥ 1.5× as many as before", Scenario: "flow", Variant: "chains of 10",
		Figure: measure.Throughput, Peers: before, Bound: Bound{Least: 1.5}},
	{Line: "1 → 1,000 → join: p50 of a stage ≤ 0.65× that before", Scenario: "flow", Variant: "1 → * → join",
		Want: Settings{Members: 1000}, Figure: measure.P50, Peers: before, Bound: Bound{Most: 0.65},
		Note: "64 handlers share 1,000 jobs that become ready at once, so most of it is waiting for a handler."},

	{Line: "append, 32 frames a call ≥ 0.7× raw pipelined XADD", Scenario: "append", Want: Settings{Batch: 32},
		Figure: measure.RawRatio, Bound: Bound{Least: 0.7}},
	{Line: "tail, 1,000 followers on one connection: p50 ≤ 1 ms", Scenario: "tail",
		Variant: "1000 followers of 1000 jobs", Figure: measure.P50, Bound: Bound{Most: 1}},

	{Line: "server µs per lifecycle, 32 a call ≤ 0.7× that before", Scenario: costOf, Variant: "lifecycle, 32 a call",
		Figure: measure.ServerItem, Peers: before, Bound: Bound{Most: 0.7}},
	{Line: "server µs per lifecycle, alone ≤ 0.6× that before", Scenario: costOf, Variant: "lifecycle, 1 a call",
		Figure: measure.ServerItem, Peers: before, Bound: Bound{Most: 0.6}},
	{Line: "server µs to suspend ≤ 0.6× that before", Scenario: costOf, Variant: "suspend, 1 a call",
		Figure: measure.ServerItem, Peers: before, Bound: Bound{Most: 0.6}},
	{Line: "server µs of a signal ≤ 0.6× that before", Scenario: costOf, Variant: "signal, 1 a call",
		Figure: measure.ServerItem, Peers: before, Bound: Bound{Most: 0.6}},
	{Line: "client µs per drained job ≤ 10", Scenario: "drain", Figure: measure.ClientItem, Bound: Bound{Most: 10},
		Note: "The whole process: harness, runtime, typed payloads, log and metrics included."},

	{Line: "a waiting execution ≤ 360 B", Scenario: "memory", Figure: measure.Waiting, Bound: Bound{Most: 360},
		Note: memoryNote},
	{Line: "a completed execution ≤ 490 B", Scenario: "memory", Figure: measure.Done, Bound: Bound{Most: 490},
		Note: memoryNote},
	{Line: "a suspended execution ≤ 1,000 B", Scenario: "suspend", Figure: measure.Parked,
		Bound: Bound{Most: 1000}, Note: memoryNote},

	{Line: "idle, 64 workers, 64 partitions ≤ 1 % of a core in all", Scenario: "idle",
		Want: Settings{Workers: 64, Partitions: 64}, Figure: measure.AllCPU, Bound: Bound{Most: 1}},

	{Line: "growth to 10⁶ waiting: server time per job ≤ 1.2×", Scenario: "growth", Variant: "*, 1000000 waiting",
		Figure: measure.OfFirst, Bound: flat, Note: growthNote},
	{Line: "growth to 256 partitions: the same", Scenario: "partitions", Variant: "[sd]*, * partitions",
		Figure: measure.OfFirst, Bound: flat, Note: growthNote},
	{Line: "growth to 1,000 kinds: the same", Scenario: "growth", Variant: "*, routes: 1000", Figure: measure.OfFirst,
		Bound: flat, Note: growthNote},
	{Line: "growth to 100,000 namespaces: the same", Scenario: "growth", Variant: "*, namespaces: 100000",
		Figure: measure.OfFirst, Bound: flat, Note: growthNote},

	{Line: "claim throughput, 32 a call", Scenario: "claims", Variant: "32 a call", Figure: measure.Throughput},
	{Line: "claim throughput, 32 a call, settled", Scenario: "claims", Variant: "32 a call, settled",
		Figure: measure.Throughput},
	{Line: "the longest call at the documented limits ≤ 5 ms", Scenario: boundsOf, Variant: "*",
		Figure: measure.Longest, Bound: Bound{Most: 5}},
}
