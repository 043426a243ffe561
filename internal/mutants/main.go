// Command mutants checks the checkers. It changes one source file in one place, so that one rule is broken, and runs
// the tests that are there to notice. Operators make most of these mutants out of the Lua library (see operators.go);
// a catalogue adds bugs that operators cannot make.
//
//	operators ─▶ Lua: the suite compiled once, that reads a changed copy ┐   a test fails: caught
//	                                                                     ├─▶ all pass: survived, and the exit code is 1
//	catalogue ─▶ Go:  go test -overlay, on a changed copy of the file    ┘
//
// Before the first mutant the same tests must pass on the unchanged sources. In that run the suite tells which parts
// of the library each scenario runs: only these scenarios can notice a mutant there, the shortest first. The sources
// are never written to.
//
// Failure story: a mutant that does not build, or names tests that do not exist, proves nothing. It is reported as
// broken and fails the run like a survivor. So does a run of the suite that does not end; only tests in Go that wait
// for ever have caught their mutant. A mutant that no test can notice is listed in testdata/equivalent.txt with the
// reason; the run fails if a test notices it after all.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options select mutants.
type options struct {
	pattern  string
	after    string
	part     string
	sample   int
	seed     string
	list     bool
	parallel int
	spare    int
}

func main() {
	var o options
	flag.StringVar(&o.pattern, "run", "", "only the mutants whose name matches this regular expression")
	flag.StringVar(&o.after, "after", "",
		"file with the output of earlier runs: what they tried is not tried again, unless it survived")
	flag.StringVar(&o.part, "part", "", "2/4 takes the second of four parts")
	flag.IntVar(&o.sample, "sample", 0, "so many mutants, chosen by -seed; none that are listed as equivalent")
	flag.StringVar(&o.seed, "seed", "", "any text, as the hash of a commit")
	flag.BoolVar(&o.list, "list", false, "list the mutants")
	flag.IntVar(&o.parallel, "j", 1, "mutants at a time")
	flag.IntVar(&o.spare, "spare", 0, "how many may survive before the run fails")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	project, err := readProject(root)
	if err != nil {
		return err
	}
	equivalent, err := readEquivalent(root, project.Mutants)
	if err != nil {
		return err
	}
	mutants, err := o.choose(project.Mutants, equivalent)
	if err != nil {
		return err
	}
	if o.list {
		for _, m := range mutants {
			fmt.Fprintf(w, "%s\t%s\n", m.Name, project.Describe(m))
		}
		return nil
	}
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	start := time.Now()
	tester := &Tester{Project: project, Temp: temp}
	if err := tester.Baseline(ctx, mutants); err != nil {
		return fmt.Errorf("on the unchanged sources: %w", err)
	}
	fmt.Fprintf(w, "the tests pass on the unchanged sources (%s); trying %d of %d mutants\n",
		time.Since(start).Round(time.Second), len(mutants), len(project.Mutants))
	bad := each(ctx, w, tester, mutants, equivalent, max(1, o.parallel))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprintf(w, "%d of %d as expected in %s\n", len(mutants)-bad, len(mutants), time.Since(start).Round(time.Second))
	if bad > o.spare {
		return fmt.Errorf("%d mutants were not caught, or are listed as equivalent and were", bad)
	}
	return nil
}

// choose picks the mutants of a run.
func (o options) choose(all []Mutant, equivalent map[string]string) ([]Mutant, error) {
	wanted, err := regexp.Compile(o.pattern)
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	if o.after != "" {
		output, err := os.ReadFile(o.after)
		if err != nil {
			return nil, err
		}
		done = tried(string(output))
	}
	var out []Mutant
	for _, m := range all {
		if wanted.MatchString(m.Name) && (o.sample == 0 || equivalent[m.Name] == "") {
			out = append(out, m)
		}
	}
	if o.sample > 0 {
		out = sample(out, o.sample, o.seed)
	}
	if o.part != "" {
		var part, parts int
		if n, err := fmt.Sscanf(o.part, "%d/%d", &part, &parts); n != 2 || err != nil || part < 1 || part > parts {
			return nil, fmt.Errorf("-part %s: want 1/4 to 4/4, or other numbers", o.part)
		}
		n := len(out)
		out = out[n*(part-1)/parts : n*part/parts]
	}
	out = slices.DeleteFunc(out, func(m Mutant) bool { return done[m.Name] })
	if len(out) == 0 {
		return nil, fmt.Errorf("no mutant matches %q, or all were tried before", o.pattern)
	}
	return out, nil
}

// line tells of one mutant; tried reads the names of those that need no other try out of such lines.
func line(m Mutant, r Result) string {
	return fmt.Sprintf("%-10s %6.1fs  %s  [%s]  %s\n", r.Verdict, r.Took.Seconds(), m.Name, m.File, r.Detail)
}

var lines = regexp.MustCompile(`(?m)^(?:` + string(Caught) + `|` + string(Equivalent) + `) +[0-9.]+s  (.+?)  \[`)

func tried(output string) map[string]bool {
	names := map[string]bool{}
	for _, m := range lines.FindAllStringSubmatch(output, -1) {
		names[m[1]] = true
	}
	return names
}

// expect judges a result by the list of equivalent mutants.
func expect(r Result, reason, change string) Result {
	switch {
	case r.Verdict == Survived && reason != "":
		r.Verdict, r.Detail = Equivalent, reason
	case r.Verdict == Survived:
		r.Detail = strings.TrimSpace(change + "  " + r.Detail)
	case r.Verdict == Caught && reason != "":
		r.Verdict, r.Detail = Listed, "is listed as equivalent, but this test notices it: "+r.Detail
	}
	return r
}

// each tries every mutant, so many at a time, prints one line for each, and returns how many did not come out as they
// should.
func each(ctx context.Context, w io.Writer, tester *Tester, mutants []Mutant, equivalent map[string]string,
	parallel int) (bad int) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next = make(chan Mutant)
	)
	for range parallel {
		wg.Go(func() {
			for m := range next {
				r := tester.Try(ctx, m)
				if ctx.Err() != nil {
					continue
				}
				r = expect(r, equivalent[m.Name], tester.Project.Describe(m))
				mu.Lock()
				if r.Verdict != Caught && r.Verdict != Equivalent {
					bad++
				}
				fmt.Fprint(w, line(m, r))
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	wg.Wait()
	return bad
}
