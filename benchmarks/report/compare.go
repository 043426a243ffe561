package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Comparison is of two runs.
type Comparison struct {
	Warnings    []string     // what differs between the runs besides figures
	Differences []Difference // of all figures that both have
	Only        []string     // results that one of them lacks
}

// Difference is one figure in both runs.
type Difference struct {
	Scenario, Variant, System, Figure string
	Old, New                          measure.Spread
	Ratio                             float64 // new / old of the medians
	Apart                             bool    // whether the ranges do not overlap
}

// Verdict is "better", "worse" or "differs" where the ranges do not overlap, otherwise "".
func (d Difference) Verdict() string {
	switch {
	case !d.Apart:
		return ""
	case direction[d.Figure] == 0:
		return "differs"
	case isBetter(d.Figure, d.New.Median, d.Old.Median):
		return "better"
	}
	return "worse"
}

// given are figures that say how a round was made up, not how it went.
var given = []string{measure.Items, measure.Seconds, measure.Leases, measure.LeaseSec, measure.Workers}

// Compare sets two runs beside each other.
func Compare(older, newer Document) (c Comparison) {
	c.Warnings = warnings(older, newer)
	seen := map[string]bool{}
	for _, a := range older.Results {
		seen[title(a)] = true
		i := slices.IndexFunc(newer.Results, func(b scenario.Result) bool { return title(a) == title(b) })
		if i < 0 {
			c.Only = append(c.Only, "old: "+title(a))
			continue
		}
		b := newer.Results[i]
		if x, y := a.NotAvailable(), b.NotAvailable(); x != y {
			c.Only = append(c.Only, fmt.Sprintf("%s: %s → %s", title(a), orMeasured(x), orMeasured(y)))
		}
		for _, figure := range slices.Sorted(maps.Keys(a.Summary)) {
			was := a.Summary[figure]
			is, ok := b.Summary[figure]
			paced := a.Scenario != "idle" && a.Scenario != "renew" && rates[figure]
			if !ok || paced || slices.Contains(given, figure) {
				continue
			}
			c.Differences = append(c.Differences, Difference{Scenario: a.Scenario, Variant: a.Variant, System: a.System,
				Figure: figure, Old: was, New: is,
				Ratio: ratio(is.Median, was.Median), Apart: is.Min > was.Max || is.Max < was.Min})
		}
	}
	for _, b := range newer.Results {
		if !seen[title(b)] {
			c.Only = append(c.Only, "new: "+title(b))
		}
	}
	return c
}

// ratio is 1 of nothing to nothing, and endless of something to nothing.
func ratio(a, b float64) float64 {
	switch {
	case a == b:
		return 1
	case b == 0:
		return math.Inf(1)
	}
	return a / b
}

func orMeasured(why string) string {
	if why == "" {
		return "measured"
	}
	return why
}

func title(r scenario.Result) string {
	name := r.Scenario
	if r.Variant != "" {
		name += " (" + r.Variant + ")"
	}
	return name + " of " + r.System
}

// warnings are what else could be behind a difference.
func warnings(older, newer Document) (out []string) {
	differs := func(what, was, is string) {
		if was != is {
			out = append(out, fmt.Sprintf("%s differs: %s → %s", what, was, is))
		}
	}
	for i, was := range fields(older.Machine) {
		if was.name != "load_1m" {
			differs("machine: "+was.name, was.value, fields(newer.Machine)[i].value)
		}
	}
	if a, b := older.Machine.Load, newer.Machine.Load; math.Abs(a-b) >= 0.5 {
		differs("load at the beginning", fmt.Sprintf("%.1f", a), fmt.Sprintf("%.1f", b))
	}
	for i, was := range fields(older.Settings) {
		if was.name != "scenarios" {
			differs("setting: "+was.name, was.value, fields(newer.Settings)[i].value)
		}
	}
	each := func(what string, was, is map[string]string) {
		for _, name := range names(was, is) {
			differs(what+" "+name, or(was[name], "none"), or(is[name], "none"))
		}
	}
	each("version of", versions(older), versions(newer))
	each("server of", serversOf(older), serversOf(newer))
	var inOne []string
	for _, name := range names(older.Modules, newer.Modules) {
		was, is := older.Modules[name], newer.Modules[name]
		if was == "" || is == "" {
			inOne = append(inOne, name)
			continue
		}
		differs("library "+name, was, is)
	}
	if len(inOne) > 0 {
		out = append(out, "in one of the two programs only: "+strings.Join(inOne, ", "))
	}
	return out
}

func or(s, empty string) string {
	if s == "" {
		return empty
	}
	return s
}

func names(a, b map[string]string) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func versions(d Document) map[string]string {
	out := map[string]string{}
	for _, s := range d.Systems {
		out[s.Name] = s.Version
	}
	return out
}

// serversOf are the servers of the systems in their first scenario; one that is about servers has others besides.
func serversOf(d Document) map[string]string {
	out := map[string]string{}
	for _, r := range d.Results {
		if r.Server != "" && out[r.System] == "" {
			out[r.System] = r.Server
		}
	}
	return out
}

// Print writes the differences whose medians are least apart, a share (0.05 is 5 %), and marks those whose ranges do
// not overlap.
func (c Comparison) Print(out io.Writer, least float64) error {
	fmt.Fprint(out,
		"Two runs are not one run: the machine may have been faster in one of them, by 1.5 times and more, and then everything in it was.\n"+
			"What is marked could still be that. Only systems measured in the same run can be compared. Counts of calls, commands, allocations\n"+
			"and bytes hardly depend on the machine.\n\n")
	for _, w := range c.Warnings {
		fmt.Fprintln(out, "WARNING:", w)
	}
	if len(c.Warnings) > 0 {
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tvariant\tsystem\tfigure\told\tnew\tnew/old\t")
	var shown, hidden, marked int
	for _, d := range c.Differences {
		if math.Abs(d.Ratio-1) < least {
			hidden++
			continue
		}
		shown++
		if d.Apart {
			marked++
		}
		fmt.Fprintln(w, strings.Join([]string{d.Scenario, d.Variant, d.System, d.Figure, spread(d.Old), spread(d.New),
			number(d.Ratio), d.Verdict()}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out,
		"\nFigures shown: %d, with ranges that do not overlap: %d. Not shown, because they differ by less than %.3g %%: %d.\n",
		shown, marked,
		least*100, hidden)
	for _, only := range c.Only {
		fmt.Fprintln(out, "not in both:", only)
	}
	return nil
}
