package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	notesFile    = "NOTES.md"    // written by people, beside the report
	findingsFile = "FINDINGS.md" // likewise
	tablesName   = "tables"      // the directory of the runs' tables, which belongs to the report
)

// Save writes the report of runs to path, and beside it a file for each run into the directory "tables". It replaces
// what files of that kind were there.
func Save(path string, runs []Document) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Join(dir, tablesName), 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, tablesName, "run-*.md"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for i, d := range runs {
		var text strings.Builder
		if err := Tables(&text, i, d); err != nil {
			return err
		}
		file := filepath.Join(dir, tablesName, tablesFile(i))
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	_, missing := os.Stat(filepath.Join(dir, notesFile))
	var text strings.Builder
	Markdown(&text, runs, missing == nil)
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

func tablesFile(i int) string { return fmt.Sprintf("run-%d.md", i+1) }

// Markdown writes the report of runs: what became of each target, and where the tables are. notes tells whether the
// files that people write are beside it.
func Markdown(out io.Writer, runs []Document, notes bool) {
	fmt.Fprintf(out, "# Benchmarks: what was measured\n\n"+
		"Written by `go run . report` from the raw numbers of %s; edits are lost with the next one. What the figures mean and how they were\n"+
		"measured is in the [README](../README.md).", count(len(runs), "run"))
	if notes {
		fmt.Fprintf(out,
			" What the systems promise, which no figure tells, is in [NOTES.md](%s): read it before choosing one.\n"+
				"Where the time goes, what was tried, and what would help where a target is not met, is in [FINDINGS.md](%s).",
			notesFile, findingsFile)
	}
	judged := worst(Judge(Targets, runs))
	fmt.Fprint(out, "\n\n")
	headline(out, judged)
	fmt.Fprint(out, "## Runs\n\n")
	head(out, "Run", "When", "Systems", "Scenarios", "Rounds", "Tables")
	for i, d := range runs {
		var systems []string
		for _, s := range d.Systems {
			systems = append(systems, s.Name)
		}
		row(out, fmt.Sprint(i+1), d.Began.UTC().Format("2006-01-02 15:04"), strings.Join(systems, ", "),
			strings.Join(d.Settings.Scenarios, ", "), fmt.Sprint(d.Settings.Rounds),
			fmt.Sprintf("[%s](%s/%[1]s)", tablesFile(i), tablesName))
	}
	fmt.Fprint(out,
		"\n## Targets\n\nEvery figure is the median of all rounds with the least and the most in brackets; no brackets: all rounds agree. Ratios are taken\n"+
			"between figures of the same round and the same run, then summed up in the same way. *met*: in every round. *not met*: in no round.\n"+
			"*within noise*: in some. A target that several runs are about is judged by the last of them, and one that several variants\n"+
			"are about by the worst; the tables of each run have the others.\n\n")
	targetTable(out, slices.DeleteFunc(judged, func(l Line) bool { return l.Verdict == Shown }), len(runs) > 1)
}

// headline is what a reader wants to know first: how many executions are claimed a second, and how many a worker
// works off, beside the peers.
func headline(out io.Writer, lines []Line) {
	var claims, drains []string
	worker := ""
	for _, l := range lines {
		switch {
		case l.Verdict == NotMeasured:
		case l.Verdict == Shown:
			claims = append(claims,
				fmt.Sprintf("%s/s %s", spread(l.Ours), strings.TrimPrefix(l.Target.Line, "claim throughput, ")))
		case l.Target.Scenario == "drain" && l.Peer != "":
			worker = spread(l.Ours)
			drains = append(drains, fmt.Sprintf("%s of %s", times(l.Value.Median), l.Peer))
		}
	}
	if len(claims) > 0 {
		fmt.Fprintf(out, "**Claim throughput: %s.**\n", strings.Join(claims, "; "))
	}
	if len(drains) > 0 {
		fmt.Fprintf(out, "A worker with typed handlers that do nothing works off %s a second: %s.\n", worker,
			strings.Join(drains, ", "))
	}
	if len(claims)+len(drains) > 0 {
		fmt.Fprintln(out, "All programs and the server share one machine; see below.")
		fmt.Fprintln(out)
	}
}

func times(ratio float64) string { return fmt.Sprintf("%.1f times that", ratio) }

// worst keeps one line of each target: of the last run, the variant that does worst.
func worst(lines []Line) (out []Line) {
	badness := map[Verdict]int{Missed: 3, Noise: 2, Met: 1}
	for begin := 0; begin < len(lines); {
		end := begin
		for end < len(lines) && lines[end].Target.Line == lines[begin].Target.Line {
			end++
		}
		group := slices.Clone(lines[begin:end])
		last := group[len(group)-1].Run
		group = slices.DeleteFunc(group, func(l Line) bool { return l.Run != last })
		at := 0
		for i, l := range group {
			w := group[at]
			if badness[l.Verdict] > badness[w.Verdict] || badness[l.Verdict] == badness[w.Verdict] &&
				l.Target.Bound.distance(l.Value) > w.Target.Bound.distance(w.Value) {
				at = i
			}
		}
		l := group[at]
		if len(group) > 1 {
			l.Variant = fmt.Sprintf("worst of %d: %s", len(group), l.Variant)
		}
		out, begin = append(out, l), end
	}
	return out
}

// Tables writes all that one run measured, in the tables that the run printed.
func Tables(out io.Writer, i int, d Document) error {
	fmt.Fprintf(out, "# Run %d\n\n", i+1)
	about(out, d)
	var judged []Line
	for _, l := range Judge(Targets, []Document{d}) {
		if l.Verdict != NotMeasured {
			judged = append(judged, l)
		}
	}
	if len(judged) > 0 {
		fmt.Fprint(out, "\n## Targets\n\n")
		targetTable(out, judged, false)
	}
	fmt.Fprint(out, "\n## Figures\n\n```text\n")
	if err := d.Print(out); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "```\n")
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// row writes a line of a table.
func row(out io.Writer, cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
	}
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

func head(out io.Writer, cells ...string) {
	row(out, cells...)
	fmt.Fprintf(out, "|%s\n", strings.Repeat("---|", len(cells)))
}

func targetTable(out io.Writer, lines []Line, several bool) {
	compared := slices.ContainsFunc(lines, func(l Line) bool { return len(l.Target.Peers) > 0 })
	cells := func(target, own string, peer []string, wanted, verdict, run string) []string {
		out := []string{target, own}
		if compared {
			out = append(out, peer...)
		}
		if out = append(out, wanted, verdict); several {
			out = append(out, run)
		}
		return out
	}
	head(out, cells("Target", "FlowFabric", []string{"Peer", "Peer's", "Ratio"}, "Wanted", "Verdict", "Run")...)
	var notes []string
	for _, l := range lines {
		name := l.Target.Line
		if l.Variant != "" && strings.Contains(l.Target.Variant, "*") {
			name += " — " + l.Variant
		}
		if l.Target.Note != "" {
			at := slices.Index(notes, l.Target.Note)
			if at < 0 {
				at, notes = len(notes), append(notes, l.Target.Note)
			}
			name += fmt.Sprintf(" <sup>%d</sup>", at+1)
		}
		own, peer, run := "", []string{"", "", ""}, ""
		if l.Verdict != NotMeasured {
			own = spread(l.Ours)
		}
		if l.Peer != "" {
			peer = []string{l.Peer, spread(l.Theirs), spread(l.Value)}
		}
		if l.Run > 0 {
			run = fmt.Sprint(l.Run)
		}
		row(out, cells(name, own, peer, l.Target.Bound.String(), l.verdict(), run)...)
	}
	if len(notes) > 0 {
		fmt.Fprintln(out)
	}
	for i, n := range notes {
		fmt.Fprintf(out, "%d. %s\n", i+1, n)
	}
}

// verdict is the verdict with what restricts it.
func (l Line) verdict() string {
	text := string(l.Verdict)
	switch {
	case l.Verdict == NotMeasured:
		return text + ": " + l.Why
	case l.Verdict == Shown:
		return ""
	case l.Verdict == Missed:
		text = "**" + text + "**"
	}
	if l.Rounds == 1 && l.Target.Scenario != costOf && l.Target.Scenario != boundsOf {
		// these have summed up their rounds
		text += " (one round only)"
	}
	return text
}

// about tells where, when and how a run took place.
func about(out io.Writer, d Document) {
	m := d.Machine
	fmt.Fprintf(out, "%s, %s long, on %s, %d cores (GOMAXPROCS %d), %s/%s",
		d.Began.UTC().Format("2006-01-02 15:04 UTC"), time.Duration(d.Took*float64(time.Second)).Round(time.Second),
		m.CPU, m.Cores, m.GOMAXPROCS, m.OS, m.Arch)
	if m.Kernel != "" {
		fmt.Fprintf(out, " with kernel %s", m.Kernel)
	}
	fmt.Fprintf(out, ", load %.1f at the beginning; %s.\n\n", m.Load, m.Go)
	head(out, "System", "Version", "Server")
	servers := serversOf(d)
	for _, s := range d.Systems {
		row(out, s.Name, s.Version, servers[s.Name])
	}
	settings, _ := json.Marshal(d.Settings) // of plain fields: never fails
	fmt.Fprintf(out, "\n%s\n\nSettings: `%s`.\n", order(d), settings)
	if len(d.Modules) == 0 {
		return
	}
	fmt.Fprint(out, "\n<details><summary>Libraries</summary>\n\n")
	for _, name := range slices.Sorted(maps.Keys(d.Modules)) {
		fmt.Fprintf(out, "- %s %s\n", name, d.Modules[name])
	}
	fmt.Fprint(out, "\n</details>\n")
}

// order says in which order the systems took turns.
func order(d Document) string {
	if len(d.Systems) < 2 {
		return fmt.Sprintf("%d rounds of every scenario.", d.Settings.Rounds)
	}
	var there []string
	for _, s := range d.Systems {
		there = append(there, s.Name)
	}
	back := slices.Clone(there)
	slices.Reverse(back)
	return fmt.Sprintf(
		"%d rounds of every scenario. The systems take turns: in rounds 1, 3 and so on in the order %s; in rounds 2, 4 and so on in the order %s.",
		d.Settings.Rounds, strings.Join(there, ", "), strings.Join(back, ", "))
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
