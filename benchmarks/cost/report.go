package cost

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

// Reference is what the calibration took where the budgets were measured, in µs.
const Reference = 3.0

// budgets of the project, at the reference speed.
var budgets = []struct {
	operation string
	batch     int
	most      float64
}{
	{"create", 1, 35}, {"create", 32, 16},
	{"claim", 1, 35}, {"claim", 32, 18},
	{"complete", 1, 28}, {"complete", 32, 14},
	{"append", 1, 28}, {"append", 32, 5},
	{"renew", 1, 5},
	{"tick", 1, 12},
	{"suspend", 1, 60}, {"signal", 1, 60},
}

var sizes = []struct {
	state, what string
	most        float64
}{{"waiting", "bytes besides the payload", 700}, {"done", "bytes besides payload and result", 900}}

// Report is a whole run.
type Report struct {
	Server      string  `json:"server"`
	Items       int     `json:"items"`
	Rounds      int     `json:"rounds"`
	Payload     int     `json:"payload_bytes"`
	Calibration float64 `json:"calibration_us"` // µs of the calibrating HMGET
	Speed       float64 `json:"speed"`          // how much slower than the reference
	Costs       []Cost  `json:"costs"`
	Sizes       []Size  `json:"sizes"`
}

// Cost is one operation.
type Cost struct {
	Operation string  `json:"operation"`
	PerCall   int     `json:"items_per_call"`
	Measured  float64 `json:"us_measured"`
	Reference float64 `json:"us_at_reference_speed"`
	Budget    float64 `json:"us_budget"`
	Met       bool    `json:"met"`      // at reference speed
	MetHere   bool    `json:"met_here"` // as measured
	Commands  float64 `json:"commands"` // that the function makes per item; the same on every machine
}

// Size is what one execution occupies beside its payload.
type Size struct {
	State  string  `json:"state"`
	Bytes  float64 `json:"bytes"`
	Budget float64 `json:"bytes_budget"`
	Met    bool    `json:"met"`
	what   string
}

func report(o Options, s *server.Server, samples map[string][]float64) Report {
	r := Report{Server: s.Name(), Items: o.Items, Rounds: o.Rounds, Payload: o.Payload, Calibration: median(samples["calibration"])}
	r.Speed = r.Calibration / Reference
	for _, b := range budgets {
		us := median(samples[fmt.Sprintf("%s %d", b.operation, b.batch)])
		r.Costs = append(r.Costs, Cost{Operation: b.operation, PerCall: b.batch, Measured: us, Reference: us / r.Speed, Budget: b.most,
			Met: us/r.Speed <= b.most, MetHere: us <= b.most, Commands: median(samples[fmt.Sprintf("%s %d commands", b.operation, b.batch)])})
	}
	for _, b := range sizes {
		n := median(samples[b.state])
		r.Sizes = append(r.Sizes, Size{State: b.state, Bytes: n, Budget: b.most, Met: n <= b.most, what: b.what})
	}
	return r
}

// Print writes the tables.
func (r Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d items of %d B, medians of %d rounds; calibration %.2f µs, so this machine is now at %.2f× the reference\n\n",
		r.Server, r.Items, r.Payload, r.Rounds, r.Calibration, r.Speed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operation\tper call\tµs/item here\tat reference\tbudget\t\tcommands/item\t")
	for _, c := range r.Costs {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.0f\t%s\t%.1f\t\n", c.Operation, c.PerCall, c.Measured, c.Reference, c.Budget,
			verdict(c.Met, c.MetHere), c.Commands)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, s := range r.Sizes {
		fmt.Fprintf(out, "%8s  %4.0f %s, budget %.0f: %s\n", s.State, s.Bytes, s.what, s.Budget, verdict(s.Met, s.Met))
	}
	return nil
}

// verdict: the calibration is a hot loop and the calls run cold, so "at reference" is the pessimistic reading.
func verdict(met, here bool) string {
	switch {
	case met:
		return "met"
	case here:
		return "met as measured"
	}
	return "NOT MET"
}
