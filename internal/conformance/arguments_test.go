package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

// argumentsFile says how long, how large or how many the arguments of every function may be, one line for each: the
// function, which of its staged calls, the argument, what is counted, from where to where, and what one more is told.
// A change of a line is a change of the contract. FLOWFABRIC_GOLDEN=write measures them anew.
const argumentsFile = "testdata/arguments.txt"

// argumentScenarios are one for each directory of lua, so that each takes a second at most.
var argumentScenarios = func() (all []scenario) {
	var dirs []string
	for _, h := range contract.Functions() {
		dirs = append(dirs, path.Dir(h.File))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		all = append(all, scenario{
			name:  "every argument of " + dir + " functions is accepted up to its recorded limits and refused beyond",
			needs: []string{"Native"}, run: func(w *env) { w.limits(dir) },
		})
	}
	return all
}()

// limits holds the arguments of the functions in a directory to the golden file.
func (w *env) limits(dir string) {
	stored, err := os.ReadFile(argumentsFile)
	w.no(err)
	in := map[string]bool{}
	for _, h := range contract.Functions() {
		in[h.Name] = path.Dir(h.File) == dir
	}
	calls := w.stage().calls
	image := w.save()
	w.quiet, w.hostile = true, true // a count of 0 leaves arguments over
	var table, others bytes.Buffer
	lines := map[string][]string{}
	for line := range strings.Lines(string(stored)) {
		c, _, _ := strings.Cut(line, " ")
		function, _, _ := strings.Cut(c, "/")
		if here, known := in[function]; known && !here {
			others.WriteString(line)
			continue
		}
		lines[c] = append(lines[c], strings.TrimSuffix(line, "\n"))
	}
	nth := map[string]int{}
	for _, c := range calls {
		nth[c.name]++
		if !in[c.name] {
			continue
		}
		c.name += "/" + strconv.Itoa(nth[c.name])
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			before := table.Len()
			for at := 1; at < len(c.args); at++ { // before is the protocol
				w.measure(&table, image, c, at)
			}
			if table.Len() == before && len(c.args) > 1 {
				fmt.Fprintf(&table, "%s none\n", c.name) // so that a function that was never measured is noticed
			}
			delete(lines, c.name)
			continue
		}
		if lines[c.name] == nil && len(c.args) > 1 {
			w.Errorf("%s has no line about %s: FLOWFABRIC_GOLDEN=write makes it", argumentsFile, c.name)
		}
		for _, line := range lines[c.name] {
			if line != c.name+" none" {
				w.bounded(image, c, line)
			}
		}
		delete(lines, c.name)
	}
	w.hostile = false
	for name := range lines {
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			break // they are left out
		}
		w.Errorf("%s has lines about %s, which nothing stages", argumentsFile, name)
	}
	if table.Len() > 0 {
		w.no(os.WriteFile(argumentsFile, append(others.Bytes(), table.Bytes()...), 0o644))
	}
}

// bounded holds one argument to its line of the golden file.
func (w *env) bounded(image []saved, c call, line string) {
	w.Helper()
	words := append(strings.SplitN(line, " ", 5), "")
	at, err := strconv.Atoi(words[1])
	w.no(err)
	kind, span, told := words[2], words[3], words[4]
	least, most, _ := strings.Cut(span, "..")
	for _, x := range []struct {
		bound  string
		beyond int64
	}{{least, -1}, {most, +1}} {
		if x.bound == "" {
			continue
		}
		relative, ok := strings.CutPrefix(x.bound, "now")
		n, err := strconv.ParseInt(relative, 10, 64)
		w.no(err)
		if ok {
			n += w.now()
		}
		if got := w.complaint(image, c, at, kind, n); got != "" {
			w.Errorf("%s refuses %s %d of argument %d: %s", c.name, kind, n, at, got)
		}
		if got := w.complaint(image, c, at, kind, n+x.beyond); got == "" || x.beyond > 0 && got != told {
			w.Errorf("%s answers %q to %s %d of argument %d, not %q", c.name, got, kind, n+x.beyond, at, told)
		}
	}
}

// changing is what an answer says of this run: ids, sessions and instants.
var changing = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{13,}|~[0-9a-f]{12}`)

// varying is a value whose length depends on the partition that the scenario has.
var varying = regexp.MustCompile(`\d\.[0-9a-f]{8}-`)

var plainNumber = regexp.MustCompile(`^\+?(\d{1,16})$`)

// resized are arguments one of which is so long, is so large, or counts so many rows of so many columns.
func resized(args []string, at int, kind string, n int64) []string {
	args = slices.Clone(args)
	v := args[at]
	columns, rows := strings.CutPrefix(kind, "rows:")
	switch {
	case rows:
		width, _ := strconv.Atoi(columns)
		had, _ := strconv.Atoi(v)
		row := args[at+1 : at+1+width]
		return slices.Concat(args[:at], []string{strconv.FormatInt(n, 10)}, slices.Repeat(row, int(n)),
			args[at+1+width*had:])
	case kind == "number":
		args[at] = strings.TrimRight(v, "0123456789") + strconv.FormatInt(n, 10)
	case n <= int64(len(v)):
		args[at] = v[:n]
	default:
		args[at] = v + strings.Repeat(cmp.Or(v, "x")[max(0, len(v)-1):], int(n)-len(v))
	}
	return args
}

// complaint is what a function has to say about its arguments, one of which is resized; "" if nothing. Nothing is left
// of what the call did.
func (w *env) complaint(image []saved, c call, at int, kind string, n int64) string {
	w.Helper()
	function, _, _ := strings.Cut(c.name, "/")
	before := w.changes()
	a := w.fcall(function, resized(c.args, at, kind, n)...)
	if w.changes() != before {
		w.restore(image)
	}
	said := append([]string{a.code}, a.slots...)
	for i, s := range said {
		code, _, _ := strings.Cut(s, " ")
		if !strings.HasPrefix(kind, "rows:") { // more of the same may be refused for being the same
			code = strings.TrimPrefix(code, "-") // of one of a batch
		}
		if strings.HasPrefix(code, "invalid_") || strings.HasSuffix(code, "_too_large") {
			s = strings.Join(said[i:min(i+2, len(said))], " ")
			return fmt.Sprintf("%.100q", changing.ReplaceAllString(s, "…"))
		}
	}
	return ""
}

// measure writes the lines of an argument.
func (w *env) measure(table *bytes.Buffer, image []saved, c call, at int) {
	w.Helper()
	complaint := func(kind string, n int64) string { return w.complaint(image, c, at, kind, n) }
	if varying.MatchString(c.args[at]) {
		return
	}
	kind, start, end := "bytes", int64(len(c.args[at])), int64(1<<21)
	if m := plainNumber.FindStringSubmatch(c.args[at]); m != nil {
		kind, end = "number", 1<<53-1
		start, _ = strconv.ParseInt(m[1], 10, 64)
		if told := complaint(kind, start+1); start > 0 && told != "" && !strings.HasPrefix(c.args[at], "+") {
			best := told // one row more that is accepted, or else refused for something else
			for width := 1; width < 16 && at+width*int(start) < len(c.args); width++ {
				rows := "rows:" + strconv.Itoa(width)
				if got := complaint(rows, start+1); got != best && (got == "" || best == told) {
					kind, end, best = rows, 1<<13, got
				}
			}
		}
	}
	refuses := func(n int64) bool { return complaint(kind, n) != "" }
	if refuses(start) {
		return
	}
	var least, most, told string
	if refuses(0) {
		least = w.relative(edge(0, start, refuses))
	}
	for good, n := start, max(1, 2*start); good < end; good, n = n, min(2*n, end) {
		if refuses(n) {
			last := edge(n, good, refuses)
			most, told = w.relative(last), complaint(kind, last+1)
			break
		}
	}
	if least != "" || most != "" {
		fmt.Fprintf(table, "%s %d %s %s..%s %s\n", c.name, at, kind, least, most, told)
	}
}

// edge is the good number that is next to a bad one, between the two.
func edge(bad, good int64, is func(int64) bool) int64 {
	for bad-good > 1 || good-bad > 1 {
		if middle := good + (bad-good)/2; is(middle) {
			bad = middle
		} else {
			good = middle
		}
	}
	return good
}

// relative writes an instant as a distance to now. What is left of the whole numbers behind now is no limit of its own.
func (w *env) relative(n int64) string {
	instant := func(n int64) bool { return n > 1e12 && n < 1e13 }
	switch {
	case instant(n):
		return fmt.Sprintf("now%+d", n-w.now())
	case instant(1<<53 - n):
		return ""
	}
	return strconv.FormatInt(n, 10)
}
