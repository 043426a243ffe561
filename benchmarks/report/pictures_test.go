package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Scaling is drawn over the number that grows, of the part in question only.
func TestPicturesOfScaling(t *testing.T) {
	d := first()
	d.Results = []scenario.Result{
		result("growth", "submit, 10000 waiting", "flowfabric", map[string][]float64{measure.ServerItem: {50}}),
		result("growth", "submit, 100000 waiting", "flowfabric", map[string][]float64{measure.ServerItem: {51}}),
		result("growth", "submit 100 at a time, 10000 waiting", "flowfabric",
			map[string][]float64{measure.ServerItem: {9}}),
		result("growth", "submit, routes: 10", "flowfabric", map[string][]float64{measure.ServerItem: {52}}),
		missing("processes", "raw", "no processes"),
		result("processes", "1 process", "flowfabric", map[string][]float64{measure.Throughput: {100}}),
		result("processes", "2 processes", "flowfabric", map[string][]float64{measure.Throughput: {170}}),
	}
	pictures, err := report.Pictures([]report.Document{d})
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, p := range pictures {
		files = append(files, p.File)
	}
	if !slices.Equal(files, []string{"growth-submit.svg", "processes.svg"}) {
		t.Fatalf("charts %v", files)
	}
	text := string(pictures[0].SVG)
	for _, tick := range []string{">10.0k<", ">100.0k<"} {
		if !strings.Contains(text, tick) {
			t.Errorf("no tick %s", tick)
		}
	}
	if strings.Contains(text, ">100<") {
		t.Error("the number of another part is on the axis")
	}
	if raw := string(pictures[1].SVG); !strings.Contains(raw, "flowfabric") || strings.Contains(raw, ">raw ") {
		t.Error("want a line of flowfabric, and none of a system without figures")
	}
}

// What cannot be drawn is left out, and a scenario without any figures has no chart.
func TestNoPictures(t *testing.T) {
	d := first()
	d.Results = []scenario.Result{missing("drain", "river", "not installed"),
		missing("latency", "river", "not installed"), missing("processes", "raw", "none")}
	if pictures, err := report.Pictures([]report.Document{d}); err != nil || len(pictures) != 0 {
		t.Errorf("%d charts (%v)", len(pictures), err)
	}
}
