package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric-go/benchmarks/chart"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Picture is a chart of one scenario of one run.
type Picture struct {
	Run         int // its index
	File, Title string
	SVG         []byte
}

// drawing is a kind of chart that a scenario has, of the variants that match a pattern.
type drawing struct {
	scenario, variants, name, title string
	// nil: there is nothing to draw
	draw func(title string, results []scenario.Result) (svg []byte, err error)
}

const perSecond, perJob = "jobs/s, more is better", "server µs per job, less is better"

var drawings = []drawing{
	{"drain", "*", "drain", "drain: jobs per second", bars(measure.Throughput, perSecond)},
	{"drain", "*", "drain-cpu", "drain: processor time per job", processor},
	{"payload", "*", "payload", "drain, other payloads: jobs per second", bars(measure.Throughput, perSecond)},
	{"lifecycle", "*", "lifecycle", "lifecycle: jobs per second", bars(measure.Throughput, perSecond)},
	{"lifecycle", "*", "lifecycle-cpu", "lifecycle: processor time per job", processor},
	{"durability", "*: lifecycle", "durability", "lifecycle on servers that write to disk: jobs per second",
		bars(measure.Throughput, perSecond)},
	{"submit", "*", "submit", "submit: jobs per second", bars(measure.Throughput, perSecond)},
	{"latency", "*", "latency", "submit until the handler has begun, idle worker", latencies},
	{"memory", "*", "memory", "memory per completed job",
		bars(measure.Done, "bytes without the payload, less is better")},
	{"processes", "*", "processes", "drain by several processes: jobs per second",
		scaled(measure.Throughput, "worker processes", perSecond)},
	{"growth", "submit, * waiting", "growth-submit", "submitting beside jobs that wait",
		scaled(measure.ServerItem, "jobs that wait", perJob)},
	{"growth", "work, * waiting", "growth-work", "working beside jobs that wait",
		scaled(measure.ServerItem, "jobs that wait", perJob)},
	{"partitions", "submit, * partitions", "partitions-submit", "submitting to several partitions",
		scaled(measure.ServerItem, "partitions", perJob)},
	{"partitions", "drain, * partitions", "partitions-drain", "working in several partitions",
		scaled(measure.ServerItem, "partitions", perJob)},
}

// Pictures draws the charts of runs; a run's number is in the names of files when there are several.
func Pictures(runs []Document) (out []Picture, err error) {
	for i, d := range runs {
		for _, results := range d.byScenario() {
			for _, kind := range drawings {
				if kind.scenario != results[0].Scenario {
					continue
				}
				p := Picture{Run: i, File: kind.name + ".svg", Title: kind.title}
				if len(runs) > 1 {
					p.File, p.Title = fmt.Sprintf("run%d-%s.svg", i+1, kind.name),
						fmt.Sprintf("%s (run %d)", kind.title, i+1)
				}
				chosen := slices.DeleteFunc(slices.Clone(results), func(r scenario.Result) bool {
					return !matches(kind.variants, r.Variant)
				})
				if p.SVG, err = kind.draw(p.Title, chosen); err != nil {
					return nil, err
				}
				if p.SVG != nil {
					out = append(out, p)
				}
			}
		}
	}
	return out, nil
}

func rangeOf(s measure.Spread) chart.Range {
	return chart.Range{Median: s.Median, Least: s.Min, Most: s.Max}
}

// rows are the results that have all figures, under a heading for every variant.
func rows(results []scenario.Result, figures ...string) (out []chart.Row) {
	variant := ""
	for _, r := range results {
		line := chart.Row{Label: r.System, Accent: r.System == Subject}
		for _, figure := range figures {
			if s, ok := r.Summary[figure]; ok {
				line.Values = append(line.Values, rangeOf(s))
			}
		}
		if len(line.Values) < len(figures) {
			continue
		}
		if r.Variant != variant {
			variant = r.Variant
			out = append(out, chart.Row{Label: variant})
		}
		out = append(out, line)
	}
	return out
}

// bars leave out the ceiling, beside which all systems would look alike.
func bars(figure, axis string) func(string, []scenario.Result) ([]byte, error) {
	return func(title string, results []scenario.Result) ([]byte, error) {
		lines := rows(slices.DeleteFunc(slices.Clone(results), func(r scenario.Result) bool {
			return slices.Contains(ceiling, r.System)
		}), figure)
		if len(lines) == 0 {
			return nil, nil
		}
		return chart.Bars{Title: title, Axis: axis, Rows: lines}.SVG()
	}
}

func processor(title string, results []scenario.Result) ([]byte, error) {
	lines := rows(results, measure.ServerItem, measure.ClientItem)
	if len(lines) == 0 {
		return nil, nil
	}
	return chart.Bars{Title: title, Axis: "µs of all processes, medians, less is better",
		Series: []string{"server", "client"}, Rows: lines}.SVG()
}

func latencies(title string, results []scenario.Result) ([]byte, error) {
	lines := rows(results, measure.P50, measure.P99)
	if len(lines) == 0 {
		return nil, nil
	}
	return chart.Dots{Title: title, Axis: "ms, logarithmic, less is better", Series: []string{"p50", "p99"},
		Rows: lines}.SVG()
}

// scaled draws how a figure changes with the last number in the variant's name.
func scaled(figure, x, y string) func(string, []scenario.Result) ([]byte, error) {
	return func(title string, results []scenario.Result) ([]byte, error) {
		c := chart.Lines{Title: title, X: x, Y: y}
		for _, r := range results {
			s, ok := r.Summary[figure]
			at, numbered := lastNumber(r.Variant)
			if !ok || !numbered {
				continue
			}
			i := slices.IndexFunc(c.Lines, func(l chart.Line) bool { return l.Label == r.System })
			if i < 0 {
				i, c.Lines = len(c.Lines), append(c.Lines, chart.Line{Label: r.System})
			}
			c.Lines[i].Points = append(c.Lines[i].Points, chart.Point{X: at, Y: rangeOf(s)})
		}
		if len(c.Lines) == 0 {
			return nil, nil
		}
		return c.SVG()
	}
}

var digits = regexp.MustCompile(`\d+`)

func lastNumber(s string) (float64, bool) {
	all := digits.FindAllString(s, -1)
	if len(all) == 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(all[len(all)-1], 64)
	return v, err == nil && v > 0
}
