package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/bounds"
	"github.com/flowfabric/flowfabric-go/benchmarks/cost"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scenario"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/asynq"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/bullmq"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/flowfabric"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/raw"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/river"
)

// costName and boundsName are the scenarios that are not about systems but about the functions of the library.
const (
	costName   = "cost"
	boundsName = "bounds"
)

// known are the systems that -system may name.
var known = map[string]func(options) driver.System{
	"flowfabric": func(o options) driver.System { return flowfabric.System{Program: o.server} },
	"flowfabric-valkey": func(options) driver.System {
		return flowfabric.System{Title: "flowfabric-valkey", Program: "valkey-server"}
	},
	"flowfabric-cluster": func(o options) driver.System {
		return flowfabric.System{Title: "flowfabric-cluster", Program: o.server, Cluster: true}
	},
	"asynq":        func(o options) driver.System { return asynq.Default(o.server) },
	"asynq-delete": func(o options) driver.System { return asynq.Delete(o.server) },
	"asynq-tuned":  func(o options) driver.System { return asynq.Tuned(o.server) },
	"bullmq":       func(o options) driver.System { return bullmq.System{Program: o.server} },
	"bullmq-2":     func(o options) driver.System { return bullmq.System{Program: o.server, Processes: 2} },
	"raw":          func(o options) driver.System { return raw.System{Program: o.server} },
	"river":        func(options) driver.System { return river.System{} },
	"river-tuned":  func(options) driver.System { return river.System{Tuned: true} },
}

// options are the flags.
type options struct {
	scenarios, systems []string
	server, json       string
	sizes              scenario.Options
}

func parse(args []string, errors io.Writer) (o options, err error) {
	f := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	f.SetOutput(errors)
	f.Usage = func() { usage(f) }
	scenarios := f.String("scenarios", "all", "comma-separated scenarios, or all")
	systems := f.String("system", "flowfabric", "comma-separated systems, or all: "+strings.Join(names(), ", "))
	f.StringVar(&o.server, "server", "redis-server", "server program to start: redis-server, valkey-server or a path")
	f.StringVar(&o.json, "json", "", "file for the JSON document with every round's raw numbers")
	s := &o.sizes
	f.IntVar(&s.Items, "n", 20_000,
		"jobs per round of submit, drain, lifecycle; items in cost; a fifth of the frames in append")
	f.IntVar(&s.Payload, "payload", 256, "bytes of a job's payload and of a frame")
	f.DurationVar(&s.Work, "work", 0, "how long a handler takes in drain and lifecycle, at most 1s")
	f.BoolVar(&s.Raw, "raw", false,
		"jobs of bytes without results everywhere, instead of typed ones: JSON documents with results")
	f.IntVar(&s.Concurrency, "c", 64, "submitting goroutines, handlers of a worker, streams appended to")
	f.IntVar(&s.Batch, "batch", 32, "frames per append")
	f.IntVar(&s.Partitions, "partitions", 64, "partitions of a store")
	f.IntVar(&s.Rounds, "rounds", 3, "rounds of every scenario; the median counts")
	f.IntVar(&s.Samples, "samples", 1000, "samples per round of latency; a fifth of those of tail")
	f.IntVar(&s.Tailers, "tailers", 1000, "followers in the larger parts of tail")
	f.IntVar(&s.Held, "held", 10_000, "jobs counted in memory, at most 10000")
	f.IntVar(&s.Workers, "workers", 64, "workers in idle")
	f.IntVar(&s.Members, "members", 1000,
		"members of a flow in flow (ten times as many in its largest part) and bounds, at most 1000")
	f.DurationVar(&s.Window, "window", 4*time.Second, "how long idle watches the server")
	f.DurationVar(&s.Settle, "settle", 2*time.Second, "rest before a window")
	f.DurationVar(&s.Pause, "pause", 5*time.Millisecond, "rest before each sample of one job at a time")
	sleeps := f.String("sleeps", "1ms,2ms,5ms,10ms,20ms,50ms,100ms",
		"comma-separated times that handlers take in sleep, ascending")
	handlers := f.String("handlers", "64,256,1000", "comma-separated numbers of handlers at once in sleep, ascending")
	growth := f.String("growth", "10000,100000", "comma-separated numbers of jobs that wait in growth, ascending")
	f.StringVar(&s.ProfileDir, "profiles", "",
		"directory for processor profiles of the measured parts: .pprof of this process, .perf of the server if perf is there")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; options begin with a dash, see -h", f.Arg(0))
	}
	if s.Growth, err = ascending("growth", *growth, 100, 10_000_000); err != nil {
		return o, err
	}
	if s.Handlers, err = ascending("handlers", *handlers, 1, 10_000); err != nil {
		return o, err
	}
	for _, text := range strings.Split(*sleeps, ",") {
		d, err := time.ParseDuration(text)
		if err != nil || d < 100*time.Microsecond || d > time.Second ||
			len(s.Sleeps) > 0 && d <= s.Sleeps[len(s.Sleeps)-1] {
			return o, fmt.Errorf("-sleeps: %q in %q, want ascending times of 100µs..1s", text, *sleeps)
		}
		s.Sleeps = append(s.Sleeps, d)
	}
	return o, o.choose(*scenarios, *systems)
}

// ascending reads a list of at most eight numbers.
func ascending(flag, text string, least, most int) (out []int, err error) {
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < least || n > most {
			return nil, fmt.Errorf("-%s: %q in %q, want numbers of %d..%d", flag, part, text, least, most)
		}
		if len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("-%s is %q, want ascending numbers", flag, text)
		}
		out = append(out, n)
	}
	if len(out) > 8 {
		return nil, fmt.Errorf("-%s has %d numbers, want at most 8", flag, len(out))
	}
	return out, nil
}

// choose checks what was asked for.
func (o *options) choose(scenarios, systems string) error {
	all := scenarioNames()
	if o.scenarios = all; scenarios != "all" {
		o.scenarios = strings.Split(scenarios, ",")
	}
	for _, name := range o.scenarios {
		if !slices.Contains(all, name) {
			return fmt.Errorf("-scenarios: unknown scenario %q, want some of %s", name, strings.Join(all, ","))
		}
	}
	if o.systems = names(); systems != "all" {
		o.systems = strings.Split(systems, ",")
	}
	for _, name := range o.systems {
		if known[name] == nil {
			return fmt.Errorf("-system: unknown system %q, want some of %s", name, strings.Join(names(), ","))
		}
	}
	s := o.sizes
	for _, n := range []struct {
		flag             string
		got, least, most int
	}{
		{"n", s.Items, 1, 10_000_000}, {"payload", s.Payload, 1, 64 << 10}, {"c", s.Concurrency, 1, 10_000},
		{"batch", s.Batch, 1, 100},
		{"partitions", s.Partitions, 1, 1024}, {"rounds", s.Rounds, 1, 1000}, {"samples", s.Samples, 1, 1_000_000},
		{"tailers", s.Tailers, 1, 10_000}, {"held", s.Held, 1, 10_000}, {"workers", s.Workers, 1, 1000},
		{"members", s.Members, 128, 1000},
	} {
		if n.got < n.least || n.got > n.most {
			return fmt.Errorf("-%s is %d, want %d..%d", n.flag, n.got, n.least, n.most)
		}
	}
	if s.Work < 0 || s.Work > time.Second {
		return fmt.Errorf("-work is %v, want 0..1s", s.Work)
	}
	if s.Window <= 0 || s.Settle < 0 || s.Pause < 0 {
		return fmt.Errorf("want -window above 0, -settle and -pause not below it")
	}
	return nil
}

func scenarioNames() []string {
	var out []string
	for _, s := range scenario.All {
		out = append(out, s.Name)
	}
	return append(out, costName, boundsName)
}

// names are the known systems: FlowFabric first, the ceiling last, the others in alphabetical order.
func names() []string {
	place := func(name string) int {
		switch {
		case strings.HasPrefix(name, "flowfabric"):
			return 0
		case name == "raw":
			return 2
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a, b))
	})
}

func usage(f *flag.FlagSet) {
	out := f.Output()
	fmt.Fprint(out, "Usage: go run . [options]; go run . COMMAND -h tells of the\n"+
		"commands against, batches, crash, embedded, guard, http, lists, outbox, primaries, report, scale, steady\n\n"+
		"Every scenario starts private servers, on unix sockets and without a disk, and ends them.\n\nScenarios:\n")
	for _, s := range scenario.All {
		fmt.Fprintf(out, "  %-10s %s\n", s.Name, s.About)
	}
	fmt.Fprintf(out, "  %-10s %s\n", costName,
		"what a call of each function costs the server, against the project's budgets")
	fmt.Fprintf(out, "  %-10s %s\n\nOptions:\n", boundsName,
		"the longest calls about flows that the documented limits allow, against 5 ms")
	f.PrintDefaults()
}

// cost gives every partition 64 items or more, as that scenario needs.
func (o options) cost() cost.Options {
	s := o.sizes
	return cost.Options{Server: o.server, Items: max(s.Items, 65*s.Partitions), Rounds: s.Rounds, Payload: s.Payload,
		Partitions: s.Partitions, Logger: slog.New(slog.DiscardHandler)}
}

func (o options) bounds() bounds.Options {
	s := o.sizes
	return bounds.Options{Server: o.server, Rounds: s.Rounds, Members: s.Members, Logger: slog.New(slog.DiscardHandler)}
}

func (o options) settings() report.Settings {
	s := o.sizes
	return report.Settings{Server: o.server, Scenarios: o.scenarios, Rounds: s.Rounds, Items: s.Items,
		Payload: s.Payload, Work: s.Work.String(), Concurrency: s.Concurrency, Batch: s.Batch, Partitions: s.Partitions,
		Samples: s.Samples, Tailers: s.Tailers, Held: s.Held, Workers: s.Workers, Members: s.Members, Growth: s.Growth,
		Window: s.Window.String(), Settle: s.Settle.String(), Pause: s.Pause.String()}
}
