package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/batches"
	"github.com/flowfabric/flowfabric-go/benchmarks/crash"
	"github.com/flowfabric/flowfabric-go/benchmarks/devserver"
	"github.com/flowfabric/flowfabric-go/benchmarks/gateway"
	"github.com/flowfabric/flowfabric-go/benchmarks/lists"
	"github.com/flowfabric/flowfabric-go/benchmarks/primaries"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/steady"
)

// commands are what the program does besides measuring.
var commands = map[string]func(ctx context.Context, args []string, out, progress io.Writer) error{
	"against": measureAgainst,
	"report":  writeReport,
	"guard":   guardRatios,
	"http":    measureHTTP,
	"scale":   predictScale,
	"batches": measureBatches,
	"steady":  loadForHours,
	"crash":   killAgents,

	"embedded":  measureEmbedded,
	"lists":     measureLists,
	"outbox":    measureOutbox,
	"primaries": measurePrimaries,
}

// command parses the flags of a command, whose usage is a line.
func command(name, usage string, args []string, progress io.Writer, declare func(*flag.FlagSet)) ([]string, error) {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(progress)
	f.Usage = func() {
		fmt.Fprintf(progress, "Usage: go run . %s %s\n", name, usage)
		f.PrintDefaults()
	}
	declare(f)
	err := f.Parse(args)
	return f.Args(), err
}

func writeReport(_ context.Context, args []string, out, progress io.Writer) error {
	var path string
	args, err := command("report", "[-o results/REPORT.md] run.json [more.json …]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&path, "o", "results/REPORT.md",
				"file of the report; the tables of each run go into the directory tables beside it")
		})
	if err != nil {
		return err
	}
	runs, err := report.ReadAll(args)
	if err != nil {
		return err
	}
	if err := report.Save(path, runs); err != nil {
		return err
	}
	fmt.Fprintf(out, "report in %s\n", path)
	return nil
}

func measureBatches(ctx context.Context, args []string, out, progress io.Writer) error {
	o := batches.Options{Sizes: []int{0, 10, 32, 64}, Wait: 10 * time.Millisecond}
	if _, err := command("batches",
		"[-server redis-server] [-rounds 5] [-n 20000] [-c 64] [-connections 8] [-call 1ms]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start")
			f.IntVar(&o.Rounds, "rounds", 5, "rounds, of which the medians count")
			f.IntVar(&o.Jobs, "n", 20_000, "jobs of a round")
			f.IntVar(&o.Concurrency, "c", 64, "concurrency of the worker, 64 or more")
			f.IntVar(&o.Connections, "connections", 8, "calls that the database takes at once")
			f.DurationVar(&o.Call, "call", time.Millisecond, "how long a call takes, whatever the number of rows")
		}); err != nil {
		return err
	}
	if o.Rounds < 1 || o.Jobs < 1 || o.Concurrency < 64 || o.Connections < 1 || o.Call < 0 {
		return fmt.Errorf(
			"batches: -rounds %d, -n %d, -c %d, -connections %d, -call %s: want 1 or more, and a concurrency of at least 64",
			o.Rounds, o.Jobs, o.Concurrency, o.Connections, o.Call)
	}
	return batches.Run(ctx, o, out)
}

func measureEmbedded(ctx context.Context, args []string, out, progress io.Writer) error {
	var o devserver.Options
	if _, err := command("embedded", "[-server redis-server] [-rounds 7] [-n 2000]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start beside it")
			f.IntVar(&o.Rounds, "rounds", 7, "rounds, of which the medians count")
			f.IntVar(&o.Jobs, "n", 2000, "jobs of a round")
		}); err != nil {
		return err
	}
	if o.Rounds < 1 || o.Jobs < 2 {
		return fmt.Errorf("embedded: -rounds %d, -n %d: want at least one round and two jobs", o.Rounds, o.Jobs)
	}
	return devserver.Run(ctx, o, out)
}

func measureLists(ctx context.Context, args []string, out, progress io.Writer) error {
	var o lists.Options
	if _, err := command("lists", "[-server redis-server] [-n 1000000] [-partitions 64] [-samples 20]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start")
			f.IntVar(&o.Items, "n", 1_000_000, "executions, at least 25000")
			f.IntVar(&o.Partitions, "partitions", 64, "of the store")
			f.IntVar(&o.Samples, "samples", 20, "of each page")
		}); err != nil {
		return err
	}
	if o.Items < 25_000 || o.Samples < 1 || o.Partitions < 1 || o.Partitions > 1024 {
		return fmt.Errorf("lists: -n %d, -samples %d, -partitions %d: want at least 25000, 1 and 1..1024", o.Items,
			o.Samples, o.Partitions)
	}
	return lists.Run(ctx, o, out)
}

// measurePrimaries starts clusters and clients, or is one of these clients.
func measurePrimaries(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 && args[0] == "client" {
		return primaries.Client(ctx, args[1:], os.Stdin, out)
	}
	o := primaries.Options{}
	if _, err := command("primaries", "[-server redis-server] [-most 3] [-n 20000] [-c 64] [-partitions 64] [-json f]",
		args, progress, func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start")
			f.IntVar(&o.Most, "most", 3, "primaries, each with a client process")
			f.IntVar(&o.Jobs, "n", 20_000, "jobs of each client")
			f.IntVar(&o.Concurrency, "c", 64, "handlers and submitting goroutines of each client")
			f.IntVar(&o.Partitions, "partitions", 64, "of the store")
			f.StringVar(&o.JSON, "json", "", "file for the figures")
		}); err != nil {
		return err
	}
	if o.Most < 1 || o.Jobs < 1 || o.Concurrency < 1 || o.Partitions < o.Most || o.Partitions > 1024 {
		return fmt.Errorf("primaries: -most %d, -n %d, -c %d, -partitions %d: want 1 or more, and a partition for each",
			o.Most, o.Jobs, o.Concurrency, o.Partitions)
	}
	_, err := primaries.Run(ctx, o, out)
	return err
}

func loadForHours(ctx context.Context, args []string, out, progress io.Writer) error {
	var o steady.Options
	if _, err := command("steady",
		"[-server redis-server] [-for 6h] [-every 1m] [-rest 100ms] [-keep 30s] [-twins 2] [-only plain] [-dir d]",
		args, progress, func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start")
			f.DurationVar(&o.For, "for", 6*time.Hour, "how long work is submitted")
			f.DurationVar(&o.Every, "every", time.Minute, "between two samples")
			f.DurationVar(&o.Rest, "rest", 100*time.Millisecond, "of a producer between two pieces of work")
			f.DurationVar(&o.Keep, "keep", 30*time.Second, "retention of all work, 1s or more")
			f.IntVar(&o.Twins, "twins", 2, "producers of each kind of work")
			f.StringVar(&o.Only, "only", "", "the one kind of work to submit, such as plain (default all)")
			f.StringVar(&o.Dir, "dir", "",
				"keep store and samples here; a run that was killed goes on when it is begun again with the same flags")
		}); err != nil {
		return err
	}
	if o.For <= 0 || o.Every <= 0 || o.Rest < 0 || o.Keep < time.Second || o.Twins < 1 {
		return fmt.Errorf(
			"steady: -for %s, -every %s, -rest %s, -keep %s, -twins %d: want more than nothing, and a retention of at least a second",
			o.For, o.Every, o.Rest, o.Keep, o.Twins)
	}
	return steady.Run(ctx, o, out)
}

func measureHTTP(ctx context.Context, args []string, out, progress io.Writer) error {
	var o gateway.Options
	if _, err := command("http",
		"[-server redis-server] [-readers 1000]", args, progress, func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program to start")
			f.IntVar(&o.Readers, "readers", 1000, "readers of one execution")
		}); err != nil {
		return err
	}
	return gateway.Run(ctx, o, out)
}

// killAgents kills the workers of agents, or is one of them.
func killAgents(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 && args[0] == "worker" {
		return crash.Work(ctx, args[1:])
	}
	var o crash.Options
	var systems string
	if _, err := command("crash",
		"[-server redis-server] [-systems all] [-most 0] [-lanes 2] [-o results/crash.md] [-points]", args, progress,
		func(f *flag.FlagSet) {
			f.StringVar(&o.Server, "server", "redis-server", "program of the store of those that need Redis")
			f.StringVar(&systems, "systems", "all", "comma-separated: "+strings.Join(crash.Names(), ","))
			f.IntVar(&o.Most, "most", 0, "kills of each kind at most, spread evenly; 0: every write and every step")
			f.IntVar(&o.Lanes, "lanes", 2, "runs of a system at once, 1..32")
			f.StringVar(&o.Out, "o", "results/crash.md", "file of the page, if all systems run; empty for none")
			f.BoolVar(&o.Points, "points", false, "print each run")
		}); err != nil {
		return err
	}
	if o.Most < 0 || o.Lanes < 1 || o.Lanes > 32 {
		return fmt.Errorf("crash: -most %d, -lanes %d: want 0 or more kills, and 1..32 runs at once", o.Most, o.Lanes)
	}
	if systems != "all" {
		o.Systems, o.Out = strings.Split(systems, ","), ""
	}
	return crash.Run(ctx, o, out, progress)
}
