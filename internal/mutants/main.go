// Command mutants checks the checkers. It holds a catalogue of seeded bugs, each a small change of one source file that
// breaks one rule: a check of the fence dropped, two arguments swapped, an index entry left behind, an expiry off by one.
// It applies them one at a time and runs the tests that are there to notice.
//
//	            ┌ Go:  go test -overlay, on a changed copy of the file ┐   a test fails: caught
//	catalogue ─▶│                                                      ├─▶ all pass: survived, and the exit code is 1
//	            └ Lua: tests compiled once, that read a changed copy   ┘
//
// The sources are never written to; only testdata/killers.tsv, which test caught a bug, so that it runs first the next time. Before the first bug the same tests must pass on the unchanged sources.
//
// Failure story: a bug that does not build, no longer applies, or names tests that do not exist proves nothing. It is
// reported as broken and fails the run like a survivor. A test that hangs on a bug has caught it, after its time limit.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	pattern := flag.String("run", "", "only the bugs whose name matches this regular expression")
	list := flag.Bool("list", false, "list the bugs and the tests that must catch them")
	parallel := flag.Int("j", 1, "bugs at a time")
	after := flag.String("after", "", "file with the output of an earlier run: what it caught is not tried again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *pattern, *after, *list, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, pattern, after string, list bool, parallel int) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	if after != "" {
		text, err := os.ReadFile(after)
		if err != nil {
			return err
		}
		done = caught(string(text))
	}
	var mutants []Mutant
	for _, m := range catalogue() {
		if wanted.MatchString(m.Name) && !done[m.Name] {
			mutants = append(mutants, m)
		}
	}
	if len(mutants) == 0 {
		return fmt.Errorf("no bug matches %q, or all were caught before", pattern)
	}
	if list {
		return table(w, mutants)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	sources, err := findSources(root)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	start := time.Now()
	known, err := readKillers(root)
	if err != nil {
		return err
	}
	tester := &Tester{Root: root, Temp: temp, Sources: sources, Killers: known}
	if err := tester.Baseline(ctx, mutants); err != nil {
		return fmt.Errorf("on the unchanged sources: %w", err)
	}
	fmt.Fprintf(w, "the tests pass on the unchanged sources (%s)\n", time.Since(start).Round(time.Second))
	escaped := each(ctx, w, tester, mutants, max(1, parallel))
	if err := known.write(root, catalogue()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprintf(w, "%d of %d caught in %s\n", len(mutants)-escaped, len(mutants), time.Since(start).Round(time.Second))
	if escaped > 0 {
		return fmt.Errorf("%d bugs were not caught", escaped)
	}
	return nil
}

// line tells of one bug; caught reads the names of those that were caught out of such lines.
func line(m Mutant, r Result) string {
	return fmt.Sprintf("%-8s %6.1fs  %s  [%s]  %s\n", r.Verdict, r.Took.Seconds(), m.Name, m.In, r.Detail)
}

var lines = regexp.MustCompile(`(?m)^` + string(Caught) + ` +[0-9.]+s  (.+?)  \[`)

func caught(output string) map[string]bool {
	names := map[string]bool{}
	for _, m := range lines.FindAllStringSubmatch(output, -1) {
		names[m[1]] = true
	}
	return names
}

// each tries every bug, so many at a time, prints one line for each, and returns how many were not caught.
func each(ctx context.Context, w io.Writer, tester *Tester, mutants []Mutant, parallel int) (escaped int) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next = make(chan Mutant)
	)
	for range parallel {
		wg.Go(func() {
			for m := range next {
				r := tester.Try(ctx, m)
				mu.Lock()
				if r.Verdict != Caught {
					escaped++
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
	return escaped
}

func table(w io.Writer, mutants []Mutant) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range mutants {
		fmt.Fprintf(t, "%s\t%s\t%s %s\n", m.Name, m.In, m.By.Package, m.By.Run)
	}
	return t.Flush()
}
