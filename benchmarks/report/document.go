package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/bounds"
	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Format is the version of the JSON document. It grows when a field changes its meaning.
const Format = 2

// Document is one run.
type Document struct {
	Format   int               `json:"format"`
	Began    time.Time         `json:"began"`
	Took     float64           `json:"took_seconds"`
	Machine  Machine           `json:"machine"`
	Modules  map[string]string `json:"modules"`
	Systems  []System          `json:"systems"`
	Settings Settings          `json:"settings"`
	Results  []scenario.Result `json:"results,omitempty"`
	Cost     *cost.Report      `json:"cost,omitempty"`
	Bounds   *bounds.Report    `json:"bounds,omitempty"`
}

// System is one of the systems measured.
type System struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Settings are what the run was asked for.
type Settings struct {
	Server      string   `json:"server_program"`
	Scenarios   []string `json:"scenarios"`
	Rounds      int      `json:"rounds"`
	Items       int      `json:"items"`
	Payload     int      `json:"payload_bytes"`
	Work        string   `json:"work"`
	Concurrency int      `json:"concurrency"`
	Batch       int      `json:"frames_per_call"`
	Partitions  int      `json:"partitions"`
	Samples     int      `json:"samples"`
	Tailers     int      `json:"tailers"`
	Held        int      `json:"held"`
	Workers     int      `json:"idle_workers"`
	Members     int      `json:"flow_members"`
	Growth      []int    `json:"growth_waiting"`
	Window      string   `json:"window"`
	Settle      string   `json:"settle"`
	Pause       string   `json:"pause"`
}

// Write stores the document under path, whose directory is made if it is missing.
func (d Document) Write(path string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// measured are all results: those of scenarios, and those of calls, which have a scenario's name and one round each.
func (d Document) measured() []scenario.Result {
	out := slices.Clone(d.Results)
	add := func(name, variant string, figure string, value float64) {
		f := measure.Figures{figure: value}
		out = append(out, scenario.Result{Scenario: name, Variant: variant, System: Subject,
			Rounds: []scenario.Round{{Figures: f}}, Summary: measure.Summary([]measure.Figures{f})})
	}
	if d.Cost != nil {
		for _, c := range d.Cost.Costs {
			add(costOf, fmt.Sprintf("%s, %d a call", c.Operation, c.PerCall), measure.ServerItem, c.Micros)
		}
	}
	if d.Bounds != nil {
		for _, c := range d.Bounds.Calls {
			add(boundsOf, c.Case, measure.Longest, c.Longest)
		}
	}
	return out
}

// The names of what is measured call by call.
const costOf, boundsOf = "cost", "bounds"
