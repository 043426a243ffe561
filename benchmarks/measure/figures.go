// Package measure turns what happened between two moments into figures: elapsed time, the processor time of the
// server and of this process, what the server executed, and latencies; and it sums rounds up by median and range.
package measure

import (
	"math"
	"slices"
	"time"
)

// The names of figures. Per item means per job, per frame in the stream scenarios.
const (
	Items      = "items"                  // measured ones, without warm-up
	Seconds    = "seconds"                // of the measured part
	Throughput = "per_second"             // items
	P50        = "p50_ms"                 // of one call, or of what the scenario says
	P99        = "p99_ms"                 //
	ServerItem = "server_us_per_item"     // processor time of the whole server process
	ClientItem = "client_us_per_item"     // processor time of this process, the harness included
	OfFirst    = "server_ratio_to_first"  // ServerItem / that of the first variant in the same round
	AllocItem  = "client_allocs_per_item" // objects that this process allocated, the harness included
	CallsItem  = "calls_per_item"         // function and script calls
	CmdsItem   = "commands_per_item"      // executed by the server, those inside functions and scripts included
	ServerCPU  = "server_cpu_percent"     // of one core
	ClientCPU  = "client_cpu_percent"     // of one core
	AllCPU     = "all_cpu_percent"        // of one core, server and client together
	CallsSec   = "calls_per_second"       // function and script calls, and pings
	CmdsSec    = "commands_per_second"    //
	RawPerSec  = "raw_xadd_per_second"    // pipelined XADD of the same frames in the same round
	RawServer  = "raw_server_us"          // processor time of the server per raw XADD
	RawRatio   = "ratio_to_raw"           // Throughput / RawPerSec
	Waiting    = "bytes_waiting"          // per job, payload not counted
	Active     = "bytes_active"           //
	Done       = "bytes_done"             //
	Parked     = "bytes_suspended"        //
	Retained   = "done_retained"          // completed jobs that the server still knows after the round
	Workers    = "workers"
	Longest    = "longest_call_ms"     // of the server; 0 when none took longer than a half
	Backlog    = "left_ms"             // after the last handler, until nothing was left to do
	Blocked    = "bytes_blocked"       // per job that waits for one other, payload not counted, its edge included
	Edge       = "bytes_edge"          // of each further edge
	OfCall     = "ratio_to_empty_call" // P50 / that of a call of a function that does nothing, after the same pauses
	OfIdeal    = "ratio_to_ideal"      // Throughput / what as many handlers could do at most
	AtOnce     = "handlers_at_once"    // most of them, as handlers saw it
)

// Figures are what one round measured, by name.
type Figures map[string]float64

// Spread sums up one figure over all rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Summary is the spread of every figure that all rounds have.
func Summary(rounds []Figures) map[string]Spread {
	out := map[string]Spread{}
	for _, round := range rounds {
		for name := range round {
			var values []float64
			for _, r := range rounds {
				if v, ok := r[name]; ok {
					values = append(values, v)
				}
			}
			if len(values) == len(rounds) {
				out[name] = SpreadOf(values)
			}
		}
	}
	return out
}

// SpreadOf sums up values, of which there must be one at least.
func SpreadOf(values []float64) Spread {
	return Spread{Median(values), slices.Min(values), slices.Max(values)}
}

// Median of values, 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// Latencies adds the median and the 99th percentile of samples, which it sorts.
func (f Figures) Latencies(samples []time.Duration) {
	if len(samples) == 0 {
		return
	}
	slices.Sort(samples)
	f[P50], f[P99] = milliseconds(percentile(samples, 50)), milliseconds(percentile(samples, 99))
}

// percentile is the nearest rank of sorted samples.
func percentile(sorted []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
