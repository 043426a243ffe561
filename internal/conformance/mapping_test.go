package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	numbered = regexp.MustCompile("`([a-z][a-z ]*) ((?:(?:#|FS|BS)\\d+ ?)+)`")
	each     = regexp.MustCompile(`(?:#|FS|BS)\d+`)
	spans    = regexp.MustCompile("`([a-z ]+) #(\\d+)` … `([a-z ]+) #(\\d+)`")
	goTests  = regexp.MustCompile(`\bTest[A-Z]\w+`)
	fuzzers  = regexp.MustCompile(`\bFuzz[A-Z]\w+`)
	defined  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	row      = regexp.MustCompile(`^\| ([\d, –]+) \|`)
)

// TestMapping holds docs/conformance.md against the tests: its tables leave out no scenario, and
// whatever test a line names is there.
func TestMapping(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	for title, last := range map[string]int{"Spec 10 §9": 70, "Spec 20 §11": 47, "Spec 30 §11": 32, "Spec 50 §15": 12, "Spec 60 §12": 50, "Spec 70 §10": 41, "Spec 70 §9": 35} {
		seen := mapped(sections[title])
		for n := 1; n <= last; n++ {
			if seen[n] != 1 {
				t.Errorf("%s: scenario %d is mapped %d times", title, n, seen[n])
			}
		}
		if len(seen) != last {
			t.Errorf("%s: %d scenarios are mapped, there are %d", title, len(seen), last)
		}
	}
	scenarios := topics()
	for _, list := range []string{"live"} { // the scenarios of another package's test, as the section itself says
		scenarios[list] = nil
	}
	for title, body := range sections {
		for topic, numbers := range cited(body) {
			all, known := scenarios[topic]
			if !known {
				t.Errorf("%s: there is no topic %q", title, topic)
				continue
			}
			for _, n := range numbers {
				if all != nil && !slices.ContainsFunc(all, func(s scenario) bool { return slices.Contains(strings.Fields(s.name), n) }) {
					t.Errorf("%s: topic %s has no scenario %s", title, topic, n)
				}
			}
		}
	}
	known := testsOf(t, "../..")
	for _, name := range append(goTests.FindAllString(string(text), -1), fuzzers.FindAllString(string(text), -1)...) {
		if !known[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}

// mapped counts how often each number stands in the first column of a table: alone, in a list, or in a span.
func mapped(body string) map[int]int {
	seen := map[int]int{}
	for line := range strings.Lines(body) {
		cell := row.FindStringSubmatch(line)
		if cell == nil {
			continue
		}
		for part := range strings.SplitSeq(cell[1], ",") {
			from, to, span := strings.Cut(strings.TrimSpace(part), "–")
			first, err := strconv.Atoi(from)
			last := first
			if span && err == nil {
				last, err = strconv.Atoi(to)
			}
			for n := first; err == nil && n <= last; n++ {
				seen[n]++
			}
		}
	}
	return seen
}

// cited lists the scenarios that a text names, by topic: `topic #1 #2`, or `topic #1` … `topic #3`.
func cited(body string) map[string][]string {
	all := map[string][]string{}
	for _, m := range numbered.FindAllStringSubmatch(body, -1) {
		all[m[1]] = append(all[m[1]], each.FindAllString(m[2], -1)...)
	}
	for _, m := range spans.FindAllStringSubmatch(body, -1) {
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[4])
		for n := first + 1; n < last; n++ {
			all[m[1]] = append(all[m[1]], "#"+strconv.Itoa(n))
		}
	}
	return all
}

// testsOf names every test of the module.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range defined.FindAllSubmatch(source, -1) {
			known[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
