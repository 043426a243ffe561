package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// column is one figure of a table.
type column struct{ figure, title string }

// shared are the columns of the throughput and latency scenarios.
var shared = []column{
	{measure.Throughput, "/s"}, {measure.P50, "p50 ms"}, {measure.P99, "p99 ms"}, {measure.ServerItem, "srv µs"},
	{measure.OfFirst, "of the first's"},
	{measure.ClientItem, "cli µs"}, {measure.AllocItem, "allocs"}, {measure.CallsItem, "calls"},
	{measure.CmdsItem, "commands"},
	{measure.Backlog, "left ms"}, {measure.Parked, "B suspended"}, {measure.Retained, "retained"},
	{measure.RawPerSec, "raw XADD/s"}, {measure.RawServer, "raw srv µs"}, {measure.RawRatio, "of raw"},
}

// own are the columns of the others.
var own = map[string][]column{
	"flow": {
		{measure.Throughput, "graphs/s"}, {measure.P50, "stage p50 ms"}, {measure.P99, "p99 ms"},
		{measure.Backlog, "left ms"},
		{measure.Longest, "longest call ms"}, {measure.ServerItem, "srv µs"}, {measure.ClientItem, "cli µs"},
		{measure.CallsItem, "calls"},
		{measure.CmdsItem, "commands"}, {measure.Blocked, "B blocked"}, {measure.Edge, "B edge"},
	},
	"sleep": {
		{measure.OfCall, "of empty call"}, {measure.OfIdeal, "of ideal"}, {measure.Throughput, "/s"},
		{measure.AtOnce, "most at once"},
		{measure.ServerItem, "srv µs"}, {measure.ClientItem, "cli µs"},
		{measure.CallsItem, "calls"}, {measure.CmdsItem, "commands"}, {measure.Backlog, "left ms"},
		{measure.Retained, "retained"},
	},
	"claims": {
		{measure.Throughput, "claims/s"}, {measure.P50, "call p50 ms"}, {measure.P99, "p99 ms"},
		{measure.ServerItem, "srv µs"}, {measure.ClientItem, "cli µs"},
		{measure.CallsItem, "calls"}, {measure.CmdsItem, "commands"},
	},
	"idle": {
		{measure.Workers, "workers"}, {measure.CallsSec, "calls/s"}, {measure.CmdsSec, "commands/s"},
		{measure.ServerCPU, "srv CPU %"}, {measure.ClientCPU, "cli CPU %"},
	},
	"partitions": {
		{measure.Throughput, "/s"}, {measure.P50, "p50 ms"}, {measure.P99, "p99 ms"}, {measure.ServerItem, "srv µs"},
		{measure.OfFirst, "of the first's"},
		{measure.ClientItem, "cli µs"}, {measure.CallsItem, "calls"}, {measure.CmdsItem, "commands"},
		{measure.Retained, "retained"},
		{measure.Workers, "workers"}, {measure.CallsSec, "calls/s"}, {measure.CmdsSec, "commands/s"},
		{measure.ServerCPU, "srv CPU %"},
	},
	"calls": {
		{measure.Throughput, "/s"}, {measure.RawRatio, "of nothing's"}, {measure.P50, "p50 ms"},
		{measure.P99, "p99 ms"},
		{measure.ServerItem, "srv µs"}, {measure.ClientItem, "cli µs"}, {measure.AllocItem, "allocs"},
		{measure.CmdsItem, "commands"},
	},
	"memory": {
		{measure.Items, "jobs"}, {measure.Waiting, "B waiting"}, {measure.Active, "B active"}, {measure.Done, "B done"},
		{measure.Retained, "retained"}, {measure.Parked, "B suspended"},
	},
}

// Print writes all tables.
func (d Document) Print(out io.Writer) error {
	m := d.Machine
	fmt.Fprintf(out, "%s, %d cores, GOMAXPROCS %d, load %.1f; %s; took %.0f s\n", m.CPU, m.Cores, m.GOMAXPROCS, m.Load,
		m.Go, d.Took)
	for _, s := range d.Systems {
		fmt.Fprintf(out, "%s %s\n", s.Name, s.Version)
	}
	s := d.Settings
	fmt.Fprintf(out, "%d items of %d B, concurrency %d, %d partitions, medians (least–most) of %d rounds\n",
		s.Items, s.Payload, s.Concurrency, s.Partitions, s.Rounds)
	for _, results := range d.byScenario() {
		if err := table(out, results); err != nil {
			return err
		}
	}
	if d.Cost != nil {
		fmt.Fprint(out, "\ncost: ")
		if err := d.Cost.Print(out); err != nil {
			return err
		}
	}
	if d.Bounds != nil {
		fmt.Fprint(out, "\nbounds: ")
		return d.Bounds.Print(out)
	}
	return nil
}

// byScenario are the results in parts of one scenario each.
func (d Document) byScenario() (parts [][]scenario.Result) {
	for begin := 0; begin < len(d.Results); {
		end := begin
		for end < len(d.Results) && d.Results[end].Scenario == d.Results[begin].Scenario {
			end++
		}
		parts, begin = append(parts, d.Results[begin:end]), end
	}
	return parts
}

// table writes one scenario: a line per variant and system, a column for every figure that any of them has.
func table(out io.Writer, results []scenario.Result) error {
	name := results[0].Scenario
	columns := columnsIn(results)
	fmt.Fprintf(out, "\n%s (%s)\n", name, strings.Join(servers(results), "; "))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := []string{"", "system"}
	for _, c := range columns {
		head = append(head, c.title)
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, r := range results {
		line := []string{r.Variant, r.System}
		if why := r.NotAvailable(); why != "" {
			fmt.Fprintln(w, strings.Join(append(line, why), "\t"))
			continue
		}
		for _, c := range columns {
			line = append(line, cell(r.Summary, c.figure))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

// columnsIn are the columns of a scenario in which any of its results has something.
func columnsIn(results []scenario.Result) (columns []column) {
	for _, c := range columnsOf(results[0].Scenario) {
		if slices.ContainsFunc(results, func(r scenario.Result) bool { _, ok := r.Summary[c.figure]; return ok }) {
			columns = append(columns, c)
		}
	}
	return columns
}

// servers are those that were used, each once.
func servers(results []scenario.Result) (names []string) {
	for _, r := range results {
		if r.Server != "" && !slices.Contains(names, r.Server) {
			names = append(names, r.Server)
		}
	}
	return names
}

func columnsOf(name string) []column {
	if c, ok := own[name]; ok {
		return c
	}
	return shared
}

// cell is the median, and the range when the rounds differ.
func cell(summary map[string]measure.Spread, figure string) string {
	s, ok := summary[figure]
	if !ok {
		return ""
	}
	return spread(s)
}

func spread(s measure.Spread) string {
	median, least, most := number(s.Median), number(s.Min), number(s.Max)
	if least == most {
		return median
	}
	return fmt.Sprintf("%s (%s–%s)", median, least, most)
}

// number keeps three digits or so.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsInf(v, 0):
		return "∞"
	case a >= 10_000:
		return fmt.Sprintf("%.1fk", v/1000)
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
