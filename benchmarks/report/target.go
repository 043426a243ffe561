package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// Subject is the system that targets are about.
const Subject = "flowfabric"

// Target is one line of the project's targets: a figure of FlowFabric, or its ratio to that of a peer in the same
// round, and what it should be.
type Target struct {
	Line     string // the target in words
	Scenario string
	Variant  string // a pattern of [path.Match]; every variant that matches is judged
	Figure   string
	// those of the run that are set here must be the same; payload and concurrency are 256 and 64 unless they are
	Want  Settings
	Peers []string // the ratio is taken to the one of them that did best in the run; none: to nobody
	Bound Bound
	Note  string // what must be known to read the verdict
}

// Bound is what a figure or ratio should be. 0 is no bound; without any, the figure is shown and not judged.
type Bound struct{ Least, Most float64 }

func (b Bound) String() string {
	switch {
	case b.Least > 0 && b.Most > 0:
		return fmt.Sprintf("%g to %g", b.Least, b.Most)
	case b.Least > 0:
		return fmt.Sprintf("≥ %g", b.Least)
	case b.Most > 0:
		return fmt.Sprintf("≤ %g", b.Most)
	}
	return ""
}

// Verdict is what became of a target.
type Verdict string

const (
	Met         Verdict = "met"          // in every round
	Missed      Verdict = "not met"      // in no round
	Noise       Verdict = "within noise" // in some rounds
	NotMeasured Verdict = "not measured"
	Shown       Verdict = "" // there is no bound
)

// Judge says whether a whole range keeps the bound.
func (b Bound) Judge(s measure.Spread) Verdict {
	keeps := func(v float64) bool { return (b.Least == 0 || v >= b.Least) && (b.Most == 0 || v <= b.Most) }
	switch {
	case b == Bound{}:
		return Shown
	case keeps(s.Min) && keeps(s.Max):
		return Met
	case b.Least > 0 && s.Max < b.Least, b.Most > 0 && s.Min > b.Most:
		return Missed
	}
	return Noise
}

// distance is how far a median is beyond the bound, as a factor: above 1 outside, below 1 within.
func (b Bound) distance(s measure.Spread) float64 {
	d := 0.0
	if b.Least > 0 && s.Median > 0 {
		d = b.Least / s.Median
	}
	if b.Most > 0 {
		d = max(d, s.Median/b.Most)
	}
	return d
}

// Line is a judged target in one run.
type Line struct {
	Target  Target
	Run     int // from 1; 0: in no run
	Variant string
	Peer    string // the system that the ratio is to; empty: the figure itself is judged
	Ours    measure.Spread
	Theirs  measure.Spread
	Value   measure.Spread // what is judged: the figure, or the ratio of figures of the same round
	Rounds  int
	Verdict Verdict
	Why     string // it was not measured
}

// Judge judges every target in every run that measured it; a target that none measured has one line that says why.
// Both parts of a ratio come from the same round of the same run.
func Judge(targets []Target, runs []Document) []Line {
	var lines []Line
	for _, t := range targets {
		var found []Line
		why := "no run has scenario " + t.Scenario
		for i, d := range runs {
			judged, reason := t.judge(d)
			for _, l := range judged {
				l.Run = i + 1
				found = append(found, l)
			}
			why = cmp.Or(reason, why)
		}
		if len(found) == 0 {
			found = []Line{{Target: t, Verdict: NotMeasured, Why: why}}
		}
		lines = append(lines, found...)
	}
	return lines
}

// judge returns a line for every matching variant in a run, or why there is none; no line and no reason if the run is
// not about the scenario at all.
func (t Target) judge(d Document) (lines []Line, why string) {
	other := ""
	for _, ours := range d.measured() {
		if ours.Scenario != t.Scenario || ours.System != Subject {
			continue
		}
		if !matches(t.Variant, ours.Variant) {
			other = fmt.Sprintf("%s has no variant %q in the run", t.Scenario, t.Variant)
			continue
		}
		if differs := t.unlike(d.Settings); differs != "" {
			return nil, differs
		}
		if reason := ours.NotAvailable(); reason != "" {
			return nil, reason
		}
		l, reason := t.line(d, ours)
		if reason == "" {
			lines = append(lines, l)
		}
		why = cmp.Or(reason, why)
	}
	return lines, cmp.Or(why, other)
}

// unlike names the first setting that is not the target's.
func (t Target) unlike(s Settings) string {
	want := t.Want
	for _, n := range []struct {
		name      string
		want, got int
	}{
		{"payload", cmp.Or(want.Payload, 256), s.Payload}, {"c", cmp.Or(want.Concurrency, 64), s.Concurrency},
		{"batch", want.Batch, s.Batch},
		{"partitions", want.Partitions, s.Partitions}, {"workers", want.Workers, s.Workers},
		{"members", want.Members, s.Members},
	} {
		if n.want != 0 && n.want != n.got {
			return fmt.Sprintf("the run has -%s %d, the target is about %d", n.name, n.got, n.want)
		}
	}
	if s.Work != "" && s.Work != "0s" {
		return fmt.Sprintf("the run has -work %s, the target is about handlers that do nothing", s.Work)
	}
	return ""
}

func (t Target) line(d Document, ours scenario.Result) (l Line, why string) {
	figures := values(ours, t.Figure)
	if len(figures) == 0 {
		return l, "no figure " + t.Figure
	}
	l = Line{Target: t, Variant: ours.Variant, Ours: measure.SpreadOf(figures), Value: measure.SpreadOf(figures),
		Rounds: len(figures)}
	if len(t.Peers) > 0 {
		theirs, reason := t.other(d, ours)
		if reason != "" {
			return l, reason
		}
		pairs := Ratios(ours, theirs, t.Figure)
		if len(pairs) == 0 {
			return l, "no round has figures of both"
		}
		l.Peer, l.Theirs = theirs.System, measure.SpreadOf(values(theirs, t.Figure))
		l.Value, l.Rounds = measure.SpreadOf(pairs), len(pairs)
	}
	l.Verdict = t.Bound.Judge(l.Value)
	return l, ""
}

// other is what the ratio is taken to: the peer that did best.
func (t Target) other(d Document, ours scenario.Result) (best scenario.Result, why string) {
	for _, r := range d.Results {
		if r.Scenario != ours.Scenario || r.Variant != ours.Variant && r.NotAvailable() == "" ||
			!slices.Contains(t.Peers, r.System) {
			continue
		}
		if reason := r.NotAvailable(); reason != "" {
			why = r.System + ": " + reason
			continue
		}
		if len(values(r, t.Figure)) == 0 {
			continue
		}
		if best.System == "" || isBetter(t.Figure, r.Summary[t.Figure].Median, best.Summary[t.Figure].Median) {
			best = r
		}
	}
	switch {
	case best.System != "":
		return best, ""
	case why != "":
		return best, why
	}
	return best, strings.Join(t.Peers, ", ") + " not in the run"
}

// Ratios are a's figure divided by b's, each pair of the same round.
func Ratios(a, b scenario.Result, figure string) []float64 {
	var out []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		x, ok := a.Rounds[i].Figures[figure]
		y, also := b.Rounds[i].Figures[figure]
		if ok && also && y != 0 {
			out = append(out, x/y)
		}
	}
	return out
}

// values are a figure's of all rounds that have it.
func values(r scenario.Result, figure string) []float64 {
	var out []float64
	for _, round := range r.Rounds {
		if v, ok := round.Figures[figure]; ok {
			out = append(out, v)
		}
	}
	return out
}

func matches(pattern, variant string) bool {
	ok, err := path.Match(pattern, variant)
	return err == nil && ok
}
