package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// scenarioTable writes one scenario: a line per variant and system.
func scenarioTable(out io.Writer, results []scenario.Result) {
	fmt.Fprintf(out, "\n### %s\n\n", results[0].Scenario)
	if i := slices.IndexFunc(scenario.All, func(s scenario.Scenario) bool { return s.Name == results[0].Scenario }); i >= 0 {
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

// costTable writes the budgets of calls, if the run measured them.
func costTable(out io.Writer, d Document, name string) {
	if d.Cost == nil {
		return
	}
	r := *d.Cost
	fmt.Fprint(out, "\nServer time of calls")
	if name != "" {
		fmt.Fprintf(out, " (%s)", strings.ToLower(name))
	}
	fmt.Fprintf(out, ": %s, %d items of %d B, medians of %d rounds. The calibrating read took %.2f µs, so the machine ran at %.2f× the time of the\n"+
		"one that the budgets were written on (%.1f µs); \"at reference\" is divided by that.\n\n", r.Server, r.Items, r.Payload, r.Rounds, r.Calibration, r.Speed, cost.Reference)
	head(out, "Operation", "Per call", "µs/item here", "At reference", "Budget", "Verdict", "Commands/item")
	for _, c := range r.Costs {
		row(out, c.Operation, fmt.Sprint(c.PerCall), number(c.Measured), number(c.Reference), "≤ "+number(c.Budget), costVerdict(c), number(c.Commands))
	}
	fmt.Fprintln(out)
	head(out, "Execution", "Bytes besides payload and result", "Budget", "Verdict")
	for _, s := range r.Sizes {
		verdict := string(Met)
		if !s.Met {
			verdict = "**" + string(Missed) + "**"
		}
		row(out, s.State, number(s.Bytes), "≤ "+number(s.Budget), verdict)
	}
}

func costVerdict(c cost.Cost) string {
	switch {
	case c.Met:
		return string(Met)
	case c.MetHere:
		return "met as measured, not at reference"
	}
	return "**" + string(Missed) + "**"
}

// boundsTable writes the longest calls, if the run measured them.
func boundsTable(out io.Writer, d Document) {
	if d.Bounds == nil {
		return
	}
	r := *d.Bounds
	fmt.Fprintf(out, "\n### bounds\n\nThe longest calls that the documented limits allow: %s, flows of %d members, of each call the least of %d rounds; the machine was at\n"+
		"best at %.2f× the time of the reference. Budget: 5 ms.\n\n", r.Server, r.Members, r.Rounds, r.Speed)
	head(out, "Case", "Function", "Calls", "Longest ms", "Median ms", "Commands/call", "Verdict")
	for _, c := range r.Calls {
		verdict := string(Met)
		if !c.Met {
			verdict = "**" + string(Missed) + "**"
		}
		row(out, c.Case, "`"+c.Function+"`", fmt.Sprint(c.Calls), number(c.Longest), number(c.Median), number(c.Commands), verdict)
	}
}
