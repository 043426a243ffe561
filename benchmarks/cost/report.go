package cost

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

// operations are what is measured, with the budgets of the project. A lifecycle is one creation, one claim and one
// completion.
var operations = []struct {
	name  string
	batch int
	most  float64 // µs; where the tags are indexed, times what the same costs with tags that are not; 0: no budget
}{
	{"create", 1, 0}, {"create", 32, 0},
	{"claim", 1, 0}, {"claim", 32, 0},
	{"complete", 1, 0}, {"complete", 32, 0},
	{lifecycle, 1, 80}, {lifecycle, 32, 22},
	{"append", 1, 28}, {"append", 32, 5},
	{"renew", 1, 5},
	{"tick", 1, 12},
	{"suspend", 1, 45}, {"signal", 1, 60},
	{"create" + tagged, 1, 0}, {"create" + tagged, 32, 0}, {lifecycle + tagged, 1, 0}, {lifecycle + tagged, 32, 0},
	{"create" + indexed, 1, 1.5}, {"create" + indexed, 32, 1.5}, {lifecycle + indexed, 1, 1.15},
	{lifecycle + indexed, 32, 1.15},
}

const (
	lifecycle = "lifecycle"
	tagged    = " with two tags"
	indexed   = " with two indexed tags"
)

var sizes = []struct {
	state, what string
	most        float64
}{{"waiting", "bytes besides the payload", 364},
	{"done", "bytes besides payload and result", 449}} // 620 and 750 B with 256 and 45 B of these

// Report is a whole run.
type Report struct {
	Server  string `json:"server"`
	Items   int    `json:"items"`
	Rounds  int    `json:"rounds"`
	Payload int    `json:"payload_bytes"`
	Costs   []Cost `json:"costs"`
	Sizes   []Size `json:"sizes"`
}

// Cost is one operation.
type Cost struct {
	Operation string  `json:"operation"`
	PerCall   int     `json:"items_per_call"`
	Micros    float64 `json:"us"`
	Budget    float64 `json:"us_budget,omitempty"`
	Commands  float64 `json:"commands"` // that the function makes per item; the same on every machine
}

// Met tells whether the budget is kept; nobody asks where there is none.
func (c Cost) Met() bool { return c.Micros <= c.Budget }

// Size is what one execution occupies beside its payload.
type Size struct {
	State  string  `json:"state"`
	Bytes  float64 `json:"bytes"`
	Budget float64 `json:"bytes_budget"`
	what   string
}

// Met tells whether the budget is kept.
func (s Size) Met() bool { return s.Bytes <= s.Budget }

func report(o Options, s *server.Server, samples map[string][]float64) Report {
	r := Report{Server: s.Name(), Items: o.Items, Rounds: o.Rounds, Payload: o.Payload}
	costs := map[string]float64{}
	for _, op := range operations {
		parts := []string{op.name}
		if v, ok := strings.CutPrefix(op.name, lifecycle); ok {
			parts = []string{"create" + v, "claim" + v, "complete" + v}
		}
		c := Cost{Operation: op.name, PerCall: op.batch, Budget: op.most}
		for _, part := range parts {
			c.Micros += measure.Median(samples[fmt.Sprintf("%s %d", part, op.batch)])
			c.Commands += measure.Median(samples[fmt.Sprintf("%s %d commands", part, op.batch)])
		}
		if v, ok := strings.CutSuffix(op.name, indexed); ok {
			c.Budget *= costs[fmt.Sprintf("%s %d", v+tagged, op.batch)]
		}
		costs[fmt.Sprintf("%s %d", op.name, op.batch)] = c.Micros
		r.Costs = append(r.Costs, c)
	}
	for _, b := range sizes {
		r.Sizes = append(r.Sizes,
			Size{State: b.state, Bytes: measure.Median(samples[b.state]), Budget: b.most, what: b.what})
	}
	return r
}

// Print writes the tables.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d items of %d B, medians of %d rounds\n\n", r.Server, r.Items, r.Payload, r.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operation\tper call\tµs/item\tbudget\t\tcommands/item\t")
	for _, c := range r.Costs {
		budget, judged := "", ""
		if c.Budget > 0 {
			budget, judged = fmt.Sprintf("%.0f", c.Budget), verdict(c.Met())
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%s\t%s\t%.2f\t\n", c.Operation, c.PerCall, c.Micros, budget, judged, c.Commands)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, s := range r.Sizes {
		fmt.Fprintf(out, "%8s  %4.0f %s, budget %.0f: %s\n", s.State, s.Bytes, s.what, s.Budget, verdict(s.Met()))
	}
	return nil
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "NOT MET"
}
