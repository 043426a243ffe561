package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Before is what an earlier program of FlowFabric is called in a document of rounds that two made in turns.
const Before = "flowfabric-before"

// InTurns is one document of the rounds that this program and an earlier one made in turns: documents of the same index
// are one round. What only one of them measures is left out.
func InTurns(now, before []Document) Document {
	d := now[0]
	d.Results, d.Cost, d.Bounds = nil, nil, nil
	d.Settings.Rounds, d.Took = len(now), 0
	d.Systems = append(d.Systems[:1:1], System{Name: Before, Version: before[0].Systems[0].Version})
	for _, side := range []struct {
		name string
		runs []Document
	}{{Subject, now}, {Before, before}} {
		for i, run := range side.runs {
			d.Took += run.Took
			for _, r := range run.measured() {
				if r.System == Subject {
					d.join(r, side.name, i)
				}
			}
		}
	}
	whole := d.Results[:0]
	for _, r := range d.Results {
		if len(r.Rounds) == len(now) {
			var figures []measure.Figures
			for _, round := range r.Rounds {
				figures = append(figures, round.Figures)
			}
			r.Summary = measure.Summary(figures)
			whole = append(whole, r)
		}
	}
	d.Results = whole
	return d
}

// join adds the rounds of a result to those of a system, of which there are so many already.
func (d *Document) join(r scenario.Result, system string, rounds int) {
	for i := range d.Results {
		if x := &d.Results[i]; x.Scenario == r.Scenario && x.Variant == r.Variant && x.System == system {
			if len(x.Rounds) == rounds {
				x.Rounds = append(x.Rounds, r.Rounds...)
			}
			return
		}
	}
	if rounds == 0 {
		r.System = system
		d.Results = append(d.Results, r)
	}
}

// compared are the figures that PrintTurns shows.
var compared = []string{measure.Throughput, measure.P50, measure.ServerItem, measure.ClientItem, measure.AllocItem,
	measure.CmdsItem, measure.RawRatio, measure.OfCall, measure.OfIdeal, measure.Waiting, measure.Done, measure.Parked}

// PrintTurns prints the ratios of a document of [InTurns]: the median of all rounds, with the least and the most.
func PrintTurns(out io.Writer, d Document) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "scenario\tvariant\tfigure\tbefore\tnow\tnow / before\n")
	for _, ours := range d.Results {
		for _, theirs := range d.Results {
			if ours.System != Subject || theirs.System != Before || theirs.Scenario != ours.Scenario ||
				theirs.Variant != ours.Variant {
				continue
			}
			for _, figure := range compared {
				if ratios := Ratios(ours, theirs, figure); len(ratios) > 0 {
					s := measure.SpreadOf(ratios)
					fmt.Fprintf(w, "%s\t%s\t%s\t%.4g\t%.4g\t%.2f (%.2f–%.2f)\n", ours.Scenario, ours.Variant, figure,
						measure.Median(values(theirs, figure)), measure.Median(values(ours, figure)), s.Median,
						s.Min, s.Max)
				}
			}
		}
	}
	return w.Flush()
}
