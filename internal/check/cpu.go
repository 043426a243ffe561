package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

const (
	// cpuRecords has a file for each package and tier that was run here, written by tools/cputime.
	cpuRecords = ".build/cpu"
	// cpuTable is the committed share of each of them in the processor time of a whole run, in percent.
	cpuTable = "internal/check/cpu.txt"

	// What takes less than this is not held to its share, in seconds.
	cpuFloor = 5
	// How many times its share a package may take.
	cpuSlack = 2
)

const cpuHead = `# How much of the processor time of all tests each package takes, in percent, by tier. make test-all fails when one takes
# twice as much and more than five seconds. After a change that is meant: make test-all, then go run ./internal/check -cpu -write.
`

// cpuRows reads "package tier number" lines; the same package and tier count together.
func cpuRows(text []byte) (map[string]float64, error) {
	rows := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var name, tier string
		var n float64
		if _, err := fmt.Sscan(line, &name, &tier, &n); err != nil {
			return nil, fmt.Errorf("%q: want package, tier and number: %w", line, err)
		}
		rows[name+" "+tier] += n
	}
	return rows, nil
}

// cpuTaken reads the records of a run, in seconds.
func cpuTaken(tree fs.FS) (map[string]float64, error) {
	files, err := fs.Glob(tree, cpuRecords+"/*")
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, name := range files {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		all.Write(text)
	}
	return cpuRows(all.Bytes())
}

// cpuBreaches reports what took more than its share allows. Packages that were not run count with their share, so the
// others are judged as in a whole run. A run of less than half of all tests says nothing.
func cpuBreaches(taken, shares map[string]float64) (breaches []string) {
	ran, missing, whole := 0.0, 0.0, 0.0
	for key, share := range shares {
		whole += share
		if _, ok := taken[key]; !ok {
			missing += share
		}
	}
	for _, seconds := range taken {
		ran += seconds
	}
	if missing >= whole/2 {
		return nil
	}
	total := ran / (1 - missing/whole)
	for _, key := range slices.Sorted(maps.Keys(taken)) {
		if seconds := taken[key]; seconds > cpuFloor && seconds/total*100 > cpuSlack*shares[key] {
			breaches = append(breaches,
				fmt.Sprintf("%s: its tests took %.1f s of processor time, %.1f %% of the run; %s says %.1f %%",
					key, seconds, seconds/total*100, cpuTable, shares[key]))
		}
	}
	return breaches
}

// cpuShares is the table of a run.
func cpuShares(taken map[string]float64) []byte {
	total := 0.0
	for _, seconds := range taken {
		total += seconds
	}
	var b bytes.Buffer
	b.WriteString(cpuHead)
	keys := slices.SortedFunc(maps.Keys(taken), func(a, b string) int {
		return cmp.Or(cmp.Compare(taken[b], taken[a]), strings.Compare(a, b))
	})
	for _, key := range keys {
		fmt.Fprintf(&b, "%s %.1f\n", key, max(0.1, taken[key]/total*100))
	}
	return b.Bytes()
}
