package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// scenarioTable writes one scenario: a line per variant and system.
func scenarioTable(out io.Writer, results []scenario.Result) {
	fmt.Fprintf(out, "\n### %s\n\n", results[0].Scenario)
	if i := slices.IndexFunc(scenario.All, func(s scenario.Scenario) bool {
		return s.Name == results[0].Scenario
	}); i >= 0 {
		about := scenario.All[i].About
		fmt.Fprintf(out, "%s%s. ", strings.ToUpper(about[:1]), about[1:])
	}
	fmt.Fprintf(out, "Servers: %s.\n\n", or(strings.Join(servers(results), "; "), "none"))
	varied := slices.ContainsFunc(results, func(r scenario.Result) bool { return r.Variant != "" })
	columns := columnsIn(results)
	var cells []string
	if varied {
		cells = append(cells, "")
	}
	cells = append(cells, "System")
	for _, c := range columns {
		cells = append(cells, c.title)
	}
	if len(columns) == 0 {
		cells = append(cells, "Figures")
	}
	head(out, cells...)
	for _, r := range results {
		var line []string
		if varied {
			line = append(line, r.Variant)
		}
		line = append(line, r.System)
		why := r.NotAvailable()
		for i := range max(len(columns), 1) {
			switch {
			case why != "" && i == 0:
				line = append(line, why)
			case why != "" || i >= len(columns):
				line = append(line, "")
			default:
				line = append(line, cell(r.Summary, columns[i].figure))
			}
		}
		row(out, line...)
	}
}

// costTable writes the server time of calls, if the run measured them.
func costTable(out io.Writer, d Document) {
	if d.Cost == nil {
		return
	}
	r := *d.Cost
	fmt.Fprintf(out, "\n### cost\n\nServer time of calls: %s, %d items of %d B, medians of %d rounds.\n\n", r.Server,
		r.Items, r.Payload, r.Rounds)
	head(out, "Operation", "Per call", "µs/item", "Budget", "Verdict", "Commands/item")
	for _, c := range r.Costs {
		budget, judged := "", ""
		if c.Budget > 0 {
			budget, judged = "≤ "+number(c.Budget), kept(c.Met())
		}
		row(out, c.Operation, fmt.Sprint(c.PerCall), number(c.Micros), budget, judged, number(c.Commands))
	}
	fmt.Fprintln(out)
	head(out, "Execution", "Bytes besides payload and result", "Budget", "Verdict")
	for _, s := range r.Sizes {
		row(out, s.State, number(s.Bytes), "≤ "+number(s.Budget), kept(s.Met()))
	}
}

func kept(met bool) string {
	if met {
		return string(Met)
	}
	return "**" + string(Missed) + "**"
}

// boundsTable writes the longest calls, if the run measured them.
func boundsTable(out io.Writer, d Document) {
	if d.Bounds == nil {
		return
	}
	r := *d.Bounds
	fmt.Fprintf(out,
		"\n### bounds\n\nThe longest calls that the documented limits allow: %s, flows of %d members, of each call the least of %d rounds. Budget: 5 ms.\n\n",
		r.Server, r.Members, r.Rounds)
	head(out, "Case", "Function", "Calls", "Longest ms", "Median ms", "Commands/call", "Verdict")
	for _, c := range r.Calls {
		row(out, c.Case, "`"+c.Function+"`", fmt.Sprint(c.Calls), number(c.Longest), number(c.Median),
			number(c.Commands), kept(c.Met))
	}
}
