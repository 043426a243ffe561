package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/report"
)

// guardRun is what a guard measures unless other options say otherwise: short rounds, alternating between FlowFabric
// and the ceiling.
const guardRun = "-system flowfabric,raw -scenarios submit,drain,lifecycle,latency,append -n 6000 -rounds 5 -samples 200"

// guardRatios measures a little and fails when a ratio is worse than its bound. Its options are those of a run.
func guardRatios(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(append(strings.Fields(guardRun), args...), progress)
	if err != nil {
		return err
	}
	d, err := measureAll(ctx, o, progress)
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := d.Write(o.json); err != nil {
			return err
		}
	}
	failed, err := report.Check(out, report.Guards, d)
	if err == nil && failed > 0 {
		return fmt.Errorf("guard: %d of %d guards do not hold", failed, len(report.Guards))
	}
	return err
}
