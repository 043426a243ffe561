package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/examples/governor/model"
)

const (
	width  = 88 // of running text
	column = 24 // of a tenant, in characters
)

// say prints text in lines of at most width characters.
func (d *show) say(format string, args ...any) {
	line := ""
	for word := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			d.print("%s", line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	d.print("%s\n", line)
}

// heads names the columns.
func heads(tenants []*tenant) string {
	line := "    second  "
	for _, t := range tenants {
		line += fmt.Sprintf("%-*s", column, fmt.Sprintf("%s, weight %d", t.name, t.weight))
	}
	return line + "refused"
}

// row is what was called in a second, a sign for each call.
func row(tenants []*tenant, second int, before, after map[string]model.Count) string {
	line := fmt.Sprintf("    %6d  ", second)
	for _, t := range tenants {
		n := after[t.name].Calls - before[t.name].Calls
		bar := strings.Repeat("■", int(min(n, column-6)))
		line += bar + strings.Repeat(" ", column-utf8.RuneCountInString(bar)-5) + fmt.Sprintf("%-5d", n)
	}
	if n := after[""].Refused - before[""].Refused; n > 0 {
		line += fmt.Sprint(n)
	}
	return strings.TrimRight(line, " ")
}

// exact is how many percentage points a share may differ from its weight before the demo says why.
const exact = 5

// shares tells what each tenant has of the calls of a time, and what its weight is of all weights.
func shares(tenants []*tenant, from, to map[string]model.Count) (lines []string) {
	weights, worst := 0, 0.0
	calls := func(name string) float64 { return float64(to[name].Calls - from[name].Calls) }
	for _, t := range tenants {
		weights += t.weight
	}
	for _, t := range tenants {
		has := calls(t.name) / math.Max(1, calls("")) * 100
		due := float64(t.weight) / float64(weights) * 100
		worst = max(worst, math.Abs(has-due))
		lines = append(lines, fmt.Sprintf("    %-7s %-25s %4.1f%% of the calls, by weight %4.1f%%", t.name,
			strings.Repeat("■", int(math.Round(has/2))), has, due))
	}
	if worst > exact {
		lines = append(lines, "    The machine was too busy for exact shares: run the demo again when it is not.")
	}
	return lines
}
