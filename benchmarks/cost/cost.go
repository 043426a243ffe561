// Package cost measures what the functions of the library cost the server: microseconds per item and bytes per
// execution, against the budgets of the project.
//
// It starts a server of its own, drives it through package engine exactly as workers and producers do, and reads
// the time that the server itself gives for the median FCALL of each phase (INFO latencystats). Network, driver
// and Go are not part of these numbers.
//
// Machines differ and drift: compare two figures of one run, or the ratio of two builds that take turns.
package cost

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

// Options of a run.
type Options struct {
	Server     string // program to start
	Items      int    // executions (and frames) per phase and round; at least 64 per partition
	Rounds     int    // the median counts
	Payload    int    // bytes of input, of result and of a frame
	Partitions int    // the work is spread over, each driven by one goroutine
	Logger     *slog.Logger
}

// variant is one way of what is created. The first is measured in all that is done with it.
type variant struct {
	name    string // behind that of an operation
	tags    map[string]string
	indexed bool // the store keeps lists by these tags
}

var twoTags = map[string]string{"app.customer": "customer-0042", "app.order": "order-0042"}

var variants = []variant{{}, {tagged, twoTags, false}, {indexed, twoTags, true}}

// Run measures. It takes all but one processor from this process, so that the server has them.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Items < 64*o.Partitions || o.Rounds < 1 || o.Payload < 1 || o.Partitions < 1 {
		return Report{}, fmt.Errorf("cost: want at least one round and 64 items for each of the %d partitions",
			o.Partitions)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return Report{}, err
	}
	defer s.Stop()
	samples := map[string][]float64{}
	for range o.Rounds {
		for _, batch := range []int{1, 32} {
			for _, v := range variants {
				if err := round(ctx, s, o, batch, v, samples); err != nil {
					return Report{}, fmt.Errorf("cost: %w", err)
				}
			}
		}
	}
	return report(o, s, samples), nil
}
