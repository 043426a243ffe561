package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
)

// The driver of a cluster closes its former connections after a rest of its own, even when it was closed itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// small is a run of everything that takes seconds.
var small = strings.Fields(
	"-n 300 -payload 64 -c 8 -batch 10 -partitions 4 -rounds 2 -samples 20 -tailers 5 -held 100" +
		" -workers 3 -members 128 -growth 200,400 -sleeps 1ms,5ms -handlers 4,8 -window 300ms -settle 100ms")

// needRedis skips a test that cannot run without redis-server.
func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("redis-server is not installed (CI is set, so this is a failure)")
	}
	t.Skip("redis-server is not installed; see make deps")
}

// measured runs the program with args and returns its JSON document and its tables.
func measured(t *testing.T, args ...string) (report.Document, string) {
	t.Helper()
	needRedis(t)
	path := filepath.Join(t.TempDir(), "results", "run.json")
	var tables bytes.Buffer
	if err := run(t.Context(), append(args, "-json", path), &tables, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d report.Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d, tables.String()
}

// positive are the figures that every variant of a scenario must have, above zero, in every round.
var positive = map[string][]string{
	"submit": {measure.Throughput, measure.P50, measure.P99, measure.ServerItem, measure.ClientItem,
		measure.CallsItem, measure.CmdsItem},
	"drain": {measure.Throughput, measure.ServerItem, measure.ClientItem, measure.CallsItem, measure.CmdsItem},
	"lifecycle": {measure.Throughput, measure.ServerItem, measure.ClientItem, measure.CallsItem, measure.CmdsItem,
		measure.AllocItem},
	"latency": {measure.P50, measure.P99, measure.ServerItem, measure.ClientItem, measure.CallsItem},
	"sleep":   {measure.Throughput, measure.OfIdeal, measure.AtOnce, measure.ServerItem, measure.CallsItem},
	"claims":  {measure.Throughput, measure.P50, measure.ServerItem, measure.CallsItem},
	"append": {measure.Throughput, measure.P50, measure.ServerItem, measure.RawPerSec, measure.RawRatio,
		measure.RawServer},
	"tail":    {measure.P50, measure.P99, measure.ServerItem, measure.CallsItem},
	"suspend": {measure.P50, measure.P99, measure.ServerItem, measure.CallsItem},
	"idle":    {measure.ServerCPU, measure.ClientCPU},
	"growth":  {measure.Throughput, measure.ServerItem, measure.CallsItem, measure.CmdsItem},
	"calls":   {measure.Throughput, measure.P50, measure.P99, measure.ServerItem},
	"cleanup": {measure.Throughput, measure.P50, measure.ServerItem, measure.CmdsItem},
}

// present are figures whose size says nothing at so few jobs: the server's own memory moves more than theirs.
var present = map[string][]string{"memory": {measure.Waiting, measure.Active, measure.Done, measure.Parked},
	"suspend": {measure.Parked}, "flow": {measure.Items}, "partitions": {}}

// exact are figures that are no matter of speed.
var exact = map[string]map[string]float64{
	"drain":     {measure.Retained: 300},
	"lifecycle": {measure.Retained: 300},
	"latency":   {measure.Items: 20},
	"suspend":   {measure.Items: 20},
	"append":    {measure.Items: 1440}, // 18 calls to each of 8 streams, 10 frames each
	"idle":      {measure.Workers: 3},
	"memory":    {measure.Items: 100, measure.Retained: 104}, // and one before, for every partition
}

// exactOf are figures of variants that are no matter of speed.
var exactOf = map[string]map[string]map[string]float64{
	"growth": {
		"submit, 400 waiting":               {measure.Items: 100},
		"submit 100 at a time, 200 waiting": {measure.Items: 100, measure.CallsItem: 0.01},
		"submit, routes: 100":               {measure.Items: 100, measure.CallsItem: 1},
		"submit, namespaces: 400":           {measure.Items: 100, measure.CallsItem: 1},
	},
	"partitions": {
		"submit, 16 partitions": {measure.Items: 300},
		"drain, 1 partitions":   {measure.Retained: 330}, // and those that warmed up
		"drain, 256 partitions": {measure.Retained: 330},
		"idle, 256 partitions":  {measure.Workers: 3},
	},
	"sleep": {
		"1ms, 4 handlers": {measure.Retained: 280}, // whole tens of rounds
		"5ms, 8 handlers": {measure.Retained: 240},
	},
	"claims": {
		"1 a call":            {measure.Items: 75},
		"100 a call, settled": {measure.Items: 300},
	},
	"calls": {
		"nothing, one goroutine": {measure.Items: 75, measure.CmdsItem: 1},
		"lightest, 8 goroutines": {measure.Items: 296, measure.CallsItem: 1}, // 37 by each
		"nothing, 8 goroutines":  {measure.Items: 296, measure.CallsItem: 1},
	},
}

// executed are commands of the measured part whose number is no matter of speed.
var executed = map[string]map[string]float64{
	"append": {"xadd": 144}, // every batch of frames was stored
}

var variants = map[string]int{"drain": 2, "lifecycle": 2, "sleep": 4, "claims": 8, "submit": 3, "tail": 3, "flow": 6,
	"cleanup": 4, "growth": 24, "partitions": 12, "calls": 4}

func TestEverything(t *testing.T) {
	d, tables := measured(t, small...)
	seen := map[string]int{}
	named := map[string]bool{}
	for _, r := range d.Results {
		seen[r.Scenario]++
		named[r.Scenario+" "+r.Variant] = true
		if len(r.Rounds) != 2 || r.System != "flowfabric" || !strings.HasPrefix(r.Server, "redis 7") {
			t.Errorf("%s %s: %d rounds of %s on %s", r.Scenario, r.Variant, len(r.Rounds), r.System, r.Server)
		}
		for i, round := range r.Rounds {
			for _, figure := range positive[r.Scenario] {
				if round.Figures[figure] <= 0 {
					t.Errorf("%s %s, round %d: %s is %v", r.Scenario, r.Variant, i, figure, round.Figures[figure])
				}
			}
			for _, figure := range present[r.Scenario] {
				if _, ok := round.Figures[figure]; !ok {
					t.Errorf("%s %s, round %d: no %s", r.Scenario, r.Variant, i, figure)
				}
			}
			for figure, want := range exact[r.Scenario] {
				if round.Figures[figure] != want {
					t.Errorf("%s %s, round %d: %s is %v, want %v", r.Scenario, r.Variant, i, figure,
						round.Figures[figure], want)
				}
			}
			for figure, want := range exactOf[r.Scenario][r.Variant] {
				if round.Figures[figure] != want {
					t.Errorf("%s %s, round %d: %s is %v, want %v", r.Scenario, r.Variant, i, figure,
						round.Figures[figure], want)
				}
			}
			for command, want := range executed[r.Scenario] {
				if got := round.Commands[command].Calls; got != want {
					t.Errorf("%s %s, round %d: %v calls of %s, want %v", r.Scenario, r.Variant, i, got, command, want)
				}
			}
			if round.Figures[measure.P99] < round.Figures[measure.P50] {
				t.Errorf("%s %s: p99 %v is below p50 %v", r.Scenario, r.Variant, round.Figures[measure.P99],
					round.Figures[measure.P50])
			}
		}
		for figure, s := range r.Summary {
			if s.Min > s.Median || s.Median > s.Max {
				t.Errorf("%s %s: %s is %+v", r.Scenario, r.Variant, figure, s)
			}
		}
	}
	for name, of := range exactOf {
		for variant := range of {
			if !named[name+" "+variant] {
				t.Errorf("%s has no variant %q", name, variant)
			}
		}
	}
	for _, s := range scenario.All {
		if seen[s.Name] != max(variants[s.Name], 1) {
			t.Errorf("%s has %d results", s.Name, seen[s.Name])
		}
		if !strings.Contains(tables, "\n"+s.Name+" (redis") {
			t.Errorf("no table of %s in\n%s", s.Name, tables)
		}
	}
	if !strings.Contains(tables, "claims/s") {
		t.Errorf("no claim throughput in\n%s", tables)
	}
	if d.Cost == nil || len(d.Cost.Costs) == 0 || d.Cost.Costs[0].Micros <= 0 || !strings.Contains(tables, "budget") {
		t.Errorf("cost: %+v", d.Cost)
	}
	if d.Bounds == nil || len(d.Bounds.Calls) < 20 || d.Bounds.Calls[0].Longest <= 0 ||
		!strings.Contains(tables, "bounds: redis") {
		t.Errorf("bounds: %+v", d.Bounds)
	}
	m := d.Machine
	if d.Format != report.Format || d.Took <= 0 || m.Cores < 1 || m.CPU == "" || !strings.HasPrefix(m.Go, "go1") ||
		d.Settings.Items != 300 {
		t.Errorf("head of the document: %+v, %+v", m, d.Settings)
	}
}

// Jobs are handled once and nothing else is measured than what is asked for.
func TestOneScenario(t *testing.T) {
	profiles := filepath.Join(t.TempDir(), "profiles")
	d, tables := measured(t, append(small, "-scenarios", "drain", "-profiles", profiles)...)
	if len(d.Results) != 2 || d.Results[0].Scenario != "drain" || d.Cost != nil || strings.Contains(tables, "submit") {
		t.Errorf("%+v\n%s", d, tables)
	}
	if calls := d.Results[0].Rounds[0].Commands["fcall"].Calls; calls < 1 {
		t.Errorf("drain made %v function calls", calls)
	}
	for _, round := range []string{"0", "1"} {
		if info, err := os.Stat(filepath.Join(profiles, "flowfabric-drain-"+round+".pprof")); err != nil ||
			info.Size() == 0 {
			t.Errorf("profile of round %s: %v", round, err)
		}
	}
}

// Jobs go the same way on another server and on a cluster of three, and what all nodes did is added up.
func TestOtherServers(t *testing.T) {
	d, tables := measured(t, append(small, "-system", "flowfabric,flowfabric-valkey,flowfabric-cluster", "-scenarios",
		"drain,lifecycle,append,calls")...)
	for _, r := range d.Results {
		if r.System == "flowfabric-valkey" && r.NotAvailable() != "" {
			fmt.Fprintf(os.Stderr, "\n!!! NOT MEASURED: %s\n\n", r.NotAvailable())
			if os.Getenv("CI") != "" {
				t.Errorf("%s (CI is set, so this is a failure)", r.NotAvailable())
			}
			continue
		}
		server := map[string]string{"flowfabric": "redis 7", "flowfabric-valkey": "valkey ",
			"flowfabric-cluster": "cluster of 3, redis 7"}[r.System]
		if !strings.HasPrefix(r.Server, server) || !strings.Contains(tables, r.Server) {
			t.Errorf("%s of %s ran on %q, want %s…", r.Scenario, r.System, r.Server, server)
		}
		for i, round := range r.Rounds {
			if n := round.Figures[measure.Items]; r.Scenario == "calls" {
				// the driver asks a silent server
				calls := math.Round(round.Figures[measure.CallsItem]*n) - round.Commands["ping"].Calls
				if calls != n {
					t.Errorf("%s of %s: %v calls for %v items", r.Variant, r.System, calls, n)
				}
			}
			for figure, want := range exact[r.Scenario] {
				if round.Figures[figure] != want {
					t.Errorf("%s of %s, round %d: %s is %v, want %v", r.Scenario, r.System, i, figure,
						round.Figures[figure], want)
				}
			}
			if want := executed[r.Scenario]["xadd"]; round.Commands["xadd"].Calls != want {
				t.Errorf("%s of %s, round %d: %v batches of frames are stored, want %v", r.Scenario, r.System, i,
					round.Commands["xadd"].Calls, want)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-scenarios nothing": "unknown scenario",
		"-system postgres":   "unknown system",
		"-n 0":               "-n is 0",
		"-held 20000":        "-held is 20000",
		"-window 0s":         "-window",
		"drain":              "unknown argument",
		"-growth 50":         "-growth: \"50\"",
		"-growth 200,100":    "-growth is \"200,100\", want ascending",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	for _, name := range scenarioNames() {
		if !strings.Contains(help.String(), "\n  "+name+" ") {
			t.Errorf("the help does not tell of %s:\n%s", name, help.String())
		}
	}
}

// Systems are measured in the order in which they are known: FlowFabric first, the ceiling last.
func TestAllSystems(t *testing.T) {
	o, err := parse([]string{"-system", "all"}, io.Discard)
	if err != nil || len(o.systems) != len(known) || o.systems[0] != "flowfabric" ||
		o.systems[len(o.systems)-1] != "raw" {
		t.Errorf("all systems are %v: %v", o.systems, err)
	}
	if o, err := parse(nil, io.Discard); err != nil || !slices.Equal(o.systems, []string{"flowfabric"}) {
		t.Errorf("without a flag the systems are %v: %v", o.systems, err)
	}
	d, tables := measured(t,
		append(small, "-rounds", "1", "-scenarios", "drain,append", "-system", "flowfabric,asynq-tuned,raw")...)
	for i, want := range []string{"flowfabric", "asynq-tuned", "raw"} {
		if r := d.Results[i]; r.System != want || r.Summary[measure.Throughput].Median <= 0 ||
			d.Systems[i].Name != want {
			t.Errorf("result %d is of %s, want %s: %+v", i, r.System, want, r.Summary)
		}
		if r := d.Results[6+i]; r.Scenario != "append" || (r.NotAvailable() == "") != (want == "flowfabric") {
			t.Errorf("append of %s: %q, %+v", want, r.NotAvailable(), r.Summary)
		}
	}
	if !strings.Contains(tables, "n/a: ") {
		t.Errorf("the tables do not say what is lacking:\n%s", tables)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	err := run(t.Context(), []string{"-server", "/nowhere/redis-server", "-scenarios", "drain"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "/nowhere/redis-server") {
		t.Errorf("%v, want an error that names the program", err)
	}
}
