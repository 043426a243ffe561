package report

import "github.com/flowfabric/flowfabric-go/benchmarks/measure"

// direction of a figure: whether more of it is better (1), less is (-1), or neither.
var direction = map[string]int{
	measure.Throughput: 1, measure.RawRatio: 1,
	measure.P50: -1, measure.P99: -1, measure.ServerItem: -1, measure.ClientItem: -1, measure.AllocItem: -1,
	measure.CallsItem: -1, measure.CmdsItem: -1, measure.ServerCPU: -1, measure.ClientCPU: -1, measure.AllCPU: -1,
	measure.CallsSec: -1, measure.CmdsSec: -1, measure.Waiting: -1, measure.Active: -1, measure.Done: -1,
	measure.Parked: -1, measure.HoldUSec: -1, measure.HoldCalls: -1, measure.Longest: -1, measure.Backlog: -1,
	measure.Blocked: -1, measure.Edge: -1, measure.OfIdeal: 1,
}

// rates are figures per second of a run that goes as fast as it can: with more jobs a second, more of everything
// happens, so they say nothing there.
var rates = map[string]bool{measure.ServerCPU: true, measure.ClientCPU: true, measure.AllCPU: true,
	measure.CallsSec: true, measure.CmdsSec: true}

func isBetter(figure string, a, b float64) bool {
	if direction[figure] < 0 {
		return a < b
	}
	return a > b
}
