package crash

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/report"
)

// page is all results. Its exported methods are those that page.md asks.
type page struct {
	results []result
	began   time.Time
	took    time.Duration
	most    int
}

// Sums are the figures of a system.
type Sums struct {
	Kills, Right        int
	calls, CallRuns     int   // of the bank, repeated
	keyed, other        int   // bookings beyond those of a run, and runs with another seat
	tokens, most        int64 // paid twice: in all, and in one run
	TokenRuns           int
	twice, ruled        int
	dropped, lost       int
	usualTime, mostTime time.Duration
}

// Sums adds up what all runs came to.
func (r result) Sums() Sums { return r.of(before, after, moment) }

// of adds up what the runs with a kill of these kinds came to.
func (r result) of(kinds ...kind) (s Sums) {
	var took []time.Duration
	for _, o := range r.runs {
		if !o.killed || !slices.Contains(kinds, o.point.kind) {
			continue
		}
		s.Kills++
		if o.wrong == "" {
			s.Right++
		}
		if n := o.bookings - r.calm.bookings; n > 0 {
			s.calls, s.CallRuns = s.calls+n, s.CallRuns+1
		}
		s.keyed += max(0, o.keyed-r.calm.keyed)
		if o.other {
			s.other++
		}
		if n := o.tokens - r.calm.tokens; n > 0 {
			s.tokens, s.TokenRuns, s.most = s.tokens+n, s.TokenRuns+1, max(s.most, n)
		}
		s.twice, s.ruled, s.dropped, s.lost = s.twice+o.twice, s.ruled+o.ruled, s.dropped+o.dropped, s.lost+o.lost
		took = append(took, o.recovery)
	}
	if len(took) > 0 {
		slices.Sort(took)
		s.usualTime, s.mostTime = took[len(took)/2], took[len(took)-1]
	}
	return s
}

// Ran is what the runs were made with, or why there are none.
func (r result) Ran() string {
	if r.absent != nil {
		return fmt.Sprintf("which did not run (%v)", r.absent)
	}
	return r.system.version() + ", on " + r.server
}

// Recovery is a sentence.
func (r result) Recovery() string {
	if r.absent != nil {
		return ""
	}
	s := r.Sums()
	return fmt.Sprintf(" With that, recovery took %.1f s in the middle and %.1f s at most, with the start of the next "+
		"process.", s.usualTime.Seconds(), s.mostTime.Seconds())
}

// points prints each run.
func (p page) points(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "system\tkilled\tnumber\tat\tcalls of the bank\tanother seat\ttokens paid twice\tshown twice\t"+
		"told to drop\tlost\trecovery\twrong")
	for _, r := range p.results {
		for _, o := range r.runs {
			where := o.where
			if !o.killed {
				where = "not reached"
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%v\t%d\t", r.system.name, o.point.kind, o.point.n, where, o.bookings,
				o.other, o.tokens-r.calm.tokens)
			fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\n", o.twice, o.dropped, o.lost,
				o.recovery.Round(time.Millisecond), o.wrong)
		}
	}
	_ = t.Flush()
}

// tables are that of the kills at a step, that of those at a write, and that of what readers saw. The first row of each
// has the names.
func (p page) tables() [3][][]string {
	costs := []string{"Kills", "Ended right", "Calls of the bank repeated",
		"… at a bank that knows keys: booked twice", "another seat", "Kills after which tokens were paid twice",
		"Tokens paid twice, of what a run needs: on average", "at most"}
	paid := func(r result, s Sums) []string {
		share := 100 / float64(r.calm.tokens)
		return []string{fmt.Sprint(s.Kills), fmt.Sprint(s.Right), fmt.Sprint(s.calls), fmt.Sprint(s.keyed),
			fmt.Sprintf("after %d kills", s.other), fmt.Sprint(s.TokenRuns),
			fmt.Sprintf("%.1f %%", share*float64(s.tokens)/float64(max(s.Kills, 1))),
			fmt.Sprintf("%.0f %%", share*float64(s.most))}
	}
	saw := func(r result, s Sums) []string {
		all := r.Sums()
		return []string{fmt.Sprint(s.dropped), fmt.Sprint(s.twice), fmt.Sprint(all.twice), fmt.Sprint(all.ruled),
			fmt.Sprint(all.lost)}
	}
	return [3][][]string{
		p.rows(costs, paid, moment),
		p.rows(costs, paid, before, after),
		p.rows([]string{"Kills at a step: tokens that the reader was told to drop", "shown twice",
			"All kills: shown twice", "… with a rule of the application", "lost"}, saw, moment),
	}
}

func (p page) rows(names []string, cells func(result, Sums) []string, kinds ...kind) [][]string {
	out := [][]string{append([]string{""}, names...)}
	for _, r := range p.results {
		if r.absent == nil {
			out = append(out, append([]string{r.system.name}, cells(r, r.of(kinds...))...))
		}
	}
	return out
}

// print shows the tables on a terminal.
func (p page) print(w io.Writer) {
	for i, table := range p.tables() {
		fmt.Fprintln(w, [3]string{"Kills at a step", "Kills at a write", "What a reader saw"}[i])
		for _, row := range table[1:] {
			fmt.Fprintf(w, "  %s\n", row[0])
			for i, cell := range row[1:] {
				fmt.Fprintf(w, "    %s: %s\n", table[0][i+1], cell)
			}
		}
	}
	for _, r := range p.results {
		if r.absent != nil {
			fmt.Fprintf(w, "%s: %v\n", r.system.name, r.absent)
		}
	}
}

func markdown(table [][]string) string {
	var w strings.Builder
	for i, row := range table {
		fmt.Fprintf(&w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&w, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return w.String()
}

//go:embed page.md
var text string

var pageTemplate = template.Must(template.New("page").Parse(text))

// save writes the page.
func (p page) save(path string) error {
	var w bytes.Buffer
	if err := pageTemplate.Execute(&w, p); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, w.Bytes(), 0o644)
}

// Date, Took, Machine, Sample, Steps, Writes and Reader are parts of the page.
func (p page) Date() string            { return p.began.Format(time.DateOnly) }
func (p page) Took() time.Duration     { return p.took.Round(time.Second) }
func (p page) Machine() report.Machine { return report.ThisMachine() }
func (p page) Sample() int             { return p.most }
func (p page) Steps() string           { return markdown(p.tables()[0]) }
func (p page) Writes() string          { return markdown(p.tables()[1]) }
func (p page) Reader() string          { return markdown(p.tables()[2]) }

// Of is what a system came to, nil if it was not asked for.
func (p page) Of(name string) *result {
	i := slices.IndexFunc(p.results, func(r result) bool { return r.system.name == name })
	if i < 0 {
		return nil
	}
	return &p.results[i]
}

// Wrong are the runs that did not end right.
func (p page) Wrong() (out []string) {
	for _, r := range p.results {
		for _, o := range r.runs {
			if o.killed && o.wrong != "" {
				out = append(out, fmt.Sprintf("**%s**, killed %s, number %d (%s): %s.", r.system.name, o.point.kind,
					o.point.n, o.where, o.wrong))
			}
		}
	}
	return out
}
