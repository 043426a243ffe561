package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A mutant of the library can be noticed only by scenarios that run its block. Which these are is measured: the suite
// runs once with a library that writes every block into the server's log when a scenario enters it for the first
// time. The same run shows that the suite passes without a mutant.

// announce makes the suite write the name of each scenario into the server's log.
const announce = "FLOWFABRIC_ANNOUNCE"

// probe is the function that writes to the log. The library keeps what a scenario has entered, until the suite
// announces the next.
const probe = `
local entered = {}
function reply.enter(n)
  if not entered[n] then
    entered[n] = true
    redis.log(redis.LOG_WARNING, 'block ' .. n)
  end
end
function reply.forget() entered = {} end
`

// Scenario is what the measurement tells of one scenario.
type Scenario struct {
	Name   string // of the test
	Took   time.Duration
	Blocks []int
}

// Coverage says which scenarios run a block.
type Coverage struct {
	Scenarios []Scenario
	First     map[string]int // number of the first block of a file; the others follow

	mu     sync.Mutex
	killed map[string]map[int]int // by file, and by file and function: how many of its mutants a scenario noticed
}

// number gives each block of the library a number.
func (c *Coverage) number(chunks map[string]*chunk) {
	c.First, c.killed = map[string]int{}, map[string]map[int]int{}
	n := 0
	for _, file := range slices.Sorted(maps.Keys(chunks)) {
		c.First[file] = n
		n += len(chunks[file].Blocks)
	}
}

// probed is the text of a file with a probe at the beginning of each block.
func (c *Coverage) probed(file string, chunk *chunk) string {
	type insertion struct {
		at   int
		text string
	}
	var all []insertion
	for i, b := range chunk.Blocks {
		all = append(all, insertion{b[0], fmt.Sprintf(" reply.enter(%d); ", c.First[file]+i)})
	}
	const table = "local reply = {}"
	if at := strings.Index(chunk.Source, table); file == "lua/lib/reply.lua" && at >= 0 {
		all = append(all, insertion{at + len(table), probe})
	}
	if strings.HasSuffix(file, "/ff_boot.lua") {
		all[0].text = " if argv[1] == 'scenario' then reply.forget() end; " + all[0].text
	}
	slices.SortFunc(all, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	last := 0
	for _, x := range all {
		out.WriteString(chunk.Source[last:x.at] + x.text)
		last = x.at
	}
	return out.String() + chunk.Source[last:]
}

var logged = regexp.MustCompile(`^(\d+):\w (\d+ \w+ \d+ \d+:\d+:\d+\.\d+) # (scenario|block) (.*)$`)

// readLog fills in the scenarios from a log. Several servers may write to it, each with one scenario at a time.
func (c *Coverage) readLog(log []byte) error {
	type run struct {
		scenario    int
		began, last time.Time
		seen        map[int]bool
	}
	servers := map[string]*run{}
	finish := func(r *run) {
		s := &c.Scenarios[r.scenario]
		s.Took, s.Blocks = r.last.Sub(r.began), slices.Sorted(maps.Keys(r.seen))
	}
	for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
		m := logged.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		now, err := time.Parse("02 Jan 2006 15:04:05.000", m[2])
		if err != nil {
			return fmt.Errorf("log of the server: %w", err)
		}
		r := servers[m[1]]
		if r != nil {
			r.last = now
		}
		if m[3] == "scenario" {
			if r != nil {
				finish(r)
			}
			servers[m[1]] = &run{scenario: len(c.Scenarios), began: now, last: now, seen: map[int]bool{}}
			c.Scenarios = append(c.Scenarios, Scenario{Name: m[4]})
		} else if n, err := strconv.Atoi(m[4]); err == nil && r != nil {
			r.seen[n] = true
		}
	}
	for _, r := range servers {
		finish(r)
	}
	if len(c.Scenarios) == 0 {
		return fmt.Errorf("the log of the server names no scenario")
	}
	return nil
}

// of lists the scenarios that run a mutant, by number: those that noticed others of its function, then short ones
// that run little else. Those of a topic that the file is named after, and those that noticed mutants of the file,
// come earlier; every scenario ends with an audit, so for the audit itself this is what counts. What is in no
// function is run by whatever runs its file.
func (c *Coverage) of(m Mutant, chunk *chunk) []int {
	from, to := c.First[m.File]+m.Block, c.First[m.File]+m.Block
	if m.Block == top {
		from, to = c.First[m.File], c.First[m.File]+len(chunk.Blocks)-1
	}
	var out []int
	for i, s := range c.Scenarios {
		if at, _ := slices.BinarySearch(s.Blocks, from); at < len(s.Blocks) && s.Blocks[at] <= to {
			out = append(out, i)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	function, file := c.killed[m.File+" "+m.Function], c.killed[m.File]
	price := func(i int) int {
		topic, share := strings.Split(c.Scenarios[i].Name, "/")[1], 1+file[i]
		if strings.Contains(m.File, topic) {
			share += 4
		}
		return (int(c.Scenarios[i].Took.Milliseconds()) + len(c.Scenarios[i].Blocks)/8) / share
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(function[b], function[a]), cmp.Compare(price(a), price(b)))
	})
	return out
}

// noticed remembers that a scenario noticed a mutant.
func (c *Coverage) noticed(m Mutant, test string) {
	levels := strings.SplitN(test, "/", 4)
	i := slices.IndexFunc(c.Scenarios, func(s Scenario) bool {
		return s.Name == strings.Join(levels[:min(3, len(levels))], "/")
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, place := range []string{m.File + " " + m.Function, m.File} {
		if i >= 0 && c.killed[place] == nil {
			c.killed[place] = map[int]int{}
		}
		if i >= 0 {
			c.killed[place][i]++
		}
	}
}

// pattern runs these scenarios, and at most some more whose names are alike.
func (c *Coverage) pattern(which []int) string {
	var topics, names []string
	for _, i := range which {
		levels := strings.SplitN(c.Scenarios[i].Name, "/", 3)
		topics, names = append(topics, regexp.QuoteMeta(levels[1])),
			append(names, strings.ReplaceAll(regexp.QuoteMeta(levels[2]), "/", "."))
	}
	slices.Sort(topics)
	return "^TestRedis$/^(" + strings.Join(slices.Compact(topics), "|") + ")$/^(" + strings.Join(names, "|") + ")$"
}

// measure runs the suite with probes, or reads what an earlier run with the same suite and library kept.
func (t *Tester) measure(ctx context.Context) error {
	c := &Coverage{}
	c.number(t.Project.Chunks)
	bin, err := t.looseBinary(ctx)
	if err != nil {
		return err
	}
	kept, err := t.kept(bin)
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, &c.Scenarios) == nil && len(c.Scenarios) > 0 {
		t.Coverage = c
		return nil
	}
	changed := map[string]string{}
	for file, chunk := range t.Project.Chunks {
		changed[file] = c.probed(file, chunk)
	}
	dir, err := t.looseLua(changed)
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "server.log")
	out, err := t.looseTest(ctx, "^TestRedis$", dir, log, longest)
	if err != nil {
		return err
	}
	if verdict, detail, _ := judge(out, 1); verdict != Survived {
		return fmt.Errorf("the suite on the unchanged library: %s", detail)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	if err := c.readLog(text); err != nil {
		return err
	}
	t.Coverage = c
	if text, err = json.Marshal(c.Scenarios); err != nil {
		return err
	}
	return os.WriteFile(kept, text, 0o600)
}

// kept is the file that keeps a measurement, named after the suite and the library.
func (t *Tester) kept(bin string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "flowfabric-mutants")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	h := sha256.New()
	compiled, err := os.ReadFile(bin)
	if err != nil {
		return "", err
	}
	h.Write(compiled)
	for _, file := range slices.Sorted(maps.Keys(t.Project.Chunks)) {
		fmt.Fprintf(h, "%s\n%s", file, t.Project.Chunks[file].Source)
	}
	return filepath.Join(dir, hex.EncodeToString(h.Sum(nil)[:8])+".json"), nil
}

// serverDir makes a directory with a redis-server that has a limit of memory, since some mutants fill it, and the
// given log.
func (t *Tester) serverDir(dir, log string) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nulimit -v 4194304\nexec %q \"$@\"", program)
	if log != "" {
		script += fmt.Sprintf(" --logfile %q", log)
	}
	return os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script+"\n"), 0o755)
}
