package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/chart"
)

type drawing interface{ SVG() ([]byte, error) }

// full are charts as large as reports have them: three groups of ten systems, ten lines of nine points.
func full() map[string]drawing {
	var rows []chart.Row
	for i := range 30 {
		v := 1234.5 * float64(i+1)
		if i%10 == 0 {
			rows = append(rows, chart.Row{Label: "64 goroutines"})
		}
		rows = append(rows, chart.Row{Label: fmt.Sprintf("<system> & %d", i%10), Accent: i%10 == 0,
			Values: []chart.Range{{Median: v, Least: v * 0.9, Most: v * 1.2}}})
	}
	pairs := make([]chart.Row, 10)
	for i := range pairs {
		v := 0.3 * float64(i*i+1)
		pairs[i] = chart.Row{Label: fmt.Sprintf("system %d", i),
			Values: []chart.Range{{Median: v, Least: v, Most: v}, {Median: 5 * v, Least: 4 * v, Most: 40 * v}}}
	}
	lines := make([]chart.Line, 10)
	for i := range lines {
		lines[i].Label = fmt.Sprintf("system %d", i)
		for x := 1.0; x <= 256; x *= 2 {
			lines[i].Points = append(lines[i].Points,
				chart.Point{X: x, Y: chart.Range{Median: 10 * x, Least: 9 * x, Most: 12 * x}})
		}
	}
	return map[string]drawing{
		"bars":  chart.Bars{Title: "submit", Axis: "jobs/s", Rows: rows},
		"stack": chart.Bars{Title: "µs per job", Axis: "µs", Series: []string{"server", "client"}, Rows: pairs},
		"dots":  chart.Dots{Title: "latency", Axis: "ms", Series: []string{"p50", "p99"}, Rows: pairs},
		"lines": chart.Lines{Title: "partitions", X: "partitions", Y: "jobs/s", Lines: lines},
	}
}

func TestChartsAreSmallWellFormedAndTheSameEveryTime(t *testing.T) {
	for name, d := range full() {
		first, err := d.SVG()
		if err != nil {
			t.Fatal(name, err)
		}
		again, err := full()[name].SVG()
		if err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s: drawn twice, it differs (%v)", name, err)
		}
		if len(first) > 40<<10 {
			t.Errorf("%s has %d bytes, want 40 KiB or less", name, len(first))
		}
		texts := wellFormed(t, name, first)
		if !strings.Contains(string(first), "fill:#FFFFFF") {
			t.Errorf("%s has no background", name)
		}
		if name == "bars" && !strings.Contains(texts, "<system> & 9") {
			t.Errorf("%s lacks a label in %s", name, texts)
		}
	}
}

// wellFormed returns all the text of an SVG.
func wellFormed(t *testing.T, name string, svg []byte) string {
	t.Helper()
	d, root, texts := xml.NewDecoder(bytes.NewReader(svg)), "", ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
		case xml.CharData:
			texts += string(token) + "\n"
		}
	}
	if root != "svg" {
		t.Errorf("%s: the root is %q", name, root)
	}
	return texts
}

// The axis begins where the points do.
func TestTheAxisBeginsWithThePoints(t *testing.T) {
	at := func(x float64) []chart.Point {
		return []chart.Point{{X: x, Y: chart.Range{Median: 1, Least: 1, Most: 1}}}
	}
	for _, x := range []float64{0.002, 1, 5000} {
		svg, err := chart.Lines{Title: "x", Lines: []chart.Line{{Label: "a", Points: append(at(x), at(10*x)...)}}}.SVG()
		if err != nil {
			t.Fatal(err)
		}
		first := regexp.MustCompile(`<path d="M([0-9.]+),[0-9.]+A`).FindSubmatch(svg) // of the first dot
		if first == nil {
			t.Fatalf("no dots in %s", svg)
		}
		if left, err := strconv.ParseFloat(string(first[1]), 64); err != nil || left > 120 {
			t.Errorf("from %v on: the first dot is %v points from the left of 560", x, left)
		}
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	row := func(v float64) []chart.Row { return []chart.Row{{Label: "a", Values: []chart.Range{{v, v, v}}}} }
	for name, d := range map[string]drawing{
		"no number":         chart.Bars{Title: "x", Rows: row(math.NaN())},
		"zero, logarithmic": chart.Dots{Title: "x", Rows: row(0)},
		"no dots":           chart.Dots{Title: "x"},
		"no lines":          chart.Lines{Title: "x"},
		"line at zero":      chart.Lines{Title: "x", Lines: []chart.Line{{Points: []chart.Point{{X: 0}}}}},
	} {
		if out, err := d.SVG(); err == nil {
			t.Errorf("%s: %d bytes and no error", name, len(out))
		}
	}
}
