package report

import (
	"slices"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// isBetter tells whether a value of a figure is better than another: more of what is reached, less of what it costs.
func isBetter(figure string, a, b float64) bool {
	if slices.Contains([]string{measure.Throughput, measure.RawRatio, measure.OfIdeal}, figure) {
		return a > b
	}
	return a < b
}
